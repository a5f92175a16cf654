"""`pyhybrid demo`: releases of real data that come with the package, strict and local."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.markup import escape

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.options import options
from pyhybrid.cli.released import first_paragraph, show_release
from pyhybrid.core.checks import check_output_folder
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms import BudgetWeighted, Censored
from pyhybrid.mechanisms.censored.calibration import calibrate
from pyhybrid.models import NegativeBinomial

_EPSILON = 1.0
_N_REFERENCE = 2_000
_OWN_FILE = "\nYour own file: pyhybrid synthesize survey.csv --epsilon 4 --out released"


@options
def demo(
    out: Path = Path("pyhybrid-demo"),
    engine: str = "auto",
    seed: int | None = None,
    overwrite: bool = False,
) -> None:
    """Release real data (RAND outpatient visits) at epsilon 1, strictly and locally.

    Options:
    out: Folder for the strict release; OUT-local gets the other.
    """
    beside = out.with_name(f"{out.name}-local")
    for folder in (out, beside):
        check_output_folder(folder, overwrite=overwrite)
    visits, reference = _rand_visits()
    model = NegativeBinomial("mdvis ~ 1")
    show(
        f"RAND Health Insurance Experiment: {len(visits):,} person-years to release, and a "
        f"reference of {len(reference):,} others; 'mdvis', the number of outpatient visits, is "
        "sensitive and is synthesized by a negative binomial model.",
        "5,908 persons are in it for up to 5 years each, and no column identifies them: the unit "
        "of privacy is a person-year, and a person with k of them has k times the epsilon. With "
        "a column of persons, unit= (--unit) protects all rows of a person.\n",
    )
    with progress_bars() as progress:
        asked: dict[str, Any] = {"seed": seed, "engine": engine, "progress": progress}
        session = open_session(model.bind(visits), **asked)
        budget = BudgetWeighted(model, epsilon=_EPSILON)
        local = budget.release_from(session, n_synthetic=3, n_draws_released=1)
        strict = None
        if importlib.util.find_spec("opendp") is not None:
            # About a center frozen from other records, drawn exactly.
            calibration = calibrate(
                model, reference, epsilon=_EPSILON, holds_no_released_record=True, **asked
            )
            censored = Censored(calibration=calibration, sampling="exact")
            strict = censored.release(visits, n_synthetic=3, n_draws_released=1, **asked)
    local.save(beside, overwrite=overwrite)
    if strict is None:
        left = escape("pip install 'pyhybrid[dp]'")
        show(f"The strict release is drawn by OpenDP and is left out: {left}\n")
        show_release(visits, local, beside)
        show(_OWN_FILE)
        return
    strict.save(out, overwrite=overwrite)
    show_release(visits, strict, out, beside=local)
    show(
        f"\n{beside}/ holds the other one, in the same two parts:",
        first_paragraph(local),
        "\nThe strict epsilon holds for every database; the local one for this one, as estimated "
        "from draws. Give away one of the two: both together cost the sum.",
        _OWN_FILE,
    )


def _rand_visits() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The records to release, and a reference of other ones, drawn at random once and for all."""
    from statsmodels.datasets import randhie

    frame: pd.DataFrame = randhie.load_pandas().data
    chosen = np.random.default_rng(1).choice(len(frame), _N_REFERENCE, replace=False)
    kept = np.isin(np.arange(len(frame)), chosen)
    return frame[~kept].reset_index(drop=True), frame[kept].reset_index(drop=True)
