r"""Composition: what several charges cost together.

Pure epsilons add, also where a later answer depends on an earlier one. At a public delta strict
charges also compose by zero-concentrated privacy: of bounded range and of mu as in `conversions`;
of other strict answers only their epsilon is known, which gives :math:`\epsilon^2 / 2` [BS16]. All
that is here holds, and the smallest is stated (`pyhybrid.privacy.charge.Spent`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.charge import PrivacyCharge, Spent
from pyhybrid.privacy.conversions import STRICT, check_delta, round_up


def compose(charges: Sequence[PrivacyCharge], *, delta: float | None = None) -> float:
    """Sequential composition of charges of one kind and relation, in nats; 0 for no charges.

    Epsilons add. Strict ones, at a `delta`, also compose by zero-concentrated privacy, and the
    smaller epsilon is returned (see the module). Those counted by mu, at one delta, first compose
    by squares of their mu; the whole is then an epsilon at that delta.

    Parameters
    ----------
    charges : sequence of PrivacyCharge
        Releases computed from the same confidential data, with random numbers of their own.
    delta : float, optional
        Public, in (0, 1), for strict charges; what is returned is then (epsilon, delta).

    Raises
    ------
    InvalidInput
        If kinds, relations, units of privacy or deltas differ; for a delta with charges that are
        not strict, which have their own.
    """
    labels = sorted({f"{c.kind}, {c.relation} {c.protected}" for c in charges})
    if len(labels) > 1:
        raise InvalidInput(
            f"charges must be of one kind, relation and unit: found {'; '.join(labels)}; "
            "a sum of unlike charges is no guarantee"
        )
    if delta is not None:
        check_delta(delta)
        if any(c.kind != STRICT for c in charges):
            raise InvalidInput(
                "delta is for strict charges: local ones are counted at a delta of their own"
            )
        if any(c.delta not in (0, delta) for c in charges):
            raise InvalidInput(f"charges of Gaussian noise must be counted at delta = {delta:g}")
    at = _delta_of(charges) or delta or 0.0
    spent = Spent.of(charge.spent for charge in charges)
    kind = charges[0].kind if charges else STRICT
    return round_up(spent.epsilon(delta=at), kind=kind)


def _delta_of(charges: Sequence[PrivacyCharge]) -> float:
    """The one delta that charges are counted at; 0 if none is."""
    deltas = sorted({charge.delta for charge in charges if charge.delta})
    if len(deltas) > 1:
        found = ", ".join(f"{delta:g}" for delta in deltas)
        raise InvalidInput(f"charges counted at a delta must be at one delta: found {found}")
    return deltas[0] if deltas else 0.0


def compose_charges(charges: Sequence[PrivacyCharge], *, mechanism: str) -> PrivacyCharge:
    """One charge for data sets whose columns were released one after the other.

    By each accounting that all parts have, and by the one that each part was counted by: epsilons
    add, mu by squares. A part that has a delta gives it to the whole.

    Parameters
    ----------
    charges : sequence of PrivacyCharge
        Of one kind, relation, unit of privacy, number of sets and number of released draws.
    mechanism : str
        Name of what was made of them.

    Raises
    ------
    InvalidInput
        For no charges, and those that are unlike.
    """
    if not charges:
        raise InvalidInput("charges must hold at least one charge: found none")
    for name in ("kind", "relation", "unit", "n_synthetic", "n_draws_released"):
        values = sorted({str(getattr(charge, name)) for charge in charges})
        if len(values) > 1:
            raise InvalidInput(f"charges must agree in {name}: found {', '.join(values)}")
    delta = _delta_of(charges)
    parts = [part for charge in charges for part in (charge.parts or (charge,))]
    counted = {charge.accounting for charge in charges}
    accounting = counted.pop() if len(counted) == 1 else "composed"
    accounts = {accounting: Spent.of(charge.spent for charge in charges)}
    for name in {n for n in charges[0].accounts if n != accounting}:
        if all(name in charge.accounts for charge in charges):
            accounts[name] = Spent.of(charge.spent_by(name) for charge in charges)
    first, draws = charges[0], [c.n_draws for c in charges if c.n_draws is not None]
    return PrivacyCharge(
        mechanism=mechanism,
        kind=first.kind,
        relation=first.relation,
        n_synthetic=first.n_synthetic,
        n_draws_released=first.n_draws_released,
        accounts=accounts,
        accounting=accounting,
        delta=delta,
        n_draws=min(draws, default=None),
        draw_quantile=min(c.draw_quantile for c in charges),
        safety_factor=max(c.safety_factor for c in charges),
        density_above_one=any(c.density_above_one for c in charges),
        converged=all(c.converged for c in charges),
        unit=first.unit,
        facts={"columns": [name for part in parts for name in part.facts.get("columns", ())]},
        parts=tuple(parts),
    )
