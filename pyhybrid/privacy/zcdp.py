r"""Epsilon of zero-concentrated privacy at a public delta, and the rho that an epsilon allows.

Noise from N(0, sigma^2), on the reals or on whole numbers, added to an answer of L2 sensitivity S
is rho-zCDP with rho = S^2 / (2 sigma^2); rho of several answers adds. For every alpha > 1 rho-zCDP
is (epsilon, delta)-DP with

.. math:: \epsilon = \alpha \rho + \frac{\log(1 / (\alpha \delta))}{\alpha - 1}
    + \log(1 - 1 / \alpha);

the smallest over alpha is stated. It is below rho + 2 sqrt(rho log(1 / delta))
(`pyhybrid.privacy.range_epsilon.epsilon_of_rho`) by 2 to 60 percent, most at small epsilon.

References
----------
[BS16] Bun, Steinke (2016), prop. 1.6 and lemma 1.7. [CKS20] Canonne, Kamath, Steinke (2020), The
discrete Gaussian for differential privacy, NeurIPS, theorem 4 and proposition 12.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq, minimize_scalar

from pyhybrid.core.checks import check_finite, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.gaussian_curve import check_delta

__all__ = ["epsilon_of_zcdp", "rho_of_zcdp"]

_ABOVE = 1e-12  # what rounding of the few operations can hide, relative
_BELOW = 1e-11  # by which rho stays below what an epsilon allows
_REACH = 40.0  # of log(alpha - 1)


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Epsilon at a public delta of a rho-zCDP release, nats.

    Parameters
    ----------
    rho : float
        >= 0, nats; of several releases, the sum.
    delta : float
        In (0, 1).

    References
    ----------
    [CKS20] prop. 12.

    Examples
    --------
    >>> round(epsilon_of_zcdp(0.311, 1e-6), 2)
    4.0
    """
    number, at = check_finite(rho, "rho"), check_delta(delta)
    if number < 0:
        raise InvalidInput(f"rho must be >= 0: found {number:g}")
    if number == 0:
        return 0.0

    def of(log_order: float) -> float:
        less = math.exp(log_order)  # alpha - 1
        order = 1 + less
        parts = -math.log(at) - math.log1p(less)
        return order * number + parts / less + log_order - math.log1p(less)

    # The best order of the simple bound, and a wide interval about it: any order is valid.
    middle = 0.5 * math.log(-math.log(at) / number)
    found = minimize_scalar(of, bounds=(middle - _REACH, middle + _REACH), method="bounded")
    value = min(of(middle), float(found.fun))
    return max(0.0, value) + _ABOVE * (1 + abs(value))


def rho_of_zcdp(epsilon: float, delta: float) -> float:
    """The largest rho, nearly, whose epsilon at `delta` is at most `epsilon`.

    Parameters
    ----------
    epsilon : float
        Above 0, nats.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(rho_of_zcdp(4.0, 1e-6), 3)
    0.311
    """
    eps, at = check_positive(epsilon, "epsilon"), check_delta(delta)
    low, high = -60.0, math.log(eps)  # of log(rho)
    if epsilon_of_zcdp(math.exp(low), at) > eps:
        raise InvalidInput(
            f"epsilon must be large enough for Gaussian noise at delta={at:g}: found {eps:g}"
        )
    while epsilon_of_zcdp(math.exp(high), at) <= eps:
        high += 1.0
    log_rho = brentq(lambda x: epsilon_of_zcdp(math.exp(x), at) - eps, low, high, xtol=1e-12)
    rho = math.exp(log_rho) * (1 - _BELOW)
    while epsilon_of_zcdp(rho, at) > eps:
        rho *= 1 - _BELOW
    return rho
