"""Posterior predictive checks: statistics of the data among those of replicates. CONFIDENTIAL.

References
----------
Gelman, Meng, Stern (1996), Statistica Sinica 6:733-807.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures.predictive import plot_predictive
from pyhybrid.reports.judged import FAIR, GOOD, POOR, is_number
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Cell, Marked, Section, Table, picture_of

__all__ = ["STATISTICS", "predictive_section", "tail_word"]

_VALUES, _FEWEST, _MOST = 2_000_000, 20, 100  # values simulated, replicates
_USUAL = 0.1  # two-sided probability above which a statistic is as replicates have it

STATISTICS: Mapping[str, Callable[[FloatArray], float]] = {
    "mean": lambda y: float(y.mean()),
    "standard deviation": lambda y: float(y.std()),
    "share of zeros": lambda y: float((y == 0).mean()),
    "15th percentile": lambda y: float(np.quantile(y, 0.15)),
    "90th percentile": lambda y: float(np.quantile(y, 0.9)),
    "largest": lambda y: float(y.max()),
}
"""Statistics of a column of numbers."""


def predictive_section(release: Release) -> list[Section]:
    """Figure and table of the released fit's replicates; none of levels, of a whole sequence, whose
    steps have their own, or of a release that was loaded. The replicates are made for this page
    and are not those released; in a step they are given the data's values of earlier columns."""
    session = None if release.origin is None else release.origin.session
    if session is None or release.fit is None or release.fit.exact is not None:
        return []
    bound, draws = session.bound, release.fit.draws
    column = bound.synthesized[0]
    if not is_number(bound.table[column]):
        return []
    kept = np.flatnonzero(release.fit.bounds.kept_draws)
    n_sets = int(np.clip(_VALUES // bound.n, _FEWEST, _MOST))
    chosen = kept[np.linspace(0, kept.size - 1, min(n_sets, kept.size)).astype(np.intp)]
    rng = session.streams.generator(f"report/predictive/{release.identifier}")
    sets = [bound.numbers_of(bound.replicate(draws, int(s), rng)[column]) for s in chosen]
    data = _known(bound.outcome)
    found = {
        name: (of(data), np.array([of(_known(each)) for each in sets]))
        for name, of in STATISTICS.items()
        if name != "share of zeros" or (data == 0).any()
    }
    picture = picture_of(
        plot_predictive(found),
        alt=f"Histograms of {len(found)} statistics of {column} over {len(sets)} replicates, with "
        "that of the data as a line.",
        caption="Where the line is outside of the histogram the fit does not make data like these: "
        "the model cannot, or weights have left out too much of the data.",
    )
    text = (
        f"{len(sets)} replicates of {column}, each from another draw of the weighted posterior, "
        "made for this page. A model that fits makes data whose statistics surround those of the "
        "data. Weights that leave out the tail show here, too."
    )
    return [
        Section(
            heading=f"Posterior predictive checks: {column}",
            paragraphs=[[text]],
            pictures=[picture],
            tables=[_table(found)],
        )
    ]


def tail_word(data: float, replicates: FloatArray) -> tuple[float, str]:
    """Share of replicates at or above the data, ties counted half, and how good that is.

    POOR if the data are beyond all replicates, good if at least 5 % of them are on either side.
    """
    above = float((replicates > data).mean() + (replicates == data).mean() / 2)
    if above in (0.0, 1.0):
        return above, POOR
    return above, GOOD if 2 * min(above, 1 - above) >= _USUAL else FAIR


def _table(found: Mapping[str, tuple[float, FloatArray]]) -> Table:
    rows: list[list[Cell]] = []
    for name, (data, replicates) in found.items():
        above, word = tail_word(data, replicates)
        low, middle, high = np.quantile(replicates, [0.025, 0.5, 0.975])
        shown = f"{number_text(middle)} [{number_text(low)}, {number_text(high)}]"
        rows.append([name, number_text(data), shown, Marked(text=f"{above:.0%}", word=word)])
    return Table(
        caption="Median and 95 % interval over the replicates, and how many of them are above the "
        "data. Good: at least 5 % on either side; POOR: the data are beyond all of them.",
        header=["Statistic", "Data", "Replicates", "Above the data"],
        rows=rows,
        numbers=True,
    )


def _known(values: FloatArray) -> FloatArray:
    return np.asarray(values[np.isfinite(values)])
