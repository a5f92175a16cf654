"""Where samplers start: location and scale of the reparametrizations; no posterior depends on them.

Of a law of one linear predictor: the mode by Fisher scoring, ridge-penalized so that it exists for
any data, and between its steps a search for the law's second parameter.

Many levels: the contrasts B (K, C - 1) of a multinomial logit against its first level have the
prior precision R (x) D^-2, R = 2 (I - 1 1' / C), D = diag(prior_scale), and about the information S
(x) M, S the mean of diag(p) - p p' over the records, M = X' diag(weight) X. One basis of levels
makes R the identity and S diagonal, one of columns does so for D^-2 and M: in both, all
coefficients are independent, however many there are.

Ordered levels: coordinates are the logs of the levels' shares at the means of the predictors, that
of the most common level held fixed, and the coefficients: rare levels are then uncertain on their
own, wherever in the order they are. Coefficients are those of a logistic regression of the upper
half of the records, to which the shares at the means are adjusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.linalg import block_diag, eigh
from scipy.special import expit, logit, softmax

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.laws import BERNOULLI, Law, intercept_of
from pyhybrid.running.tasks import one_blas_thread

_RIDGE = 0.1
_SCORING_STEPS = 50
_ENOUGH = 1e-4  # of a posterior standard deviation, or of the log size
_WIDTH = 1e-2  # of second differences
_LOGISTIC_VARIANCE = np.pi**2 / 3
_OF_DISPERSION = {"factor": 1, "information_root": -1, "information": -2, "score": -2}


def dispersed(hints: Mapping[str, Any], dispersion: float) -> dict[str, Any]:
    """Hints for starting points that are spread `dispersion` times as far: standard deviations
    grow, an information falls by the square."""
    powers = {n: 1 if n.startswith("spread_") else _OF_DISPERSION.get(n, 0) for n in hints}
    return {n: dispersion ** powers[n] * h if powers[n] else h for n, h in hints.items()}


@contextmanager
def starts_of(predictors: Sequence[str]) -> Iterator[None]:
    """Where starts are computed for a regression on columns of these names: InvalidInput for one
    that fails or overflows."""
    try:
        with one_blas_thread():
            yield
    except (np.linalg.LinAlgError, ValueError, FloatingPointError) as error:
        raise InvalidInput(
            f"outcome and predictors must be of a size that can be fitted ({error}): "
            f"center and rescale {', '.join(predictors[:5]) or 'them'}, or give a unit"
        ) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class Mode:
    """Coefficients (K,) and the coordinate u of the law's second parameter with its standard
    deviation; slopes and curvatures of the rows' weighted log-likelihoods by their linear
    predictors (d,)."""

    beta: FloatArray
    u: float
    sd_of_u: float
    slope: FloatArray
    curvature: FloatArray

    def hints(self, law: Law, X: FloatArray) -> dict[str, Any]:
        """Stan data: the quadratic approximation, and location and scale of the law's size."""
        data = {**quadratic(X, self.beta, self.slope, self.curvature), "near": self.beta}
        if law.size is None:
            return data
        name, sign = law.sampled_size
        return {**data, f"center_{name}": sign * self.u, f"spread_{name}": self.sd_of_u}


