r"""Composition: what several charges cost together.

Strict charges compose by adding epsilons, and at a public delta by zero-concentrated privacy. A
draw of a censored posterior moves by terms that range over a + b, whatever the database: its loss
has bounded range eta, a + b under `remove` and twice that under `replace`, and it is
:math:`\eta^2 / 8`-zCDP [CR21]. Charges of Gaussian noise, of several noisy answers and of what was
composed state rho, or mu, whose squares add: mu-GDP is :math:`\mu^2 / 2`-zCDP. Of other strict
answers only their epsilon is known, which gives :math:`\epsilon^2 / 2` [BS16]. rho of independent
releases adds, and the sum is an epsilon at any delta. Few releases cost less by adding epsilons,
many by adding rho: both hold, and the smaller is stated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pyhybrid.core.checks import check_finite
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.charge import ZCDP, PrivacyCharge
from pyhybrid.privacy.conversions import (
    ASYMPTOTIC_LOCAL,
    STRICT,
    add_epsilons,
    at_least,
    at_most,
    check_delta,
    compose_mu,
    epsilon_of_mu,
    epsilon_of_rho,
    epsilon_of_zcdp,
    lipschitz_sides,
    round_up,
    shown,
)


def compose(
    charges: Sequence[PrivacyCharge], *, delta: float | None = None, allow_unlike: bool = False
) -> float:
    """Sequential composition of charges of one kind and relation, in nats; 0 for no charges.

    Epsilons add. Strict ones, at a `delta`, also compose by zero-concentrated privacy, and the
    smaller epsilon is returned (see the module). Those counted by the Gaussian limit, at one delta,
    first compose by squares of their mu; the whole is then an epsilon at that delta.

    Parameters
    ----------
    charges : sequence of PrivacyCharge
        Releases computed from the same confidential data, with random numbers of their own.
    delta : float, optional
        Public, in (0, 1), for strict charges; what is returned is then (epsilon, delta).
    allow_unlike : bool, default False
        Add charges of unlike kind or relation; the sum is then no formal guarantee of any kind.

    Raises
    ------
    InvalidInput
        If kinds, relations, units of privacy or deltas differ and `allow_unlike` is False; for a
        delta with charges that are not strict, which have their own.
    """
    labels = sorted({f"{c.kind}, {c.relation} {c.protected}" for c in charges})
    if len(labels) > 1 and not allow_unlike:
        raise InvalidInput(
            f"charges must be of one kind, relation and unit: found {'; '.join(labels)}; "
            "a sum of unlike charges is no guarantee, pass allow_unlike=True to add them anyway"
        )
    if delta is not None:
        if any(c.kind != STRICT for c in charges):
            raise InvalidInput(
                "delta is for strict charges: local ones are counted at a delta of their own"
            )
        if any(c.delta not in (0, delta) for c in charges):
            raise InvalidInput(f"charges of Gaussian noise must be counted at delta = {delta:g}")
        return epsilon_together([c.public() for c in charges], check_delta(delta))
    deltas = sorted({c.delta for c in charges if c.delta})
    if len(deltas) > 1:
        if not allow_unlike:
            raise InvalidInput(
                "charges counted at a delta must be at one delta: found "
                f"{', '.join(f'{each:g}' for each in deltas)}"
            )
        return add_epsilons(charge.epsilon for charge in charges)
    if deltas and all(c.kind == STRICT for c in charges):
        return epsilon_together([c.public() for c in charges], deltas[0])
    gaussian = [charge for charge in charges if charge.accounting == "gaussian"]
    plain = [charge.epsilon for charge in charges if charge.accounting != "gaussian"]
    return spent(
        [(charge.mu_of_release, charge.epsilon_failing) for charge in gaussian],
        plain,
        deltas[0] if deltas else None,
    )


def spent(
    gaussian: Sequence[tuple[float, float]], epsilons: Sequence[float], delta: float | None
) -> float:
    """Epsilon, at `delta`, of mu-GDP releases, which compose by squares, and of epsilon-DP ones.
    What records pay whose Gaussian limit fails adds to what the mus cost, but for a single release:
    it may hold for them in another. The `epsilons` of others add to both."""
    if not gaussian:
        return add_epsilons(epsilons)
    assert delta is not None
    by_mu = round_up(epsilon_of_mu(compose_mu([mu for mu, _ in gaussian]), delta))
    failing = [epsilon for _, epsilon in gaussian]
    if len(gaussian) == 1:
        return add_epsilons([max(by_mu, *failing), *epsilons])
    return add_epsilons([by_mu, *failing, *epsilons])


def compose_charges(
    charges: Sequence[PrivacyCharge], *, mechanism: str, allow_unlike: bool = False
) -> PrivacyCharge:
    """One charge for data sets whose columns were released one after the other.

    Epsilons add (sequential composition); mu adds by squares where all parts are counted by the
    Gaussian limit at one delta, and a mixture of accountings is counted by range. Bounds and ranges
    add: the log-likelihood of a whole record is the sum of those of its columns. Where only some
    densities can exceed 1, or safety factors differ, bounds are first brought to the largest.

    Parameters
    ----------
    charges : sequence of PrivacyCharge
        Of one relation, unit of privacy, number of sets and number of released draws.
    mechanism : str
        Name of what was made of them.
    allow_unlike : bool, default False
        Take strict charges beside local ones. What holds for every database holds for this one:
        the whole is then asymptotic local, and says so.

    Raises
    ------
    InvalidInput
        For no charges, unlike relations or numbers, or unlike kinds that are not allowed.
    """
    if not charges:
        raise InvalidInput("charges must hold at least one charge: found none")
    for name in ("relation", "unit", "n_synthetic", "n_draws_released"):
        values = sorted({str(getattr(charge, name)) for charge in charges})
        if len(values) > 1:
            raise InvalidInput(f"charges must agree in {name}: found {', '.join(values)}")
    first, kinds = charges[0], {charge.kind for charge in charges}
    if len(kinds) > 1 and not allow_unlike:
        raise InvalidInput(
            f"charges must be of one kind: found {' and '.join(sorted(kinds))}; allow_unlike=True "
            "states the whole as asymptotic local, the weaker of the two"
        )
    kind = first.kind if len(kinds) == 1 else ASYMPTOTIC_LOCAL
    above = any(c.density_above_one for c in charges)
    factor = max(c.safety_factor for c in charges)
    exact = sum(
        shown(c.bound) * shown(c.safety_factor) * lipschitz_sides(c.relation, c.density_above_one)
        for c in charges
    ) / (lipschitz_sides(first.relation, above) * shown(factor))
    draws = [c.n_draws for c in charges if c.n_draws is not None]
    mixed = ("Strict charges of some columns were added to local ones of others.",)
    whole = PrivacyCharge.counted(
        mechanism=mechanism,
        kind=kind,
        relation=first.relation,
        n_synthetic=first.n_synthetic,
        n_draws_released=first.n_draws_released,
        bound=at_most(exact),  # or the epsilon due for it would be rounded up once more
        n_draws=min(draws, default=None),
        draw_quantile=min(c.draw_quantile for c in charges),
        safety_factor=factor,
        density_above_one=above,
        converged=all(c.converged for c in charges),
        unit=first.unit,
        assumes=_together(c.assumes for c in charges) + (mixed if len(kinds) > 1 else ()),
        not_covered=_together(c.not_covered for c in charges),
        **_account_of(charges, factor),
    )
    return replace(whole, epsilon=_epsilon_of(charges, whole))


def _account_of(charges: Sequence[PrivacyCharge], factor: float) -> dict[str, Any]:
    """Accounting of the whole: mu adds by squares, ranges add; the tightest that all parts have."""
    account: dict[str, Any] = {}
    ranges = [_range_of(c) for c in charges]
    if None not in ranges and any(c.loss_range is not None for c in charges):
        account["loss_range"] = math.fsum(r for r in ranges if r is not None) / factor
    if all(c.mu is not None for c in charges):
        mus = [c.safety_factor * c.mu for c in charges if c.mu is not None]
        account["mu"] = compose_mu(mus) / factor
        account["mu_standard_error"] = max(c.mu_standard_error or 0.0 for c in charges)
    if all(c.kind == STRICT for c in charges):
        account["rho"] = rho_of_draw(charges, charges[0].n_draws_released)
    asked, deltas = {c.accounting for c in charges}, {c.delta for c in charges}
    noisy = any(c.kind == STRICT and c.accounting in ("gaussian", ZCDP) for c in charges)
    alike = asked == {"gaussian"} and len(deltas | {c.kind for c in charges}) == 2
    if noisy and not alike:
        return {**account, "accounting": ZCDP, "delta": _delta_of_noise(charges)}
    limit_holds = all(c.range_failing is None for c in charges)
    if asked == {"gaussian"} and len(deltas) == 1 and "mu" in account and limit_holds:
        return {**account, "accounting": "gaussian", "delta": deltas.pop()}
    counted = "lipschitz" if asked == {"lipschitz"} or "loss_range" not in account else "range"
    return {**account, "accounting": counted}


def _delta_of_noise(charges: Sequence[PrivacyCharge]) -> float:
    """Delta of strict charges, some of them of Gaussian noise."""
    deltas = {c.delta for c in charges if c.delta}
    if len(deltas) > 1 or any(c.kind != STRICT for c in charges):
        raise InvalidInput(
            "charges counted by zCDP must be strict, at one delta, to make one charge: found "
            f"{', '.join(sorted({c.kind for c in charges}))} at "
            f"{', '.join(f'{delta:g}' for delta in sorted(deltas))}"
        )
    return deltas.pop()


def _range_of(charge: PrivacyCharge) -> float | None:
    """Range of one draw with the safety factor; of a strict charge what its epsilon says."""
    if charge.loss_range is not None:
        return charge.safety_factor * charge.loss_range
    if charge.kind != STRICT:
        return None
    sides = 2 if charge.relation == "replace" else 1
    return charge.epsilon / (sides * charge.n_draws_released)


def _epsilon_of(charges: Sequence[PrivacyCharge], whole: PrivacyCharge) -> float:
    """Composed epsilon: those of the parts, added, or by mu of the whole where that composes."""
    counted = whole.epsilon_by(whole.accounting)
    assert counted is not None
    if whole.accounting in ("gaussian", ZCDP):
        return counted
    return max(counted, add_epsilons(_part_of(charge, whole.accounting) for charge in charges))


def _part_of(charge: PrivacyCharge, accounting: str) -> float:
    """Epsilon that a part adds; one counted by the Gaussian limit no less than it states itself."""
    if charge.kind == STRICT:
        return charge.epsilon
    epsilon = charge.epsilon_by(accounting) or 0.0
    return max(epsilon, charge.epsilon) if charge.accounting == "gaussian" else epsilon


def _together(sentences: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Each sentence once, in order of first appearance."""
    return tuple(dict.fromkeys(itertools.chain(*sentences)))


