"""Choosing scale and shift by budget."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms.epsilon_search import Fitted, Nearby, fitted_at, largest_within
from pyhybrid.privacy.log_lik import LogLik
from tests.fitting.test_reweighting import MODEL, mixture

pytestmark = pytest.mark.samples
TABLE = mixture(200)
SETTINGS = SamplerSettings(warmup=400, draws=500)
OPTIONS: dict[str, Any] = {"seed": 1, "engine": "embedded", "settings": SETTINGS}
PAPERS = ph.LipschitzWeighted(MODEL, accounting="lipschitz")


@pytest.mark.parametrize("solve", [ph.mechanisms.solve_scale, ph.mechanisms.solve_shift])
def test_the_target_is_met_from_below(solve: Any) -> None:
    found = solve(PAPERS, TABLE, target_epsilon=8.0, **OPTIONS)
    assert 8 - found.tolerance < found.epsilon <= 8
    assert 0.1 <= found.tolerance < 0.8
    assert "below the target of 8 by less than" in found.stopped
    assert found.stopped in found._repr_html_()
    release = found.mechanism.release_from(found.session, n_synthetic=1, n_draws_released=1)
    assert release.charge.epsilon == found.epsilon
    assert found.session.n_fits <= len(found.steps) + 1
    assert found.steps[-1].value == found.value


@pytest.mark.parametrize("accounting", ["gaussian", "range"])
def test_a_target_by_another_accounting_is_met_from_below(accounting: str) -> None:
    """Where the Gaussian limit gives way to the range epsilon jumps: at most the target then."""
    start = ph.CountWeighted(MODEL, radius=0.3, accounting=accounting)
    most = ph.mechanisms.solve_scale(start, TABLE, target_epsilon=0.3, **OPTIONS)
    assert 0 < most.epsilon <= 0.3
    release = most.mechanism.release_from(most.session, n_synthetic=1, n_draws_released=1)
    assert release.charge.epsilon == most.epsilon
    papers = release.charge.epsilon_lipschitz
    assert papers > most.epsilon, "the control: by the papers' accounting it costs more"


def test_several_draws_share_the_budget() -> None:
    """By the papers' accounting the same fit costs three times as much for three draws."""
    session = open_session(MODEL.bind(TABLE), **OPTIONS)
    one, three = (fitted_at(lambda _: PAPERS, 1.0, session, draws) for draws in (1, 3))
    assert three.epsilon == pytest.approx(3 * one.epsilon, abs=0.03)  # rounded up
    assert session.n_fits == 2  # with the unweighted one


def test_an_unreachable_target_gives_the_range() -> None:
    with pytest.raises(InvalidInput, match=r"epsilon goes from 0 to [\d.]+ there, found 500"):
        ph.mechanisms.solve_scale(PAPERS, TABLE, target_epsilon=500, **OPTIONS)
    with pytest.raises(InvalidInput, match="reachable by shift"):
        ph.mechanisms.solve_shift(PAPERS, TABLE, target_epsilon=1, limits=(0, 0.5), **OPTIONS)


@pytest.mark.parametrize(("options", "message"), [
    ({"target_epsilon": 0}, "target_epsilon must be above 0"),
    ({"tolerance": 0}, "tolerance must be above 0"), ({"limits": (1, 0)}, "ascending order"),
    ({"n_draws_released": 0}, "n_draws_released"), ({"max_fits": 0}, "max_fits"),
    ({"mechanism": ph.Unweighted(MODEL)}, "Unweighted has none"),
])  # fmt: skip
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    own = {"mechanism": ph.LipschitzWeighted(MODEL), "target_epsilon": 5, **OPTIONS, **options}
    with pytest.raises(InvalidInput, match=message):
        ph.mechanisms.solve_scale(own.pop("mechanism"), TABLE, **own)


def _fits(curve: Any, noise: float = 0.0, *, smooth: bool = True, seed: int = 0) -> Any:
    """Fits of an epsilon that is known, each off by a share of its own; what has been tried."""
    tried: dict[float, float] = {}
    rng = np.random.default_rng(seed)

    def fit_at(value: float) -> Fitted:
        share = tried.setdefault(value, float(np.exp(noise * rng.normal())))
        near = (lambda other: curve(other) * share) if smooth else (lambda other: float("nan"))
        epsilon = curve(value) * share
        return Fitted(value=value, epsilon=epsilon, error=noise * epsilon, nearby=near)

    return fit_at, tried


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("curve", [lambda v: v**4 * 20, lambda v: 20 * v**0.2, lambda v: 20 * v])
def test_the_search_is_monotone_and_short(curve: Any, smooth: bool) -> None:
    fit_at, tried = _fits(curve, smooth=smooth)
    found = largest_within(fit_at, "scale", 0.0, 1.0, 7.0, 0.1, 20)
    assert 6.9 < curve(found.value) <= 7.0
    assert found.tolerance == 0.1
    assert len(tried) < (4 if smooth else 15)


