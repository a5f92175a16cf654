"""Exact audits: posteriors on a grid of every small database and every neighbor, enumerated.

A mechanism that releases one theta of a grid with a flat prior has the privacy loss
max |log xi(A | x) - log xi(A | x')| over sets A of the grid. A ratio of sums lies between the
extreme ratios of its terms, so that single points suffice.

- *Censored posteriors*, by record and by unit, from fixed and from frozen weights.
- *Local charges by range.* Where the grid is all that theta can be, the range of the recomputed
  change T_i over it bounds the loss of leaving record i out, for any weights: an identity, held
  against posteriors with weights computed anew without the record. Charges are local, one for each
  database, so that findings are of the database whose loss comes nearest to its own charge.
- *Centered censoring.* A small calibration is made, its mechanism fits every database of three
  records, with the excess that moves every center.
- *A center bought in rounds.* What is released is the pair (theta_1, theta_2): the draw of a round,
  and one from the posterior that is clipped about it; its loss is at most the epsilon of both.
- *Noise whose distribution is known*: randomized response, the perturbed histogram.

Each has mechanisms that are broken on purpose, which must be caught.

References
----------
[C25] sec. 3 and 4.5; [S22] app. A.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.fitting.exact import exact_posterior
from pyhybrid.mechanisms.censored.calibration import Calibration, calibrate
from pyhybrid.mechanisms.censored.center import Center
from pyhybrid.mechanisms.censored.private_calibration import center_of_model
from pyhybrid.models import Beta, NegativeBinomial, NormalRegression, Poisson
from pyhybrid.models.families.regression import BoundRegression, RegressionModel, frozen_rows
from pyhybrid.models.grid import Axis, GridForm, ParameterGrid
from pyhybrid.primitives import randomized_response
from pyhybrid.privacy.bounds import loss_ranges
from pyhybrid.privacy.censoring import cap_of_epsilon, censor
from pyhybrid.privacy.conversions import bound_of_epsilon
from pyhybrid.privacy.count_risk import count_without, radius_risk
from pyhybrid.privacy.histogram import perturbed_probabilities
from pyhybrid.privacy.log_lik import LogLik, unit_terms
from pyhybrid.privacy.weight_sensitivity import lipschitz_without, recomputed_terms
from pyhybrid.privacy.weights import count_weights, lipschitz_weights, weights_from_lipschitz
from pyhybrid.validation.audits.finding import EPSILON, AuditFinding

Terms = Callable[[FloatArray], FloatArray]
"""From the values of a database, shape (n,), to its weighted terms on a grid, (grid, n)."""
Database = tuple[float, ...]
LogPosterior = Callable[[Database], FloatArray]

_RELATIONS = ("remove", "replace")
_TIMES = 4.0  # a control clips at this many caps
_SHARES = (0.001, 0.05, 0.3, 0.7, 0.99)
_RECORDS = 3


def log_posterior(terms: FloatArray) -> FloatArray:
    """Log xi on the grid from weighted log-likelihood terms (grid, n) and a flat prior."""
    return _normalized(terms.sum(axis=1))


def _normalized(log_density: FloatArray) -> FloatArray:
    return np.asarray(log_density - logsumexp(log_density))


def loss(one: FloatArray, other: FloatArray) -> float:
    """Privacy loss between two databases, each given by its terms (grid, n)."""
    return float(np.abs(log_posterior(one) - log_posterior(other)).max())


def held_loss(terms: FloatArray) -> float:
    """Largest loss over the removed record, the others' terms held as they are."""
    return max(loss(terms, np.delete(terms, i, axis=1)) for i in range(terms.shape[1]))


def largest_loss(
    terms: Terms, support: Sequence[float], relation: str, *, records: int = _RECORDS
) -> float:
    """Largest loss, nats, over ALL databases of `records` values, terms computed anew."""
    rests = itertools.combinations_with_replacement(support, records - 1)

    def posterior(database: Database) -> FloatArray:
        return log_posterior(terms(np.array(database)))

    return _largest(posterior, rests, support, relation)


def _largest(
    posterior: LogPosterior, rests: Iterable[Database], support: Sequence[float], relation: str
) -> float:
    """Over databases of a rest and one value of the support, and all their neighbors in it."""
    worst = 0.0
    for rest in rests:
        whole = np.array([posterior((*rest, value)) for value in support])
        others = posterior(rest) if relation == "remove" else whole[:, None]
        worst = max(worst, float(np.abs(whole - others).max()))
    return worst


