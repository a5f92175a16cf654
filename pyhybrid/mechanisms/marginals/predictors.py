"""How records are shared out over the cells of a predictor, public or synthesized before.

A number that is published as it is needs no bins: each record is shared out between the two knots
next to its value, in proportion to how near they are (linear B-splines). Its shares sum to 1, so
that it costs what a record in one bin costs, and effects are linear between knots in place of
steps, which would weaken them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.marginals.domain import ColumnDomain

__all__ = ["ALONE", "PARTS", "Predictor", "Rows", "of_cells", "of_nothing", "of_public", "stacked"]

PARTS = 16
"""Parts that a record is shared out in: whole numbers, as the noise is made for."""
ALONE = ""
"""Stands among predictors for none: the column's own counts."""
_KNOTS = 5
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictor:
    """Cells of one predictor.

    Attributes
    ----------
    name : str
    cells : sparse matrix of int, shape (n, L)
        Nonnegative, `PARTS` in each row.
    positions : ndarray, shape (L,)
        See `ColumnDomain.positions`.
    synthesized : bool
        True if its values are confidential, and were drawn anew.
    """

    name: str
    cells: sparse.csr_array
    positions: FloatArray
    synthesized: bool

    def __repr__(self) -> str:
        return f"<Predictor {self.name!r}, {self.cells.shape[1]} cells>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Distinct rows of all predictors together.

    Attributes
    ----------
    cells : sparse matrix, shape (R, L)
        Shares, 1 for each predictor.
    times : ndarray, shape (R,)
        How many records have them.
    of_record : ndarray of int, shape (n,)
        Place of each record among them.
    """

    cells: sparse.csr_array
    times: FloatArray
    of_record: IntArray

    def __repr__(self) -> str:
        return f"<Rows: {self.times.size} distinct ones of {self.of_record.size}>"


def of_nothing(n: int) -> Predictor:
    """One cell that all n records are in: for a column without predictors."""
    return of_cells(ALONE, np.zeros(n, np.int64), 1, np.full(1, np.nan), synthesized=False)


def of_cells(
    name: str, places: IntArray, n_cells: int, positions: FloatArray, *, synthesized: bool
) -> Predictor:
    """A predictor whose records are each in one cell, at `places` (n,)."""
    n = places.size
    cells = sparse.csr_array(
        (np.full(n, PARTS, np.int64), places, np.arange(n + 1)), shape=(n, n_cells)
    )
    return Predictor(name=name, cells=cells, positions=positions, synthesized=synthesized)


def of_public(values: pd.Series, domain: ColumnDomain | None = None) -> Predictor:
    """A predictor that is published as it is: its declared cells, its levels, or knots of numbers.

    Levels and knots are read from the column, which is public. Missing values are a cell of their
    own.
    """
    name = str(values.name)
    if domain is not None:
        own = domain.places(values)
        return of_cells(name, own, domain.n_cells, domain.positions, synthesized=False)
    dtype = values.dtype
    number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if number and values.nunique() > _KNOTS:
        return _of_numbers(name, values.to_numpy(dtype=np.float64, na_value=np.nan))
    if not all(isinstance(value, Hashable) for value in values):
        raise InvalidInput(
            f"column {name!r} must hold texts, logicals, categories or numbers to be read: found "
            f"{dtype} of lists or the like; leave it out of given"
        )
    codes, levels = pd.factorize(values, sort=number, use_na_sentinel=False)
    at = np.full(len(levels), np.nan)
    if number:  # few numbers: in their order, the missing ones aside
        present = int(pd.Series(levels).notna().sum())
        at[:present] = np.linspace(0, 1, present) if present > 1 else 0.5
    return of_cells(name, codes.astype(np.int64), len(levels), at, synthesized=False)


def _of_numbers(name: str, x: FloatArray) -> Predictor:
    present = np.isfinite(x)
    knots = np.unique(np.quantile(x[present], np.linspace(0, 1, _KNOTS)))
    absent, n_knots = ~present, knots.size
    own = np.where(present, x, knots[0])
    left = np.clip(np.searchsorted(knots, own, side="right") - 1, 0, n_knots - 2)
    share = (own - knots[left]) / (knots[left + 1] - knots[left])
    parts = np.rint(share * PARTS).astype(np.int64)
    rows = np.arange(x.size)
    there = rows[present]
    cells = sparse.csr_array(
        (
            np.concatenate([PARTS - parts[there], parts[there], np.full(absent.sum(), PARTS)]),
            (
                np.concatenate([there, there, rows[absent]]),
                np.concatenate([left[there], left[there] + 1, np.full(absent.sum(), n_knots)]),
            ),
        ),
        shape=(x.size, n_knots + int(absent.any())),
    )
    cells.eliminate_zeros()
    at = np.full(cells.shape[1], np.nan)
    at[:n_knots] = np.linspace(0, 1, n_knots)
    return Predictor(name=name, cells=cells, positions=at, synthesized=False)


def stacked(predictors: Sequence[Predictor]) -> Rows:
    """All predictors side by side, each distinct row once."""
    whole = sparse.csr_array(sparse.hstack([each.cells for each in predictors], format="csr"))
    keys = _keys(whole)
    _, first, of_record, times = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    return Rows(
        cells=sparse.csr_array(whole[first] / PARTS),
        times=times.astype(np.float64),
        of_record=of_record.astype(np.int64),
    )


def _keys(whole: sparse.csr_array) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each row: sums of random words, modulo 2^64. Two rows of a million fall
    together with probability 3e-8, which costs accuracy, and never privacy."""
    words = np.random.default_rng(20230101).integers(0, 2**64, whole.shape[1], dtype=np.uint64)
    return np.asarray(whole.astype(np.uint64) @ words, dtype=np.uint64)
