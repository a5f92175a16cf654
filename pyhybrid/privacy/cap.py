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

from pyhybrid.checks import FloatArray, check_positive
from pyhybrid.errors import InvalidInput

__all__ = ["Cap"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cap:
    r"""The interval [-below, above] that the terms of a censored likelihood are clipped to.

    A record's term is :math:`\alpha_i (f_i(\theta) - c_i)`; with units the clip acts on the sum of
    a unit's terms.

    Attributes
    ----------
    below, above : float
        Nats, above 0.
    reference : ndarray, shape (n,), or None
        c_i = f_i(theta_ref), nats; 0 if None.
    unit : ndarray of int, shape (n,), or None
        Unit of each record, from 0 to the number of units less 1; None if each is its own.
    """

    below: float
    above: float
    reference: FloatArray | None = None
    unit: npt.NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        check_positive(self.below, "below")
        check_positive(self.above, "above")
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
        return (self.below, self.above, *arrays)

    @property
    def n_units(self) -> int:
        """Number of units, 0 if each record is its own."""
        return 0 if self.unit is None else int(self.unit.max()) + 1

    @property
    def is_plain(self) -> bool:
        """True if it is one number M and nothing else: [C25]'s."""
        return self.below == self.above and self.reference is None and self.unit is None

    def __repr__(self) -> str:
        centered = "" if self.reference is None else ", centered"
        units = "" if self.unit is None else f", {self.n_units} units"
        return f"<Cap [{-self.below:g}, {self.above:g}]{centered}{units}>"
