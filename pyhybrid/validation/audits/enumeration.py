"""Exact audit: every small database of a support, every neighbor, one theta of a grid released.

A mechanism that releases one theta of a grid with a flat prior has the privacy loss
max |log xi(A | x) - log xi(A | x')| over sets A of the grid. A ratio of sums lies between the
extreme ratios of its terms, so that single points suffice.

References
----------
[C25] sec. 3 and 4.5; [S22] app. A.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms.censored.calibration import Calibration, calibrate
from pyhybrid.models import Beta, Poisson
from pyhybrid.models.families.regression import RegressionModel
from pyhybrid.primitives import randomized_response
from pyhybrid.privacy.censoring import censor
from pyhybrid.privacy.conversions import bound_of_epsilon
from pyhybrid.privacy.histogram import perturbed_probabilities
from pyhybrid.privacy.log_lik import LogLik, unit_terms
from pyhybrid.privacy.weights import weights_from_lipschitz
from pyhybrid.validation.audits.finding import EXACT, AuditFinding

__all__ = [
    "Losses",
    "Terms",
    "censored_audits",
    "held_loss",
    "histogram_audit",
    "histogram_loss",
    "largest_losses",
    "log_posterior",
    "loss",
    "response_audit",
    "response_loss",
    "unit_audits",
]

Terms = Callable[[FloatArray], FloatArray]
"""From the values of a database, shape (n,), to its weighted terms on a grid, (grid, n)."""

_EPSILON = 1.0
_TIMES = 4.0  # a control clips at this many caps
_COUNTS = (0.0, 1.0, 6.0, 20.0, 60.0)
_SHARES = (0.001, 0.05, 0.3, 0.7, 0.99)
_RECORDS = 3


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Largest loss over all databases and neighbors, nats, by neighbor relation."""

    remove: float
    replace: float


def log_posterior(terms: FloatArray) -> FloatArray:
    """Log xi on the grid from weighted log-likelihood terms (grid, n) and a flat prior."""
    total = terms.sum(axis=1)
    return np.asarray(total - logsumexp(total))


def loss(one: FloatArray, other: FloatArray) -> float:
    """Privacy loss between two databases, each given by its terms (grid, n)."""
    return float(np.abs(log_posterior(one) - log_posterior(other)).max())


def held_loss(terms: FloatArray) -> float:
    """Largest loss over the removed record, the others' terms held as they are."""
    return max(loss(terms, np.delete(terms, i, axis=1)) for i in range(terms.shape[1]))


def largest_losses(terms: Terms, support: Sequence[float], *, records: int = _RECORDS) -> Losses:
    """Largest loss over ALL databases of `records` values of the support, terms computed anew."""
    rests = [*itertools.combinations_with_replacement(support, records - 1)]
    removed = replaced = 0.0
    for rest in rests:
        without = log_posterior(terms(np.array(rest)))
        own = np.array([log_posterior(terms(np.array([x, *rest]))) for x in support])
        removed = max(removed, float(np.abs(own - without).max()))
        replaced = max(replaced, float(np.ptp(own, axis=0).max()))
    return Losses(remove=removed, replace=replaced)


def censored_audits(options: dict[str, Any]) -> list[AuditFinding]:
    """Censor_uw of counts and of a density, and Censor_w under a frozen calibration.

    `options` go to `pyhybrid.calibrate`: engine, seed.
    """
    poisson, beta = Poisson("y ~ 1"), Beta("y ~ 1")
    found = []
    cases: list[tuple[RegressionModel, Sequence[float], dict[str, FloatArray]]] = [
        (poisson, _COUNTS, {"beta": np.linspace(-2, 4, 60)[:, None]}),
        (beta, _SHARES, _beta_grid()),
    ]
    for model, support, grid in cases:
        clipped = partial(_clipped, model, grid)
        found += _both_relations(
            f"Censored, weights of 1, {model.name}",
            model,
            support,
            lambda cap, clip=clipped: partial(clip, cap),  # type: ignore[misc]
            lambda cap, clip=clipped: partial(clip, _TIMES * cap),  # type: ignore[misc]
            f"clipped at {_TIMES:g} caps",
        )
    rng = np.random.default_rng(1)
    reference = pd.DataFrame({"y": rng.beta(0.5, 3, 200)})
    frozen = calibrate(
        beta, reference, cap=1.0, n_draws=100, holds_no_released_record=True, **options
    )
    found += unit_audits()
    return found + _both_relations(
        "Censored, frozen calibration, Beta",
        beta,
        _SHARES,
        lambda cap: lambda x: _frozen_terms(frozen, x, cap),
        lambda cap: lambda x: _in_sample_terms(beta, x, cap),
        "in-sample weights",
    )


def unit_audits() -> list[AuditFinding]:
    """A person of two rows, taken out or replaced whole: the clip acts on the sum of their terms.

    The control clips row by row and charges one row.
    """
    beta, grid = Beta("y ~ 1"), _beta_grid()
    pairs = [*itertools.combinations_with_replacement(_SHARES, 2)]

    def of_persons(clip: Callable[[FloatArray], FloatArray]) -> Terms:
        """Terms (grid, persons) of persons given by their place among the pairs of rows."""
        by_pair = np.stack([clip(_log_lik(beta, grid, np.array(pair))) for pair in pairs], 1)
        return lambda persons: by_pair[:, persons.astype(int)]

    def by_unit(cap: float) -> Terms:
        units = np.zeros(2, dtype=np.intp)
        return of_persons(
            lambda f: censor(unit_terms(LogLik.of(f), np.ones(2), units), cap=cap)[:, 0]
        )

    def by_row(cap: float) -> Terms:
        return of_persons(lambda f: censor(f, cap=cap).sum(axis=1))

    return _both_relations(
        "Censored by unit, persons of two rows, Beta",
        beta,
        [float(place) for place in range(len(pairs))],
        by_unit,
        by_row,
        "charged by row",
    )


