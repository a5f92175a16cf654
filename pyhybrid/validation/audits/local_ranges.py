"""Exact audit of local charges by range: weighted posteriors on a grid whose points are the draws.

Where the grid is all that theta can be, the range of the recomputed change T_i over it bounds the
loss of leaving record i out, for any weights: an identity, held here against posteriors that are
enumerated with weights computed anew without the record. Charges are local, one for each database,
so that findings are of the database whose loss comes nearest to its own charge. Two controls charge
too little: weights held fixed, as if no record moved those of others, and ranges over the released
draws alone, two of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.models import Poisson
from pyhybrid.privacy.bounds import loss_ranges
from pyhybrid.privacy.count_risk import count_without, radius_risk
from pyhybrid.privacy.weight_sensitivity import lipschitz_without, recomputed_terms
from pyhybrid.privacy.weights import count_weights, lipschitz_weights
from pyhybrid.validation.audits.enumeration import log_posterior, loss
from pyhybrid.validation.audits.finding import EXACT, AuditFinding

__all__ = ["HELD", "RELEASED_ONLY", "local_audits"]

HELD = "weights recomputed, not charged"
RELEASED_ONLY = "ranges over the released draws alone"
_COUNTS = (0.0, 1.0, 3.0, 6.0, 12.0)
_RECORDS = 4
_GRID = np.linspace(0.6, 1.6, 40)
_RADIUS = 0.3


def local_audits() -> list[AuditFinding]:
    """LW and CW, a record left out, each with both controls."""
    rng = np.random.default_rng(1)
    found = []
    for name, weights, changes in (
        ("LipschitzWeighted", _lipschitz, _lipschitz_changes),
        ("CountWeighted", _count, _count_changes),
    ):
        databases = itertools.combinations_with_replacement(_COUNTS, _RECORDS)
        rows = [_database(np.array(values), weights, changes, rng) for values in databases]
        losses, charged, held, released = np.array([row for row in rows if row is not None]).T
        worst = int(np.argmax(losses / charged))
        for control, own in ((HELD, held), (RELEASED_ONLY, released)):
            found.append(
                AuditFinding(
                    mechanism=f"{name}, local, by range",
                    relation="remove",
                    method=EXACT,
                    epsilon=float(charged[worst]),
                    loss=float(losses[worst]),
                    control=control,
                    control_loss=float(charged[worst] * (losses / own).max()),
                )
            )
    return found


_Weights = Callable[[FloatArray, FloatArray], FloatArray]


def _database(
    values: FloatArray, weights: _Weights, changes: _Weights, rng: np.random.Generator
) -> tuple[float, ...] | None:
    """Loss, charge, and charges of both controls; None where nothing is charged in any of them."""
    f = _log_lik(values)
    own = f * weights(values, f)
    lost = 0.0
    for i in range(values.size):
        rest, other = np.delete(values, i), np.delete(f, i, axis=1)
        lost = max(lost, loss(own, other * weights(rest, other)))
    terms = changes(values, f)
    two = rng.choice(_GRID.size, size=2, replace=False, p=np.exp(log_posterior(own)))
    charges = [loss_ranges(each).overall for each in (terms, own, terms[two])]
    return (lost, *charges) if min(charges) > 0 else None


def _log_lik(values: FloatArray) -> FloatArray:
    return Poisson("y ~ 1").log_lik({"beta": _GRID[:, None]}, values, np.ones((values.size, 1)))


def _lipschitz(_: FloatArray, f: FloatArray) -> FloatArray:
    return lipschitz_weights(f)


def _lipschitz_changes(_: FloatArray, f: FloatArray) -> FloatArray:
    return recomputed_terms(f, lipschitz_without(f, frozen_draws=True))


def _count(values: FloatArray, _: FloatArray) -> FloatArray:
    return count_weights(radius_risk(values, radius=_RADIUS))


def _count_changes(values: FloatArray, f: FloatArray) -> FloatArray:
    return recomputed_terms(f, count_without(values, radius=_RADIUS))
