"""The section of a report on a posterior that was sampled exactly, on a grid."""

from __future__ import annotations

from pyhybrid.fitting.exact import ExactPosterior
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Section, Table

__all__ = ["exact_section"]

_COARSE, _AT_THE_EDGE = 1.0, 0.01


def exact_section(exact: ExactPosterior) -> Section:
    """Whether the grid is fine and wide enough. CONFIDENTIAL: the answer is a function of the data.

    A grid that is not costs accuracy and no privacy; another one, chosen after a look at this, is a
    choice made by looking at the data, which no charge covers.
    """
    edge, resolution = exact.mass_at_the_edge, exact.resolution
    paragraphs = [
        [
            f"Drawn exactly from {exact.grid.size} candidates, without chains: there is nothing to "
            f"converge. Posterior mass at the ends of the grid: {number_text(edge)}."
        ]
    ]
    coarse = [name for name, cells in resolution.items() if cells < _COARSE]
    if coarse:
        paragraphs.append(
            [
                f"COARSE: the posterior of {', '.join(coarse)} is narrower than a cell of the "
                "grid, and a released draw is further off than the data would allow."
            ]
        )
    if edge > _AT_THE_EDGE:
        paragraphs.append(
            [
                "AT THE EDGE: the posterior reaches the end of the region. The reference has "
                "drifted, or the cap is too small for it; calibrate on newer records."
            ]
        )
    rows = [
        [axis.name, number_text(axis.lower), number_text(axis.upper), str(axis.size),
         number_text(resolution[axis.name])]
        for axis in exact.grid.axes
    ]  # fmt: skip
    table = Table(
        caption="Confidential. The grid; last, the posterior standard deviation in cells, which "
        "should be above 1.",
        header=["Coordinate", "Lower", "Upper", "Points", "Deviation in cells"],
        rows=rows,
    )
    return Section(heading="Exact sampling", paragraphs=paragraphs, tables=[table])
