"""Exact audit of a center that is bought in rounds: draws of a round and of the release, together.

What is released is the pair (theta_1, theta_2): the draw of a round, and one from the posterior
that is clipped about it. Over every pair of a grid, every small database and every neighbor, its
loss is at most the epsilon of both together. The control does not charge the round.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.fitting.exact import exact_posterior
from pyhybrid.mechanisms.censored.center import Center
from pyhybrid.mechanisms.censored.private_calibration import center_of_model
from pyhybrid.models import Poisson
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.grid import Axis, ParameterGrid
from pyhybrid.privacy.centering import cap_of_epsilon
from pyhybrid.validation.audits.finding import EXACT, AuditFinding

__all__ = ["rounds_audits"]

_EPSILON, _SHARE = 1.0, 0.4
_SUPPORT = (0, 1, 4, 30)
_ROUND, _RELEASE = 9, 60  # candidates of the round and of the release
_ENDS = (-1.0, 3.5)
_WEIGHT = 0.5  # of the records in the round, whose number is public


def rounds_audits() -> list[AuditFinding]:
    """One round and the release after it, Poisson counts, both relations."""
    return [_audit(relation) for relation in ("remove", "replace")]


def _audit(relation: str) -> AuditFinding:
    spent = _SHARE * _EPSILON
    return AuditFinding(
        mechanism="Censored from a center bought in rounds, exact, Poisson",
        relation=relation,
        method=EXACT,
        epsilon=_EPSILON,
        loss=_largest_loss(spent, _EPSILON - spent, relation),
        control="a round that is not charged",
        control_loss=_largest_loss(spent, _EPSILON, relation),
    )


def _largest_loss(first: float, second: float, relation: str) -> float:
    """Of a round at epsilon `first` and a release at `second`, nats."""
    model = _bound((0, 1))
    start = _center(model, 0.0, _WEIGHT, 0)
    grids = [
        ParameterGrid(axes=(Axis(name="log_mean", lower=_ENDS[0], upper=_ENDS[1], size=size),))
        for size in (_ROUND, _RELEASE)
    ]
    middles = [_center(model, float(at), 1.0, place)
               for place, at in enumerate(grids[0].axes[0].points, start=1)]  # fmt: skip
    caps = [cap_of_epsilon(epsilon, relation=relation) for epsilon in (first, second)]

    posteriors = [
        _posterior(model, start, grids[0], caps[0], _WEIGHT),
        *(_posterior(model, middle, grids[1], caps[1], 1.0) for middle in middles),
    ]

    def log_density(values: Sequence[int]) -> FloatArray:
        """Of the pairs, shape (round, release)."""
        bound = _bound(values)
        one = posteriors[0](bound)
        rows = [posterior(bound) for posterior in posteriors[1:]]
        return np.asarray(one[:, None] + np.array(rows))

    worst = 0.0
    for rest in itertools.combinations(_SUPPORT, 2):
        own = np.array([log_density((*rest, value)) for value in _SUPPORT])
        others = log_density(rest) if relation == "remove" else own[:, None]
        worst = max(worst, float(np.abs(own - others).max()))
    return worst


def _bound(values: Sequence[int]) -> BoundRegression:
    return Poisson("y ~ 1").bind(pd.DataFrame({"y": values}))


def _center(bound: BoundRegression, at: float, weight: float, place: int) -> Center:
    """As a private calibration makes it; rows of the model are the same for every database."""
    rng = np.random.default_rng(place)
    return center_of_model(bound, {"beta": np.array([at])}, weight, 0.0, 10.0, rng)


def _posterior(
    model: BoundRegression, center: Center, grid: ParameterGrid, size: float, weight: float
) -> Callable[[BoundRegression], FloatArray]:
    """Normalized log posterior of the candidates, by database."""
    form = model.grid_form
    assert form is not None
    excess = center.excess_on(model, form, grid, center.cap(model, size))

    def log_posterior(bound: BoundRegression) -> FloatArray:
        alpha, cap = np.full(bound.n, weight), center.cap(bound, size)
        found = exact_posterior(bound, form, grid, alpha, cap, excess)
        return np.asarray(found.log_density - logsumexp(found.log_density))

    return log_posterior
