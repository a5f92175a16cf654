"""The coefficients' two priors: the target is the documented one, whatever the rough fit says."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, special, stats

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines import StanProgram, load_program
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.models.families.coefficients import PRIORS
from pyhybrid.models.formula.design import read_design
from pyhybrid.models.initialization import quadratic
from tests.models.targets import beyond_density
from tests.models.test_contract import CASES
from tests.refusals import refuses

_TESTED = ("negative binomial", "poisson", "beta regression", "normal", "bernoulli", "gamma")
MODELS = {CASES[name].model.program_name: CASES[name] for name in _TESTED}
ETA = dict.fromkeys(MODELS, 6) | {"normal_regression": 1}


def _table(model: str, n: int = 40) -> pd.DataFrame:
    """Columns far from 0 and of unlike scales, as real ones are."""
    rng = np.random.default_rng(6)
    year, income = rng.integers(1990, 2020, n), rng.lognormal(10, 0.5, n).round()
    eta = 0.05 * (year - 2005) + income / 5e4
    outcomes: dict[str, Any] = {
        "negative_binomial": lambda: rng.negative_binomial(3, 3 / (3 + np.exp(eta))),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "beta_regression": lambda: rng.beta(4 * special.expit(eta), 4 * special.expit(-eta)),
        "normal_regression": lambda: rng.normal(eta, 0.8),
        "bernoulli": lambda: rng.random(n) < special.expit(eta),
        "gamma_regression": lambda: rng.gamma(2, np.exp(eta) / 2),
    }
    y = outcomes[model]()
    return pd.DataFrame({"y": y, "year": year, "income": income})


def _log_prior_of_ratios(ratio: FloatArray, eta: float) -> float:
    """log of the density of w ~ N(0, Omega), Omega ~ LKJ(eta), by one integral over r. w = r cos: r
    ~ chi(nu), cosines of independent random directions, nu = K - 1 + 2 eta."""
    nu = ratio.size - 1 + 2 * eta

    def density(r: float) -> float:
        cosine = stats.beta.pdf((1 + ratio / r) / 2, (nu - 1) / 2, (nu - 1) / 2) / 2
        return float(stats.chi.pdf(r, nu) * np.prod(cosine / r))

    low = np.abs(ratio).max()
    return float(np.log(integrate.quad(density, low, low + 30, limit=400)[0]))


@pytest.mark.parametrize("eta", [1.0, 6.0])
def test_correlations_integrated_out_leave_a_radius_and_independent_cosines(eta: float) -> None:
    """For two coefficients, against the integral over their correlation."""

    def over_correlation(w: FloatArray) -> float:
        def density(rho: float) -> float:
            prior = stats.beta.pdf((1 + rho) / 2, eta, eta) / 2
            covariance = np.array([[1, rho], [rho, 1]])
            return float(prior * stats.multivariate_normal.pdf(w, cov=covariance))

        return float(np.log(integrate.quad(density, -1, 1, limit=400, epsabs=1e-13)[0]))

    for w in np.array([[0.3, -0.4], [-2.5, -2.0]]):
        assert abs(_log_prior_of_ratios(w, eta) - over_correlation(w)) < 1e-5
        # What it would be, were eta another: the check can tell.
        assert abs(_log_prior_of_ratios(w, eta + 2) - over_correlation(w)) > 1e-3


def _log_target(model: str, prior: str, values: Any, bound: Any) -> float:
    """The documented posterior by scipy: of (beta, size), and of published scales, too."""
    beta = values["beta"]
    y, X = bound.design.y, bound.design.X
    mu_eta = X @ beta + bound.design.offset
    law = MODELS[model].law(mu_eta[None], {k: np.atleast_1d(v) for k, v in values.items()})
    density = law.logpmf if hasattr(law.dist, "pmf") else law.logpdf
    total = float(density(y)[0] @ _alpha(bound))
    if model in PRIOR_OF_SIZE:
        total += float(PRIOR_OF_SIZE[model](values))
    if prior == "normal":
        return float(total + stats.norm.logpdf(beta, 0, [10, 2.5, 2.5]).sum())
    sigma, nu = values["sigma_beta"], beta.size - 1 + 2 * ETA[model]
    z_radius = float(values["z_radius"][0])  # of r: d r = r d z_radius / sqrt(2 nu)
    r = np.sqrt(nu) * np.exp(z_radius / np.sqrt(2 * nu))
    cosine = beta / (sigma * r)
    total += stats.t.logpdf(sigma, 3).sum() + stats.chi.logpdf(r, nu)
    total += stats.beta.logpdf((1 + cosine) / 2, (nu - 1) / 2, (nu - 1) / 2).sum()
    return float(total - np.log(sigma * r).sum() + z_radius / np.sqrt(2 * nu))


PRIOR_OF_SIZE: dict[str, Any] = {
    "beta_regression": lambda at: stats.pareto.logpdf(at["lambda"], 1.5, scale=0.1),
    "normal_regression": lambda at: stats.t.logpdf(at["sigma"], 3),
    "gamma_regression": lambda at: stats.expon.logpdf(at["shape"]),
    "negative_binomial": lambda at: stats.halfcauchy.logpdf(at["reciprocal_phi"], scale=5),
}


def _alpha(bound: Any) -> FloatArray:
    return np.linspace(0.2, 1, bound.n)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("model", MODELS)
def test_the_target_is_the_documented_posterior(model: str, prior: str) -> None:
    """log target - log posterior - log Jacobian is one constant, at any point, under any hints."""
    formula = "y ~ year + income + offset(I(log(income) - 10))"
    bound = replace(MODELS[model].model, formula=formula, prior=prior).bind(_table(model))
    assert np.ptp(bound.design.offset) > 0.1
    data = bound.stan_data(_alpha(bound))
    constants = _constants(model, prior, bound, load_program(model), data)
    np.testing.assert_allclose(constants, constants[0], atol=2e-5)
    wrong = load_program(model).text.replace("0.5 * (freedom - 1)", "0.5 * freedom")
    wrong = wrong.replace("0.5 * dot_self(u)", "0.4 * dot_self(u)")
    broken = StanProgram(name="broken", text=wrong)
    found = _constants(model, prior, bound, broken, data)
    assert np.ptp(found) > 1e-3


def _constants(model: str, prior: str, bound: Any, program: StanProgram, data: Any) -> Any:
    names = [*bound.model.parameters, *(("sigma_beta", "z_radius") if prior == "published" else ())]
    if model == "negative_binomial":  # the prior is of 1/phi
        names[names.index("phi")] = "reciprocal_phi"

    def coordinates(at: Any) -> FloatArray:
        return np.column_stack([at[name] for name in names])

    def log_density(at: Any) -> FloatArray:
        of_each = ({k: v[s] for k, v in at.items()} for s in range(len(at["beta"])))
        return np.array([_log_target(model, prior, values, bound) for values in of_each])

    return beyond_density(ProgramAtPoints(program, data), log_density, coordinates)


def test_the_quadratic_has_the_log_likelihoods_gradient_and_curvature() -> None:
    bound = ph.Poisson("y ~ year + income").bind(_table("poisson"))
    X, beta = bound.design.X, np.array([-1.0, 5e-4, 1e-5])
    mu = np.exp(X @ beta)
    found = quadratic(X, beta, bound.design.y - mu, mu)
    information = found["information_root"] @ found["information_root"].T
    np.testing.assert_allclose(information, (X.T * mu) @ X, rtol=1e-10)
    gradient = found["score"] - information @ beta
    np.testing.assert_allclose(gradient, X.T @ (bound.design.y - mu), rtol=1e-6, atol=1e-4)


def test_settings_of_the_prior_are_public_and_checked() -> None:
    model = ph.Poisson("y ~ x", prior="normal", prior_scale=1.5)
    described = model.describe()
    assert described["prior"] == "normal"
    assert described["prior_scale"] == 1.5
    assert "prior_scale" not in ph.Poisson("y ~ x").describe()
    table = pd.DataFrame({"y": [1, 2, 3, 4], "x": [3, 5, None, 6], "is.na(z)": [2, 4, 9, 1]})
    design = read_design("y ~ x + `is.na(z)`", table)  # and is.na(x), an indicator
    data = model.shape_data({}, design)
    np.testing.assert_array_equal(data["prior_scale"], [10, 1.5, 1.5, 10])
    for wrong, message in (
        ({"prior": "flat"}, "prior must be one of"),
        ({"prior_scale": 0}, "prior_scale must be"),
        ({"prior_scale_intercept": -1}, "prior_scale_intercept must be"),
    ):
        refuses(message, ph.BetaRegression, "y ~ x", **wrong)


def test_a_design_of_any_rank_is_taken_under_the_normal_prior() -> None:
    """A level that no record has, and a column twice; the published prior refuses them."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"y": rng.poisson(3, 50), "x": rng.normal(size=50)})
    table["twice"] = 2 * table["x"]
    table["g"] = pd.Categorical(rng.choice(["a", "b"], 50), categories=["a", "b", "never"])
    for formula in ("y ~ x + twice", "y ~ g"):
        data = ph.Poisson(formula, prior="normal").bind(table).stan_data(np.ones(50))
        assert np.isfinite(data["information_root"]).all()
        refuses(r"full column rank|all zero", ph.Poisson(formula).bind, table)
