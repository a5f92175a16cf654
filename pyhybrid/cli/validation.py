"""`pyhybrid validate` and `doctor`: whether what is here does what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.markup import escape

import pyhybrid
from pyhybrid import validation
from pyhybrid.cli.console import frame_table, progress_bars, show
from pyhybrid.cli.options import fit_options, model_for, read_table
from pyhybrid.core.errors import InvalidInput, PyhybridError
from pyhybrid.engines import AUTOMATIC, ENGINES, Engine, SamplerSettings, engine_by_name
from pyhybrid.models import Poisson
from pyhybrid.rbridge import r_code
from pyhybrid.running.files import check_new_file
from pyhybrid.validation.comparison import UNITS


def validate(
    data: Path | None = None,
    *,
    formula: str | None = None,
    model: str | None = None,
    engine: str = "all",
    quick: bool = False,
    published: bool = False,
    supplement: Path | None = None,
    program: Path | None = None,
    out: Path | None = None,
    seed: int = 1,
    settings: str | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> int:
    """Compare, save the report, and show the table and the verdict."""
    if out is not None:
        check_new_file(out, overwrite=overwrite, what="report")
    if program is not None and supplement is None:
        raise InvalidInput("--program goes with --supplement FILE.R, which reads its log_lik")
    papers = published or supplement is not None
    if papers and (data is not None or formula is not None):
        raise InvalidInput(
            "the papers' programs have data of their own: leave DATA and --formula out"
        )
    if not papers and (data is None) != (formula is None):
        raise InvalidInput("DATA and --formula must be given together, or neither of them")
    with progress_bars() as progress:
        how: dict[str, Any] = {
            "settings": None, **fit_options(settings), "engine": engine, "seed": seed,
            "progress": progress,
        }  # fmt: skip
        if supplement is not None:
            how["engine"] = "auto" if engine == "all" else engine
            result = validation.validate_supplement(supplement, program, **how)
        elif published:
            result = validation.validate_published(model, quick=quick, **how)
        elif data is None or formula is None:
            result = validation.validate(None, model or "negative_binomial", quick=quick, **how)
        else:
            df = read_table(data, read=read).frame
            result = validation.validate(df, model_for(model, formula, df), quick=quick, **how)
            result = replace(result, settings={**result.settings, "table": data.name})
    if out is not None:
        result.save(out, overwrite=overwrite)
    show_agreement(result, out)
    return 0 if result.agrees else 1


def show_agreement(result: validation.Validation, out: Path | None) -> None:
    """A table for each part, and the verdict."""
    for part in dict.fromkeys(row.part for row in result.rows):
        rows = [row for row in result.rows if row.part == part]
        cells = [
            (row.quantity, f"{row.python:.6g}", f"{row.r:.6g}", f"{row.difference:.2g}",
             "agrees" if row.agrees else "DISAGREES")
            for row in rows
        ]  # fmt: skip
        title = f"{part[0].upper()}{part[1:]} ({UNITS[rows[0].unit]})"
        header = ["quantity", *rows[0].sides, "difference", "verdict"]
        show(frame_table(title, pd.DataFrame(cells, columns=header)))
    for cause in result.left_out:
        show(f"left out: {escape(cause)}")
    if out is not None:
        kept = "confidential: has bounds and weights" if result.own_data else "can be published"
        show(f"report: {escape(str(out))} ({kept})")
    show(f"\nR's functions: {r_code()}.")
    show(f"{result.verdict}.")


_WORKS, _MISSING = "works", "missing"


def doctor(*, all: bool = False) -> int:
    """Try the engines, and say how what is missing is installed; exit code 1 if none can fit."""
    rows = []
    with progress_bars() as progress:
        for name in ENGINES:
            progress(f"trying {name}", 0, 1)
            rows.append(_examined(engine_by_name(name), fit=all or name in AUTOMATIC))
            progress(f"trying {name}", 1, 1)
    able = [name for name, state, *_ in rows if state == _WORKS]
    result = pd.DataFrame(rows, columns=["", "state", "version, or what is missing", "fix"])
    show(frame_table(f"Engines of pyhybrid {pyhybrid.__version__}", result.drop(columns="fix")))
    for remedy, group in result[result["fix"] != ""].groupby("fix", sort=False):
        show(f"fix {', '.join(group[''])}: {escape(str(remedy))}")
    automatic = [name for name in able if name in AUTOMATIC]
    if not able:
        show("No engine can fit.")
        return 1
    show(f"engine='auto' uses: {automatic[0]}" if automatic else f"can fit: {able[0]}")
    return 0


def _examined(engine: Engine, *, fit: bool) -> tuple[str, str, str, str]:
    """Name, state, version or cause, and remedy of an engine; one that says it can run fits a small
    model if it is to `fit`."""
    status = engine.status()
    if not status.available:
        return engine.name, _MISSING, status.cause, status.remedy
    if not fit:
        return engine.name, "found", f"{status.version}, not tried (--all tries it)", ""
    bound = Poisson("y ~ 1").bind(pd.DataFrame({"y": [0, 1, 1, 2, 3, 1]}))
    try:
        draws = engine.sample(
            bound.program, bound.stan_data(np.ones(bound.n)), seed=1,
            settings=SamplerSettings(chains=2, warmup=200, draws=100),
        )  # fmt: skip
    except PyhybridError as error:
        return engine.name, "fails", f"{status.version} is there but fails: {error}", status.remedy
    seconds = f"small fit in {draws.provenance.seconds:.2f} s"
    return engine.name, _WORKS, f"{status.version}, {seconds}", ""
