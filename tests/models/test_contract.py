"""The contract of all built-in models: one table of cases, each with its law written down by scipy.

Log-likelihood of numpy, Stan and scipy; what weights, caps, centers and units do to the target;
replicates' distribution; settings that outlive files and processes. What a model has beyond that is
in its own file.
"""

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.models.default_model import described_model
from pyhybrid.privacy.censoring import Cap
from tests.models.targets import AtPoints, assert_weights_alone_move_the_target, log_lik_of

N = 240
X = np.resize([-1.0, 0.0, 2.0], N)
DESIGN = np.column_stack([np.ones(N), X])
"""Columns of `1 + x`."""
LEVEL = 1e-6


@dataclass(frozen=True)
class Finite:
    """A law over 0..C-1 by its probabilities (..., n, C)."""

    p: FloatArray

    def log(self, y: Any) -> Any:
        return np.log(np.take_along_axis(self.p, np.asarray(y, int)[..., None], -1)[..., 0])

    def pmf(self, level: int) -> Any:
        return self.p[..., level]


@dataclass(frozen=True)
class Mixed:
    """A mixture of normals, the arrays with the components last."""

    share: FloatArray
    mean: FloatArray
    sigma: FloatArray

    def log(self, y: Any) -> Any:
        parts = stats.norm.pdf(np.asarray(y)[..., None], self.mean, self.sigma)
        return np.log((self.share * parts).sum(axis=-1))

    def cdf(self, y: Any) -> Any:
        return (self.share * stats.norm.cdf(y[..., None], self.mean, self.sigma)).sum(axis=-1)


Law = Callable[[Any, dict[str, Any]], Any]
"""From the linear predictor (S, n), or that of each level or component (S, n, k) without the first
level, and the other parameters to the law of the coded outcome."""


@dataclass(frozen=True)
class Case:
    """A model, outcomes (N,), its law, and how outcomes are coded in it."""

    model: Any
    y: Any
    law: Law
    coded: Callable[[Any], Any] = field(default=lambda y: y)
    more: tuple[Any, ...] = ()
    """The same model with other settings, for its description."""


def _column(value: Any) -> Any:
    return value[..., None]


def _softmax(eta: Any, _: Any) -> Finite:
    first = np.zeros((*eta.shape[:-1], 1))
    return Finite(special.softmax(np.concatenate([first, eta], axis=-1), axis=-1))


def _cumulative(eta: Any, at: dict[str, Any]) -> Finite:
    threshold = at["threshold"][:, None, :]
    eta = eta - at["beta"][:, :1]  # the first coefficient is minus the first threshold
    below = special.expit(threshold - eta[..., None])
    ends = np.zeros((*eta.shape, 1))
    return Finite(np.diff(np.concatenate([ends, below, ends + 1], axis=-1), axis=-1))


def _gamma(eta: Any, at: dict[str, Any]) -> Any:
    shape = _column(at["shape"])
    return stats.gamma(shape, scale=np.exp(eta) / shape)


def _normal(eta: Any, at: dict[str, Any]) -> Any:
    return stats.norm(eta, _column(at["sigma"]))


def _mixed(eta: Any, at: dict[str, Any]) -> Mixed:
    return Mixed(np.exp(at["log_proportion"])[:, None], eta, at["sigma"][:, None])


def _beta(eta: Any, at: dict[str, Any]) -> Any:
    mean, size = special.expit(eta), _column(at["lambda"])
    return stats.beta(size * mean, size * (1 - mean))


def _negative_binomial(eta: Any, at: dict[str, Any]) -> Any:
    return stats.nbinom(_column(at["phi"]), 1 / (1 + np.exp(eta) / _column(at["phi"])))


_RNG = np.random.default_rng(11)
_COUNTS = _RNG.negative_binomial(3, 3 / (3 + np.exp(1 + 0.4 * X)))
_YES = _RNG.random(N) < special.expit(0.4 + 0.8 * X)
_UTILITY = np.column_stack([np.zeros(N), DESIGN @ [[0.4, -0.3], [0.8, -0.5]]])
_THREE = (_UTILITY + _RNG.gumbel(size=(N, 3))).argmax(axis=1)
_FOUR = np.searchsorted([-1.0, 0.3, 1.5], 0.8 * X + _RNG.logistic(size=N))
_SHARES = _RNG.beta(2 * special.expit(0.3 * X), 2 * special.expit(-0.3 * X)).clip(0.001, 0.999)
_AMOUNTS = (_RNG.gamma(2.0, np.exp(3 + 0.5 * X) / 2) + 0.01).round(2)
_REALS = _RNG.normal(1 + X, 2.0).round(3)


