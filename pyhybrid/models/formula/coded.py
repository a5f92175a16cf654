"""A table coded by a formula: factors, design matrix, and refusals that name rows, never values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.coding import Coded, Numbers, State, code_factor
from pyhybrid.models.formula.matrix import Matrix, design_matrix
from pyhybrid.models.formula.terms import Formula

__all__ = ["Coding", "code_table", "row_label", "term_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Coding:
    """How the columns of a design were made, so that other tables are coded alike. Confidential.

    Attributes
    ----------
    formula : Formula
    state : dict
        What the factors took from the data: levels, centers, knots.
    spec : object
        formulaic's record of contrasts and of the columns left out.
    """

    formula: Formula
    state: State
    spec: Any

    def __repr__(self) -> str:
        return f"<Coding of {self.formula.text!r}>"


def code_table(
    formula: Formula, df: pd.DataFrame, coding: Coding | None = None
) -> tuple[Matrix, Coding]:
    """Design matrix of `df`, and how it was made.

    `coding` is that of another table, which `df` is then coded by.

    Raises
    ------
    InvalidInput
        For missing values, values that a term cannot take, and levels that the other table did not
        have; names the row.
    """
    for name in formula.predictors:
        if df[name].isna().any():
            where = int(np.flatnonzero(df[name].isna())[0])
            label = row_label(df.index, where)
            raise InvalidInput(
                f"predictor {name!r} must not be missing: {label} is; drop or impute such rows, or "
                "take ph.WithMissing(model)"
            )
    state = {} if coding is None else dict(coding.state)
    coded = {factor.text: code_factor(factor, df, state) for factor in formula.factors}
    _check_values(coded, df.index)
    made = design_matrix(formula, coded, len(df), None if coding is None else coding.spec)
    infinite = np.argwhere(~np.isfinite(made.X))
    if infinite.size:  # a product of finite numbers
        label = row_label(df.index, int(infinite[0, 0]))
        named = term_of(made.terms, int(infinite[0, 1]))
        raise InvalidInput(f"predictor {named} must be finite: {label} is not")
    beyond = np.flatnonzero(~np.isfinite(made.offset))
    if beyond.size:  # a sum of finite numbers
        label = row_label(df.index, int(beyond[0]))
        raise InvalidInput(f"the sum of the offsets must be finite: {label} is not")
    return made, Coding(formula=formula, state=state, spec=made.spec)


def _check_values(coded: Mapping[str, Coded], index: pd.Index) -> None:
    for text, values in coded.items():
        if isinstance(values, Numbers):
            wrong = np.flatnonzero(~np.isfinite(values.values).all(axis=1))
            must = "be finite"
        else:
            wrong = np.flatnonzero(values.codes < 0)
            must = "lie within its breaks" if text.startswith("cut(") else "have one of its levels"
        if wrong.size:
            label = row_label(index, int(wrong[0]))
            does = "is not" if must == "be finite" else "does not"
            raise InvalidInput(f"predictor {text!r} must {must}: {label} {does}")


def row_label(index: pd.Index, position: int) -> str:
    """How messages name a row: by its label in the table's index."""
    label = index[position]
    return f"row {label.item() if isinstance(label, np.generic) else label!r}"


def term_of(terms: Sequence[str], place: int) -> str:
    """How messages name a column of a design: by its term, and by its place among the columns of
    the term rather than by its level, which is a value of the data."""
    first = terms.index(terms[place])
    return repr(terms[place]) + (
        f" (column {place - first + 1} of it)" if terms.count(terms[place]) > 1 else ""
    )
