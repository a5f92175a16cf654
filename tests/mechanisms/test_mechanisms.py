"""Mechanisms: collapsing cases, posteriors against quadrature, charges, convergence policy."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import pyhybrid as ph
from pyhybrid.core.errors import NotConverged
from pyhybrid.engines import ConvergenceRule
from pyhybrid.releases.statement import assumptions
from tests.monte_carlo import assert_near
from tests.refusals import fails, refuses

pytestmark = pytest.mark.samples
COUNTS = pd.DataFrame({"y": np.random.default_rng(5).poisson(100, 60)})
MODEL = ph.Poisson("y ~ 1")


def _release(mechanism: Any, table: pd.DataFrame = COUNTS, **options: Any) -> ph.Release:
    return mechanism.release(table, **({"seed": 3, "engine": "embedded", "refits": 0} | options))


def _beta_posterior(y: np.ndarray, alpha: np.ndarray) -> tuple[float, float]:
    """Mean and sd of beta by quadrature: Poisson likelihood, beta ~ N(0, s), s ~ half-t_3."""
    center = np.log((alpha @ y) / alpha.sum())
    grid = center + np.linspace(-1, 1, 801) * 8 / np.sqrt(alpha @ y)
    log_s = np.linspace(-12, 12, 4001)
    s = np.exp(log_s)
    prior = stats.norm.pdf(grid[:, None], 0, s) * 2 * stats.t.pdf(s, 3) * s
    log_lik = (alpha[:, None] * (y[:, None] * grid - np.exp(grid))).sum(axis=0)
    density = np.exp(log_lik - log_lik.max()) * integrate.trapezoid(prior, log_s, axis=1)
    density /= density.sum()
    mean = float(density @ grid)
    return mean, float(np.sqrt(density @ (grid - mean) ** 2))


def test_weighted_posterior_agrees_with_quadrature() -> None:
    table = COUNTS.head(15)
    release = _release(ph.LipschitzWeighted(MODEL, scale=0.4), table, refits=0)
    beta = release.fit.draws.variables["beta"][:, :, 0]
    mean, sd = _beta_posterior(table["y"].to_numpy(dtype=float), release.confidential.alpha)
    assert_near(beta, mean)
    assert_near(beta, sd, method="sd")


def test_epsilon_counts_draws_not_data_sets() -> None:
    mechanism = ph.LipschitzWeighted(MODEL, accounting="lipschitz")
    many = _release(mechanism, n_synthetic=4)
    one = _release(mechanism, n_synthetic=4, n_draws_released=1)
    single = _release(mechanism, n_synthetic=1)
    assert one.charge.epsilon == single.charge.epsilon
    of_four = ph.arrays.epsilon_of_bound(single.charge.bound, n_draws_released=4)
    assert many.charge.epsilon == of_four
    assert "post-processing" in one.statement
    assert len(one.synthetic) == len(many.synthetic) == 4
    assert not one.synthetic[0].equals(one.synthetic[1])


def test_options_enter_the_charge() -> None:
    options: Any = {"draw_quantile": 0.95, "relation": "replace", "safety_factor": 1.04}
    release = _release(ph.LipschitzWeighted(MODEL, accounting="lipschitz", **options))
    charge = release.charge
    assert {name: getattr(charge, name) for name in options} == options
    assert charge.epsilon == ph.arrays.epsilon_of_bound(charge.bound, safety_factor=1.04)
    assert 0.94 < release.fit.bounds.kept_draws.mean() <= 0.95
    assert any("dropped" in sentence for sentence in assumptions(charge))


STRICT_RULE = ConvergenceRule(ess_per_chain=1e9)


def test_chains_that_do_not_converge_are_refused_after_more_draws_and_one_retry() -> None:
    labels: list[str] = []
    told = {"rule": STRICT_RULE, "progress": lambda label, a, b: labels.append(label)}
    fails(NotConverged, "y: unweighted fit did not conv", _release, ph.Unweighted(MODEL), **told)
    assert labels[0] == "unweighted fit: embedded reads the program, or compiles it"
    assert list(dict.fromkeys(label for label in labels if ":" not in label)) == [
        "unweighted fit", "unweighted fit, more draws", "unweighted fit, again",
    ]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), [
    (lambda: ph.LipschitzWeighted(MODEL, scale=np.nan), "scale must be a finite"),
    (lambda: ph.LipschitzWeighted(MODEL, shift=np.inf), "shift must be a finite"),
    (lambda: ph.LipschitzWeighted(MODEL, transform="cubic"), "linear, reciprocal"),
    (lambda: ph.LipschitzWeighted(MODEL, transform="threshold"), "threshold must be given"),
    (lambda: ph.Unweighted(MODEL, relation="add"), "remove, replace"),
    (lambda: ph.Unweighted(MODEL, draw_quantile=0), "draw_quantile"),
    (lambda: ph.Unweighted(MODEL, safety_factor=0.9), "safety_factor must be >= 1"),
    (lambda: _release(ph.Unweighted(MODEL), n_synthetic=0), "n_synthetic"),
    (lambda: _release(ph.Unweighted(MODEL), n_synthetic=3, n_draws_released=2), "1 or n_syn"),
    (lambda: _release(ph.Unweighted(MODEL), seed=-1), "seed must be"),
    (lambda: _release(ph.Unweighted(MODEL), on_not_converged="hope"), "raise, warn"),
])  # fmt: skip
def test_bad_arguments_are_named(make: Any, message: str) -> None:
    refuses(message, make)
