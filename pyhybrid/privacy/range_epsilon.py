r"""Epsilon of ranges: pure, and with a public delta through zero-concentrated privacy.

A mechanism whose log density ratio between neighbors has range eta is eta-DP, and eta^2/8-zCDP,
whatever its ratio's location. rho of several releases adds, and rho-zCDP is
:math:`(\rho + 2 \sqrt{\rho \log(1/\delta)}, \delta)`-DP for every delta.

References
----------
[DR19] Durfee, Rogers (2019), NeurIPS: bounded range.
[CR21] Cesar, Rogers (2021), Bounding, concentrating, and truncating: unifying privacy loss
composition for data analytics, ALT: bounded range and zCDP.
[BS16] Bun, Steinke (2016), Concentrated differential privacy: simplifications, extensions, and
lower bounds, TCC: zCDP, prop. 1.3 and lemma 1.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from pyhybrid.core.checks import check_choice, check_count, check_finite
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.epsilon import ASYMPTOTIC_LOCAL, RELATIONS, round_up, shown
from pyhybrid.privacy.gaussian_curve import check_delta

__all__ = [
    "RangeEpsilon",
    "at_least",
    "epsilon_of_range",
    "epsilon_of_rho",
    "range_epsilon",
    "rho_of_epsilon",
    "rho_of_range",
]


@dataclass(frozen=True, kw_only=True)
class RangeEpsilon:
    """What m draws of a mechanism of bounded range cost, two ways.

    Attributes
    ----------
    pure : float
        Epsilon at delta = 0.
    rho : float
        Of zCDP.
    approximate : float
        Epsilon at `delta`, from rho; rounded up as `pure` is.
    delta : float
        Public.
    """

    pure: float
    rho: float
    approximate: float
    delta: float

    @property
    def epsilon(self) -> float:
        """The smaller of both, which is reported."""
        return min(self.pure, self.approximate)

    @property
    def stated_delta(self) -> float:
        """The delta that goes with `epsilon`: 0 where the pure one is no larger."""
        return 0.0 if self.pure <= self.approximate else self.delta


def epsilon_of_range(
    loss_range: float,
    *,
    n_draws_released: int = 1,
    relation: str = "remove",
    kind: str = ASYMPTOTIC_LOCAL,
) -> float:
    """Pure epsilon of m released draws: m R, or 2 m R where a record is replaced; rounded up.

    Parameters
    ----------
    loss_range : float
        R in nats, >= 0, finite: `loss_ranges(...).overall`, or a + b of clipped terms. Under
        "replace" it must hold for every record that could take a place, too.
    n_draws_released : int, default 1
        Posterior draws released; data sets simulated from one draw cost no more than one.
    relation : {"remove", "replace"}
        Neighboring databases.
    kind : {"asymptotic local", "strict"}
        Decides the rounding: up, to 2 decimals for estimates, to 6 for strict charges.

    References
    ----------
    [DR19] sec. 3.

    Examples
    --------
    >>> epsilon_of_range(0.364, n_draws_released=3)
    1.1
    """
    exact = _sides(relation) * _draws(n_draws_released) * shown(_range(loss_range))
    return round_up(at_least(exact), kind=kind)


def rho_of_range(
    loss_range: float, *, n_draws_released: int = 1, relation: str = "remove"
) -> float:
    """Rho of zCDP of m released draws: m eta^2 / 8, eta = R or, under "replace", 2 R; rounded up.

    Parameters as in `epsilon_of_range`.

    References
    ----------
    [CR21] sec. 3; a replacement changes two terms of range R each.

    Examples
    --------
    >>> rho_of_range(0.5, n_draws_released=20)
    0.625
    """
    eta = _sides(relation) * shown(_range(loss_range))
    return at_least(_draws(n_draws_released) * eta**2 / 8)


def rho_of_epsilon(epsilon: float, *, n_draws_released: int = 1) -> float:
    """Rho of zCDP of m pure releases: m epsilon^2 / 2, rounded up [BS16, prop. 1.4]."""
    return at_least(_draws(n_draws_released) * shown(_range(epsilon, "epsilon")) ** 2 / 2)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Epsilon at a public delta of a rho-zCDP release: rho + 2 sqrt(rho log(1/delta)), rounded up.

    Parameters
    ----------
    rho : float
        >= 0; of several releases, the sum.
    delta : float
        In (0, 1).

    References
    ----------
    [BS16] prop. 1.3.

    Examples
    --------
    >>> round(epsilon_of_rho(0.625, 1e-6), 1)
    6.5
    """
    rho, delta = _range(rho, "rho"), check_delta(delta)
    value = rho + 2 * math.sqrt(rho * -math.log(delta))
    return value * (1 + 4 * math.ulp(1.0))  # above what rounding of four operations can hide


def range_epsilon(
    loss_range: float,
    *,
    delta: float,
    n_draws_released: int = 1,
    relation: str = "remove",
    kind: str = ASYMPTOTIC_LOCAL,
) -> RangeEpsilon:
    """Both epsilons of m draws whose terms have this range; the smaller is reported.

    Examples
    --------
    >>> cost = range_epsilon(0.5, delta=1e-6, n_draws_released=20)
    >>> cost.pure, cost.approximate, cost.epsilon
    (10.0, 6.51, 6.51)
    """
    rho = rho_of_range(loss_range, n_draws_released=n_draws_released, relation=relation)
    return RangeEpsilon(
        pure=epsilon_of_range(
            loss_range, n_draws_released=n_draws_released, relation=relation, kind=kind
        ),
        rho=rho,
        approximate=round_up(epsilon_of_rho(rho, delta), kind=kind),
        delta=delta,
    )


def _sides(relation: str) -> int:
    return 2 if check_choice(relation, "relation", RELATIONS) == "replace" else 1


def _draws(value: int) -> int:
    return check_count(value, "n_draws_released")


def _range(value: float, name: str = "loss_range") -> float:
    number = check_finite(value, name)
    if number < 0:
        raise InvalidInput(f"{name} must be >= 0: found {number:g}")
    return number


def at_least(exact: Fraction) -> float:
    """The smallest double that is shown as no less than `exact`."""
    try:
        value = float(exact)
    except OverflowError:
        raise InvalidInput("epsilon must be a number that floats can hold: it is larger") from None
    return value if shown(value) >= exact else math.nextafter(value, math.inf)
