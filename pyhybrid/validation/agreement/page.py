"""The comparison as a page for a paper's supplement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyhybrid.reports.page import Marked, Section, Table, render_page
from pyhybrid.validation.agreement.rows import UNITS, Row

__all__ = ["shown_number", "validation_page"]

_ABOUT = {
    "table": "Outcome and design matrix as Python reads the formula, and as R's model.matrix does. "
    "Columns of the matrix are compared in any order.",
    "array functions": "Each function of the Python package and the function of the same name of "
    "the R package, an independent implementation, on generated input.",
    "same draws": "At the same parameter values. Python: numpy's log-likelihood and Python's "
    "functions. R: the log_lik that the Stan program wrote, and R's functions. Where digits cancel "
    "in a sum, as in the leave-one-out loop of the papers' supplement, the difference is relative "
    "to the largest number.",
    "posterior means": "Of two engines, each from its own draws. The difference is in "
    "Monte Carlo standard errors of the difference (ArviZ, both fits). f is the log-likelihood of "
    "a record and alpha its weight: the largest |alpha f| of a draw is what the Lipschitz bound is "
    "the maximum of.",
}


def validation_page(
    rows: Sequence[Row],
    *,
    verdict: str,
    left_out: Sequence[str],
    made_by: Mapping[str, str],
    confidential: bool,
) -> str:
    """The page as one HTML file; `made_by` is what is needed to repeat the comparison."""
    sections = [_verdict(rows, verdict, left_out)]
    explained = set()
    for part in dict.fromkeys(row.part for row in rows):
        own = [row for row in rows if row.part == part]
        kind = part.split(":")[0]
        about = [] if kind in explained else [[_ABOUT[kind]]]
        explained.add(kind)
        heading = part[0].upper() + part[1:]
        sections.append(Section(heading=heading, paragraphs=about, tables=[_table(own)]))
    sections.append(Section(heading="Left out", bullets=[*left_out] or ["Nothing."]))
    sections.append(_made_by(made_by))
    return render_page(
        "Python against R: validation of pyhybrid",
        sections,
        confidential=confidential,
        advice="a comparison on generated data can be published",
    )


def shown_number(value: float) -> str:
    """Six digits, or as few as there are."""
    return f"{value:.6g}"


def _verdict(rows: Sequence[Row], verdict: str, left_out: Sequence[str]) -> Section:
    text = "Difference is the largest over all numbers compared; relative to the larger of the two "
    text += "numbers (at least 0.001) unless a table says otherwise. Shown is the pair of numbers "
    text += "that is furthest apart; of how many pairs is in the last column."
    lacking = ", ".join(cause.partition(":")[0] for cause in left_out)
    without = [[f"Left out, for the reasons given below: {lacking}."]] if lacking else []
    wrong = [row.quantity for row in rows if not row.agrees]
    return Section(
        heading="Verdict",
        paragraphs=[["", f"{verdict}."], *without, [text]],
        bullets=[f"Disagrees: {quantity}" for quantity in wrong],
    )


def _table(rows: list[Row]) -> Table:
    unit = UNITS[rows[0].unit]
    return Table(
        caption=f"{unit[0].upper()}{unit[1:]}.",
        header=["Quantity", "Verdict", *rows[0].sides, "Difference", "Tolerance", "Pairs"],
        rows=[
            [
                row.quantity,
                Marked(text="", word="agrees" if row.agrees else "DISAGREES"),
                shown_number(row.python),
                shown_number(row.r),
                f"{row.difference:.2g}",
                f"{row.tolerance:.2g}",
                f"{row.numbers:,}",
            ]
            for row in rows
        ],
        numbers=True,
    )


def _made_by(rows: Mapping[str, str]) -> Section:
    table = Table(
        caption="Versions, seed, settings and programs: what is needed to repeat this.",
        header=["What", "Value"],
        rows=list(rows.items()),
    )
    return Section(heading="Made by", tables=[table])
