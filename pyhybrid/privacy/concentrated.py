r"""What strict charges cost together at a public delta, by zero-concentrated privacy.

A draw of a censored posterior moves by terms that range over a + b, whatever the database: its loss
has bounded range eta, a + b under `remove` and twice that under `replace`, and it is
:math:`\eta^2 / 8`-zCDP. Charges of Gaussian noise state rho. Of other strict answers only their
epsilon is known, which gives :math:`\epsilon^2 / 2`. rho of independent releases adds, and the sum
is an epsilon at any delta. Few releases cost less by adding epsilons, many by adding rho: both
hold, and the smaller is stated.

References
----------
[CR21] Cesar, Rogers (2021), Bounding, concentrating, and truncating: unifying privacy loss
composition for data analytics, ALT: bounded range and zCDP.
[BS16] Bun, Steinke (2016), Concentrated differential privacy: simplifications, extensions, and
lower bounds, TCC: prop. 1.3, 1.4 and lemma 1.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from pyhybrid.core.checks import check_finite
from pyhybrid.privacy.epsilon import STRICT, add_epsilons, round_up, shown
from pyhybrid.privacy.range_epsilon import at_least, epsilon_of_rho
from pyhybrid.privacy.zcdp import epsilon_of_zcdp

__all__ = ["epsilon_together", "rho_of_strict"]


def rho_of_strict(charge: Mapping[str, Any]) -> float:
    """Rho of all draws of a strict charge, given by its public fields; rounded up.

    Of a cap's charge each draw counts by its range; what epsilon is beyond that (a center that was
    bought from the same records) by its epsilon alone, like noise.
    """
    m = int(charge["n_draws_released"])
    if charge.get("rho") is not None:  # of Gaussian noise
        return at_least(m * shown(check_finite(charge["rho"], "rho")))
    epsilon = shown(check_finite(charge["epsilon"], "epsilon"))
    if charge.get("cap") is None:
        return at_least(m * (epsilon / m) ** 2 / 2)
    sides = 4 if charge["relation"] == "replace" and charge["density_above_one"] else 2
    cap = check_finite(charge["cap"], "cap")
    eta = min(epsilon / m, sides * shown(charge["safety_factor"]) * shown(cap))
    return at_least(m * eta**2 / 8 + (epsilon - m * eta) ** 2 / 2)


def epsilon_together(charges: Iterable[Mapping[str, Any]], delta: float) -> float:
    """The smaller of two epsilons of strict charges: their sum, and that of their rho at `delta`.

    Those of Gaussian noise come into the sum together, by their rho.

    Parameters
    ----------
    charges : iterable of mapping
        Public fields (`PrivacyCharge.public`) of charges of one relation and unit.
    delta : float
        Public, in (0, 1).
    """
    own = list(charges)
    noisy = [each for each in own if each.get("rho") is not None]
    pure = add_epsilons(each["epsilon"] for each in own if each.get("rho") is None)
    if not own:
        return pure
    if not noisy:
        return min(pure, round_up(epsilon_of_rho(_rho_of_all(own), delta), kind=STRICT))
    alone, whole = (
        round_up(epsilon_of_zcdp(_rho_of_all(some), delta), kind=STRICT) for some in (noisy, own)
    )
    return min(add_epsilons([pure, alone]), whole)


def _rho_of_all(charges: Iterable[Mapping[str, Any]]) -> float:
    return at_least(sum((shown(rho_of_strict(each)) for each in charges), Fraction(0)))
