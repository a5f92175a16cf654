"""Normal and mixture regressions: densities, priors, hints, transforms, convergence, releases."""

from dataclasses import replace
from functools import cache
from typing import Any

import arviz
import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.options import build_model
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines import ConvergenceRule, SamplerSettings, diagnose
from pyhybrid.engines.embedded import EmbeddedEngine, ProgramAtPoints
from pyhybrid.fitting.session import open_session
from pyhybrid.models.columns.support import LARGEST, TRANSFORMS
from pyhybrid.models.families.normal_mixture import rough_mixture
from tests.models.targets import AtPoints
from tests.refusals import refuses

RULE = ConvergenceRule(rhat=1.05, ess_per_chain=40.0, divergent_share=0.02)


@cache
def _two_components(n: int = 300) -> pd.DataFrame:
    """Of n records 0.3 N(3 + x, 0.3), 0.7 N(-1 - x/2, 0.6)."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=n).round(3)
    first = rng.random(n) < 0.3
    y = np.where(first, rng.normal(3 + x, 0.3), rng.normal(-1 - x / 2, 0.6))
    return pd.DataFrame({"y": y, "x": x, "first": first})


def _mixture(n_components: int = 2) -> ph.MixtureRegression:
    return ph.MixtureRegression("y ~ x", n_components=n_components)


@pytest.mark.samples
@pytest.mark.parametrize("n_components", [1, 3])
def test_without_data_draws_follow_the_priors(n_components: int) -> None:
    """All weights 0: Dirichlet(a/C) with a ~ Gamma(1, 1), LKJ(1), half-t's, by quantiles."""
    bound = _mixture(n_components).bind(_two_components(20))
    draws = EmbeddedEngine().sample(
        bound.program, bound.stan_data(np.zeros(bound.n)), seed=8,
        settings=SamplerSettings(chains=4, warmup=300, draws=600, adapt_delta=0.95),
    )  # fmt: skip
    assert draws.divergent.mean() < 0.01

    def beta_product(beta: np.ndarray) -> np.ndarray:
        return np.cbrt(beta[..., 0] * beta[..., 1])

    rng = np.random.default_rng(2)
    size = 200_000
    a = rng.gamma(1, 1, size)
    gammas = rng.gamma(np.repeat(a[:, None] / n_components, n_components, axis=1))
    share = gammas[:, 0] / np.maximum(gammas.sum(axis=1), 1e-300)
    half_t = np.abs(rng.standard_t(3, (2, size)))
    r = rng.uniform(-1, 1, size)  # LKJ(1) of a 2 x 2 correlation matrix
    z = rng.standard_normal((2, size))
    beta = half_t * np.vstack([z[0], r * z[0] + np.sqrt(1 - r**2) * z[1]])
    at = draws.variables
    last = at["beta"][..., -1]
    both = {
        "sigma": (at["sigma"][:, :, 0], half_t[0]), "beta": (last[..., 0], beta[0]),
        "sigma_beta": (at["sigma_beta"][:, :, 1], half_t[0]),
        "slope over intercept": (np.arctan2(last[..., 1], last[..., 0]), np.arctan2(*beta[::-1])),
        "product": (beta_product(last), beta_product(beta.T)),
    }  # fmt: skip
    if n_components > 1:
        both["share"] = at["proportion"][:, :, 0], share
        both["a"] = at["concentration"][:, :, 0], a
    for name, (values, true) in both.items():
        for q in (0.25, 0.5, 0.75, 0.9):
            below = (values <= np.quantile(true, q)).astype(float)
            error = np.sqrt(q * (1 - q) / float(arviz.ess(below)))
            assert abs(below.mean() - q) < 5 * error, (name, q, below.mean())
            assert error < 0.12, name  # a chain can stay where a is small


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_hints_do_not_move_the_posterior(n_components: int) -> None:
    """The same parameters have the same density, up to a constant, whatever the hints. Given what
    the components share, their parameters (log sigma, log ratios) are an affine function of z."""
    bound, C = _mixture(n_components).bind(_two_components()), n_components
    data = bound.stan_data(np.ones(bound.n), emit_log_lik=False)
    rng = np.random.default_rng(4)
    root = rng.normal(size=(C, 2, 2))
    other = data | {
        "information": root @ root.transpose(0, 2, 1), "score": rng.normal(size=(2, C)),
        "center_sigma": rng.normal(size=C), "spread_sigma": rng.uniform(0.5, 2, C),
        "center_ratio": rng.normal(size=C), "spread_ratio": rng.uniform(0.5, 2, C),
    }  # fmt: skip
    programs = [ProgramAtPoints(bound.program, own) for own in (data, other)]
    z, T = np.vstack([np.zeros(4 * C - 1), np.eye(4 * C - 1)]), min(C, 2)
    apart = []
    for _ in range(4):
        target = rng.normal(size=4 * C - 1)
        shared = {
            "log_scale": rng.normal(size=2), "z_below": rng.normal(size=T * (T - 1) // 2),
            "z_diagonal": rng.normal(size=T) / 3, "concentration": rng.uniform(0.5, 2, int(C > 1)),
        }  # fmt: skip

        def points(own: FloatArray, program: ProgramAtPoints) -> FloatArray:
            named = {k: np.tile(v, (len(own), 1)) for k, v in shared.items()}  # noqa: B023
            parts = zip(("z", "z_sigma", "z_ratio"), np.split(own, [2 * C, 3 * C], 1), strict=True)
            return program.unconstrained(AtPoints(named | dict(parts)))  # type: ignore[arg-type]

        densities = []
        for program in programs:
            values = program.quantities(points(z, program))
            ratio = values["log_proportion"][:, 1:] - values["log_proportion"][:, :1]
            found = np.hstack([values["beta"].reshape(len(z), -1), np.log(values["sigma"]), ratio])
            slope = (found[1:] - found[0]).T
            at = points(np.linalg.solve(slope, target - found[0])[None], program)
            densities.append(program.log_density(at)[0] - np.linalg.slogdet(slope)[1])
        apart.append(np.subtract(*densities))
    np.testing.assert_allclose(apart, apart[0], rtol=1e-8, atol=1e-7)


@pytest.mark.normal_draws
def test_labels_that_switch_are_not_reported() -> None:
    """Chains whose components have other names: R-hat of parameters is huge, ours is not moved."""
    bound = _mixture().bind(_two_components(150))
    settings = SamplerSettings(chains=4, warmup=300, draws=250)
    fit = open_session(bound, seed=3, engine="embedded", rule=RULE, settings=settings).unweighted()
    switched = dict(fit.draws.variables)
    for name in ("beta", "sigma", "log_proportion"):
        values = switched[name].copy()
        values[:2] = values[:2, ..., ::-1]
        switched[name] = values
    draws = replace(fit.draws, variables=switched)
    whole = diagnose(draws, None, bound.monitored(draws))
    assert whole.max_rhat == pytest.approx(fit.diagnostics.max_rhat, abs=1e-8)
    assert diagnose(draws, None, {"sigma": switched["sigma"]}).max_rhat > 1.5


def test_the_rough_fit_finds_components_and_leaves_others_empty() -> None:
    table = _two_components()
    X = np.column_stack([np.ones(300), table["x"]])
    hints = rough_mixture(table["y"].to_numpy(), X, np.ones(300), 4)
    center = [np.linalg.solve(hints["information"][k], hints["score"][:, k]) for k in (0, 1)]
    true = []
    for own in (~table["first"], table["first"]):
        residual = np.linalg.lstsq(X[own], table["y"][own], rcond=None)[1][0]
        true.append(np.sqrt(residual / (own.sum() - 2)))
    np.testing.assert_allclose(np.exp(hints["center_sigma"][:2]), true, rtol=0.1)
    np.testing.assert_allclose(center, [[-1, -0.5], [3, 1]], atol=0.15)
    np.testing.assert_array_equal(hints["center_ratio"][2:], -4 - np.log(300))
    np.testing.assert_array_equal(hints["information"][2:], 0)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("unit", [1.0, 250.0])
def test_transforms_come_back(name: str, unit: float) -> None:
    model = ph.NormalRegression("y ~ 1", transform=name, unit=unit)
    y = np.array([0.01, 1.5, 20.0, 3e5])
    if not TRANSFORMS[name].positive:
        y = np.concatenate([-y[::-1], [0.0], y])
    t = model.to_support(y)
    assert (np.diff(t) > 0).all()
    np.testing.assert_allclose(model.from_support(t, None), y, rtol=1e-9)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_replicates_never_overflow(name: str) -> None:
    model = ph.NormalRegression("y ~ 1", transform=name)
    made = model.from_support(np.array([-1e200, -800.0, 0.0, 800, 1e200]), 0)
    assert np.isfinite(made).all()
    assert made.max() == LARGEST
    assert made.min() == (1 if name == "log" else -LARGEST)


@pytest.mark.parametrize(("make", "message"), [
    (lambda t: ph.NormalRegression("y ~ x", transform="sqrt"), "transform must be one of"),
    (lambda t: ph.NormalRegression("y ~ x", unit=0), "unit must be"),
    (lambda t: ph.NormalRegression("y ~ x", min_sd=-1), "min_sd must be >= 0"),
    (lambda t: ph.MixtureRegression("y ~ x", n_components=0), "n_components must be"),
    (lambda t: ph.MixtureRegression("y ~ x", n_components=1.5), "n_components must be"),
    (lambda t: ph.MixtureRegression("y ~ x", n_components=301).bind(t),
     "at most the number of records, 300: found 301"),
    (lambda t: ph.NormalRegression("y ~ x", transform="log").bind(t),
     "above 0 for transform='log': row"),
    (lambda t: ph.NormalRegression("y ~ x").bind(t.assign(y=t["y"] * 1e16)),
     "size: row .* is larger"),
    (lambda t: build_model("mixture:n_components=two", "y ~ x"), "must be a whole number"),
    (lambda t: build_model("normal:n_components=2", "y ~ x"), "takes no n_components"),
])  # fmt: skip
def test_bad_input_is_named(make: Any, message: str) -> None:
    refuses(message, make, _two_components())
