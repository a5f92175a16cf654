"""Clipped scores with pencil and paper: clip, design, step, and what one record can change."""

from functools import partial

import numpy as np
import pytest

from pyhybrid.privacy.scores import (
    STEPS_OF_CLIP,
    ScoringDesign,
    clip_scores,
    narrowed,
    posterior_covariance,
    scoring_design,
    scoring_step,
    whitening_of,
    whole_scores,
)


def test_clipping_keeps_directions_and_leaves_short_rows():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [np.nan, 1.0], [1e200, 1e200]])
    clipped = clip_scores(rows, np.eye(2), 1.0)
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [0.3, 0.4], [0, 0], [0, 0], [0, 0]])


def test_whitening_makes_the_information_one():
    information = np.array([[4e8, 1e3], [1e3, 2.0]])
    W = whitening_of(information)
    np.testing.assert_allclose(W.T @ information @ W, np.eye(2), atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 7, 30])
def test_no_whole_row_is_longer_than_the_clip(d):
    rows = np.random.default_rng(d).standard_cauchy((2000, d)) * 10.0
    clip = 0.0371
    steps = whole_scores(clip_scores(rows, np.eye(d), clip), clip)
    squares = [sum(int(step) ** 2 for step in row) for row in steps]
    assert max(squares) <= STEPS_OF_CLIP**2
    # Rounding loses next to nothing.
    np.testing.assert_allclose(steps * (clip / STEPS_OF_CLIP), clip_scores(rows, np.eye(d), clip),
                               atol=2 * clip / STEPS_OF_CLIP)  # fmt: skip


def test_rounding_to_the_nearest_step_would_exceed_the_sensitivity():
    """The broken control: what is rounded up is longer than the clip."""
    row = clip_scores(np.array([[3.0, 5.0, 7.0]]), np.eye(3), 1.0)
    nearest = np.ceil(row * STEPS_OF_CLIP).astype(np.int64)[0]
    assert sum(int(step) ** 2 for step in nearest) > STEPS_OF_CLIP**2


def test_one_record_moves_the_sum_by_the_clip_at_most():
    rng = np.random.default_rng(4)
    rows, clip = rng.standard_t(1, (50, 4)) * 3, 0.7
    whole = whole_scores(clip_scores(rows, np.eye(4), clip), clip)
    for other in (np.zeros(4), rng.standard_t(1, 4) * 1e6, np.full(4, np.inf), -rows[7]):
        changed = rows.copy()
        changed[7] = other
        moved = whole_scores(clip_scores(changed, np.eye(4), clip), clip).sum(0) - whole.sum(0)
        length = sum(int(step) ** 2 for step in moved)
        assert length <= (2 * STEPS_OF_CLIP) ** 2
        if not other.any() or not np.isfinite(other).all():
            assert length <= STEPS_OF_CLIP**2


def normal_scores(X, y, beta):
    return X * (y - X @ beta)[:, None]


