"""What can be verified: one number of a table, with or without survey weights."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.verification.declared import level_key, numbers_of

__all__ = ["Coefficient", "Mean", "Quantile", "Query", "Share", "read_query"]

_MODELS = ("ols", "logit", "poisson", "probit")
_FORMS = "mean:COLUMN, share:COLUMN:LEVEL, quantile:COLUMN:P, or coefficient:FORMULA:TERM[:MODEL]"


@runtime_checkable
class Query(Protocol):
    """One number of a table.

    Attributes
    ----------
    text : str
        What is asked, in words; public.
    columns : tuple of str
        What is read; a formula's columns are read by name.
    smallest : int
        Fewest records from which the number can be estimated at all.
    """

    @property
    def text(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def smallest(self) -> int: ...

    def of(self, table: pd.DataFrame) -> float:
        """The number; NaN where it cannot be estimated."""
        ...


@dataclass(frozen=True)
class _OfColumn:
    """A number of one column, weighted by the column `weights` if one is given."""

    column: str
    weights: str | None = field(default=None, kw_only=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, and that of the weights."""
        return (self.column,) if self.weights is None else (self.column, self.weights)

    @property
    def smallest(self) -> int:
        """One record."""
        return 1

    @property
    def _weighted(self) -> str:
        return "" if self.weights is None else "weighted "


@dataclass(frozen=True)
class Mean(_OfColumn):
    """The mean of a column of numbers."""

    @property
    def text(self) -> str:
        """In words."""
        return f"the {self._weighted}mean of {self.column}"

    def of(self, table: pd.DataFrame) -> float:
        """Missing values are left out."""
        values, weights = _present(table, self.column, self.weights)
        return float(np.average(values, weights=weights)) if weights.sum() > 0 else np.nan


@dataclass(frozen=True)
class Share(_OfColumn):
    """The share of records with one level of a column."""

    level: str

    @property
    def text(self) -> str:
        """In words."""
        return f"the {self._weighted}share of {self.column} = {self.level}"

    def of(self, table: pd.DataFrame) -> float:
        """Missing values count as another level."""
        level = level_key(self.level)
        same = [level_key(value) == level for value in table[self.column].astype(object)]
        weights = _weights(table, self.weights)
        return float(np.average(same, weights=weights)) if weights.sum() > 0 else float("nan")


@dataclass(frozen=True)
class Quantile(_OfColumn):
    """The p quantile of a column of numbers, 0 < p < 1: the smallest value with p at or below."""

    p: float

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise InvalidInput(f"p of a quantile must be above 0 and below 1: found {self.p!r}")

    @property
    def text(self) -> str:
        """In words."""
        return f"the {self._weighted}{self.p:g} quantile of {self.column}"

    @property
    def smallest(self) -> int:
        """Five records beyond the quantile."""
        return int(np.ceil(5 / min(self.p, 1 - self.p)))

    def of(self, table: pd.DataFrame) -> float:
        """Missing values are left out."""
        values, weights = _present(table, self.column, self.weights)
        if not weights.sum() > 0:
            return float("nan")
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(weights[order]) >= self.p * weights.sum() * (1 - 1e-12)
        return float(values[order][np.argmax(reached)])


@dataclass(frozen=True)
class Coefficient:
    """One coefficient of a regression by statsmodels: ols, logit, probit or poisson."""

    formula: str
    term: str
    model: str = "ols"

    def __post_init__(self) -> None:
        if self.model not in _MODELS:
            raise InvalidInput(f"model must be one of {', '.join(_MODELS)}: found {self.model!r}")

    @property
    def text(self) -> str:
        """In words."""
        return f"the coefficient of {self.term} in {self.model} {self.formula}"

    @property
    def columns(self) -> tuple[str, ...]:
        """None: statsmodels reads them by name."""
        return ()

    @property
    def smallest(self) -> int:
        """Ten records for every name in the formula."""
        return 10 * max(2, len(set(re.findall(r"[A-Za-z_]\w*", self.formula))))

    def of(self, table: pd.DataFrame) -> float:
        """NaN where the model cannot be fitted, or has no such term."""
        from pyhybrid.measures.tables.models import fit_model

        try:
            fit = fit_model(table, self.formula, self.model, {}, "the data")
        except InvalidInput:
            return float("nan")
        return float(fit.params.get(self.term, np.nan))


def read_query(text: str) -> Query:
    """The query that a text names, as on the command line.

    ``mean:COLUMN``, ``share:COLUMN:LEVEL``, ``quantile:COLUMN:P`` or
    ``coefficient:FORMULA:TERM[:MODEL]``.

    Raises
    ------
    InvalidInput
        For any other text.

    Examples
    --------
    >>> read_query("quantile:income:0.9")
    Quantile(column='income', weights=None, p=0.9)
    """
    kind, *given = str(text).split(":")
    try:
        if kind == "mean" and len(given) == 1:
            return Mean(given[0])
        if kind == "share" and len(given) == 2:
            return Share(given[0], given[1])
        if kind == "quantile" and len(given) == 2:
            return Quantile(given[0], float(given[1]))
    except ValueError as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"query must be {_FORMS}: {given[1]!r} is no number") from None
    if kind == "coefficient" and len(given) >= 2:
        model = given[-1] if given[-1] in _MODELS else None
        rest = given[1:-1] if model else given[1:]  # a term like x:z has colons of its own
        if rest:
            return Coefficient(given[0].strip(), ":".join(rest), model or "ols")
    raise InvalidInput(f"query must be {_FORMS}: found {text!r}")


def _weights(table: pd.DataFrame, column: str | None) -> FloatArray:
    if column is None:
        return np.ones(len(table))
    return np.asarray(np.nan_to_num(numbers_of(table[column])).clip(min=0))


def _present(
    table: pd.DataFrame, column: str, weights: str | None
) -> tuple[FloatArray, FloatArray]:
    """Values that are there, with their weights."""
    values = numbers_of(table[column])
    there = np.isfinite(values)
    return values[there], _weights(table, weights)[there].astype(np.float64)
