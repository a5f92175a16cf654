"""Censoring from a frozen center: strict by enumeration of the mechanism itself, and accurate."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms.censored.calibration import Calibration, calibrate
from pyhybrid.mechanisms.censored.center import Center
from pyhybrid.reports.release import release_report
from tests.monte_carlo import assert_near
from tests.refusals import refuses

pytestmark = [pytest.mark.samples, pytest.mark.usefixtures("opendp")]
OPTIONS: dict[str, Any] = {"engine": "embedded", "seed": 1}
POISSON, NB = ph.Poisson("y ~ 1"), ph.NegativeBinomial("y ~ 1")


def counts(seed: int, n: int, r: float = 0.7, mean: float = 3.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"y": rng.poisson(rng.gamma(r, mean / r, n))})


def frozen(model: Any, reference: pd.DataFrame, epsilon: float = 1, **how: Any) -> Calibration:
    own: dict[str, Any] = {"n_draws": 50, "holds_no_released_record": True, **OPTIONS, **how}
    return calibrate(model, reference, epsilon=epsilon, **own)


@pytest.fixture(scope="module")
def poisson() -> Calibration:
    return frozen(POISSON, pd.DataFrame({"y": np.random.default_rng(2).poisson(3.0, 400)}))


@pytest.fixture(scope="module")
def negative_binomial() -> Calibration:
    return frozen(NB, counts(2, 1500))


@pytest.mark.parametrize("n", [1500, 40_000])  # of the latter 10,000 rows are frozen
def test_drift_says_how_far_the_new_estimate_is(n: int) -> None:
    """In units of the region, against a fit of the new records; the last is outside."""
    calibration = frozen(NB, counts(2, n), n_draws=400, region=6)
    center, sd = calibration.center, calibration.center.sd["log_mean"] * max(1.0, n / 1e4) ** 0.5
    for mean in (3.0, 3.3, 5.0):
        new = NB.bind(counts(3, 3000, mean=mean))
        own = open_session(new, **OPTIONS).unweighted().draws.flat("beta").mean()
        away, distance = abs(own - center.parameters["beta"][0]), calibration.drift(new).distance
        assert 0.5 * away / sd / 6 - 0.2 < distance < 2 * away / sd / 6 + 0.3
    assert distance > 1
    assert replace(calibration, center=None).drift(new).distance is None


def test_what_is_charged() -> None:
    """2 M and 4 M, for counts as well; m draws cost m times that."""
    table = counts(3, 60)
    for relation, cap in (("remove", 0.5), ("replace", 0.25)):
        mechanism = ph.Censored(POISSON, epsilon=1, relation=relation, center={"beta": [1.0]},
                                inner=ph.Unweighted(POISSON),
                                grid={"log_mean": (-1, 3, 200)})  # fmt: skip
        release = mechanism.release(table, n_synthetic=3, **OPTIONS)
        assert (release.charge.epsilon, release.charge.kind) == (3.0, "strict")
        assert release.charge.cap == cap
        one = mechanism.release(table, n_synthetic=3, n_draws_released=1, **OPTIONS)
        assert one.charge.epsilon == 1.0


def means_of(mechanism: ph.Censored, table: pd.DataFrame) -> Any:
    """By draw, (chains, draws)."""
    session = open_session(mechanism.model.bind(table), **OPTIONS)
    return np.exp(mechanism.fit(session).fit.draws.variables["beta"][..., 0])


def test_a_centered_release_alone_keeps_the_mean(negative_binomial: Calibration) -> None:
    """At epsilon 1, from another sample: 3 % is two deviations of the reference's mean."""
    new = counts(3, 6000)
    own = float(new["y"].mean())
    assert_near(means_of(ph.Censored(calibration=negative_binomial), new), own, apart=0.03 * own)
    grid = {"log_mean": (-6, 6, 100), "log_reciprocal_phi": (-4, 4, 60)}
    plain = ph.Censored(NB, cap=0.5, inner=ph.Unweighted(NB), center=None, sampling="exact",
                        grid=grid)  # fmt: skip
    assert abs(means_of(plain, new).mean() / own - 1) > 0.2


def test_without_the_excess_long_tails_are_lost(negative_binomial: Calibration) -> None:
    """The control of the excess: the same cap and region, and the fit leans to a short tail."""
    new = counts(3, 6000)
    center = negative_binomial.center
    assert center is not None
    bare = replace(negative_binomial, center=replace(center, frozen=None))
    session = open_session(NB.bind(new), **OPTIONS)
    fits = (ph.Censored(calibration=own).fit(session).fit for own in (negative_binomial, bare))
    whole, without = (fit.draws.variables["phi"] for fit in fits)
    assert_near(whole, 0.7, apart=0.12 * 0.7)  # two deviations of the reference's own
    assert without.mean() > whole.mean() + 0.1


def test_the_excess_is_what_clipping_took(poisson: Calibration) -> None:
    """Against scipy, at every candidate: splines included; and against the array function."""
    center = poisson.center
    of_model, bound = POISSON.grid(("Intercept",)), POISSON.bind(counts(3, 60))
    assert of_model is not None
    grid = center.grid(of_model)
    y = np.random.default_rng(2).poisson(3.0, 400)
    rate = np.exp(grid.axes[0].points[::100])
    at = float(np.exp(center.parameters["beta"][0]))
    f, c = stats.poisson.logpmf(y, rate[:, None]), stats.poisson.logpmf(y, at)
    moved = f - c
    expected = (moved - np.clip(moved, -poisson.cap, poisson.cap)).mean(axis=1)
    found = center.excess_on(bound, grid, center.cap(bound, poisson.cap))
    np.testing.assert_allclose(found[::100], expected, atol=2e-4)
    np.testing.assert_allclose(ph.arrays.frozen_excess(f, c, cap=poisson.cap), expected, rtol=1e-9,
                               atol=1e-12)  # fmt: skip