CASES: dict[str, Case] = {
    "poisson": Case(
        ph.Poisson("y ~ x"), _COUNTS, lambda eta, _: stats.poisson(np.exp(eta)),
        more=(ph.Poisson("y ~ x", prior="normal"), ph.Poisson("y ~ x", zeros=True, upper=9)),
    ),
    "negative binomial": Case(
        ph.NegativeBinomial("y ~ x"), _COUNTS, _negative_binomial,
        more=(ph.NegativeBinomial("y ~ 1", lower=1, upper=5),),
    ),
    "bernoulli": Case(
        ph.Bernoulli("y ~ x", levels=(False, True)), _YES,
        lambda eta, _: stats.bernoulli(special.expit(eta)), coded=lambda y: np.asarray(y, int),
        more=(ph.Bernoulli("y ~ 1"), ph.Bernoulli("y ~ x", levels=("no", "yes"), prior_scale=1.0),
              ph.Bernoulli("y ~ x", prior="published")),
    ),
    "bernoulli, published prior": Case(
        ph.Bernoulli("y ~ x", levels=(False, True), prior="published"), _YES,
        lambda eta, _: stats.bernoulli(special.expit(eta)), coded=lambda y: np.asarray(y, int),
    ),
    "categorical": Case(
        ph.Categorical("y ~ x", levels=(0, 1, 2)), _THREE, _softmax,
        more=(ph.Categorical("y ~ x"), ph.Categorical("y ~ 1", levels=("a", "b", "c"))),
    ),
    "ordinal": Case(
        ph.Ordinal("y ~ x", levels=(0, 1, 2, 3)), _FOUR, _cumulative,
        more=(ph.Ordinal("y ~ 1", prior_scale=1.0, prior_scale_intercept=20.0, missing=True),
              ph.Ordinal("y ~ x", levels=("low", "high", "top"))),
    ),
    "beta": Case(
        ph.Beta("y ~ 1"), _SHARES,
        lambda _, at: stats.beta(
            *(_column(at["lambda"] * mean) for mean in (at["phi"], 1 - at["phi"]))
        ),
    ),
    "beta regression": Case(ph.BetaRegression("y ~ x"), _SHARES, _beta),
    "beta regression within ends": Case(
        ph.BetaRegression("y ~ x", lower=20, upper=120), 20 + 100 * _SHARES, _beta,
        coded=lambda y: (y - 20) / 100,
    ),
    "normal": Case(ph.NormalRegression("y ~ x"), _REALS, _normal),
    "mixture": Case(ph.MixtureRegression("y ~ x", n_components=2), _REALS, _mixed),
    "mixture of one": Case(ph.MixtureRegression("y ~ x", n_components=1), _REALS, _mixed),
    "mixture of four": Case(ph.MixtureRegression("y ~ x", n_components=4), _REALS, _mixed),
    "lognormal": Case(
        ph.LogNormal("y ~ x", unit=10), _AMOUNTS, _normal, coded=lambda y: np.log(y / 10),
        more=(ph.LogNormal("y ~ x", decimals=2, zeros=True, missing=True),),
    ),
    "gamma": Case(ph.Gamma("y ~ x"), _AMOUNTS, _gamma),
    "gamma, published prior": Case(
        ph.Gamma("y ~ x", prior="published", unit=10), _AMOUNTS, _gamma,
        coded=lambda y: y / 10,
    ),
}  # fmt: skip
OFFSET = X / 2


def _of_formula(case: Case, formula: str, shift: Any = 0.0) -> Case:
    """The case with another formula, whose predictor is `shift` (N,) more than its columns say."""
    model = replace(case.model, formula=formula)

    def law(eta: Any, at: dict[str, Any]) -> Any:
        return case.law(eta + np.reshape(shift, (-1, *[1] * (eta.ndim - 2))), at)

    return Case(model, case.y, law, case.coded)