def rho_of_strict(charge: Mapping[str, Any]) -> float:
    """Rho of all draws of a strict charge, by its public fields, rounded up: the one it states, or
    that of its mu; of a cap each draw by its range, and what epsilon is beyond that (a bought
    center) by epsilon alone; else by epsilon as of one answer: what was
    measured once may have many draws."""
    m = int(charge["n_draws_released"])
    if charge.get("rho") is not None:
        return at_least(m * shown(check_finite(charge["rho"], "rho")))
    if charge.get("accounting") == "gaussian":
        return at_least(shown(check_finite(charge["mu"], "mu")) ** 2 / 2)
    epsilon = shown(check_finite(charge["epsilon"], "epsilon"))
    if charge.get("cap") is None:
        return at_least(epsilon**2 / 2)
    sides = lipschitz_sides(charge["relation"], charge["density_above_one"])
    cap = check_finite(charge["cap"], "cap")
    eta = min(epsilon / m, sides * shown(charge["safety_factor"]) * shown(cap))
    return at_least(m * eta**2 / 8 + (epsilon - m * eta) ** 2 / 2)


def rho_of_draw(charges: Iterable[PrivacyCharge], n_draws_released: int) -> float:
    """Rho that each draw of what was composed of strict charges states: its share of all."""
    return at_least(shown(_rho_of_all(c.public() for c in charges)) / n_draws_released)


