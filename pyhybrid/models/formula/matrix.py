"""From coded factors to a design matrix: contrasts and products, by formulaic, as in R."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.coding import Categories, Coded, Numbers
from pyhybrid.models.formula.terms import Formula

__all__ = ["Matrix", "design_matrix"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """A design matrix with the names of its columns.

    Attributes
    ----------
    X : ndarray, shape (n, K)
    offset : ndarray, shape (n,)
        Sum of the offsets; 0 without any.
    columns, terms : tuple of str, length K
        Name of each column, which may hold a level, and of the term it belongs to, which does not.
    group : ndarray of int, shape (K,)
        Which of the terms (1 | g) each column belongs to, from 1; 0 for the others, which come
        first. The term with the most levels is the last one.
    spec : object
        formulaic's record of the coding.
    """

    X: FloatArray
    offset: FloatArray
    columns: tuple[str, ...]
    terms: tuple[str, ...]
    group: npt.NDArray[np.intp]
    spec: Any


def design_matrix(formula: Formula, coded: Mapping[str, Coded], n: int, spec: Any = None) -> Matrix:
    """Design matrix of factors that were evaluated on n records.

    `spec` is the record of another table with the same formula: which columns are left out to keep
    full rank was decided there.
    """
    table, context = {}, {}
    grouped = {factor.text for factor in formula.groups}
    for text, values in coded.items():
        if text in grouped:
            continue
        if isinstance(values, Numbers) and not values.names:
            table[text] = values.values[:, 0]
        else:
            context[text] = _encoded(values)
    source = spec if spec is not None else _terms(formula)
    frame = pd.DataFrame(table, index=pd.RangeIndex(n))
    made = source.get_model_matrix(
        frame, context=context, **({"na_action": "ignore"} if spec is None else {})
    )
    X = np.array(made, dtype=np.float64, order="C")
    if X.shape[0] != n or X.shape[1] == 0:
        raise InvalidInput(
            f"formula {formula.text!r} must give a row per record and a column or more"
        )
    terms = [str(part.term) for part in made.model_spec.structure for _ in part.columns]
    columns = [str(column) for column in made.columns]
    own_levels = ((f.text, coded[f.text]) for f in formula.groups)
    levels = [(text, own) for text, own in own_levels if isinstance(own, Categories)]
    by_size = sorted(levels, key=lambda each: len(each[1].levels))
    for text, own in by_size:
        columns += [f"{text}[{level}]" for level in own.levels]
        terms += [text] * len(own.levels)
    sizes = [X.shape[1], *(len(own.levels) for _, own in by_size)]
    return Matrix(
        X=np.hstack([X, *(np.eye(len(own.levels))[own.codes] for _, own in by_size)]),
        offset=_offset([coded[factor.text] for factor in formula.offsets], n),
        columns=tuple(columns),
        terms=tuple(terms),
        group=np.repeat(np.arange(len(sizes)), sizes),
        spec=made.model_spec,
    )


def _offset(parts: list[Coded], n: int) -> FloatArray:
    """Sum of the offsets, shape (n,); infinite where it overflows."""
    total = np.zeros(n)
    for part in parts:
        assert isinstance(part, Numbers)
        with np.errstate(over="ignore"):
            total = total + part.values[:, 0]
    return total


def _terms(formula: Formula) -> Any:
    from formulaic import Formula as Terms
    from formulaic.parser.types import Factor, Term

    return Terms(
        [
            Term([Factor(factor.text, eval_method="lookup") for factor in term])
            if term
            else Term([Factor("1", eval_method="literal")])
            for term in formula.terms
        ]
    )


def _encoded(values: Coded) -> Any:
    """A factor of several columns, as formulaic takes it."""
    from formulaic.materializers.types import FactorValues
    from formulaic.transforms import C
    from formulaic.transforms.contrasts import ContrastsRegistry

    if isinstance(values, Numbers):
        columns = pd.DataFrame(values.values, columns=list(values.names))
        return FactorValues(columns, kind="numerical")
    assert isinstance(values, Categories)
    own = pd.Categorical.from_codes(values.codes, categories=pd.Index(values.levels))
    contrasts = getattr(ContrastsRegistry, values.contrasts.removeprefix("contr."))
    return C(pd.Series(own), contrasts())