def _searches(smooth: bool) -> tuple[list[float], list[int], list[str]]:
    """True epsilons, numbers of fits and reasons of 300 searches at an error of 2 %."""
    ends, fits, why = [], [], []
    for seed in range(300):
        fit_at, tried = _fits(lambda v: 20 * v**0.8, 0.02, smooth=smooth, seed=seed)
        found = largest_within(fit_at, "scale", 0.0, 1.0, 8.0, 0.1, 30)
        assert 8 - found.tolerance < fit_at(found.value).epsilon <= 8 or "jumps" in found.stopped
        ends.append(20 * found.value**0.8)
        fits.append(len(tried))
        why.append(found.stopped)
    return ends, fits, why


def test_monte_carlo_error_neither_prolongs_nor_misleads_the_search() -> None:
    """Nor does it pass for a jump; the control is a search on refits alone."""
    ends, fits, why = _searches(smooth=True)
    assert not any("another accounting" in each for each in why)
    assert np.mean(fits) < 6
    assert max(abs(end - 8) for end in ends) < 8 * 0.02 * 5
    _, more, _ = _searches(smooth=False)
    assert np.mean(more) > 1.3 * np.mean(fits)


def test_a_jump_or_what_is_nearest_is_named() -> None:
    """From .5 on epsilon is twice as large: the search ends below, and says why."""
    fit_at, _ = _fits(lambda v: 10 * v * (1 + (v > 0.5)))
    found = largest_within(fit_at, "scale", 0.0, 1.0, 7.0, 0.1, 40)
    assert 0.499 < found.value <= 0.5
    assert found.stopped.startswith("epsilon jumps from 5 to 10")
    assert "another accounting or record counts" in found.stopped
    fit_at, _ = _fits(lambda v: 20 * v**4, smooth=False)
    with pytest.raises(InvalidInput, match="not met within 1e-09 in 1 fits; the nearest below"):
        largest_within(fit_at, "scale", 0.0, 1.0, 7.0, 1e-9, 1)


class _Normals:
    """Outcomes with known variance: under weights the posterior of their mean is normal."""

    def __init__(self, y: np.ndarray) -> None:
        self.y, self.n = y, y.size

    def posterior(self, alpha: np.ndarray) -> tuple[float, float]:
        return float(alpha @ self.y / alpha.sum()), float(1 / alpha.sum())

    def log_lik(self, draws: Any) -> LogLik:
        return LogLik.of(-((draws.theta[:, None] - self.y) ** 2) / 2)

    def deviation(self, alpha: np.ndarray) -> float:
        middle, variance = self.posterior(alpha)
        of = variance * (middle - self.y) ** 2 + variance**2 / 2
        return float((alpha * np.sqrt(of)).max())


@dataclass
class _Drawn:
    theta: np.ndarray

    @property
    def n_draws(self) -> int:
        return self.theta.size

    def part(self, places: np.ndarray) -> "_Drawn":
        return _Drawn(self.theta[places])


def _near(accounting: str, alpha: np.ndarray) -> tuple[_Normals, Nearby]:
    rng = np.random.default_rng(4)
    bound = _Normals(rng.normal(size=40))
    middle, variance = bound.posterior(alpha)
    quantiles = ndtri((np.arange(1000) + 0.5) / 1000)
    drawn = _Drawn(rng.permutation(middle + np.sqrt(variance) * quantiles))
    session: Any = SimpleNamespace(bound=bound, units=None)
    fit: Any = SimpleNamespace(draws=drawn, alpha=alpha)
    return bound, Nearby(session, fit, accounting)


def test_draws_of_one_fit_give_the_deviation_under_other_weights() -> None:
    """Against the normal posterior; the control takes the draws as they are."""
    ones = np.ones(40)
    bound, near = _near("gaussian", ones)
    for share in (0.6, 0.8, 1.0):
        exact = bound.deviation(share * ones) / bound.deviation(ones)
        assert near.ratio(share * ones) == pytest.approx(exact, rel=0.03)
    assert bound.deviation(0.6 * ones) / bound.deviation(ones) > 0.6 * 1.2, "the control"
    assert near.ratio(ones) == pytest.approx(1)
    assert 0 < near.relative_error() < 0.2


@pytest.mark.parametrize("accounting", ["gaussian", "range", "lipschitz"])
def test_what_is_searched_is_smooth_and_grows_with_the_weights(accounting: str) -> None:
    ones = np.ones(40)
    near = _near(accounting, ones)[1]
    found = np.array([near.ratio(share * ones) for share in np.linspace(0.6, 1, 81)])
    assert np.isfinite(found).all()
    steps = np.diff(found)
    assert (steps > 0).all()
    assert steps.max() < 4 * steps.mean()
    assert np.isnan(near.ratio(0.01 * ones)), "too far for these draws"
