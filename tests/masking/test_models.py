"""Mask models, conditional models and draws of keys against closed forms, grids and enumeration."""

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.miscmodels.ordinal_model import OrderedModel

from pyhybrid.masking import (
    GaussianMask,
    MisclassificationMask,
    MixtureMask,
    families,
    masked_normal,
)
from pyhybrid.masking.columns import BoundKeys, read_column
from pyhybrid.masking.copula import CopulaModel
from pyhybrid.masking.masks import Evidence, level_log_density
from pyhybrid.masking.sequence import SequentialModel
from tests.refusals import refuses


def within(found: Any, expected: Any, sd: Any, n: int, errors: float = 5.0) -> None:
    """Means of n draws lie within 5 standard errors of what they estimate."""
    np.testing.assert_array_less(np.abs(found - expected), errors * np.asarray(sd) / np.sqrt(n))


def test_draws_have_the_density_that_the_mask_states() -> None:
    rng = np.random.default_rng(2)
    n = 40_000
    x = np.full(n, 0.5)
    w = GaussianMask(copies=4, variance=2.0).draw(x, rng)
    assert w.shape == (n, 4)
    within(w.mean(), 0.5, np.sqrt(2), w.size)
    within((w - 0.5).var(), 2.0, 2 * np.sqrt(2), w.size)
    matrix = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    for level, row in enumerate(matrix):
        drawn = MisclassificationMask(matrix=matrix).draw(np.full(n, level), rng)
        share = np.bincount(drawn, minlength=3) / n
        within(share, row, np.sqrt(np.maximum(row, 1e-9)) + 1e-9, n)
    nominal = MixtureMask(separation=3.0, n_levels=3).draw(np.full(n, 1), rng)
    within(nominal.mean(axis=0), [0, 3 / np.sqrt(2), 0], 1.0, n)


def test_levels_of_a_nominal_mixture_lie_equally_far_apart() -> None:
    mask = MixtureMask(separation=4.0, n_levels=4)
    centers = 4 / np.sqrt(2) * np.eye(4)
    for a in range(4):
        logs = level_log_density(mask, centers[[a]], 4)[0]
        others = np.delete(logs, a)
        np.testing.assert_allclose(logs[a] - others, 0.5 * 4**2)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: GaussianMask(variance=0), "variance must be above 0: found 0"),
    (lambda: GaussianMask(copies=0, variance=1), "copies must be a whole number >= 1"),
    (lambda: MixtureMask(separation=0), "separation must be above 0"),
    (lambda: MisclassificationMask(matrix=[[1.0]]), "at least 2 x 2"),
    (lambda: MisclassificationMask(matrix=[[0.5, 0.4], [0, 1]]), "each row's sum 1"),
    (lambda: MisclassificationMask.keep(1.2, 3), "probability must lie in"),
    (lambda: masked_normal([0.0], [1.0], [[1.0]], 0.0), "mask_variance must be above 0"),
])  # fmt: skip
def test_bad_masks_are_refused(make: Any, message: str) -> None:
    refuses(message, make)


KINDS = {"binary": 2, "ordered": 4, "nominal": 4}
MODELS = [families.LevelModel(kind=kind, n_levels=n, n_columns=3) for kind, n in KINDS.items()]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.kind)
def test_gradients_and_probabilities(model: families.LevelModel) -> None:
    rng = np.random.default_rng(3)
    design = np.hstack([np.ones((40, 1)), rng.normal(size=(40, 2))])
    x = rng.integers(0, model.n_levels, 40)
    theta = rng.normal(size=model.size)
    value, gradient = model.log_posterior(theta, design, x)
    for place in range(model.size):
        step = np.zeros(model.size)
        step[place] = 1e-5
        rise, fall = (model.log_posterior(theta + sign * step, design, x)[0] for sign in (1, -1))
        assert gradient[place] == pytest.approx((rise - fall) / 2e-5, rel=1e-5, abs=1e-6)
    assert np.isfinite(value)
    eta, cuts = design @ model.coefficients(theta), model.cuts(theta)
    logs = model.log_probabilities(eta, cuts)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)
    np.testing.assert_allclose(model.log_probabilities(eta, cuts, x), logs[np.arange(40), x])


def _normal_near(model: families.LevelModel, design: Any, x: Any) -> families.NormalAtMode:
    posterior = functools.partial(model.log_posterior, design=design, x=x)
    return families.NormalAtMode.of(posterior, np.zeros(model.size))


