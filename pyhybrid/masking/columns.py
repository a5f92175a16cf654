"""Columns as the association models see them: standardized values, or codes of levels.

A type is given by the user or follows from the data: logical columns and those with two values are
binary; ordered categories, and whole numbers with at most 10 distinct values, are ordered; other
numbers are continuous; text and unordered categories are nominal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.design import row_label

__all__ = ["KINDS", "MAX_LEVELS", "Column", "read_column", "unusable"]

KINDS = ("continuous", "binary", "ordered", "nominal")
MAX_LEVELS = 50
"""Most levels of a column that is not continuous."""
_FEW = 10
_MAX_DECIMALS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """One column of the data in the form that models use. Confidential.

    Attributes
    ----------
    name : str
    kind : {"continuous", "binary", "ordered", "nominal"}
    values : ndarray, shape (n,)
        Standardized values (mean 0, standard deviation 1 over those that are there), or codes
        0 .. n_levels - 1; 0 where missing.
    missing : ndarray of bool, shape (n,)
    levels : tuple
        Values that the codes stand for, in order; empty if continuous.
    center, scale : float
        value = center + scale * standardized value.
    decimals : int or None
        Decimals of the data, which released values are rounded to; None if there are too many.
    limits : tuple of (float, float), or None
        Released values outside are moved to the nearer limit.
    dtype : numpy or pandas dtype
    """

    name: str
    kind: str
    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_]
    levels: tuple[Any, ...]
    center: float
    scale: float
    decimals: int | None
    limits: tuple[float, float] | None
    dtype: Any

    def __repr__(self) -> str:
        return f"<Column {self.name!r}: {self.kind}>"

    @property
    def n_levels(self) -> int:
        """Number of levels; 0 if continuous."""
        return len(self.levels)

    @property
    def width(self) -> int:
        """Columns of its design: 1, or one for each level but the first."""
        return 1 if self.kind == "continuous" else self.n_levels - 1

    def encoded(self, values: npt.NDArray[Any]) -> FloatArray:
        """Design of the values, shape (n, width)."""
        if self.kind == "continuous":
            return np.asarray(values, dtype=np.float64)[:, None]
        return np.asarray(np.eye(self.n_levels)[values][:, 1:])

    def decoded(self, values: npt.NDArray[Any], index: pd.Index) -> pd.Series:
        """The values as they are released: unit, decimals, dtype and levels of the data."""
        if self.kind != "continuous":
            taken = pd.Series([self.levels[code] for code in values], index=index, dtype=object)
            released: pd.Series = pd.Series(taken.astype(self.dtype), name=self.name)
            return released
        shown = self.center + self.scale * values
        if self.decimals is not None:
            shown = np.round(shown, self.decimals)
        if self.limits is not None:
            shown = np.clip(shown, *self.limits)
        if self.dtype.kind in "iu":
            span = np.iinfo(getattr(self.dtype, "numpy_dtype", self.dtype))
            if shown.min() < span.min or shown.max() > span.max:
                raise InvalidInput(
                    f"key {self.name!r} must fit its dtype {self.dtype}: a released value does "
                    "not; give limits for it, or another dtype"
                )
        return pd.Series(shown, index=index, name=self.name).astype(self.dtype)


def read_column(
    values: pd.Series,
    *,
    what: str,
    kind: str | None = None,
    limits: tuple[float, float] | None = None,
) -> Column:
    """Read a column of the data.

    Raises
    ------
    InvalidInput
        If it is constant, all missing, infinite somewhere, of a type that no model covers or that
        contradicts `kind`, or has more than `MAX_LEVELS` levels; the column is named.
    """
    name = str(values.name)
    reason = unusable(values, kind)
    if reason is not None:
        raise InvalidInput(f"{what} {name!r} {reason}")
    missing = values.isna().to_numpy()
    found = _kind(values) if kind is None else kind
    common: dict[str, Any] = {"name": name, "missing": missing, "dtype": values.dtype}
    if found == "continuous":
        return _continuous(values, missing, limits, common)
    if limits is not None:
        raise InvalidInput(f"limits must name continuous keys: {name!r} is {found}")
    levels = _levels(values)
    codes = np.zeros(len(values), dtype=np.intp)
    codes[~missing] = pd.Index(levels).get_indexer(pd.Index(values[~missing].astype(object)))
    return Column(
        kind=found, values=codes, levels=levels, center=0.0, scale=1.0, decimals=None,
        limits=None, **common,
    )  # fmt: skip


def unusable(values: pd.Series, kind: str | None = None) -> str | None:
    """Why no model covers the column, as the end of a sentence; None if one does."""
    if kind is not None:
        check_choice(kind, f"the type of {values.name!r}", KINDS)
    there = values.dropna()
    if not len(there):
        return "must have values: all are missing"
    numeric = pd.api.types.is_numeric_dtype(values.dtype)
    if values.dtype.kind == "c" or not (numeric or _is_text(there)):
        return f"must be numeric, logical, categorical or text: no model covers {values.dtype}"
    if numeric and not np.isfinite(there.to_numpy(dtype=float)).all():
        place = np.flatnonzero(~np.isfinite(there.to_numpy(dtype=float)))[0]
        return f"must be finite: {row_label(there.index, int(place))} is not"
    n_levels = there.nunique()
    if n_levels < 2:
        return "must vary: it is constant"
    found = _kind(values) if kind is None else kind
    if found == "continuous":
        return None if numeric else "must be numeric to be continuous: it is not"
    if n_levels > MAX_LEVELS:
        return f"must have at most {MAX_LEVELS} levels: found {n_levels}"
    if found == "binary" and n_levels != 2:
        return f"must have 2 levels to be binary: found {n_levels}"
    return None


def _kind(values: pd.Series) -> str:
    there = values.dropna()
    if there.nunique() == 2:
        return "binary"
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "ordered" if values.dtype.ordered else "nominal"
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return "nominal"
    numbers = there.to_numpy(dtype=float)
    few = there.nunique() <= _FEW and (numbers == np.floor(numbers)).all()
    return "ordered" if few else "continuous"


def _is_text(there: pd.Series) -> bool:
    if isinstance(there.dtype, pd.CategoricalDtype):
        return True
    if there.dtype.kind in "mM" or isinstance(there.dtype, pd.PeriodDtype):
        return False
    return all(isinstance(value, (str, bool, np.bool_)) for value in there)


def _levels(values: pd.Series) -> tuple[Any, ...]:
    if isinstance(values.dtype, pd.CategoricalDtype):
        used = set(values.dropna())
        return tuple(level for level in values.dtype.categories if level in used)
    return tuple(
        sorted(values.dropna().unique(), key=lambda level: (isinstance(level, str), level))
    )


def _continuous(
    values: pd.Series,
    missing: npt.NDArray[np.bool_],
    limits: tuple[float, float] | None,
    common: Mapping[str, Any],
) -> Column:
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore", invalid="ignore"):
        center, scale = float(np.nanmean(numbers)), float(np.nanstd(numbers))
    if not np.finfo(np.float64).tiny <= scale < np.inf:
        raise InvalidInput(
            f"column {common['name']!r} must have a spread that floats can hold: give it another "
            "unit"
        )
    if limits is not None and not (len(limits) == 2 and limits[0] < limits[1]):
        raise InvalidInput(f"limits of {common['name']!r} must be (lower, upper): found {limits!r}")
    return Column(
        kind="continuous",
        values=np.where(missing, 0.0, (numbers - center) / scale),
        levels=(),
        center=center,
        scale=scale,
        decimals=_decimals(numbers[~missing]),
        limits=limits,
        **common,
    )


def _decimals(numbers: FloatArray) -> int | None:
    """Fewest decimals that all values have; None beyond 8."""
    for decimals in range(_MAX_DECIMALS + 1):
        if (np.round(numbers, decimals) == numbers).all():
            return decimals
    return None