# --- Censored posteriors --------------------------------------------------------------------------


def censored_audits(options: dict[str, Any]) -> list[AuditFinding]:
    """Censor_uw of counts and of a density, and Censor_w under a frozen calibration."""
    poisson, beta = Poisson("y ~ 1"), Beta("y ~ 1")
    findings = []
    cases: list[tuple[RegressionModel, Sequence[float], dict[str, FloatArray]]] = [
        (poisson, (0.0, 1.0, 6.0, 20.0, 60.0), {"beta": np.linspace(-2, 4, 60)[:, None]}),
        (beta, _SHARES, _beta_grid()),
    ]
    for model, support, grid in cases:
        clipped = partial(_clipped, model, grid)
        findings += _both_relations(
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
    findings += unit_audits()
    return findings + _both_relations(
        "Censored, frozen calibration, Beta",
        beta,
        _SHARES,
        lambda cap: lambda x: _frozen_terms(frozen, x, cap),
        lambda cap: lambda x: _in_sample_terms(beta, x, cap),
        "in-sample weights",
    )


def unit_audits() -> list[AuditFinding]:
    """A person of two rows, removed or replaced: the clip is of the sum; the control's, of rows."""
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
    """Terms by the cap that costs epsilon."""
    dense = model.density_above_one
    caps = {r: bound_of_epsilon(EPSILON, relation=r, density_above_one=dense) for r in _RELATIONS}
    return [
        AuditFinding.exact(
            name,
            relation,
            largest_loss(honest(cap), support, relation),
            control,
            largest_loss(broken(cap), support, relation),
        )
        for relation, cap in caps.items()
    ]


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


# --- Local charges by range -----------------------------------------------------------------------

HELD = "weights recomputed, not charged"
"""Control: weights held fixed, as if no record moved those of others."""
RELEASED_ONLY = "ranges over the released draws alone"
"""Control: two draws."""
_COUNTS = (0.0, 1.0, 3.0, 6.0, 12.0)
_GRID = np.linspace(0.6, 1.6, 40)
_RADIUS = 0.3
_OfDatabase = Callable[[FloatArray, FloatArray], Any]
"""From values (n,) and their terms (grid, n)."""
_WEIGHTED: dict[str, tuple[_OfDatabase, _OfDatabase]] = {
    "LipschitzWeighted": (
        lambda _, f: lipschitz_weights(f),
        lambda _, f: lipschitz_without(f, frozen_draws=True),
    ),
    "CountWeighted": (
        lambda values, _: count_weights(radius_risk(values, radius=_RADIUS)),
        lambda values, _: count_without(values, radius=_RADIUS),
    ),
}
"""Weights of a database, and weights without each of its records."""


def local_audits() -> list[AuditFinding]:
    """LW and CW, a record left out, each with both controls."""
    rng = np.random.default_rng(1)
    findings = []
    for name, (weights, without) in _WEIGHTED.items():
        databases = itertools.combinations_with_replacement(_COUNTS, 4)
        rows = [_loss_and_charges(np.array(d), weights, without, rng) for d in databases]
        losses, charged, held, released = np.array([row for row in rows if row is not None]).T
        worst = int(np.argmax(losses / charged))
        for control, too_little in ((HELD, held), (RELEASED_ONLY, released)):
            findings.append(
                AuditFinding.exact(
                    f"{name} (local by range)",
                    "remove",
                    float(losses[worst]),
                    control,
                    float(charged[worst] * (losses / too_little).max()),
                    epsilon=float(charged[worst]),
                )
            )
    return findings


def _loss_and_charges(
    values: FloatArray, weights: _OfDatabase, without: _OfDatabase, rng: np.random.Generator
) -> tuple[float, ...] | None:
    """Loss, charge, and charges of both controls; None where nothing is charged in any of them."""
    f = _log_lik(Poisson("y ~ 1"), {"beta": _GRID[:, None]}, values)
    weighted = f * weights(values, f)
    lost = 0.0
    for i in range(values.size):
        rest, f_rest = np.delete(values, i), np.delete(f, i, axis=1)
        lost = max(lost, loss(weighted, f_rest * weights(rest, f_rest)))
    changes = recomputed_terms(f, without(values, f))
    two = rng.choice(_GRID.size, size=2, replace=False, p=np.exp(log_posterior(weighted)))
    charges = [loss_ranges(terms).overall for terms in (changes, weighted, changes[two])]
    return (lost, *charges) if min(charges) > 0 else None


# --- Centered censoring ---------------------------------------------------------------------------

_CALIBRATED_ON = 150  # records
_POINTS = {1: 200, 2: 24}  # of an axis, by the number of axes
_BROKEN = {
    "own center": "a center from all records",
    "own excess": "an excess of the records released",
    # Where it goes with the number of records.
    "after": "ten excesses added after clipping",
    # As a cap without a center may be charged for discrete outcomes.
    "half": "charged M in the place of 2 M",
}


def centered_audits(options: dict[str, Any]) -> list[AuditFinding]:
    """Every model that has a grid, both relations; `options` go to `pyhybrid.calibrate`."""
    rng = np.random.default_rng(1)
    n, few = _CALIBRATED_ON, (0.0, 1.0, 4.0, 30.0)
    rates = rng.gamma(1.0, 3.0, n)
    cases: list[tuple[RegressionModel, Any, tuple[float, ...]]] = [
        (Poisson("y ~ 1"), rng.poisson(3, n), few),
        (NegativeBinomial("y ~ 1"), rng.poisson(rates), few),
        (Beta("y ~ 1", decimals=4), rng.beta(1.0, 3.0, n), (0.001, 0.2, 0.5, 0.99)),
        (NormalRegression("y ~ 1", decimals=4, min_sd=0.1), rng.normal(0.5, 1.0, n),
         (-3.0, 0.0, 0.6, 9.0)),
    ]  # fmt: skip
    return [
        _centered_audit(model, pd.DataFrame({"y": values}), support, relation, options)
        for model, values, support in cases
        for relation in _RELATIONS
    ]


def _centered_audit(
    model: RegressionModel,
    reference: pd.DataFrame,
    support: tuple[float, ...],
    relation: str,
    options: dict[str, Any],
) -> AuditFinding:
    """The control that costs least is shown, as all must be caught."""
    frozen = calibrate(
        model,
        reference,
        epsilon=EPSILON,
        relation=relation,
        n_draws=50,
        holds_no_released_record=True,
        **options,
    )

    def lost(broken: str) -> float:
        rests = itertools.combinations(support, 2)
        return _largest(_centered_posterior(frozen, broken), rests, support, relation)

    seen = {
        name: lost(broken)
        for broken, name in _BROKEN.items()
        if (broken, relation) != ("after", "replace")
    }
    least = min(seen, key=lambda name: seen[name])
    name = f"Censored from a center, exact, {model.name}"
    return AuditFinding.exact(name, relation, lost(""), least, seen[least])


@functools.cache
def _bound(model: RegressionModel, database: Database) -> BoundRegression:
    """Bound once, as all mechanisms see the same few databases."""
    return model.bind(pd.DataFrame({"y": database}))


def _centered_posterior(frozen: Calibration, broken: str) -> LogPosterior:
    """Normalized log posterior of a database on a coarse grid of the calibration's region."""
    center, model = frozen.center, frozen.model
    assert center is not None
    assert isinstance(model, RegressionModel)
    form = model.grid_form(("Intercept",))
    assert form is not None
    fine = center.grid(form)
    assert fine is not None
    size = _POINTS[len(fine.axes)]
    grid = ParameterGrid(axes=tuple(replace(axis, size=size) for axis in fine.axes))

    kept: list[FloatArray] = []  # the excess of the calibration is that of every database

    def posterior(database: Database) -> FloatArray:
        bound = _bound(model, database)
        alpha, used = frozen.weights(bound), center
        if broken == "own center":
            used = replace(center, parameters=_own_center(center, form, database))
        if broken == "own excess":
            used = replace(center, frozen=frozen_rows(bound.design, alpha, center.log_lik(bound)))
        cap = used.cap(bound, 2 * frozen.cap if broken == "half" else frozen.cap)
        if not (kept and used.frozen is center.frozen):
            excess = used.excess_on(bound, form, grid, cap)
            assert excess is not None
            kept[:] = [excess]
        excess = kept[0]
        if broken == "after":
            clipped = exact_posterior(bound, form, grid, alpha, cap, None).log_density
            return _normalized(clipped + 10 * bound.n * excess)
        return _normalized(exact_posterior(bound, form, grid, alpha, cap, excess).log_density)

    return posterior


def _own_center(center: Center, form: GridForm, database: Database) -> dict[str, FloatArray]:
    """The control: theta_ref that follows the mean of the records that are released."""
    at = form.coordinates({name: value[None] for name, value in center.parameters.items()})
    first = form.axes[0].name
    wave = np.cos(40 * np.mean(database)) * center.region * center.sd[first] / 2
    moved = form.parameters({**at, first: at[first] + wave})
    return {name: values[0] for name, values in moved.items()}


# --- A center bought in rounds --------------------------------------------------------------------

_SHARE = 0.4  # of epsilon, for the round
_ROUND, _RELEASE = 9, 60  # candidates of the round and of the release
_WEIGHT = 0.5  # of the records in the round, whose number is public


def rounds_audits() -> list[AuditFinding]:
    """One round and the release after it, Poisson counts, both relations."""
    spent = _SHARE * EPSILON
    return [
        AuditFinding.exact(
            "Censored from a center bought in rounds, exact, Poisson",
            relation,
            _loss_of_rounds(spent, EPSILON - spent, relation),
            "a round that is not charged",
            _loss_of_rounds(spent, EPSILON, relation),
        )
        for relation in _RELATIONS
    ]


def _loss_of_rounds(first: float, second: float, relation: str) -> float:
    """Of a round at epsilon `first` and a release at `second`, nats."""
    model = _counts((0, 1))
    start = _center(model, 0.0, _WEIGHT, 0)
    grids = [
        ParameterGrid(axes=(Axis(name="log_mean", lower=-1.0, upper=3.5, size=size),))
        for size in (_ROUND, _RELEASE)
    ]
    middles = [
        _center(model, float(at), 1.0, place)
        for place, at in enumerate(grids[0].axes[0].points, start=1)
    ]
    caps = [cap_of_epsilon(epsilon, relation=relation) for epsilon in (first, second)]
    of_round = _round_posterior(model, start, grids[0], caps[0], _WEIGHT)
    of_release = [_round_posterior(model, m, grids[1], caps[1], 1.0) for m in middles]

    def posterior(database: Database) -> FloatArray:
        """Of the pairs, shape (round, release)."""
        bound = _counts(database)
        rows = np.array([after(bound) for after in of_release])
        return np.asarray(of_round(bound)[:, None] + rows)

    support = (0, 1, 4, 30)
    return _largest(posterior, itertools.combinations(support, 2), support, relation)


def _counts(database: Database) -> BoundRegression:
    return Poisson("y ~ 1").bind(pd.DataFrame({"y": database}))


def _center(bound: BoundRegression, at: float, weight: float, place: int) -> Center:
    """As a private calibration makes it; rows of the model are the same for every database."""
    rng = np.random.default_rng(place)
    return center_of_model(bound, {"beta": np.array([at])}, weight, 0.0, 10.0, rng)


def _round_posterior(
    model: BoundRegression, center: Center, grid: ParameterGrid, size: float, weight: float
) -> Callable[[BoundRegression], FloatArray]:
    """Normalized log posterior of the candidates, by database."""
    form = model.grid_form
    assert form is not None
    excess = center.excess_on(model, form, grid, center.cap(model, size))

    def posterior(bound: BoundRegression) -> FloatArray:
        alpha, cap = np.full(bound.n, weight), center.cap(bound, size)
        return _normalized(exact_posterior(bound, form, grid, alpha, cap, excess).log_density)

    return posterior


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
        randomized_response([True], epsilon=times * EPSILON).keep_probability for times in (1, 2)
    ]
    losses = [response_loss(probability) for probability in keep]
    return AuditFinding.exact("randomized_response", "replace", losses[0], "noise / 2", losses[1])


def histogram_loss(scale: float, n: int) -> float:
    """Largest loss over neighbors of n records in two bins, noise cut at +-8 for both."""
    worst = 0.0
    for k in range(n):
        one, other = _law_of_shares((k, n - k), scale), _law_of_shares((k + 1, n - k - 1), scale)
        for shares in (1.0, 0.0), (0.0, 1.0), (0.5, 0.5):
            worst = max(worst, abs(math.log(one[shares] / other[shares])))
    return worst


def histogram_audit() -> AuditFinding:
    """The perturbed histogram of one record: Laplace(2 / epsilon) on each count attains epsilon."""
    losses = [histogram_loss(scale / EPSILON, n=1) for scale in (2, 1)]
    return AuditFinding.exact("PerturbedHistogram", "replace", losses[0], "noise / 2", losses[1])


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
