r"""Re-centered censoring: strict, and nearly free.

:math:`h_i(\theta) = \max(-a, \min(b, \alpha_i (f_i(\theta) - c_i)))`, with
:math:`c_i = f_i(\theta_{ref})`, ranges over at most a + b for any data and any theta. Without
clipping the center cancels from the posterior; with it, clipping starts at the typical movement of
a term, not at its typical size. Center and weight must be functions of record i and frozen
quantities alone. A unit of several records is clipped as one. A centered release goes on reading
the rows of its reference: they are frozen, and no new record's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    check_alpha,
    check_each,
    check_flag,
    check_log_lik,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.conversions import STRICT, at_least, epsilon_of_range, shown
from pyhybrid.privacy.log_lik import LogLik

STEEP = 10.0
"""Nats that the log density falls by beyond the region, for each nat of the reference's own."""


def censor(log_lik: Any, alpha: Any = None, *, cap: float) -> FloatArray:
    """Censored weighted log-likelihood max(-M, min(M, alpha_i f_si)), shape (S, n) [C25] sec. 3.

    Parameters as in `center_and_censor`, with one cap and without a center.
    """
    return center_and_censor(log_lik, alpha=alpha, cap=check_positive(cap, "cap"))


def center_and_censor(
    log_lik: Any, center: Any = None, alpha: Any = None, *, cap: Any, excess: Any = None
) -> FloatArray:
    """Re-centered censored terms max(-a, min(b, alpha_i (f_si - c_i) + e_s)), shape (S, n).

    A weight of 0 gives 0; an infinite f_si gives -a or b; NaN (a density that cannot be evaluated)
    gives -a, as a likelihood of 0 would. Whatever comes in, terms stay within [-a, b]. [C25] sec. 3
    with c_i = 0 and a = b = M.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        Unweighted log-likelihood in nats.
    center : array_like, shape (n,), optional
        c_i in nats, finite; the record's log-likelihood at a frozen or released parameter. 0 if
        omitted, which is `censor`.
    alpha : array_like, shape (n,), optional
        Weights in [0, 1]; all 1 if omitted.
    cap : float or pair of float
        M in nats, above 0; or (a, b), each >= 0 and one of them above 0.
    excess : array_like, shape (S,), optional
        e in nats, a frozen function of the parameters such as `frozen_excess`; 0 if omitted. It is
        clipped with the rest, so that the range stays a + b.

    Examples
    --------
    >>> center_and_censor([[-5.0, -9.0]], center=[-4.8, -6.0], cap=0.5).round(3)
    array([[-0.2, -0.5]])
    >>> frozen_excess([[-5.0, -9.0]], center=[-4.8, -6.0], cap=0.5)
    array([-1.25])
    """
    moved, weights = _moved(log_lik, center, alpha)
    below, above = _caps(cap)
    if excess is not None:
        added = check_vector(excess, "excess", length=len(moved))
        check_each(np.isfinite(added), "excess must be finite: that of draw {} is not")
        np.add(moved, added[:, None], out=moved, where=weights > 0)
    return np.asarray(np.clip(moved, -below, above))


def frozen_excess(log_lik: Any, center: Any = None, alpha: Any = None, *, cap: Any) -> FloatArray:
    r"""Loss of the terms of a reference to clipping, on average, shape (S,), nats.

    .. math:: e_s = \frac{1}{n} \sum_j g_{sj} - \max(-a, \min(b, g_{sj})),
       \quad g_{sj} = \alpha_j (f_{sj} - c_j)

    Of a reference that is frozen; added to each term of other records before it is clipped
    (`center_and_censor`), it keeps a posterior of clipped terms near the one without clipping.
    Parameters and errors as there, of the reference's records, whose terms must be finite.
    """
    moved, _ = _moved(log_lik, center, alpha)
    below, above = _caps(cap)
    check_each(
        np.isfinite(moved).all(axis=0),
        "terms of a reference must be finite: that of record {} is not in some draw",
    )
    return np.asarray((moved - np.clip(moved, -below, above)).mean(axis=1))


def _moved(log_lik: Any, center: Any, alpha: Any) -> tuple[FloatArray, FloatArray]:
    """Weighted terms less their center (S, n): 0 for a weight of 0, -inf for NaN; weights (n,)."""
    matrix = check_log_lik(log_lik)
    n = matrix.shape[1]
    middle = np.zeros(n) if center is None else check_vector(center, "center", length=n)
    check_each(
        np.isfinite(middle),
        "center must be finite: that of record {} is not; take a parameter at which every record "
        "has a density",
    )
    weights = np.ones(n) if alpha is None else check_alpha(alpha, n)
    moved = np.zeros_like(matrix)
    with np.errstate(over="ignore"):
        np.subtract(matrix, middle, out=moved, where=weights > 0)
        np.multiply(moved, weights, out=moved, where=weights > 0)
    return np.nan_to_num(moved, nan=-np.inf, posinf=np.inf, neginf=-np.inf), weights


def range_of_censoring(cap: Any, *, discrete_uncentered: bool = False) -> float:
    """Largest range of a censored term, a + b (2 M); M for f <= 0 without a center.

    `cap` as in `center_and_censor`. `discrete_uncentered` says that the outcome is discrete, so
    that f <= 0, and nothing is subtracted from it: terms then lie in [-a, 0].
    """
    below, above = _caps(cap)
    if check_flag(discrete_uncentered, "discrete_uncentered"):
        return below
    return at_least(shown(below) + shown(above))  # 0.1 + 0.2 is 0.3


