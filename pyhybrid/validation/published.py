"""The papers' own programs, and a supplement's script and program, beside ours.

Both programs sample one posterior, on a part of the data of the studies. Compared are 2 Delta,
means of parameters, of the ingredients of bounds and of predictions, in Monte Carlo standard
errors, and the log_lik that the program writes at the same theta. 2 Delta is a maximum over draws:
its error is that of the maxima of 20 blocks of draws.

A supplement is read from the user's own copy: R sources its script as it is (`run_supplement` of
the R package supplies what it leaves undefined) on log-likelihoods of a fit of ours, or on those
that its program writes, which is run in the place of the one in stan/published.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, NotConverged, SamplingError
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, Draws, Engine, SamplerSettings, StanProgram
from pyhybrid.engines.programs import declared_names, load_program, modern_arrays
from pyhybrid.fitting.session import FitProgress, FitSession, PosteriorFit, open_session
from pyhybrid.models import (
    Beta,
    BetaRegression,
    BoundModel,
    MixtureRegression,
    NegativeBinomial,
    Poisson,
)
from pyhybrid.models.families.regression import PUBLISHED
from pyhybrid.privacy.bounds import lipschitz_bounds
from pyhybrid.privacy.weights import lipschitz_weights, weights_from_lipschitz
from pyhybrid.rbridge import call_r
from pyhybrid.running.tasks import named_progress
from pyhybrid.studies.income import simulated_incomes
from pyhybrid.studies.strict import beta_database, simulated_salaries
from pyhybrid.validation.comparison import ARITHMETIC, Row, compare, in_errors
from pyhybrid.validation.posterior import ingredients, log_lik_tolerance, scalar_rows

PART, SUPPLEMENT = "published program", "supplement"
RECORDS = 80
SETTINGS = SamplerSettings(warmup=500, draws=1000, adapt_delta=0.95)
_RULE = ConvergenceRule(rhat=1.05, ess_per_chain=20, divergent_share=0.1)
_BLOCKS = 20
_PREDICTED = 100  # draws of a chain that predictions are made from
_SIDES, PRINTED_SIDES = ("published", "ours"), ("printed", "ours")
_SCRIPT_DRAWS = 200  # the script takes of order draws x records squared steps
_SCRIPT_SETTINGS: tuple[dict[str, Any], ...] = (
    {"draw_quantile": 1.0, "scale": 1.0, "shift": 0.0},
    {"draw_quantile": 0.9, "scale": 0.8, "shift": 0.1},
)


def study_cases(
    rng: np.random.Generator, records: int = RECORDS
) -> dict[str, tuple[Any, pd.DataFrame]]:
    """The default model of each published program, and part of a study's data: RAND visits (D),
    Beta(0.5, 3) (F), simulated salaries (G) and incomes (E)."""
    from statsmodels.datasets import randhie

    visits = randhie.load_pandas().data
    visits = visits.iloc[rng.choice(len(visits), records, replace=False)].reset_index(drop=True)
    incomes = simulated_incomes(rng, records)
    mixture = MixtureRegression("FINCBTAX ~ SEX", n_components=2, transform="log", unit=10_000)
    return {
        "poisson": (Poisson("mdvis ~ lncoins"), visits),
        "negative_binomial": (NegativeBinomial("mdvis ~ lncoins"), visits),
        "beta": (Beta("y ~ 1"), beta_database(rng, records)),
        "beta_regression": (BetaRegression("salary ~ gender"), simulated_salaries(rng, records)),
        "normal_mixture": (mixture, incomes),
    }


class Side(NamedTuple):
    """One program by one engine: its fits without weights and with those of ours."""

    session: FitSession
    fits: tuple[PosteriorFit, PosteriorFit]


def side_of(
    bound: BoundModel,
    *,
    engine: Engine,
    source: Streams,
    settings: SamplerSettings | None,
    progress: FitProgress | None,
    rule: ConvergenceRule = _RULE,
    alpha: FloatArray | None = None,
) -> Side:
    """The fits of `bound` by `engine`, under weights `alpha` (n,), or Lipschitz weights; engines
    may share Stan's random numbers, and each has a seed of its own."""
    title = f"{bound.program.name} by {engine.name}"
    session = open_session(
        bound,
        seed=source.engine_seed(title),
        engine=engine,
        settings=settings or replace(SETTINGS, adapt_delta=None if alpha is None else 0.95),
        rule=rule,
        progress=named_progress(progress, title),
    )
    plain = session.unweighted()
    if alpha is None:
        alpha = weights_from_lipschitz(plain.bounds.by_record)
    return Side(session=session, fits=(plain, session.fit(alpha, label="weighted fit")))


def published_rows(
    cases: Mapping[str, tuple[Any, pd.DataFrame]],
    engines: Sequence[Engine],
    source: Streams,
    settings: SamplerSettings | None,
    progress: FitProgress | None,
) -> tuple[list[Row], list[Side]]:
    """Rows of all programs, and what was run."""
    rows, sides = list[Row](), list[Side]()
    make = partial(side_of, source=source, settings=settings, progress=progress)
    for name, (model, table) in cases.items():
        ours = make(model.bind(table), engine=engines[0])
        sides.append(ours)
        bound = replace(model, program="published").bind(table)
        for engine in engines:
            part = f"{PART}: {name} by {engine.name}"
            try:
                printed = make(bound, engine=engine, alpha=ours.fits[1].alpha)
            except (NotConverged, SamplingError) as error:
                what = f"fits; the default program has the same posterior: {error}"
                rows.append(in_errors(part, what, np.nan, np.nan, np.inf, _SIDES))
            else:
                rows += compare_sides(part, printed, ours, source)
                sides.append(printed)
    return rows, sides


