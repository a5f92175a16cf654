"""`pyhybrid demo`: the papers' mechanism and a strict release, on real data."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pyhybrid.cli.console import frame_table, progress_bars, show
from pyhybrid.cli.options import fit_options
from pyhybrid.cli.released import show_release
from pyhybrid.core.checks import check_output_folder
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms import ClippedScores, LipschitzWeighted
from pyhybrid.models import NegativeBinomial


def demo(
    *, out: Path = Path("pyhybrid-demo"), fit: str | None = None, overwrite: bool = False
) -> None:
    """The papers' release, charged at fixed weights, and clipped scores at epsilon 1."""
    beside, how = out.with_name(f"{out.name}-local"), fit_options(fit)
    for folder in (out, beside):
        check_output_folder(folder, overwrite=overwrite)
    from statsmodels.datasets import randhie

    visits: pd.DataFrame = randhie.load_pandas().data
    model = NegativeBinomial("mdvis ~ 1")
    show(
        f"RAND Health Insurance Experiment: {len(visits):,} person-years; 'mdvis', the number of "
        "outpatient visits, is sensitive, and a negative binomial model synthesizes it.",
        "5,908 persons are in it for up to 5 years each, and no column identifies them: the unit "
        "of privacy is a person-year, and a person with k of them has k times the epsilon. With "
        "a column of persons, unit= (--unit) protects all rows of a person.\n",
    )
    papers = LipschitzWeighted(model, accounting="lipschitz")
    with progress_bars() as progress:
        session = open_session(model.bind(visits), progress=progress, **how)
        local = papers.release_from(session, n_synthetic=3, n_draws_released=1, refits=0)
    fits = {"all weights 1": session.unweighted(), "Lipschitz weights": papers.fit(session).fit}
    rows = [
        (name, fit.alpha.mean(), fit.bounds.overall, 2 * fit.bounds.overall)
        for name, fit in fits.items()
    ]
    header = ["posterior", "mean weight", "Delta", "epsilon = 2 Delta"]
    show(frame_table("The papers' mechanism (confidential)", pd.DataFrame(rows, columns=header)))
    local.save(beside, overwrite=overwrite)
    show_release(visits, local, beside)
    strict = ClippedScores(model, epsilon=1.0).release(visits, n_synthetic=3)
    strict.save(out, overwrite=overwrite)
    show_release(visits, strict, out)
    show(
        "\nThe strict epsilon holds for every database; the papers' for this one, as the largest "
        "over posterior draws. Give away one of the two: both together cost the sum.",
        "\nYour own file: pyhybrid synthesize survey.csv --epsilon 4 --out released",
    )
