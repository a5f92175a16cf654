"""Regression coefficients of synthetic sets beside those of the data. CONFIDENTIAL."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyhybrid.measures.tables.models import ModelUtility
from pyhybrid.reports.figures.groups import plot_forest
from pyhybrid.reports.measures import model_table
from pyhybrid.reports.page import Section, picture_of

__all__ = ["coefficients_section", "plain_formula"]

_MOST_TERMS = 30


def coefficients_section(fits: Mapping[str, ModelUtility]) -> Section:
    """Forest plot of all releases, and the table of the first one, that of the report.

    Parameters
    ----------
    fits : mapping of str to ModelUtility
        The same model by the name of a release.
    """
    name, first = next(iter(fits.items()))
    formula = plain_formula(first.formula)
    varied = first.table["upper"] > first.table["lower"]
    terms = list(first.table.index[varied])[:_MOST_TERMS]
    text = (
        f"The linear model {formula}, fitted to the data and to the synthetic sets of each release."
    )
    more = int(varied.sum()) - len(terms)
    if more:
        text += f" The first {len(terms)} terms are drawn, {more} are not."
    pictures = []
    if terms:
        tables = {key: fit.table.loc[terms].rename(index=plain_term) for key, fit in fits.items()}
        pictures = [
            picture_of(
                plot_forest(tables),
                alt=f"Forest plot of {len(terms)} coefficients with 95 % intervals, data and "
                "synthetic sets.",
                caption="In standard errors of the data, whose coefficients are at 0 with the "
                "shaded interval. A point outside of it would mislead an analyst; an interval much "
                "shorter or longer than the band promises too much or too little.",
            )
        ]
    return Section(
        heading="Regression coefficients",
        paragraphs=[[text]],
        pictures=pictures,
        tables=[model_table(first, name, plain_term)],
    )


def plain_formula(formula: str) -> str:
    """The formula as people write it, names that need no quotes without them."""
    return re.sub(r"Q\('([A-Za-z_]\w*)'\)", r"\1", formula)


def plain_term(term: str) -> str:
    """A term as people write it: "region = west" for "Q('region')[T.west]" or C(region)[T.west]."""
    plain = re.sub(r"\bC\((\w+)\)(?=\[T\.)", r"\1", plain_formula(str(term)))
    return re.sub(r"\[T\.(.*?)\]", r" = \1", plain)
