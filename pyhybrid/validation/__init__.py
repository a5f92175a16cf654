"""Cross-language validation on this machine: designs, log-likelihoods, weights, posteriors.

====================== ===============================================================
part                   what is held against what
====================== ===============================================================
table                  outcome and design matrix: formulaic against R's model.matrix
same draws             numpy's log-likelihood, bounds and weights against Stan's and R's
posterior means        of the engines, in Monte Carlo standard errors
published programs     the papers' text by each engine against ours: `validate_published`
supplement             the user's printed script and program against ours: `validate_supplement`
====================== ===============================================================
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid
from pyhybrid.core.checks import check_choice, check_count
from pyhybrid.core.errors import EngineUnavailable, InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.engines import (
    ConvergenceRule,
    Draws,
    Engine,
    SamplerSettings,
    engine_by_name,
    resolve_engine,
)
from pyhybrid.fitting.session import FitProgress
from pyhybrid.models import Model, StanModel
from pyhybrid.rbridge import call_r, r_status, start_r
from pyhybrid.rbridge.session import version_of
from pyhybrid.validation import posterior
from pyhybrid.validation import published as papers
from pyhybrid.validation.comparison import Row, Validation

__all__ = ["Validation", "validate", "validate_published", "validate_supplement"]

_ENGINES = ("all", "auto", "cmdstan", "embedded")
_IN_PYTHON = ("embedded", "cmdstan")
_PACKAGES = ("numpy", "scipy", "pandas", "formulaic", "arviz", "rpy2", "stanli")
_R_PACKAGES = ("rstan", "StanHeaders", "matrixStats")


@bar_in_notebooks
def validate(
    data: pd.DataFrame | None = None,
    model: Model | str = "negative_binomial",
    *,
    engine: str = "all",
    quick: bool = False,
    seed: int = 1,
    settings: SamplerSettings | None = None,
    progress: FitProgress | None = None,
) -> Validation:
    """Compare Python with R on this machine.

    Parameters
    ----------
    data : DataFrame, optional
        A confidential table to compare on; a generated one if omitted.
    model : Model or str, default "negative_binomial"
        With `data` a model with its formula, e.g. ``ph.Poisson("visits ~ age")``; without, a
        model's name.
    engine : {"all", "auto", "cmdstan", "embedded"}
        Engine of Python's side: every one that is found, or one. R's side is rstan.
    quick : bool, default False
        Leave out rstan, which compiles for a minute when it meets a program first.
    seed : int, default 1
        All random numbers come from it. It is in the report.
    settings : SamplerSettings, optional
        Of the fits whose posterior means are compared.
    progress : callable, optional
        Called with (label, done, total).

    Raises
    ------
    EngineUnavailable
        If R, or rstan unless `quick`, cannot be used; names the cause and the remedy.
    InvalidInput
        For a table that a model or R cannot take (names the column), and for unknown names.
    NotConverged
        If an engine's chains do not converge: their means are then not comparable.
    """
    check_choice(engine, "engine", _ENGINES)
    source = streams(seed)
    own = data is not None
    if data is None and isinstance(model, str):
        data, model = posterior.generated_table(model, source.generator("generated table"))
    elif data is None or isinstance(model, str):
        raise InvalidInput(
            "a table and a model with its formula, such as ph.Poisson('visits ~ age'), must be "
            "given together; without a table, give the name of a model"
        )
    bound: Any = model.bind(data)
    if isinstance(model, StanModel) or bound.blocks:
        raise InvalidInput(
            "model must be built in, without zeros=, codes= and missing=, to be held against R"
        )
    start_r()
    engines, left_out = _engines(engine, quick=quick, against_r=True)
    settings = settings or SamplerSettings()
    rows = [*posterior.table_rows(bound)]
    draws, sides = list[Draws](), list[papers.Side]()
    data_of_stan = bound.stan_data(np.ones(bound.n), emit_log_lik=True)
    short = posterior.short_settings(int(data_of_stan["n"]))
    for runner in engines:  # writes its log_lik once, for a few draws
        draws.append(
            runner.sample(
                bound.program, data_of_stan, seed=source.engine_seed("same draws"), settings=short,
                progress=progress and partial(progress, f"log_lik by {runner.name}"),
            )
        )  # fmt: skip
        rows += posterior.same_draws_rows(bound, draws[-1], source.generator("loop"))
    how: Any = {"source": source, "settings": settings, "progress": progress}
    for runner in engines if len(engines) > 1 else ():
        alpha = sides[0].fits[1].alpha if sides else None  # the same weights for all engines
        side = papers.side_of(bound, engine=runner, rule=ConvergenceRule(), alpha=alpha, **how)
        sides.append(side)
    for k, name in enumerate(("unweighted", "weighted")):
        for side in sides[:-1]:
            rows += posterior.mean_rows(bound, name, side.fits[k], sides[-1].fits[k])
    draws += _draws_of(sides)
    said = {
        **{name: str(value) for name, value in model.describe().items()},
        "table": "the user's own table" if own else "generated table",
        "records": str(bound.n),
        "columns": str(data.shape[1]),
    }
    return _result(rows, draws, said, settings, source, own_data=own, left_out=left_out)


@bar_in_notebooks
def validate_published(
    program: str | None = None,
    *,
    engine: str = "all",
    quick: bool = False,
    seed: int = 1,
    records: int = 80,
    settings: SamplerSettings | None = None,
    progress: FitProgress | None = None,
) -> Validation:
    """Compare the papers' own programs with ours, by each engine at hand.

    Parameters
    ----------
    program : str, optional
        One of poisson, negative_binomial, beta, beta_regression and normal_mixture; all of them if
        omitted.
    engine, quick, seed, settings, progress
        As in `validate`; settings are 4 chains of 500 + 1000 iterations, adapt_delta 0.95 for
        published programs, if omitted.
    records : int, default 80
        Size of the part of each study's data. Published programs take seconds per hundred.

    Returns
    -------
    Validation
        A program whose chains do not converge disagrees, and says so.
    """
    check_choice(engine, "engine", _ENGINES)
    check_count(records, "records", at_least=20)
    source = streams(seed)
    cases = papers.study_cases(source.generator("data of studies"), records)
    if program is not None:
        name = check_choice(program, "model", tuple(cases))
        cases = {name: cases[name]}
    engines, left_out = _engines(engine, quick=quick, against_r=False)
    rows, sides = papers.published_rows(cases, engines, source, settings, progress)
    said = {"table": "the studies' data, simulated incomes", "records": str(records)}
    drawn, settings = _draws_of(sides), settings or papers.SETTINGS
    return _result(rows, drawn, said, settings, source, left_out=left_out)


@bar_in_notebooks
def validate_supplement(
    script: str | os.PathLike[str],
    program: str | os.PathLike[str] | None = None,
    *,
    engine: str = "auto",
    seed: int = 1,
    settings: SamplerSettings | None = None,
    progress: FitProgress | None = None,
) -> Validation:
    """Compare the printed script, and the printed program, of a supplement with ours.

    Parameters
    ----------
    script : path
        Your copy of the R script that the supplement of the earlier version of [V25] prints, as it
        is. It is code: R runs it with your rights. What it leaves undefined is supplied.
    program : path, optional
        Your copy of the Stan program, as it is: it is run by the engine, old arrays rewritten, and
        compared as `validate_published` does; the script then reads its log_lik, too.
    engine : str, default "auto"
    seed, settings, progress
        As in `validate_published`.

    Returns
    -------
    Validation
        On a part of the RAND visits.

    Raises
    ------
    EngineUnavailable
        If R cannot be used.
    InvalidInput
        If a file is missing, the script makes none of the known numbers, or the program has the
        data of none that the papers print.
    """
    path, source = Path(script), streams(seed)
    if not path.is_file():
        raise InvalidInput(
            f"supplement must be your copy of the printed R script: {path} is no file"
        )
    printed = None if program is None else papers.read_printed(program)
    start_r()
    cases = papers.study_cases(source.generator("data of studies"))
    name = "negative_binomial" if printed is None else printed[0]
    runner: Engine = resolve_engine(engine)
    run: Any = {"source": source, "settings": settings, "progress": progress}
    model, table = cases[name]
    ours = papers.side_of(model.bind(table), engine=runner, **run)
    rows = [*papers.script_rows(path, ours.session.log_lik(ours.fits[0]))]
    sides = [ours]
    if printed is not None:
        bound = replace(model, program="published").bind(table)
        other = papers.engine_of(printed[1], runner)
        theirs = papers.side_of(bound, engine=other, alpha=ours.fits[1].alpha, **run)
        part = f"{papers.SUPPLEMENT}: program {name} by {runner.name}"
        compared = papers.compare_sides(part, theirs, ours, source)
        rows += [replace(row, sides=papers.PRINTED_SIDES) for row in compared]
        written = [fit.draws.flat("log_lik") for fit in theirs.fits]
        rows += papers.script_rows(path, written[0], written[1], of=" on the program's log_lik")
        sides.append(theirs)
    said = {"table": "RAND visits", "records": str(ours.session.bound.n)}
    return _result(rows, _draws_of(sides), said, settings or papers.SETTINGS, source)


def _draws_of(sides: Sequence[papers.Side]) -> list[Draws]:
    return [fit.draws for side in sides for fit in side.fits]


def _result(
    rows: Sequence[Row],
    draws: Sequence[Draws],
    said: Mapping[str, str],
    sampler: SamplerSettings,
    source: Streams,
    **more: Any,
) -> Validation:
    """Rows, and what is needed to repeat the fits that they were computed from."""
    fits = [of_fit.provenance for of_fit in draws]
    return Validation(
        rows=tuple(rows),
        versions=_versions(),
        programs={f"stan/{fit.program}.stan": fit.program_sha256 for fit in fits},
        settings={
            **said,
            "engines": ", ".join(dict.fromkeys(fit.engine for fit in fits)),
            "chains": str(sampler.chains),
            "warm-up and kept draws per chain": f"{sampler.warmup}, {sampler.draws}",
            "adapt_delta, max_treedepth": f"{sampler.acceptance:g}, {sampler.max_treedepth}",
        },
        seed=source.entropy,
        notes=tuple(dict.fromkeys(note for fit in fits for note in fit.notes)),
        **more,
    )


def _engines(
    engine: str, *, quick: bool, against_r: bool
) -> tuple[tuple[Engine, ...], tuple[str, ...]]:
    """Engines that take part, Python's first and rstan last, and why others do not; raises
    EngineUnavailable where none of Python's can run, or rstan, which all are held `against`."""
    names = [*_IN_PYTHON] if engine == "all" else [resolve_engine(engine).name]
    if not quick and (against_r or engine == "all"):
        names.append("rstan")
    asked = [engine_by_name(name) for name in names]
    engines = tuple(one for one in asked if one.status().available)
    missing = {one.name: one.status() for one in asked if one not in engines}
    left_out = [f"{name}: {status.cause}" for name, status in missing.items()]
    if not engines or engines[0].name == "rstan":
        raise EngineUnavailable(f"no engine of Python's can run here: {'; '.join(left_out)}")
    if against_r and "rstan" in missing:
        remedy = f"{missing['rstan'].remedy}; quick=True compares all that needs no rstan"
        raise EngineUnavailable(f"{missing['rstan'].cause}; {remedy}")
    if engine != "all":
        left_out.append(f"other engines: engine is {engine}")
    if quick:
        left_out.append("rstan: a quick comparison leaves it out")
    return engines, tuple(left_out)


def _versions() -> dict[str, str]:
    """Version of Python, R, CmdStan and their packages; "not found" for what is missing."""
    versions = {"platform": platform.platform(), "Python": platform.python_version()}
    versions |= {"pyhybrid": pyhybrid.__version__, **{name: version_of(name) for name in _PACKAGES}}
    versions["CmdStan"] = engine_by_name("cmdstan").status().version
    if r_status().available:
        in_r = call_r("versions", packages=np.array(_R_PACKAGES, dtype=object))
        versions["R"] = f"{in_r['R']} ({in_r['platform']})"
        versions |= {name: str(in_r[name]) for name in _R_PACKAGES}
    return {name: version or "not found" for name, version in versions.items()}