def test_without_a_clip_one_step_is_least_squares():
    """Normal regression with sigma 1: information X'X, a step from anywhere is OLS or ridge."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(200), rng.normal(size=200)])
    y, theta = X @ [2.0, -1.0] + rng.normal(size=200), np.array([1.7, -0.5])
    precision = np.diag([0.5, 3.0])
    simulated = np.stack([normal_scores(X, X @ theta + rng.normal(size=200), theta)
                          for _ in range(4000)])  # fmt: skip
    design = scoring_design(simulated, precision, mu=1e9, clips=(1e6,))
    total = clip_scores(normal_scores(X, y, theta), design.whitening, design.clip).sum(axis=0)
    found = scoring_step(theta, total, design, -precision @ theta, precision, noise_sd=0.0)
    ridge = np.linalg.solve(X.T @ X + precision, X.T @ y)
    np.testing.assert_allclose(found, ridge, atol=5e-3)
    np.testing.assert_allclose(design.center, 0, atol=1e-9)  # nothing is clipped off
    inverse = np.linalg.inv(X.T @ X + precision)
    sandwich = inverse @ (X.T @ X) @ inverse
    np.testing.assert_allclose(design.covariance(0.0), sandwich, rtol=0.05, atol=1e-6)
    covariance = posterior_covariance(design, precision, noise_sd=0.0)
    np.testing.assert_allclose(covariance, inverse, rtol=0.05, atol=1e-6)


def test_the_posterior_of_a_noisy_sum_is_that_of_the_joint_normal_law():
    """theta and q are jointly normal: the conditional mean and covariance of theta given q."""
    rng = np.random.default_rng(4)
    G, precision, at, q = rng.normal(size=(3, 3)), np.diag([0.5, 1, 2.0]), rng.normal(size=3), 0.7
    V, noise_sd = np.diag([0.2, 1.0, 3.0]), 1.5
    design = ScoringDesign(
        whitening=np.eye(3), clip=1.0, information=np.eye(3), jacobian=G + precision,
        center=np.full(3, 0.1), variance=V,
    )  # fmt: skip
    prior, S = np.linalg.inv(precision), V + noise_sd**2 * np.eye(3)
    gain = prior @ G.T @ np.linalg.inv(G @ prior @ G.T + S)
    expected = gain @ (q - 0.1 + G @ at)  # E[q - b] = G (theta - at)
    step = partial(scoring_step, at, np.full(3, q), design, -precision @ at, precision)
    np.testing.assert_allclose(step(noise_sd=noise_sd), expected, rtol=1e-9)
    covariance = posterior_covariance(design, precision, noise_sd=noise_sd)
    np.testing.assert_allclose(covariance, prior - gain @ G @ prior, rtol=1e-9)
    # of what noise hides nothing is learned
    np.testing.assert_allclose(step(noise_sd=1e9), 0, atol=1e-6)
    hidden = posterior_covariance(design, precision, noise_sd=1e9)
    np.testing.assert_allclose(hidden, prior, atol=1e-9)


def test_draws_are_narrow_where_little_is_known_and_as_they_were_elsewhere():
    rows = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
    covariance = np.diag([0.01, 0.02, 6.0, 4.0])  # no row has the last coordinate
    narrow = narrowed(covariance, rows, 0.75)
    sd = np.sqrt(np.einsum("ij,jk,ik->i", rows, narrow, rows))
    np.testing.assert_allclose(sd[:2] ** 2, [0.01, 0.03], rtol=0.05)
    assert sd[2] == pytest.approx(0.75)
    assert narrow[3, 3] == pytest.approx(0.75**2)
    assert np.linalg.eigvalsh(narrow).min() > 0
    np.testing.assert_array_equal(narrowed(np.eye(4) / 9, rows, 0.75), np.eye(4) / 9)


def test_design_of_one_bernoulli_coordinate_is_the_exact_one():
    """Half the records have probability .5, the others .9: scores are +-.5, .1 and -.9."""
    p = np.repeat([0.5, 0.9], 50)
    # Outcomes in exact proportion: ten simulated tables.
    y = np.stack([np.concatenate([np.full(50, k < 5), np.full(50, k < 9)]) for k in range(10)])
    scores = (y - p)[:, :, None]
    design = scoring_design(scores, np.zeros((1, 1)), mu=1e9, clips=(1.0,))
    information = 50 * 0.25 + 50 * 0.09
    W = information**-0.5
    C = (1 / 100) ** 0.5
    assert design.whitening.item() == pytest.approx(W)
    assert design.clip == pytest.approx(C)
    psi = {s: np.sign(s) * min(W * abs(s), C) for s in (0.5, -0.5, 0.1, -0.9)}
    share = {0.5: 25, -0.5: 25, 0.1: 45, -0.9: 5}
    assert design.center.item() == pytest.approx(sum(share[s] * psi[s] for s in psi))
    assert design.jacobian.item() == pytest.approx(sum(share[s] * psi[s] * s for s in psi))
    assert design.variance.item() == pytest.approx(sum(share[s] * psi[s] ** 2 for s in psi))


def test_more_noise_means_a_smaller_clip_and_many_records_a_larger_one():
    rng = np.random.default_rng(2)
    scores = rng.standard_t(3, (4, 2000, 3))
    clips = {mu: scoring_design(scores, np.eye(3), mu=mu).clip for mu in (0.05, 0.2, 5.0)}
    assert clips[0.05] <= clips[0.2] < clips[5.0]
    many = scoring_design(scores, np.eye(3), mu=0.2, n=2_000_000)
    assert many.clip * np.sqrt(2_000_000) > clips[0.2] * np.sqrt(2000)


def test_centering_removes_the_bias_of_a_skewed_score():
    """A one-sided clip would move the estimate; the expected sum of clipped scores undoes it."""
    rng = np.random.default_rng(3)
    n, simulated = 4000, rng.exponential(1, (50, 4000, 1)) - 1  # scores of log(rate) at the truth
    flat = np.full((1, 1), 1e-6)
    design = scoring_design(simulated, flat, mu=1e9, clips=(0.5,))
    steps = []
    for _ in range(400):
        total = clip_scores(rng.exponential(1, (n, 1)) - 1, design.whitening, design.clip).sum(0)
        step = scoring_step(np.zeros(1), total, design, np.zeros(1), flat, noise_sd=0.0)
        steps.append(step.item())
    error = np.std(steps) / 20
    assert abs(np.mean(steps)) < 5 * error + 0.2 * np.std(steps)
    uncentered = design.center.item() / design.jacobian.item()
    assert abs(uncentered) > 5 * np.std(steps)  # the broken control


def test_a_step_moves_the_linear_predictor_by_no_more_than_its_limit():
    rng = np.random.default_rng(5)
    design = scoring_design(rng.normal(size=(2, 100, 2)), np.eye(2), mu=1.0)
    predictors = np.column_stack([np.ones(100), np.zeros(100)])
    far = scoring_step(np.zeros(2), np.array([1e4, 1e4]), design, np.zeros(2), np.eye(2),
                       noise_sd=1.0, predictors=predictors)  # fmt: skip
    assert np.sqrt(np.mean((predictors @ far) ** 2)) <= 1.5 + 1e-9
    assert abs(far[1]) <= 1.5 + 1e-9  # a coordinate that the predictor does not have


def test_survey_weights_enter_the_clip_and_not_the_derivative():
    rng = np.random.default_rng(6)
    scores, weights = rng.normal(size=(200, 300, 1)), np.repeat([0.5, 1.5], 150)[None, :, None]
    how = {"mu": 1e9, "clips": (1e6,), "weighted": scores * weights}
    design = scoring_design(scores, np.zeros((1, 1)), **how)
    W = design.whitening.item()
    np.testing.assert_allclose(design.jacobian.item(), W * 300, rtol=0.02)  # sum of w E[s^2]