def mode_of(
    law: Law, y: FloatArray, X: FloatArray, weight: FloatArray, offset: FloatArray | float = 0.0
) -> Mode:
    """Fit y (d,) on X (d, K) and offset (d,) under frequency x record weights (d,)."""
    with np.errstate(over="raise", under="ignore"):
        size = np.sqrt(np.mean(X**2, axis=0))
    scale = np.where(size > 0, size, 1.0)
    scaled = X / scale  # steps have one length for all coefficients
    ridge, total = _RIDGE / scale**2, float(weight.sum())
    low, high = law.range_of_u(y)

    def at(beta: FloatArray) -> FloatArray:
        return np.clip(scaled @ beta + offset, -law.largest_eta, law.largest_eta)

    def loss(u: float, beta: FloatArray) -> float:
        with np.errstate(all="ignore"):
            terms = law.log_density(y, at(beta), law.size_at(u))
            value = -float(weight @ terms) + float(ridge @ beta**2) / 2
        return value if np.isfinite(value) else np.inf

    def loss_of_size(u: float, beta: FloatArray) -> float:
        """With the prior of the size, and coefficients integrated out, which the size is about."""
        mean = weight @ law.curvature(y, at(beta), law.size_at(u)) / max(total, 1e-300)
        bent = np.log(mean + 1 / max(total, 1.0)) * beta.size / 2
        value = loss(u, beta) - law.log_prior_of_size(u) + float(bent)
        return value if np.isfinite(value) else np.inf

    def best_size(beta: FloatArray) -> float:
        if law.size is None:
            return 0.0
        search = scipy.optimize.minimize_scalar(
            loss_of_size, bounds=(low, high), args=(beta,), method="bounded"
        )
        return float(search.x)

    def by_eta(u: float, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        given = y, at(beta), law.size_at(u)
        return weight * law.slopes(*given)[0], weight * np.maximum(law.curvature(*given), 0.0)

    mean = float(weight @ y / total) if total else float(y.mean())
    middle = float(np.median(law.eta_of(np.array([mean])))) - float(np.mean(offset))
    beta = intercept_of(scaled, middle)
    u = best_size(beta)
    for _ in range(_SCORING_STEPS):
        slope, curvature = by_eta(u, beta)
        gradient = scaled.T @ slope - ridge * beta
        step = np.linalg.solve((scaled.T * curvature) @ scaled + np.diag(ridge), gradient)
        lengths = (0.5**k for k in range(12))  # the first that does not raise the loss
        most = loss(u, beta)
        length = next((k for k in lengths if loss(u, beta + k * step) <= most), 0.0)
        beta, before = beta + length * step, u
        u = best_size(beta)
        if length * np.sqrt(abs(gradient @ step)) < _ENOUGH and abs(u - before) < _ENOUGH:
            break
    around = [loss(u + shift, beta) for shift in (-_WIDTH, 0.0, _WIDTH)]
    bend = (around[0] - 2 * around[1] + around[2]) / _WIDTH**2
    sd = float(np.clip(1 / np.sqrt(max(bend, 1e-10)), 1e-5, 2.0))
    slope, curvature = by_eta(u, beta)
    return Mode(beta=beta / scale, u=u, sd_of_u=sd, slope=slope, curvature=curvature)


def quadratic(
    X: FloatArray, center: FloatArray, slope: FloatArray, curvature: FloatArray
) -> dict[str, Any]:
    """Stan data of the log-likelihood's quadratic approximation about `center` (K,): a root of X'
    diag(curvature) X and the gradient at 0, from rows' first derivatives `slope` and minus second
    ones `curvature` (d,) by their linear predictors."""
    root = _triangle(np.sqrt(curvature)[:, None] * X).T
    score = root @ (root.T @ center) + X.T @ slope
    if not (np.isfinite(root).all() and np.isfinite(score).all()):
        raise ValueError("the start is not finite")
    return {"information_root": root, "score": score}


def _triangle(rows: FloatArray) -> FloatArray:
    """R (K, K), R' R = rows' rows: by QR, whose condition number is the root of the product's."""
    triangle = np.zeros((rows.shape[1], rows.shape[1]))
    upper: FloatArray = np.asarray(np.linalg.qr(rows, mode="r"))
    triangle[: upper.shape[0]] = upper
    return triangle


_LEVEL_STEPS = 100


def start_of_levels(
    counts: FloatArray, X: FloatArray, prior_scale: FloatArray
) -> dict[str, FloatArray]:
    """The mode, roughly, and two bases: ``center_beta`` and ``spread_beta`` (K, C - 1),
    ``column_basis`` (K, K), ``level_basis`` (C - 1, C - 1), from frequency times weight `counts`
    (d, C) by distinct row X (d, K) and level."""
    total, n_levels = counts.sum(axis=1), counts.shape[1]
    prior = 2 * (np.eye(n_levels - 1) - 1 / n_levels)
    shares = (counts.sum(axis=0) + 0.5) / (total.sum() + 0.5 * n_levels)
    size, turned = np.linalg.svd(_triangle(np.sqrt(total)[:, None] * X * prior_scale))[1:]
    columns = prior_scale[:, None] * turned.T

    def spread_and_levels(curvature: FloatArray) -> tuple[FloatArray, FloatArray]:
        by_level, levels = eigh(curvature[1:, 1:], prior)
        return 1 / np.sqrt(1 + np.outer(size**2, np.maximum(by_level, 0.0))), levels

    spread, levels = spread_and_levels(np.diag(shares) - np.outer(shares, shares))

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        B = columns @ (spread * flat.reshape(spread.shape)) @ levels.T
        eta = np.column_stack([np.zeros(len(X)), X @ B])
        log_total = scipy.special.logsumexp(eta, axis=1)
        pull = B @ prior / prior_scale[:, None] ** 2
        value = total @ log_total - (counts * eta).sum() + (B * pull).sum() / 2
        left = total[:, None] * np.exp(eta - log_total[:, None]) - counts
        return float(value), (spread * (columns.T @ (X.T @ left[:, 1:] + pull) @ levels)).ravel()

    fit = scipy.optimize.minimize(
        loss, np.zeros(spread.size), jac=True, method="L-BFGS-B", options={"maxiter": _LEVEL_STEPS}
    )
    mode = np.nan_to_num(fit.x, posinf=0.0, neginf=0.0)
    center = columns @ (spread * mode.reshape(spread.shape)) @ levels.T
    if total.any():
        p = softmax(np.column_stack([np.zeros(len(X)), X @ center]), axis=1)
        weighted = p * (total / total.sum())[:, None]
        spread, levels = spread_and_levels(np.diag(weighted.sum(axis=0)) - weighted.T @ p)
    if not (np.isfinite(center).all() and np.isfinite(spread).all()):
        raise ValueError("the start is not finite")
    return {
        "center_beta": center, "spread_beta": spread, "column_basis": columns,
        "level_basis": levels,
    }  # fmt: skip


def start_of_ordered(
    counts: FloatArray, X: FloatArray, prior_scale: FloatArray
) -> dict[str, FloatArray]:
    """``center`` (C + K - 1,), ``factor`` (C + K - 1, C + K - 2), ``middle`` (K,), from frequency
    times weight `counts` (d, C) by distinct row X (d, K), whose first column is 1, and level."""
    total = counts.sum(axis=1) + np.finfo(float).tiny
    middle = np.append(0.0, total @ X[:, 1:] / total.sum())
    centered = X - middle
    by_level = counts.sum(axis=0) + 0.5
    below = by_level.cumsum()[:-1] / by_level.sum()
    cut = int(np.abs(below - 0.5).argmin()) + 1
    above = counts[:, cut:].sum(axis=1)
    halves = np.repeat([1.0, 0.0], len(X)), np.vstack([centered, centered])
    fit = mode_of(BERNOULLI, *halves, np.concatenate([above, total - above]))
    information = (halves[1].T * fit.curvature) @ halves[1] + np.diag(1 / prior_scale**2)
    slopes = np.linalg.inv(information)[1:, 1:]
    # Shares at the means vary more from level to level than those of all records do.
    stretch = np.sqrt(1 + total @ (centered[:, 1:] @ fit.beta[1:]) ** 2
                      / total.sum() / _LOGISTIC_VARIANCE)  # fmt: skip
    ends = np.concatenate([[0.0], expit(stretch * logit(below)), [1.0]])
    shares = np.maximum(np.diff(ends), 1e-12)
    factor = block_diag(
        np.diag(np.minimum(by_level**-0.5, 1.0)), np.linalg.cholesky((slopes + slopes.T) / 2)
    )
    return {
        "center": np.concatenate([np.log(shares), fit.beta[1:]]),
        "factor": np.delete(factor, int(by_level.argmax()), axis=1),
        "middle": middle,
    }