CASES |= {
    f"{name}, offset": _of_formula(CASES[name], "y ~ x + offset(I(x / 2))", OFFSET)
    for name in ("poisson", "negative binomial", "bernoulli", "beta regression",
                 "normal", "mixture", "gamma", "lognormal")
}  # fmt: skip
MODELS = pytest.mark.parametrize("name", CASES)


def _eta(values: dict[str, Any], design: Any) -> Any:
    beta = values.get("beta")
    if beta is None:
        return None
    return np.einsum("np,sp...->sn...", design[:, : beta.shape[1]], beta)


@cache
def _bound(name: str) -> Any:
    case = CASES[name]
    return case.model.bind(pd.DataFrame({"y": case.y, "x": X}))


def _points(program: ProgramAtPoints, n: int) -> FloatArray:
    return np.random.default_rng(3).normal(size=(n, program.n_unconstrained)) / 3


def _log(name: str, values: dict[str, Any]) -> FloatArray:
    """Log density (S, N) of the case's outcomes, by its law."""
    case = CASES[name]
    law = case.law(_eta(values, DESIGN), values)
    y = case.coded(case.y)
    if isinstance(law, Finite):
        y = np.broadcast_to(y, law.p.shape[:-1])
    if isinstance(law, Finite | Mixed):
        return law.log(y)
    return law.logpmf(y) if hasattr(law.dist, "pmf") else law.logpdf(y)


@MODELS
def test_log_likelihood_of_numpy_stan_and_scipy(name: str) -> None:
    bound = _bound(name)
    program = ProgramAtPoints(bound.program, bound.stan_data(np.ones(N), emit_log_lik=True))
    values = program.quantities(_points(program, 12))
    by_row = np.concatenate(list(bound.log_lik_blocks(AtPoints(values))), axis=1)
    np.testing.assert_allclose(by_row, values["log_lik"], rtol=1e-8, atol=1e-9)
    ours = by_row[:, bound.rows.row_of]
    np.testing.assert_allclose(ours, _log(name, values), rtol=1e-7, atol=1e-8)
    assert bound.density_above_one or ours.max() <= 0
    assert bound.rows.first.size < N / 2 or np.unique(CASES[name].y).size >= 60


