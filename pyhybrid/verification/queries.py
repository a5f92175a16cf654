"""Queries that can be verified: one number of a table, with or without survey weights.

A column's dtype, its categories and whether a text can be read as a number are functions of all
records: one record with a text would turn the numbers of every block to text. So the types of the
columns that a verification reads are public, from the synthetic sets or given by hand, and each
entry is read by itself: as a number, as one of the levels, or as missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import level_key, number_in
from pyhybrid.models.columns.kinds import Kind, Leveled, kind_from_dict
from pyhybrid.models.formula.values import kind_of

_MODELS = ("ols", "logit", "poisson", "probit")
_FORMS = "mean:COLUMN, share:COLUMN:LEVEL, quantile:COLUMN:P, or coefficient:FORMULA:TERM[:MODEL]"
ColumnTypes = Mapping[Any, tuple[Any, ...] | None]
"""Levels by column, in their order; None for numbers."""


@runtime_checkable
class Query(Protocol):
    """A question for one number of a table. `text` says it in words, and is public; `columns` are
    those that it reads (of a formula, by name); `smallest` is the fewest records that give it.
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
    """The query that a text names, as on the command line; InvalidInput for any other text.

    ``mean:COLUMN``, ``share:COLUMN:LEVEL``, ``quantile:COLUMN:P`` or
    ``coefficient:FORMULA:TERM[:MODEL]``.

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


def column_types(
    sets: Sequence[pd.DataFrame],
    given: Mapping[str, Kind | Mapping[str, Any]] | None,
    levels: Mapping[str, Sequence[Any]],
) -> ColumnTypes:
    """Types of the columns that all synthetic sets have: as given (objects of a file of types,
    too), else as the sets hold them; `levels` are further ones, that the query names."""
    shared = [name for name in sets[0].columns if all(name in own.columns for own in sets)]
    declared = {name: _levels_given(name, own, shared) for name, own in (given or {}).items()}
    found: dict[Any, tuple[Any, ...] | None] = {}
    for name in shared:
        try:
            own = declared[name] if name in declared else _levels_of([s[name] for s in sets])
        except InvalidInput:  # dates, or of no kind: not read unless it is declared
            continue
        if own is not None:
            known = {level_key(level) for level in own}
            own += tuple(level for level in levels.get(name, ()) if level_key(level) not in known)
        found[name] = own
    return found


def _levels_given(name: str, own: Any, shared: Sequence[Any]) -> tuple[Any, ...] | None:
    if name not in shared:
        raise InvalidInput(
            f"types must be of columns of the synthetic sets: {name!r} is none"
            f"{did_you_mean(name, shared)}"
        )
    kind = kind_from_dict(own) if isinstance(own, Mapping) else own
    if not isinstance(kind, Kind):
        raise InvalidInput(
            f"types must be kinds, such as ph.Real() or ph.Nominal(levels=('a', 'b')): found "
            f"{type(own).__name__} for {name!r}"
        )
    if not isinstance(kind, Leveled):
        return None
    if len({level_key(level) for level in kind.levels}) < len(kind.levels):
        raise InvalidInput(f"levels of {name!r} must differ as numbers, too: two are one number")
    return kind.levels


def _levels_of(columns: Sequence[pd.Series]) -> tuple[Any, ...] | None:
    """Values that occur in the sets; of categories in their order. None for numbers."""
    if all(kind_of(own, as_levels=True) == "numbers" for own in columns):
        return None
    order: dict[Any, Any] = {}
    first = columns[0].dtype
    if isinstance(first, pd.CategoricalDtype):
        order = dict.fromkeys(map(level_key, first.categories))
    there = [value for own in columns for value in own.dropna().astype(object).unique()]
    known: dict[Any, Any] = {}
    for value in sorted(there, key=str):
        known.setdefault(level_key(value), value)
    return tuple(known[key] for key in dict.fromkeys([*order, *known]) if key in known)


def coerced(table: pd.DataFrame, types: ColumnTypes) -> pd.DataFrame:
    """The columns of `types`, each entry by itself; whole numbers where all are."""
    read = {
        name: _plain(numbers_of(table[name])) if levels is None else _in(table[name], levels)
        for name, levels in types.items()
        if name in table.columns
    }
    made: pd.DataFrame = pd.DataFrame(read, index=table.index)
    return made


def numbers_of(values: pd.Series) -> FloatArray:
    """Each entry as a finite number, shape (n,); NaN for what is none."""
    return np.array([number_in(value) for value in values.astype(object)], dtype=np.float64)


def _plain(numbers: FloatArray) -> Any:
    """Whole numbers as such, so that a level of C(x) is named 2 and not 2.0."""
    whole = numbers.size and bool((np.abs(numbers) < 2**53).all() and (numbers % 1 == 0).all())
    return numbers.astype(np.int64) if whole else numbers


def _in(values: pd.Series, levels: tuple[Any, ...]) -> pd.Categorical:
    place = {level_key(level): code for code, level in enumerate(levels)}
    codes = [place.get(level_key(value), -1) for value in values.astype(object)]
    return pd.Categorical.from_codes(codes, categories=pd.Index(levels, dtype=object))