def test_hamiltonian_draws_have_the_moments_of_a_grid() -> None:
    """Two coefficients, 12 records: far enough from normal for a wrong sampler to show."""
    model = families.LevelModel(kind="binary", n_levels=2, n_columns=2)
    design, x = np.column_stack([np.ones(12), np.linspace(-1, 2, 12)]), np.arange(12) > 0
    posterior = functools.partial(model.log_posterior, design=design, x=x.astype(int))
    axes = np.linspace(-2, 12, 71), np.linspace(-3, 10, 66)
    grid = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)
    logs = np.array([posterior(place)[0] for place in grid])
    p = np.exp(logs - logs.max())
    p /= p.sum()
    near, rng = _normal_near(model, design, x.astype(int)), np.random.default_rng(4)
    draws = [near.mode]
    for _ in range(1500):
        draws.append(near.move(draws[-1], posterior, families.STEP, rng)[0])
    mean, effective = p @ grid, 700  # ESS of these draws is above 900
    products = (grid[:, :, None] - mean[:, None]) * (grid[:, None] - mean)
    covariance = np.tensordot(p, products, 1)
    within(np.mean(draws, axis=0), mean, np.sqrt(np.diag(covariance)), effective)
    sd = np.sqrt(np.tensordot(p, products**2, 1) - covariance**2)
    within(np.cov(np.transpose(draws)), covariance, sd, effective)


def test_posteriors_agree_with_the_likelihood_fits_of_statsmodels() -> None:
    """n = 3000: the priors weigh next to nothing, posteriors are normal about the estimate."""
    rng, n = np.random.default_rng(6), 3000
    z = rng.normal(size=n)
    design = np.column_stack([np.ones(n), z])
    latent = 0.7 * z + rng.normal(size=n)
    binary, ordered = (latent > 0).astype(int), np.digitize(latent, [-0.5, 0.8])
    nominal = np.argmax(rng.gumbel(size=(n, 3)) + np.outer(z, [0, 0.5, -0.8]), axis=1)
    by_level = OrderedModel(ordered, z[:, None], distr="probit").fit(method="bfgs", disp=0)
    for kind, x, fit, places in (
        ("binary", binary, sm.Probit(binary, design).fit(disp=0), slice(None)),
        ("nominal", nominal, sm.MNLogit(nominal, design).fit(disp=0), slice(None)),
        ("ordered", ordered, by_level, slice(1, 3)),  # slope and first cutpoint
    ):
        model = families.LevelModel(kind=kind, n_levels=x.max() + 1, n_columns=2)
        near = _normal_near(model, design, x)
        params, bse = (np.ravel(of)[: near.mode[places].size] for of in (fit.params, fit.bse))
        sd = np.sqrt((near.spread**2).sum(axis=1))[places]
        np.testing.assert_array_less(np.abs(near.mode[places] - params), 0.1 * bse)
        np.testing.assert_allclose(sd, bse, rtol=0.05)


def _bound(frame: pd.DataFrame, keys: list[str]) -> BoundKeys:
    """Predictors are continuous."""
    others = [read_column(frame[c], what="predictor", kind="continuous") for c in frame
              if c not in keys]  # fmt: skip
    return BoundKeys(
        keys=tuple(read_column(frame[k], what="key") for k in keys), incomplete=(),
        complete=tuple(others), n_records=len(frame),
    )  # fmt: skip


def _patterns(each: int) -> pd.DataFrame:
    """Four patterns of records, many times each, so that one synthesis draws each many times."""
    rng = np.random.default_rng(8)
    z = np.tile([-1.0, 0.0, 0.5, 2.0], each)
    n = z.size
    return pd.DataFrame({
        "z": z, "x": np.round(0.5 * z + rng.normal(size=n), 3),
        "b": rng.random(n) < stats.norm.cdf(z), "c": rng.choice(["p", "q", "r"], n),
    })  # fmt: skip


EACH = 1500


def _state(model: SequentialModel, thetas: dict[str, Any]) -> Any:
    state = model.start(np.random.default_rng(1))
    state.thetas = [np.asarray(thetas[column.name], dtype=float) for column in model.columns]
    return state


