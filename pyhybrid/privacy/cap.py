"""What censoring clips each term to, where it is centered, and whose terms are summed first.

References
----------
[C25] sec. 3: terms clipped to [-M, M]. A center f_i(theta_ref), frozen before the data were seen,
moves the clipping from the size of a term to its movement; a unit of several records is clipped as
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.frozen_rows import STEEP, FrozenTerms
from pyhybrid.privacy.log_lik import LogLik

__all__ = ["Cap"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cap:
    r"""The interval [-below, above] that the terms of a censored likelihood are clipped to.

    A record's term is :math:`\alpha_i (f_i(\theta) - c_i)`, and :math:`e(\theta)` more with frozen
    rows; with units the clip acts on the sum of a unit's terms.

    Attributes
    ----------
    below, above : float
        Nats, above 0.
    reference : ndarray, shape (n,), or None
        c_i = f_i(theta_ref), nats; 0 if None.
    unit : ndarray of int, shape (n,), or None
        Unit of each record, from 0 to the number of units less 1; None if each is its own.
    frozen : FrozenTerms or None
        Of a reference: what clipping takes from them on average, e, is added to every term before
        it is clipped, and they decide where the region of the parameters ends.
    region : float
        Half width of that region, in posterior standard deviations of the reference.
    """

    below: float
    above: float
    reference: FloatArray | None = None
    unit: npt.NDArray[np.intp] | None = None
    frozen: FrozenTerms | None = None
    region: float = np.inf

    def __post_init__(self) -> None:
        check_positive(self.below, "below")
        check_positive(self.above, "above")
        if self.frozen is not None and self.unit is not None:
            raise InvalidInput("frozen rows must go with single records: found units")
        if self.reference is not None and not np.isfinite(self.reference).all():
            record = int(np.flatnonzero(~np.isfinite(self.reference))[0])
            raise InvalidInput(
                f"reference must be finite: record {record} has a likelihood of 0 at the center; "
                "choose a center at which every possible record has a positive one"
            )

    @classmethod
    def of(cls, cap: float | Cap) -> Cap:
        """`cap` itself, or the interval [-M, M] of a number M."""
        return cap if isinstance(cap, Cap) else cls(below=float(cap), above=float(cap))

    @property
    def span(self) -> float:
        """Length of the interval: what one unit can move the log posterior by, nats."""
        return self.below + self.above

    @property
    def key(self) -> tuple[object, ...]:
        """What tells two caps apart, for fits that are kept."""
        arrays = (None if a is None else a.tobytes() for a in (self.reference, self.unit))
        frozen = () if self.frozen is None else (*self.frozen.key, self.region)
        return (self.below, self.above, *arrays, *frozen)

    @property
    def farthest(self) -> float:
        """How far the mean term of the frozen rows falls to the end of the region, nats; 0 if there
        is none.

        About theta_ref their sum falls by half the squared distance in posterior deviations.
        """
        if self.frozen is None or not np.isfinite(self.region):
            return 0.0
        return self.region**2 / (2 * self.frozen.n)

    @property
    def steep(self) -> float:
        """Nats that the log density falls by, for each that the mean term falls beyond."""
        return STEEP * self.frozen.n if self.frozen is not None and self.farthest else 0.0

    def excess(self, frozen_log_lik: LogLik) -> FloatArray:
        """What clipping takes from a frozen term on average, shape (S,), nats."""
        assert self.frozen is not None
        whole = self._frozen_total(frozen_log_lik, np.inf, np.inf)
        return np.asarray(
            (whole - self._frozen_total(frozen_log_lik, self.below, self.above)) / self.frozen.n
        )

    def beyond(self, frozen_log_lik: LogLik) -> FloatArray:
        """What the log density is less for lying outside of the region, shape (S,), nats."""
        assert self.frozen is not None
        mean = self._frozen_total(frozen_log_lik, np.inf, np.inf) / self.frozen.n
        return np.asarray(self.steep * np.maximum(-mean - self.farthest, 0))

    def _frozen_total(self, log_lik: LogLik, below: float, above: float) -> FloatArray:
        """Sum of the frozen records' terms, each clipped, shape (S,)."""
        own = self.frozen
        assert own is not None
        alpha, center = np.repeat(own.alpha, own.count), np.repeat(own.center, own.count)
        return log_lik.clipped_total(alpha, below, above, center)

    @property
    def n_units(self) -> int:
        """Number of units, 0 if each record is its own."""
        return 0 if self.unit is None else int(self.unit.max()) + 1

    @property
    def is_plain(self) -> bool:
        """True if it is one number M and nothing else: [C25]'s."""
        more = (self.reference, self.unit, self.frozen)
        return self.below == self.above and all(own is None for own in more)

    def __repr__(self) -> str:
        centered = "" if self.reference is None else ", centered"
        units = "" if self.unit is None else f", {self.n_units} units"
        frozen = "" if self.frozen is None else f", {self.frozen!r}"
        return f"<Cap [{-self.below:g}, {self.above:g}]{centered}{units}{frozen}>"