def over_draws(charge: PrivacyCharge, n_draws: int) -> PrivacyCharge:
    """A strict charge for what was measured once, stated for the draws of a release that is
    composed of draws; InvalidInput for Gaussian noise and several draws."""
    if n_draws == 1:
        return charge
    if charge.delta:
        raise InvalidInput("n_draws_released must be 1 with Gaussian noise: leave out delta=")
    stated = PrivacyCharge.strict(
        mechanism=charge.mechanism,
        epsilon=charge.epsilon / n_draws,
        relation=charge.relation,
        n_synthetic=charge.n_synthetic,
        n_draws_released=n_draws,
        unit=charge.unit,
        assumes=charge.assumes,
        not_covered=charge.not_covered,
    )
    return replace(stated, rho=rho_of_draw([charge], n_draws))


def epsilon_together(charges: Iterable[Mapping[str, Any]], delta: float) -> float:
    """The smallest of three epsilons of strict charges of one relation and unit, by their public
    fields: their sum; those of Gaussian noise by rho, or by squares of their mu, and the others
    added; and that of the rho of all, at `delta`."""
    strict = list(charges)
    noisy = [charge for charge in strict if charge.get("accounting") in (ZCDP, "gaussian")]
    pure = add_epsilons(c["epsilon"] for c in strict if c not in noisy)
    if not strict:
        return pure
    if not noisy:
        return min(pure, round_up(epsilon_of_rho(_rho_of_all(strict), delta), kind=STRICT))
    by_rho, whole = (
        round_up(epsilon_of_zcdp(_rho_of_all(some), delta), kind=STRICT) for some in (noisy, strict)
    )
    alone = by_rho
    if all(charge["accounting"] == "gaussian" for charge in noisy):
        mu = compose_mu([check_finite(charge["mu"], "mu") for charge in noisy])
        alone = min(by_rho, round_up(epsilon_of_mu(mu, delta), kind=STRICT))
    return min(add_epsilons([pure, alone]), whole)


def _rho_of_all(charges: Iterable[Mapping[str, Any]]) -> float:
    return at_least(sum((shown(rho_of_strict(each)) for each in charges), Fraction(0)))