def test_one_continuous_key_has_the_closed_form() -> None:
    frame = _patterns(EACH)[["z", "x"]]
    model = SequentialModel(_bound(frame, ["x"]), np.random.default_rng(0))
    theta = [0.3, 0.8, 0.6]
    state = _state(model, {"x": theta})
    w = np.tile([[0.5, 0.1], [-1.0, 0.3], [2.0, 2.2], [0.0, 0.1]], (EACH, 1))
    evidence = {"x": Evidence(center=w.mean(axis=1), precision=np.full(len(w), 2 / 0.9))}
    drawn = model.synthesize(state, evidence, np.random.default_rng(1), sweeps=3)["x"]
    z = read_column(frame["z"], what="predictor").values
    mean, variance = 0.3 + 0.8 * z, np.full(z.size, 0.6)
    exact = masked_normal(mean, variance, w, 0.9)
    off = model.synthesize(state, {}, np.random.default_rng(1), sweeps=3)["x"]
    weak = {"x": Evidence(center=w.mean(axis=1), precision=np.full(len(w), 1e-12))}
    nearly = model.synthesize(state, weak, np.random.default_rng(1), sweeps=3)["x"]
    np.testing.assert_allclose(nearly, off, atol=1e-9)  # towards infinity: mask off
    for values, m, v in ((drawn, exact.mean, exact.variance), (off, mean, variance)):
        by_pattern = values.reshape(EACH, 4)
        within(by_pattern.mean(axis=0), m[:4], np.sqrt(v[:4]), EACH)
        within(by_pattern.var(axis=0), v[:4], np.sqrt(2) * v[:4], EACH)


@pytest.mark.parametrize("order", [["c", "b", "x"], ["x", "c", "b"]], ids="-".join)
def test_several_keys_have_their_joint_distribution(order: list[str]) -> None:
    """All three keys masked, against enumeration over levels times a grid; with the continuous key
    first its later factors are not conjugate, and a slice samples them."""
    frame = _patterns(EACH)[["z", *order]]
    model = SequentialModel(_bound(frame, order), np.random.default_rng(0))
    rng = np.random.default_rng(9)
    thetas = {}
    for column, level in zip(model.columns, model.models, strict=True):
        p = model.starts[model.columns.index(column)]
        size = p if level is None else level.size
        theta = rng.normal(0, 0.7, size)
        thetas[column.name] = np.append(theta, 0.8) if level is None else theta
    state = _state(model, thetas)
    center = np.array([0.5, -1.0, 1.5, 0.2])
    logs = {"b": rng.normal(0, 1, (4, 2)), "c": rng.normal(0, 1, (4, 3))}
    evidence = {k: Evidence(log_density=np.tile(v, (EACH, 1))) for k, v in logs.items()}
    evidence["x"] = Evidence(center=np.tile(center, EACH), precision=np.full(4 * EACH, 1.5))
    drawn = model.synthesize(state, evidence, np.random.default_rng(2), sweeps=15)
    z = read_column(frame["z"], what="predictor").values[:4]
    grid = np.linspace(-6, 6, 601)
    for pattern in range(4):
        p = _joint(model, thetas, z[pattern], grid, logs, center, pattern)
        own = {k: v[pattern::4] for k, v in drawn.items()}
        x_mean, x_square = (p.sum(axis=(0, 1)) @ grid**k for k in (1, 2))
        within(own["x"].mean(), x_mean, np.sqrt(x_square - x_mean**2), EACH)
        table = p.sum(axis=2)
        found = np.zeros((2, 3))
        np.add.at(found, (own["b"], own["c"]), 1 / EACH)
        within(found, table, np.sqrt(table * (1 - table)), EACH)
        cross = (p.sum(axis=1) @ grid)[1]
        spread = np.sqrt((p.sum(axis=1) @ grid**2)[1] - cross**2)
        within((own["b"] * own["x"]).mean(), cross, spread, EACH)