def _both_relations(
    name: str,
    model: RegressionModel,
    support: Sequence[float],
    honest: Callable[[float], Terms],
    broken: Callable[[float], Terms],
    control: str,
) -> list[AuditFinding]:
    found = []
    for relation in ("remove", "replace"):
        cap = bound_of_epsilon(
            _EPSILON, relation=relation, density_above_one=model.density_above_one
        )
        found.append(
            AuditFinding(
                mechanism=name,
                relation=relation,
                method=EXACT,
                epsilon=_EPSILON,
                loss=getattr(largest_losses(honest(cap), support), relation),
                control=control,
                control_loss=getattr(largest_losses(broken(cap), support), relation),
            )
        )
    return found


def _clipped(
    model: RegressionModel, grid: dict[str, FloatArray], cap: float, values: FloatArray
) -> FloatArray:
    return censor(_log_lik(model, grid, values), cap=cap)


def _beta_grid() -> dict[str, FloatArray]:
    pairs = np.array([*itertools.product(np.linspace(0.02, 0.98, 25), [0.3, 2.0, 4.0, 20.0])])
    return {"phi": pairs[:, 0], "lambda": pairs[:, 1]}


def _log_lik(
    model: RegressionModel, parameters: dict[str, FloatArray], values: FloatArray
) -> FloatArray:
    """The model's own log-likelihood of `values` (n,) on a grid of parameters, (grid, n)."""
    return model.log_lik(parameters, values, np.ones((values.size, 1)))


def _frozen_terms(calibration: Calibration, values: FloatArray, cap: float) -> FloatArray:
    model = calibration.model
    assert isinstance(model, Beta)
    # Two more records, as a table whose values are all alike is refused.
    bound = model.bind(pd.DataFrame({"y": [*values, 0.2, 0.4]}))
    alpha = calibration.weights(bound)[: values.size]
    return censor(_log_lik(model, _beta_grid(), values), alpha, cap=cap)


def _in_sample_terms(model: RegressionModel, values: FloatArray, cap: float) -> FloatArray:
    f = _log_lik(model, _beta_grid(), values)
    return censor(f, weights_from_lipschitz(np.abs(f).max(axis=0)), cap=cap)


# --- Noise whose distribution is known ----------------------------------------------------------


def response_loss(keep: float, *, persons: int = 2) -> float:
    """Largest loss of randomized response over all reports and all neighbors."""

    def log_probability(report: tuple[bool, ...], truth: tuple[bool, ...]) -> float:
        alike = sum(r == t for r, t in zip(report, truth, strict=True))
        return alike * math.log(keep) + (persons - alike) * math.log(1 - keep)

    everyone = list(itertools.product([True, False], repeat=persons))
    return max(
        log_probability(report, x) - log_probability(report, y)
        for report, x, y in itertools.product(everyone, repeat=3)
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1
    )


def response_audit() -> AuditFinding:
    """Randomized response at the probability that it works with; needs OpenDP."""
    keep = [
        randomized_response([True], epsilon=times * _EPSILON).keep_probability for times in (1, 2)
    ]
    return AuditFinding(
        mechanism="randomized_response",
        relation="replace",
        method=EXACT,
        epsilon=_EPSILON,
        loss=response_loss(keep[0]),
        control="noise / 2",
        control_loss=response_loss(keep[1]),
    )


def histogram_loss(scale: float, n: int) -> float:
    """Largest loss over all pairs of neighbors of n records in two bins, any released shares.

    Noise is cut at +-8 for both databases of a pair, so that only shares within the cut count.
    """
    worst = 0.0
    for k in range(n):
        one, other = _law_of_shares((k, n - k), scale), _law_of_shares((k + 1, n - k - 1), scale)
        for shares in (1.0, 0.0), (0.0, 1.0), (0.5, 0.5):
            worst = max(worst, abs(math.log(one[shares] / other[shares])))
    return worst


def histogram_audit() -> AuditFinding:
    """The perturbed histogram of one record: Laplace(2 / epsilon) on each count attains epsilon."""
    return AuditFinding(
        mechanism="PerturbedHistogram",
        relation="replace",
        method=EXACT,
        epsilon=_EPSILON,
        loss=histogram_loss(2 / _EPSILON, n=1),
        control="noise / 2",
        control_loss=histogram_loss(1 / _EPSILON, n=1),
    )


def _law_of_shares(counts: tuple[int, ...], scale: float) -> dict[tuple[float, ...], float]:
    """Exact distribution of the released bin probabilities."""
    values, probability = _discrete_laplace(scale, reach=8)
    law: dict[tuple[float, ...], float] = {}
    for places in itertools.product(range(values.size), repeat=len(counts)):
        shares = perturbed_probabilities(np.array(counts), values[list(places)])
        key = tuple(np.round(shares, 12))
        law[key] = law.get(key, 0.0) + float(np.prod(probability[list(places)]))
    return law


def _discrete_laplace(scale: float, reach: int) -> tuple[FloatArray, FloatArray]:
    """Values and probabilities of OpenDP's integer noise; the ends hold the tails."""
    q = math.exp(-1 / scale)
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    probability: FloatArray = (1 - q) / (1 + q) * q ** np.abs(values)
    probability[[0, -1]] = q**reach / (1 + q)
    return values, probability