@pytest.mark.parametrize("cap", ["none", "cap", "cap and center", "cap, center and units"])
@MODELS
def test_the_target_moves_with_the_weighted_and_clipped_terms_alone(name: str, cap: str) -> None:
    """Between two weight vectors it differs by their sums, though rows collapse by weight."""
    bound, rng = _bound(name), np.random.default_rng(2)
    first, second = rng.uniform(size=N), rng.choice([0.0, 0.25, 1.0], N)
    first[:5] = 0
    start = ProgramAtPoints(bound.program, bound.stan_data(first))
    middle = _log(name, start.quantities(_points(start, 4))).mean(axis=0)
    middle += rng.normal(0, 0.6, bound.rows.first.size)[bound.rows.row_of]
    units = np.arange(N) % 90
    caps = {
        "none": None, "cap": float(np.median(np.abs(middle))) / 2,
        "cap and center": Cap(below=0.15, above=0.3, reference=middle),
        "cap, center and units": Cap(below=0.5, above=0.7, reference=middle, unit=units),
    }  # fmt: skip
    assert_weights_alone_move_the_target(
        bound, caps[cap], log_lik=lambda at: _log(name, at.variables), weights=(first, second),
        spread=1 / 3, rtol=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", ["poisson", "negative binomial", "bernoulli", "beta", "categorical", "ordinal"]
)
def test_programs_clip_by_frozen_rows_as_the_arrays_do(name: str) -> None:
    """Excess and region: Stan's log density under one cap less that under another, in numpy."""
    rng, case = np.random.default_rng(5), CASES[name]
    new, old = (
        case.model.bind(pd.DataFrame({
            "x": rng.integers(0, 4, n) / 2 - 1.0, "y": rng.choice(case.y[:12], n)
        })) for n in (40, 20)
    )  # fmt: skip
    weight = rng.uniform(0.5, 1, 20)
    one = ProgramAtPoints(new.program, new.stan_data(np.ones(40), cap=1.0))
    points = 1.0 * rng.normal(size=(30, one.n_unconstrained))
    at = one.quantities(points)
    draws = AtPoints(at)
    best = int(log_lik_of(old, draws).sum(axis=1).argmax())
    middle = AtPoints({k: v[best : best + 1] for k, v in at.items()})
    center, before = (log_lik_of(bound, middle)[0] for bound in (new, old))
    frozen = old.frozen(weight, before, np.arange(20))
    assert frozen.n == 20
    caps = [Cap(below=0.2 * k, above=0.1 * k, reference=center, frozen=frozen, region=1.0 * k)
            for k in (1, 2)]  # fmt: skip
    data = [new.stan_data(np.ones(40), cap=cap) for cap in caps]
    density = [ProgramAtPoints(new.program, own).log_density(points) for own in data]
    f, moved = log_lik_of(new, draws), weight * (log_lik_of(old, draws) - before)
    before_draws = old.frozen_log_lik(frozen, draws)
    expected, beyond = [], []
    for cap in caps:
        excess = (moved - np.clip(moved, -cap.below, cap.above)).mean(axis=1)
        np.testing.assert_allclose(cap.excess(before_draws), excess, rtol=1e-9, atol=1e-12)
        terms = np.clip(f - center + excess[:, None], -cap.below, cap.above)
        whole = new.log_lik(draws)
        clipped = whole.clipped_total(np.ones(40), cap.below, cap.above, center, excess)
        np.testing.assert_allclose(clipped, terms.sum(axis=1), rtol=1e-9, atol=1e-9)
        beyond.append(np.maximum(-moved.mean(axis=1) - cap.farthest, 0))
        expected.append(terms.sum(axis=1) - cap.steep * beyond[-1])
    found, wanted = density[0] - density[1], expected[0] - expected[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
    assert {bool(own) for own in beyond[0] > 0} == {True, False}, "within the region and beyond"
    assert np.abs(excess).max() > 0.01


@MODELS
def test_replicates_have_the_models_law(name: str) -> None:
    """Of one draw: chi-square or Kolmogorov's distance; parameters a fifth smaller are caught."""
    case, bound = CASES[name], _bound(name)
    program = ProgramAtPoints(bound.program, bound.stan_data(np.ones(N)))
    values = program.quantities(np.zeros((1, program.n_unconstrained)))
    made = np.stack([
        bound.replicate(AtPoints(values), 0, np.random.default_rng(k))["y"].to_numpy()
        for k in range(200)
    ])  # fmt: skip
    right = _p_value(case.coded(made), case.law(_eta(values, DESIGN), values))
    shaping = values.keys() & {"beta", "phi", "lambda", "sigma"}
    wrong = values | {key: values[key] * 0.8 for key in shaping}
    assert right > LEVEL
    assert _p_value(case.coded(made), case.law(_eta(wrong, DESIGN), wrong)) < LEVEL, "control"


def _p_value(made: FloatArray, law: Any) -> float:
    """Of replicates (R, N) under a law of (1, N)."""
    if hasattr(law, "pmf"):
        total, cells, values = 0.0, 0, range(int(made.max()) + 1)
        p = np.stack([law.pmf(k)[0] * np.ones(N) for k in values], axis=-1)
        for cell in np.unique(X):
            own = made[:, cell == X].astype(int).ravel()
            expected = own.size * p[cell == X][0]
            found, common = np.bincount(own, minlength=expected.size), expected >= 5
            e, o = (np.append(n[common], own.size - n[common].sum()) for n in (expected, found))
            total += float(((o - e) ** 2 / np.maximum(e, 5))[e >= 5].sum())
            cells += (e >= 5).sum() - 1
        return float(stats.chi2.sf(total, cells))
    share = np.stack([np.broadcast_to(law.cdf(row[None]), (1, N))[0] for row in made])
    assert share.min() >= 0, "below the lower end"
    assert share.max() <= 1 + 1e-12, "above the upper end"
    return float(stats.kstest(share.ravel(), "uniform").pvalue)


@MODELS
def test_settings_outlive_files_and_processes(name: str) -> None:
    case = CASES[name]
    for model in (case.model, *case.more):
        assert described_model(json.loads(json.dumps(model.describe()))) == model
        assert pickle.loads(pickle.dumps(model)) == model
        assert repr(model) == repr(pickle.loads(pickle.dumps(model)))