def _joint(
    model: SequentialModel, thetas: Any, z: float, grid: Any, logs: Any, center: Any, pattern: int
) -> Any:
    """p(b, c, x) on a grid, from the definitions: shape (2, 3, len(grid))."""
    total = np.empty((2, 3, grid.size))
    for b in range(2):
        for c in range(3):
            values = {"b": np.full(grid.size, b), "c": np.full(grid.size, c), "x": grid}
            design = np.column_stack([np.ones(grid.size), np.full(grid.size, z)])
            log = logs["b"][pattern, b] + logs["c"][pattern, c]
            log = log - 0.5 * 1.5 * (grid - center[pattern]) ** 2
            for column in model.columns:
                theta, x = thetas[column.name], values[column.name]
                if column.name == "x":
                    log = log + stats.norm.logpdf(x, design @ theta[:-1], np.sqrt(theta[-1]))
                elif column.name == "b":
                    log = log + stats.norm.logcdf((2 * x - 1) * (design @ theta))
                else:
                    eta = np.insert(design @ np.reshape(theta, (-1, 2)), 0, 0.0, axis=1)
                    log = log + eta[:, c] - np.log(np.exp(eta).sum(axis=1))
                design = np.hstack([design, column.encoded(x)])
            total[b, c] = log
    p = np.exp(total - total.max())
    return p / p.sum()


def test_truncated_normals_match_scipy_also_in_the_tails() -> None:
    rng = np.random.default_rng(3)
    n = 20_000
    for case in ((0, -1, 0.5), (1, 3, np.inf), (0, -np.inf, -6), (0, 7, 7.5)):
        mean, low, high = map(float, case)
        drawn = families.truncated_normal(np.full(n, mean), 1.0, low, high, rng)
        law = stats.truncnorm(low - mean, high - mean, loc=mean)
        assert drawn.min() >= low
        assert drawn.max() <= high
        within(drawn.mean(), law.mean(), law.std(), n)
        assert stats.kstest(drawn, law.cdf).pvalue > 1e-5
    beyond = families.truncated_normal(np.zeros(n), 1.0, 50.0, np.inf, rng)
    within(beyond.mean(), 50 + 1 / 50, 1 / 50, n, errors=8)  # 1/50 - 2/50^3, nearly


def test_copula_keys_have_their_joint_distribution() -> None:
    """A continuous and a binary key, masked, given a predictor: against a grid over latents."""
    frame = _patterns(EACH)[["z", "x", "b"]]
    frame["z"] = np.round(np.tile(np.linspace(-1.5, 1.5, 4), EACH) + 1e-9, 3)
    model = CopulaModel(_bound(frame, ["x", "b"]), np.random.default_rng(0))
    assert [m.column.name for m in model.margins] == ["z", "x", "b"]
    covariance = np.array([[1, 0.5, 0.3], [0.5, 1, -0.4], [0.3, -0.4, 1.2]])
    mean = np.array([0.1, -0.2, 0.3])
    state = model.start(np.random.default_rng(1))
    state.shifts, state.precision = mean[None, :], np.linalg.inv(covariance)
    state.center = model.fixed @ state.shifts
    center, logs = np.array([0.4, -0.9, 1.2, 0.0]), np.array([[0, 1.0], [0.5, 0], [0, -1], [0, 0]])
    evidence = {
        "x": Evidence(center=np.tile(center, EACH), precision=np.full(4 * EACH, 2.0)),
        "b": Evidence(log_density=np.tile(logs, (EACH, 1))),
    }
    drawn = model.synthesize(state, evidence, np.random.default_rng(2), sweeps=25)
    u = np.linspace(-6, 6, 481)
    margin = model.margins[1]
    for pattern in range(4):
        given = state.z[pattern, 0]
        slope = covariance[1:, 0] / covariance[0, 0]
        m = mean[1:] + slope * (given - mean[0])
        s = covariance[1:, 1:] - np.outer(slope, covariance[0, 1:])
        grid = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1)
        log = stats.multivariate_normal(m, s).logpdf(grid)
        x = np.interp(u, margin.scores, margin.values)
        log = log - 0.5 * 2.0 * (x[:, None] - center[pattern]) ** 2
        log = log + np.where(u > 0, logs[pattern, 1], logs[pattern, 0])[None, :]
        p = np.exp(log - log.max())
        p /= p.sum()
        own_x, own_b = drawn["x"][pattern::4], drawn["b"][pattern::4]
        one = p[:, u > 0].sum() + p[:, u == 0].sum() / 2
        x_mean = p.sum(axis=1) @ x
        x_sd = np.sqrt(p.sum(axis=1) @ x**2 - x_mean**2)
        within(own_x.mean(), x_mean, x_sd, EACH, errors=5.5)
        within(own_b.mean(), one, 0.5, EACH, errors=5.5)
        cross = (p[:, u > 0].sum(axis=1) + p[:, u == 0].sum(axis=1) / 2) @ x
        within((own_b * own_x).mean(), cross, x_sd, EACH, errors=6)