def epsilon_of_censoring(
    cap: Any,
    *,
    n_draws_released: int = 1,
    relation: str = "remove",
    discrete_uncentered: bool = False,
) -> float:
    """Strict epsilon of m draws of a censored posterior: m (a + b), or 2 m (a + b), rounded up.

    With a = b = M: 2 M under "remove", 4 M under "replace"; without a center and for a discrete
    outcome M and 2 M. Holds for every database and every n, for the exact posterior. Parameters as
    in `range_of_censoring` and `epsilon_of_range`.

    Examples
    --------
    >>> range_of_censoring(0.5), range_of_censoring((0.3, 0.1))
    (1.0, 0.4)
    >>> epsilon_of_censoring(0.25), epsilon_of_censoring(0.25, relation="replace")
    (0.5, 1.0)
    """
    return epsilon_of_range(
        range_of_censoring(cap, discrete_uncentered=discrete_uncentered),
        n_draws_released=n_draws_released,
        relation=relation,
        kind=STRICT,
    )


def _caps(cap: Any) -> tuple[float, float]:
    if np.ndim(cap) == 0:
        both = check_positive(cap, "cap")
        return both, both
    pair = check_vector(cap, "cap")
    if pair.size != 2 or not np.isfinite(pair).all() or pair.min() < 0 or pair.max() == 0:
        raise InvalidInput(
            "cap must be one number above 0, or two, none below 0 and one above: "
            f"found {pair.tolist()}"
        )
    return float(pair[0]), float(pair[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Cap:
    """The interval [-below, above] that the terms of a censored likelihood are clipped to.

    With units the clip acts on the sum of a unit's terms. With frozen rows `excess` is added to
    every term before it is clipped, and parameters stay within their region.
    """

    below: float  # nats, above 0
    above: float
    reference: FloatArray | None = field(default=None, repr=False)  # (n,) c_i, nats; 0 if None
    unit: npt.NDArray[np.intp] | None = field(default=None, repr=False)  # (n,) from 0; None: single
    frozen: FrozenRows | None = None
    region: float = np.inf  # its half width, in posterior standard deviations of the reference

    def __post_init__(self) -> None:
        check_positive(self.below, "below")
        check_positive(self.above, "above")
        if self.frozen is not None and self.unit is not None:
            raise InvalidInput("frozen rows must go with single records: found units")
        if self.reference is not None:
            check_each(
                np.isfinite(self.reference),
                "reference must be finite: record {} has a likelihood of 0 at the center; choose a "
                "center at which every possible record has a positive one",
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
    def key(self) -> tuple[Any, ...]:
        """Identity of the cap, for fits that are kept: arrays by their bytes."""
        values = vars(self).values()
        return tuple(v.tobytes() if isinstance(v, np.ndarray) else v for v in values)

    @property
    def farthest(self) -> float:
        """Fall of the mean term of the frozen rows to the end of the region, nats; 0 if there is
        none. Near theta_ref their sum falls by half the squared distance in posterior
        deviations."""
        if self.frozen is None or not np.isfinite(self.region):
            return 0.0
        return self.region**2 / (2 * self.frozen.n)

    @property
    def steep(self) -> float:
        """Nats that the log density falls by, for each that the mean term falls beyond."""
        return STEEP * self.frozen.n if self.frozen is not None and self.farthest else 0.0

    def excess(self, frozen_log_lik: LogLik) -> FloatArray:
        """Loss of a frozen term to clipping, on average, shape (S,), nats; see `frozen_excess`."""
        assert self.frozen is not None
        whole = self._frozen_total(frozen_log_lik, np.inf, np.inf)
        return np.asarray(
            (whole - self._frozen_total(frozen_log_lik, self.below, self.above)) / self.frozen.n
        )

    def _frozen_total(self, log_lik: LogLik, below: float, above: float) -> FloatArray:
        """Sum of the frozen records' terms, each clipped, shape (S,)."""
        assert self.frozen is not None
        count = self.frozen.count
        alpha, center = np.repeat(self.frozen.alpha, count), np.repeat(self.frozen.center, count)
        return log_lik.clipped_total(alpha, below, above, center)

    @property
    def n_units(self) -> int:
        """Number of units, 0 if each record is its own."""
        return 0 if self.unit is None else int(self.unit.max()) + 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FrozenRows:
    """Distinct rows of a reference, as its model codes them. Confidential if the reference is."""

    y: FloatArray  # (d,) outcomes on the scale of the likelihood
    X: FloatArray  # (d, K) design
    offset: FloatArray  # (d,)
    alpha: FloatArray  # (d,) weights, in [0, 1]
    count: npt.NDArray[np.int64]  # (d,) records of each
    center: FloatArray  # (d,) f_j(theta_ref), nats

    def __post_init__(self) -> None:
        arrays = vars(self).values()
        if len(set(map(len, arrays))) > 1 or not all(np.isfinite(v).all() for v in arrays):
            raise InvalidInput("frozen rows must be finite, and of one length")

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.count.sum())

    @property
    def share(self) -> FloatArray:
        """Of each term among the records, shape (d,)."""
        return np.asarray(self.count / self.n)