def compare_sides(part: str, printed: Side, ours: Side, source: Streams) -> Iterator[Row]:
    """Rows of one program by one engine; 2 Delta first, as the papers charge it."""
    rng = source.generator(part)
    fits = list(zip(("unweighted", "weighted"), printed.fits, ours.fits, strict=True))
    for name, *both in fits:
        maxima = [_largest(*side) for side in zip((printed, ours), both, strict=True)]
        error = np.sqrt(sum(values.var(ddof=1) for values in maxima) / _BLOCKS)
        apart = abs(maxima[0].mean() - maxima[1].mean()) / error
        one, two = (2 * fit.bounds.overall for fit in both)
        yield in_errors(part, f"2 Delta, {name}", one, two, apart, _SIDES)
    for name, first, second in fits:
        pair = _scalars(printed, first, rng), _scalars(ours, second, rng)
        yield from scalar_rows(part, *pair, sides=_SIDES, of=f", {name}")
    for name, fit, _ in fits:
        yield compare(
            part,
            f"log_lik of the same theta, {name}",
            fit.draws.flat("log_lik"),
            fit.alpha * printed.session.log_lik(fit),
            tolerance=log_lik_tolerance(fit.draws, printed.session.bound),
            sides=_SIDES,
        )


def _largest(side: Side, fit: PosteriorFit) -> FloatArray:
    """2 Delta of blocks of draws."""
    largest = side.session.bound.log_lik(fit.draws).largest_by_draw(fit.alpha)
    return np.array([2 * block.max() for block in np.array_split(largest, _BLOCKS)])


def _scalars(side: Side, fit: PosteriorFit, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Numbers of each draw whose means are compared, shape (chains, draws) each. A replicate is the
    printed program's own, or made of our draws."""
    bound: Any = side.session.bound
    chains, length = fit.draws.divergent.shape
    draws = np.linspace(0, length - 1, min(_PREDICTED, length)).astype(int)
    draws = np.add.outer(length * np.arange(chains), draws)
    if "y_rep" in fit.draws.variables:
        printed = fit.draws.flat("y_rep")
        sets = (bound.model.from_support(printed[draw], bound.decimals) for draw in draws.flat)
    else:
        sets = (bound.drawn(fit.draws, draw, rng, bound.design) for draw in draws.flat)
    means = np.array([np.asarray(values, np.float64).mean() for values in sets])
    return {**ingredients(bound, fit), "mean of predictions": means.reshape(draws.shape)}


def script_rows(
    file: Path, log_lik: FloatArray, weighted: FloatArray | None = None, of: str = ""
) -> Iterator[Row]:
    """The script's numbers and ours, 2 Delta first, from unweighted log-likelihoods (S, n), and the
    log_lik of a weighted fit, or else `log_lik` times the script's weights."""
    fits = [log_lik] if weighted is None else [log_lik, weighted]  # one may have gone on for longer
    n_draws = min(_SCRIPT_DRAWS, *map(len, fits))
    log_lik, *after = (f[np.linspace(0, len(f) - 1, n_draws).astype(int)] for f in fits)
    given = {"log_lik_weighted": after[0]} if after else {}
    for how in _SCRIPT_SETTINGS:
        theirs = call_r(
            "run_supplement", file=str(file), log_lik_unweighted=log_lik, **how, **given
        )
        quantile, scale, shift = how.values()
        alpha = lipschitz_weights(log_lik, scale=scale, shift=shift)
        last = given.get("log_lik_weighted", alpha * log_lik)
        overall = lipschitz_bounds(last, draw_quantile=quantile).overall
        by_record, weighted_by_record = (lipschitz_bounds(f).by_record for f in (log_lik, last))
        pairs = {
            "2 Delta_alpha,x": (2 * theirs["bound"], 2 * overall),
            "bounds by record, unweighted": (theirs["by_record"], by_record),
            "weights": (theirs["weights"], alpha),
            "bounds by record, weighted": (theirs["by_record_weighted"], weighted_by_record),
        }
        part = f"{SUPPLEMENT}: the script{of}, thresh {quantile:g}, c {scale:g}, g {shift:g}"
        how = {"tolerance": ARITHMETIC, "to_largest": True, "sides": PRINTED_SIDES}
        for quantity, pair in pairs.items():
            yield compare(part, quantity, *pair, **how)


def engine_of(program: StanProgram, engine: Engine) -> Engine:
    """An engine that samples the user's printed text in the place of the published program; data
    that it does not declare, as a cap, are left out."""
    known = declared_names(program, "data")

    def sample(_: StanProgram, data: Mapping[str, Any], **how: Any) -> Draws:
        declared = {name: value for name, value in data.items() if name in known}
        return engine.sample(program, declared, **how)

    alike = SimpleNamespace(name=engine.name, status=engine.status, sample=sample)
    return cast(Engine, alike)


def read_printed(path: str | os.PathLike[str]) -> tuple[str, StanProgram]:
    """Name of the published program that a printed one is, and its text, arrays as of today;
    InvalidInput for a file that cannot be read, or is none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"program must be a readable Stan file: {error}") from None
    program = StanProgram(name=Path(path).stem, text=modern_arrays(text))
    declared = {*declared_names(program, "data")} - {"M"}
    known = {n: declared_names(load_program(f"published/{n}"), "data") for n in PUBLISHED}
    fitting = [name for name, data in known.items() if {*data} - {"M"} == declared]
    if "negative_binomial" in fitting:  # has the data of the Poisson program
        fitting = ["negative_binomial" if "phi" in text else "poisson"]
    if not fitting:
        raise InvalidInput(
            "program must be one that the papers print, with their names of data, such as "
            f"{', '.join(known['negative_binomial'])}: found "
            f"{', '.join(sorted(declared)) or 'none'}"
        )
    return fitting[0], program