LONG = {"marks": pytest.mark.long}


@pytest.mark.parametrize(("model", "values", "center", "name"), [
    (POISSON, lambda rng: rng.poisson(3.0, 80), {"beta": [1.0]}, "beta"),
    pytest.param(ph.Beta("y ~ 1", decimals=6), lambda rng: rng.beta(2, 3, 80),
                 {"phi": 0.4, "lambda": 5.0}, "phi", **LONG),
    pytest.param(ph.NormalRegression("y ~ 1", decimals=6, min_sd=0.1),
                 lambda rng: rng.normal(0.3, 1, 80), {"beta": [0.2], "sigma": 1.1}, "beta", **LONG),
])  # fmt: skip
def test_chains_agree_with_the_grid(model: Any, values: Any, center: Any, name: str) -> None:
    """The same centered posterior by both, for every model that has a grid."""
    table = pd.DataFrame({"y": values(np.random.default_rng(4))})
    inner = ph.Unweighted(model)
    mechanism = ph.Censored(model, cap=0.8, center=center, inner=inner, check_modes=False)
    session = open_session(model.bind(table), **OPTIONS)
    exact = mechanism.fit(session).fit
    chains = replace(mechanism, sampling="chains").fit(session).fit
    assert exact.exact is not None
    assert exact.diagnostics is None
    assert chains.exact is None
    drawn = (fit.draws for fit in (exact, chains))
    one, two = (own.variables[name].reshape(*own.divergent.shape) for own in drawn)
    for method in ("mean", "sd"):
        assert_near(two, one.reshape(4, -1), method=method, apart=0.02 * two.std())


def test_when_sampling_is_exact() -> None:
    table, center = counts(3, 60).assign(x=np.arange(60) % 7), {"beta": [1.0]}

    def exact(model: Any, **options: Any) -> bool:
        own = ph.Censored(model, epsilon=1, inner=ph.Unweighted(model), **options)
        return own._grid(model.bind(table)) is not None

    assert not exact(POISSON)
    assert exact(POISSON, center=center)
    assert not exact(POISSON, center=center, sampling="chains")
    assert exact(POISSON, sampling="exact")
    assert exact(ph.Poisson("y ~ 1", prior="normal"), center=center)
    other: Any = ph.Poisson("y ~ x"), {"beta": [1.0, 0.0]}
    assert not exact(other[0], center=other[1])
    said = "exact sampling needs a model whose parameters"
    refuses(said, exact, other[0], center=other[1], sampling="exact")


def test_an_exact_release_says_so_and_no_two_are_alike(
    negative_binomial: Calibration, tmp_path: Path
) -> None:
    mechanism, new = ph.Censored(calibration=negative_binomial), counts(3, 300)
    session = open_session(NB.bind(new), **OPTIONS)
    one = mechanism.release_from(session, n_synthetic=2, n_draws_released=2)
    two = mechanism.release_from(session, n_synthetic=2, n_draws_released=2)
    assert session.n_fits == 1
    assert not one.synthetic[0].equals(two.synthetic[0])
    assert (one.charge.kind, one.charge.epsilon, one.diagnostics) == ("strict", 2.0, None)
    assert "Drawn exactly, without chains" in one.statement
    assert "warm-up" not in one.statement
    report = release_report(one, new)
    assert "Exact sampling" in report
    assert "COARSE" not in report
    one.save(tmp_path / "r", report=False)
    public = "".join(p.read_text() for p in (tmp_path / "r" / "public").iterdir() if p.is_file())
    assert str(float(negative_binomial.center.parameters["phi"])) not in public
    assert ph.Release.load(tmp_path / "r").charge == one.charge


def test_a_regression_is_centered_and_sampled_by_chains() -> None:
    rng = np.random.default_rng(1)
    tables = []
    for n in (300, 300):
        x = rng.normal(size=n)
        tables.append(pd.DataFrame({"x": x, "y": rng.poisson(np.exp(0.5 + 0.4 * x))}))
    model = ph.Poisson("y ~ x")
    made = frozen(model, tables[0], epsilon=4)
    assert isinstance(made.center, Center)
    assert (made.center.sd, made.cap) == ({}, 2.0)
    release = ph.Censored(calibration=made, check_modes=False).release(tables[1], **OPTIONS)
    assert (release.charge.epsilon, release.charge.kind) == (4.0, "strict")
    assert release.diagnostics is not None
    slope = release.fit.draws.flat("beta")[:, 1]
    assert abs(slope.mean() - 0.4) < 5 * slope.std()
    assert release.fit.censored is not None
    assert np.abs(release.fit.bounds.by_record).max() <= 2.0
    assert "when they stop depends on the data" in release.statement


@pytest.mark.parametrize(("center", "words"), [
    ({"beta": [1.0], "phi": 1.0}, "must have the parameters of the likelihood, beta"),
    ({"beta": [1.0, 2.0]}, "must have the shapes of the model's parameters"),
    ({"beta": ["a"]}, "must be numbers by the names"),
    ({"beta": [np.inf]}, "center must be finite"),
])  # fmt: skip
def test_centers_that_are_none_are_refused(center: Any, words: str) -> None:
    def released() -> None:
        own = ph.Censored(POISSON, epsilon=1, center=center, inner=ph.Unweighted(POISSON))
        own.release(counts(3, 60), **OPTIONS)

    refuses(words, released)
