"""The rows of a reference that a centered release goes on reading: frozen, and no new record's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyhybrid.checks import FloatArray
from pyhybrid.errors import InvalidInput

__all__ = ["STEEP", "FrozenRows"]

STEEP = 10.0
"""Nats that the log density falls by beyond the region, for each nat of the reference's own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenRows:
    """Distinct rows of a reference, as its model codes them. Confidential if the reference is.

    Attributes
    ----------
    y : ndarray, shape (d,)
        Outcomes on the scale of the likelihood.
    X : ndarray, shape (d, K)
        Design.
    offset : ndarray, shape (d,)
    alpha : ndarray, shape (d,)
        Weights, in [0, 1].
    count : ndarray of int, shape (d,)
        Records in each row.
    center : ndarray, shape (d,)
        f_j(theta_ref), nats.
    """

    y: FloatArray
    X: FloatArray
    offset: FloatArray
    alpha: FloatArray
    count: npt.NDArray[np.int64]
    center: FloatArray

    def __post_init__(self) -> None:
        d = self.y.size
        shapes = {own.shape for own in (self.y, self.offset, self.alpha, self.count, self.center)}
        if shapes != {(d,)} or self.X.ndim != 2 or self.X.shape[0] != d or d == 0:
            raise InvalidInput("frozen rows must be of one length, at least 1")
        numbers = (self.y, self.X, self.offset, self.center)
        if not all(np.isfinite(own).all() for own in numbers) or self.count.min() < 1:
            raise InvalidInput("frozen rows must be finite, with at least one record each")
        if not ((self.alpha >= 0) & (self.alpha <= 1)).all():
            raise InvalidInput("weights of frozen rows must lie in [0, 1]")

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.count.sum())

    @property
    def share(self) -> FloatArray:
        """Of each row among the records, shape (d,)."""
        return np.asarray(self.count / self.n)

    @property
    def key(self) -> tuple[bytes, ...]:
        """What tells two apart, for fits that are kept."""
        own = (self.y, self.X, self.offset, self.alpha, self.count, self.center)
        return tuple(each.tobytes() for each in own)

    def __repr__(self) -> str:
        return f"<FrozenRows of {self.n} records>"
