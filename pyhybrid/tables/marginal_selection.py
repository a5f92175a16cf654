"""Which columns noisy marginals measure a column with: few, by a rule that is public."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.mechanisms.marginals.measurement import most_cells
from pyhybrid.models.columns.kinds import Kind, Leveled, Number
from pyhybrid.tables.domains import MOST_BINS, domain_of

__all__ = ["MOST_EFFECTS_OF_A_COLUMN", "association", "measured_with", "most_tables",
           "note_of_tables"]  # fmt: skip

MOST_EFFECTS_OF_A_COLUMN = 1000
"""Cells of a column times those of what it is measured with; a fit takes their third power."""
_TABLES, _FEWEST = 30, 3  # of a whole plan, about; of a column
_PARTS = 10  # that numbers of a reference are cut in


def most_tables(n_columns: int) -> int:
    """Two-way tables of one column at most: 30 over all columns of a plan, or 3 for each.

    Each further table takes its part of epsilon from all others, and adds to the fit.
    """
    return max(_FEWEST, _TABLES // n_columns)


def note_of_tables(most: int, reference: pd.DataFrame | None) -> str:
    """What a plan says of them."""
    how = (
        "kept ones and the nearest before it"
        if reference is None
        else "those it is most associated with in the reference"
    )
    return f"noisy marginals measure a column with {most} others at most: {how}"


def measured_with(
    name: str,
    kinds: Mapping[str, Kind],
    candidates: Collection[str],
    *,
    kept: Collection[str],
    most: int,
    reference: pd.DataFrame | None = None,
) -> tuple[str, ...]:
    """Columns of `candidates` that a column is measured with, in their order.

    The confidential table is not looked at. With a reference those of the strongest association in
    it come first; else kept columns do, then the nearest before the column. One that would take the
    column past `MOST_EFFECTS_OF_A_COLUMN` is passed over.

    Parameters
    ----------
    name : str
    kinds : mapping of str to Kind
        Of the column and all candidates.
    candidates : collection of str
        Kept columns and those before it, in the plan's order.
    kept : collection of str
    most : int
    reference : DataFrame, optional
    """
    order = list(candidates)
    if reference is not None and name in reference.columns:
        told = [own for own in order if own in reference.columns]
        strength = {own: association(reference[name], reference[own]) for own in told}
        ranked = sorted(order, key=lambda own: -strength.get(own, 0.0))  # stable
    else:
        public = [own for own in order if own in kept]
        ranked = [*public, *(own for own in reversed(order) if own not in kept)]
    rows, columns = _cells(name, kinds[name]), 1
    found: set[str] = set()
    for own in ranked:
        wider = columns + _cells(own, kinds[own])
        if len(found) < most and rows * wider <= MOST_EFFECTS_OF_A_COLUMN:
            found.add(own)
            columns = wider
    return tuple(own for own in order if own in found)


def association(one: pd.Series, other: pd.Series) -> float:
    """Mutual information of two columns in nats, numbers by tenths, missing values a level, less
    the bias (R - 1)(C - 1) / 2n of independent ones (Miller 1955)."""
    from sklearn.metrics import mutual_info_score  # half a second to import

    a, b = _coded(one), _coded(other)
    bias = np.unique(a).size - 1, np.unique(b).size - 1
    return float(mutual_info_score(a, b) - bias[0] * bias[1] / (2 * len(a)))


def _coded(column: pd.Series) -> npt.NDArray[np.int64]:
    dtype = column.dtype
    number = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    if number and column.nunique() > _PARTS:
        column = pd.qcut(column, _PARTS, labels=False, duplicates="drop")
    return np.asarray(pd.factorize(column, use_na_sentinel=False)[0], dtype=np.int64)


def _cells(name: str, kind: Kind) -> int:
    if isinstance(kind, Leveled):
        return len(kind.levels) + kind.missing
    assert isinstance(kind, Number)
    if None in (kind.lower, kind.upper, kind.form.decimals):
        return MOST_BINS + kind.missing
    return most_cells(domain_of(name, kind), MOST_BINS)
