"""HTML report of a risk-utility curve. CONFIDENTIAL."""

from __future__ import annotations

import pandas as pd

from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.reports.figures.curve import plot_curve
from pyhybrid.reports.measures import judged_cell
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Cell, Section, Table, picture_of, render_page
from pyhybrid.reports.verdicts import curve_verdict
from pyhybrid.studies.comparing.curve import NOT_COVERED, RiskUtilityCurve

__all__ = ["curve_report", "epsilon_words"]

_COLUMNS = {
    "mechanism": "",
    "scale": "scale",
    "shift": "shift",
    "epsilon": "epsilon",
    "accounting": "counted by",
    "epsilon_ratio": "ratio",
    "max_ecdf": "max-ECDF",
    "avg_ecdf": "avg-ECDF",
    "error_mean": "mean",
    "error_median": "median",
    "error_q15": "15th",
    "error_q90": "90th",
}
"""Columns of the table that are shown, with their headings; the last four are errors."""


def curve_report(curve: RiskUtilityCurve) -> str:
    """Return the report as one HTML file without scripts or references. Confidential."""
    picture = picture_of(
        plot_curve(curve.table),
        alt="Utility measures against epsilon, Lipschitz weights and scalar weights.",
        caption="Each point of one curve has its counterpart on the other, of the same epsilon or "
        "as near below it as was found (ratio in the table). Lower is better; numbers at points "
        "are (scale, shift). Bars: 95 % intervals over the sets.",
    )
    caption = (
        f"Means over {curve.n_synthetic} sets. {epsilon_words(curve.table)} Ratio: to the epsilon "
        "of LW at the same point. The last four: absolute errors of mean and percentiles, unit of "
        f"{curve.outcome}. From 0; smaller is better."
    )
    shown = curve.table.assign(epsilon=curve.table["epsilon"].map(epsilon_text))
    rows: list[list[Cell]] = [
        [judged_cell(name, row[name]) if name == "max_ecdf" else number_text(row[name])
         for name in _COLUMNS]
        for _, row in shown.iterrows()
    ]  # fmt: skip
    table = Table(caption=caption, header=list(_COLUMNS.values()), rows=rows, numbers=True)
    sections = [
        curve_verdict(curve),
        Section(heading="Risk against utility", paragraphs=[[NOT_COVERED]], pictures=[picture]),
        Section(heading="Points", tables=[table]),
    ]
    title = f"Risk and utility: {curve.outcome}"
    return render_page(title, sections, confidential=True, advice="publish no part of this page")


def epsilon_words(table: pd.DataFrame) -> str:
    """What the epsilons of a curve's table are, in one sentence."""
    at = sorted({float(delta) for delta in table["delta"] if delta})
    counted = f" at delta {at[0]:g} where counted as Gaussian" if at else ""
    return f"Epsilon of one released draw, asymptotic local, remove one record, nats{counted}."
