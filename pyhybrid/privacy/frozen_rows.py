"""The rows of a reference that a centered release goes on reading: frozen, and no new record's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput

__all__ = ["STEEP", "FrozenParts", "FrozenRows", "FrozenTerms"]

STEEP = 10.0
"""Nats that the log density falls by beyond the region, for each nat of the reference's own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenTerms:
    """Distinct terms of a reference's records. Confidential if the reference is.

    Attributes
    ----------
    alpha : ndarray, shape (d,)
        Weights, in [0, 1].
    count : ndarray of int, shape (d,)
        Records of each.
    center : ndarray, shape (d,)
        f_j(theta_ref), nats.
    """

    alpha: FloatArray
    count: npt.NDArray[np.int64]
    center: FloatArray

    def __post_init__(self) -> None:
        d = self.count.size
        shapes = {own.shape for own in (self.alpha, self.count, self.center)}
        if shapes != {(d,)} or d == 0:
            raise InvalidInput("frozen rows must be of one length, at least 1")
        if not np.isfinite(self.center).all() or self.count.min() < 1:
            raise InvalidInput("frozen rows must be finite, with at least one record each")
        if not ((self.alpha >= 0) & (self.alpha <= 1)).all():
            raise InvalidInput("weights of frozen rows must lie in [0, 1]")

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.count.sum())

    @property
    def share(self) -> FloatArray:
        """Of each term among the records, shape (d,)."""
        return np.asarray(self.count / self.n)

    @property
    def key(self) -> tuple[bytes, ...]:
        """What tells two apart, for fits that are kept."""
        return tuple(each.tobytes() for each in (self.alpha, self.count, self.center))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.n} records>"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FrozenRows(FrozenTerms):
    """Distinct rows of a reference, as its model codes them. Confidential if the reference is.

    Attributes
    ----------
    y : ndarray, shape (d,)
        Outcomes on the scale of the likelihood.
    X : ndarray, shape (d, K)
        Design.
    offset : ndarray, shape (d,)
    """

    y: FloatArray
    X: FloatArray
    offset: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        d = self.count.size
        if {self.y.shape, self.offset.shape} != {(d,)} or self.X.ndim != 2 or len(self.X) != d:
            raise InvalidInput("frozen rows must be of one length, at least 1")
        if not all(np.isfinite(own).all() for own in (self.y, self.X, self.offset)):
            raise InvalidInput("frozen rows must be finite, with at least one record each")

    def some(self, rows: slice) -> FrozenRows:
        """Some of them."""
        return FrozenRows(**{own.name: getattr(self, own.name)[rows] for own in fields(self)})

    @property
    def key(self) -> tuple[bytes, ...]:
        """What tells two apart, for fits that are kept."""
        return (*super().key, *(each.tobytes() for each in (self.y, self.X, self.offset)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FrozenParts(FrozenTerms):
    """Distinct records of a reference under a model of several steps. Confidential if it is.

    Attributes
    ----------
    parts : mapping of str to FrozenRows
        By step, its rows of the records that reach it, in their order; a step that none of them
        reaches is not there.
    reached : mapping of str to ndarray of bool, shape (d,)
        By step, whether a record reaches it.
    at_zero : ndarray of bool, shape (d,)
        Of a mixture of zeros and counts, whether the count is 0; False elsewhere.
    """

    parts: Mapping[str, FrozenRows]
    reached: Mapping[str, npt.NDArray[np.bool_]]
    at_zero: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        super().__post_init__()
        d = self.count.size
        if {own.shape for own in (*self.reached.values(), self.at_zero)} != {(d,)}:
            raise InvalidInput("frozen rows must be of one length, at least 1")
        found = {name: own.count.size for name, own in self.parts.items()}
        if found != {name: int(own.sum()) for name, own in self.reached.items() if own.any()}:
            raise InvalidInput("frozen rows must be there for each record that reaches a step")

    @property
    def key(self) -> tuple[bytes, ...]:
        """What tells two apart, for fits that are kept."""
        own = tuple(each for part in self.parts.values() for each in part.key)
        reached = (each.tobytes() for each in self.reached.values())
        return (*super().key, *own, *reached, self.at_zero.tobytes())
