"""Cells of a column for noisy marginals, from its declared kind alone."""

from __future__ import annotations

import numpy as np

from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.marginals.domain import ColumnDomain, with_steps
from pyhybrid.models.columns.kinds import Amounts, Kind, Leveled, Number, Ordered, SemiContinuous
from pyhybrid.models.columns.support import of_steps
from pyhybrid.privacy.histogram import in_steps

__all__ = ["MOST_BINS", "domain_of"]

MOST_BINS = 12
"""Of a column in two-way tables: its bins are merged to so many; see `pyhybrid.NoisyMarginals`."""
_FEW = 100  # whole numbers in a range of so many are cells of their own
_FAR = np.arange(0.1, 10, 0.1)  # edges at center +- unit (exp(t) - 1)
_EVEN = 50  # bins of numbers without a center


def domain_of(name: str, kind: Kind) -> ColumnDomain:
    """The public domain: levels, or bins that are narrow about the center and wide far from it,
    many, as each column is measured alone before neighbors are merged.

    Raises
    ------
    InvalidInput
        For numbers without a declared range.
    """
    if isinstance(kind, Leveled):
        return ColumnDomain(
            levels=kind.levels, missing=kind.missing, ordered=isinstance(kind, Ordered)
        )
    assert isinstance(kind, Number)
    if kind.lower is None or kind.upper is None:
        raise InvalidInput(
            f"column {name!r} must have a range for noisy marginals: give lower= and upper= in its "
            "type"
        )
    zero = isinstance(kind, SemiContinuous) and kind.lower <= 0 <= kind.upper
    decimals = kind.form.decimals
    if decimals is None:
        raise InvalidInput(
            f"column {name!r} must have decimals for noisy marginals: give decimals= in its type, "
            "0 for whole numbers"
        )
    step = 10.0**-decimals
    return ColumnDomain(
        levels=(0,) if zero else (),
        bins=_edges(kind, zero=zero, step=step),
        step=step,
        missing=kind.missing,
    )


def _edges(kind: Number, *, zero: bool, step: float) -> tuple[float, ...]:
    low, high = float(kind.lower or 0.0), float(kind.upper or 0.0)
    if isinstance(kind, Amounts) and low <= 0:
        low = step / 1000  # 0 is none of them, and what rounds to it is
    if kind.whole and high - low < _FEW:  # the last bin is closed: it must not hold two numbers
        return (*np.arange(low, high + 1).tolist(), high + 0.5)
    if kind.typical is None:
        inner = np.linspace(low, high, _EVEN + 1)
    else:
        center, unit = kind.typical
        far = unit * np.expm1(_FAR)
        inner = np.concatenate([center - far, [center], center + far])
    whole = np.append(np.round(inner / step), [0.0] if zero else [])
    start, end = in_steps(np.array([low, high]), step)
    inside = np.unique(whole[(whole > start) & (whole < end)])
    kept = with_steps(np.array([start, *inside, end]), np.array([0.0] if zero else []))
    return (low, *of_steps(kept[1:-1], step).tolist(), high)
