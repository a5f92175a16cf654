"""`pyhybrid demo`: a release of real data that comes with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from pyhybrid.checks import check_output_folder
from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.parameters import Engine, Overwrite, Seed
from pyhybrid.cli.released import show_release
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms import LipschitzWeighted, Unweighted
from pyhybrid.models import NegativeBinomial

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the release.")] = Path("pyhybrid-demo"),
    engine: Engine = "auto",
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """A release of real data: outpatient visits of the RAND Health Insurance Experiment."""
    check_output_folder(out, overwrite=overwrite)
    visits = _rand_visits()
    model = NegativeBinomial("mdvis ~ 1")
    show(
        f"RAND Health Insurance Experiment: {len(visits)} person-years; 'mdvis', the number of "
        "outpatient visits, is sensitive and is synthesized by a negative binomial model.",
        "5,908 persons are in it for up to 5 years each, and the file does not say whose row is "
        "whose: the unit of privacy is a person-year, and a person with k of them has k times "
        "the epsilon. With a column that names persons, unit= (--unit) makes epsilon theirs.\n",
    )
    with progress_bars() as progress:
        session = open_session(model.bind(visits), seed=seed, engine=engine, progress=progress)
        beside, release = (
            mechanism.release_from(session, n_synthetic=3, n_draws_released=3)
            for mechanism in (Unweighted(model), LipschitzWeighted(model))
        )
    release.save(out, overwrite=overwrite)
    show_release(visits, release, out, beside=beside)


def _rand_visits() -> pd.DataFrame:
    from statsmodels.datasets import randhie

    frame: pd.DataFrame = randhie.load_pandas().data
    return frame
