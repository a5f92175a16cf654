"""Laws of one linear predictor: all that a family of regressions is beside its Stan program.

Density, slopes, draws and distribution function, and public bins: `fit_histogram` finds the law
nearest to noisy counts, where clipped scores start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy import special
from scipy.special import digamma, expit, logit, ndtr

from pyhybrid.core.checks import FloatArray

LARGEST_ETA = 30.0
_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_NO_SLOPE = np.zeros(0)


def softplus(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + exp(x)) and log(1 + exp(-x)), without overflow or cancellation, infinities too."""
    rest = np.log1p(np.exp(-np.abs(x)))
    return np.asarray(rest + np.maximum(x, 0)), np.asarray(rest + np.maximum(-x, 0))


def log_beta(y: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
    """log Beta(y | one, two), nats."""
    density = (one - 1) * np.log(y) + (two - 1) * np.log1p(-y) - special.betaln(one, two)
    return np.asarray(density)


def log_of_levels(y: Any, threshold: FloatArray, eta: FloatArray) -> FloatArray:
    """log P(level y), (..., b), of places y (b,), thresholds (..., C - 1), eta (..., b)."""
    ends = np.full((*threshold.shape[:-1], 1), np.inf)
    cuts = np.concatenate([-ends, threshold, ends], axis=-1)
    with np.errstate(divide="ignore"):  # of a level between two thresholds that are one
        gap = np.log(-np.expm1(cuts[..., :-1] - cuts[..., 1:]))
    below, above = eta - np.take(cuts, y, axis=-1), eta - np.take(cuts, y + 1, axis=-1)
    return np.asarray(np.take(gap, y, axis=-1) - softplus(above)[0] - softplus(below)[1])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Law:
    """A family of one linear predictor eta and at most one further parameter, `floor` + exp(u).

    Functions are of outcomes y (b,), eta (b,) and the second parameter, 1 for none; of
    `log_density` eta may be (S, b), or the parameter (S, 1), too.
    """

    log_density: Callable[[FloatArray, FloatArray, Any], FloatArray]
    """Nats, shape (S, b) or (b,)."""
    slopes: Callable[[FloatArray, FloatArray, Any], tuple[FloatArray, FloatArray]]
    """Derivatives of the log density by eta and by the second parameter."""
    curvature: Callable[[FloatArray, FloatArray, Any], FloatArray]
    """Minus the second derivative by eta, or its expectation; at least 0."""
    draw: Callable[[FloatArray, Any, np.random.Generator], FloatArray]
    """One outcome for each eta."""
    cdf: Callable[[FloatArray, float, Any], FloatArray]
    """Distribution function."""
    eta_of: Callable[[FloatArray], FloatArray]
    """The linear predictor whose outcomes lie about y."""
    edges: FloatArray
    """Upper ends of public bins, the last of them infinite."""
    finer_edges: Callable[[float, float], FloatArray | None] = lambda low, high: np.append(
        np.linspace(low, high, 65), np.inf
    )
    """Upper ends of finer bins between two ends; None if the first are fine enough."""
    size: str | None = None
    sampled_size: tuple[str, int] = ("", 1)
    """Name of the size in Stan programs, and the sign s of the coordinate s u that they sample."""
    log_prior_of_size: Callable[[Any], Any] = lambda u: 0.0 * u
    """Log prior density of u, up to a constant."""
    range_of_u: Callable[[FloatArray], tuple[float, float]] = lambda y: (-7.0, 7.0)
    """Ends of a search for u, from outcomes (d,)."""
    scales: Callable[[FloatArray], FloatArray] = lambda edges: np.linspace(-4, 6, 21)
    """Values of u that a search among bins with these finite ends tries."""
    floor: float = 0.0
    largest_eta: float = 50.0
    """Where samplers start."""
    start_sd: tuple[float, float] = (10.0, 3.0)
    """Of the prior on eta and u that noise in empty bins has to beat."""

    def size_at(self, u: Any) -> Any:
        """The second parameter at its coordinate, 1 of a law without."""
        return 1.0 if self.size is None else self.floor + np.exp(np.clip(u, -30, 30))


def _counts(low: float, high: float) -> FloatArray:
    return np.append(np.unique(np.floor(np.linspace(low, high, 65))), np.inf)


_COUNTS: dict[str, Any] = {
    "eta_of": lambda y: np.log(y + 0.5),
    "edges": np.append(2.0 ** np.arange(32) - 1, np.inf),
    "finer_edges": _counts,
}

POISSON = Law(
    log_density=lambda y, eta, _: np.asarray(y * eta - np.exp(eta) - special.gammaln(y + 1)),
    slopes=lambda y, eta, _: (y - np.exp(eta), _NO_SLOPE),
    curvature=lambda y, eta, _: np.exp(eta),
    draw=lambda eta, _, rng: rng.poisson(np.exp(np.minimum(eta, LARGEST_ETA))).astype(float),
    cdf=lambda y, eta, _: np.asarray(special.pdtr(np.floor(y), np.exp(eta))),
    **_COUNTS,
)
"""Counts with mean exp(eta)."""


def _nb_log_density(y: FloatArray, eta: FloatArray, size: Any) -> FloatArray:
    above, below = softplus(eta - np.log(size))  # of the log odds, log(mu / phi)
    # log[Gamma(y + phi) / (Gamma(phi) y!)] by the beta function: lgamma differences lose all
    # digits for large phi. It is the dearest part, and counts take few values.
    values, at = np.unique(y, return_inverse=True)
    coefficient = -special.betaln(size, values + 1) - np.log(size + values)
    return np.asarray(coefficient[..., at] - y * below - size * above)


def _nb_slopes(y: FloatArray, eta: FloatArray, size: Any) -> tuple[FloatArray, FloatArray]:
    mu = np.exp(eta)
    residual = (y - mu) / (mu + size)
    with np.errstate(invalid="ignore"):
        values, at = np.unique(y, return_inverse=True)
        rise = (digamma(values + size) - digamma(size))[at]
    return size * residual, rise - np.log1p(mu / size) - residual


def _nb_curvature(y: FloatArray, eta: FloatArray, size: Any) -> FloatArray:
    odds = eta - np.log(size)
    return np.asarray((size + y) * expit(odds) * expit(-odds))


def _nb_draw(eta: FloatArray, size: Any, rng: np.random.Generator) -> FloatArray:
    rate = rng.gamma(size, np.exp(np.minimum(eta, LARGEST_ETA)) / size)
    return np.asarray(rng.poisson(np.minimum(rate, 1e18)).astype(np.float64))


def _nb_cdf(y: FloatArray, eta: float, size: Any) -> FloatArray:
    share = size / (size + np.exp(eta))
    below = special.betainc(size, np.minimum(np.floor(y), 1e15) + 1, share)
    return np.where(y == np.inf, 1.0, below)


NEGATIVE_BINOMIAL = Law(
    log_density=_nb_log_density, slopes=_nb_slopes, curvature=_nb_curvature, draw=_nb_draw,
    cdf=_nb_cdf, size="phi", sampled_size=("rphi", -1),
    log_prior_of_size=lambda u: -u - np.log1p(np.exp(-2 * u) / 25), **_COUNTS,
)  # fmt: skip
"""Counts with mean mu = exp(eta) and variance mu + mu^2 / phi; 1 / phi ~ half-Cauchy(0, 5)."""

BERNOULLI = Law(
    log_density=lambda y, eta, _: -softplus((1 - 2 * y) * eta)[0],
    slopes=lambda y, eta, _: (y - expit(eta), _NO_SLOPE),
    curvature=lambda y, eta, _: np.asarray(expit(eta) * expit(-eta)),
    draw=lambda eta, _, rng: np.asarray((rng.random(eta.size) < expit(eta)).astype(float)),
    cdf=lambda y, eta, _: np.where(y >= 1, 1.0, np.where(y >= 0, expit(-eta), 0.0)),
    eta_of=lambda y: np.linspace(-8, 8, 33),
    edges=np.array([0.0, np.inf]),
    finer_edges=lambda low, high: None,
)
"""0 or 1 with log odds eta."""


def _normal_slopes(y: FloatArray, eta: FloatArray, size: Any) -> tuple[FloatArray, FloatArray]:
    z = (y - eta) / size
    return z / size, (z * z - 1) / size


def _normal_range(y: FloatArray) -> tuple[float, float]:
    highest = float(np.log(float(y.std()) or 1.0))
    return highest - 14, highest + 1


def _normal_scales(edges: FloatArray) -> FloatArray:
    low, high = np.log([np.diff(edges).min() / 4, edges[-1] - edges[0]])
    return np.asarray(np.linspace(low, high, 40))


def normal_law(
    floor: float = 0.0,
    edges: Any = (np.inf,),
    step: float = 0.0,
    start_sd: tuple[float, float] = (10.0, 3.0),
) -> Law:
    """Mean eta, deviation sigma above a floor; sigma ~ half-t_3(0, 1). `edges` are public bins,
    `step` is the declared distance of values, below which bins make no sense."""

    def finer(low: float, high: float) -> FloatArray:
        cells = 64 if not step else int(np.clip((high - low) / step, 1, 64))
        return np.append(np.linspace(low, high, cells + 1), np.inf)

    return Law(
        log_density=lambda y, eta, size: np.asarray(
            -np.log(size) - _HALF_LOG_2PI - ((y - eta) / size) ** 2 / 2
        ),
        slopes=_normal_slopes,
        curvature=lambda y, eta, size: np.full(eta.shape, 1 / size**2),
        draw=lambda eta, size, rng: np.asarray(eta + size * rng.standard_normal(eta.size)),
        cdf=lambda y, eta, size: np.asarray(ndtr((y - eta) / size)),
        eta_of=lambda y: y,
        edges=np.array(edges),
        finer_edges=finer,
        size="sigma",
        sampled_size=("sigma", 1),
        log_prior_of_size=lambda u: u - 2 * np.log1p((floor + np.exp(np.minimum(u, 30))) ** 2 / 3),
        range_of_u=_normal_range,
        scales=_normal_scales,
        floor=floor,
        largest_eta=np.inf,
        start_sd=start_sd,
    )


def _gamma_log_density(y: FloatArray, eta: FloatArray, size: Any) -> FloatArray:
    constant = size * np.log(size) - special.gammaln(size)
    return np.asarray(constant + (size - 1) * np.log(y) - size * (eta + y * np.exp(-eta)))


def _gamma_slopes(y: FloatArray, eta: FloatArray, size: Any) -> tuple[FloatArray, FloatArray]:
    ratio = y * np.exp(-eta)
    return size * (ratio - 1), np.log(size) + 1 - digamma(size) + np.log(ratio) - ratio


def _gamma_draw(eta: FloatArray, size: Any, rng: np.random.Generator) -> FloatArray:
    drawn = rng.gamma(size, np.exp(np.minimum(eta, 10 * LARGEST_ETA)) / size)
    return np.asarray(np.maximum(drawn, np.finfo(np.float64).tiny))


GAMMA = Law(
    log_density=_gamma_log_density,
    slopes=_gamma_slopes,
    curvature=lambda y, eta, size: np.full(eta.shape, size),
    draw=_gamma_draw,
    cdf=lambda y, eta, size: np.asarray(special.gammainc(size, size * y * np.exp(-eta))),
    eta_of=np.log,
    edges=np.append(2.0 ** np.arange(-30, 51), np.inf),
    size="shape",
    sampled_size=("shape", 1),
    log_prior_of_size=lambda u: u - np.exp(np.minimum(u, 30)),
    range_of_u=lambda y: (-5.0, 12.0),
)
"""Mean exp(eta), variance mean^2 / shape; shape ~ exponential(1)."""


def _beta_slopes(y: FloatArray, eta: FloatArray, size: Any) -> tuple[FloatArray, FloatArray]:
    mean, other = expit(eta), expit(-eta)
    one, two = digamma(size * mean), digamma(size * other)
    by_mean = logit(y) - one + two
    by_size = mean * by_mean + np.log1p(-y) - two + digamma(size)
    return size * mean * other * by_mean, by_size


def _beta_curvature(y: FloatArray, eta: FloatArray, size: Any) -> FloatArray:
    one, two = size * expit(eta), size * expit(-eta)
    spread = special.polygamma(1, one) + special.polygamma(1, two)
    return np.asarray((one * expit(-eta)) ** 2 * spread)


def _beta_draw(eta: FloatArray, size: Any, rng: np.random.Generator) -> FloatArray:
    tiny = 1e-12
    drawn = rng.beta(*(np.maximum(size * expit(sign * eta), tiny) for sign in (1, -1)))
    return np.asarray(np.clip(drawn, 1e-10, 1 - 1e-10))


BETA = Law(
    log_density=lambda y, eta, size: log_beta(y, size * expit(eta), size * expit(-eta)),
    slopes=_beta_slopes,
    curvature=_beta_curvature,
    draw=_beta_draw,
    cdf=lambda y, eta, size: np.asarray(
        special.betainc(size * expit(eta), size * expit(-eta), np.clip(y, 0, 1))
    ),
    eta_of=lambda y: np.asarray(logit(np.clip(y, 0.005, 0.995))),
    edges=np.append(np.linspace(0, 1, 51)[1:-1], np.inf),
    finer_edges=lambda low, high: None,
    size="lambda",
    sampled_size=("lambda", 1),
    log_prior_of_size=lambda u: u - 2.5 * np.log(0.1 + np.exp(u)),
    range_of_u=lambda y: (-5.0, 18.0),
    floor=0.1,
    largest_eta=30.0,
)
"""Mean expit(eta), size lambda above 0.1; lambda ~ Pareto(0.1, 1.5)."""


def intercept_of(X: FloatArray, eta: float) -> FloatArray:
    """Coefficients (K,) whose linear predictor is about eta: the intercept's if there is one."""
    ones = np.flatnonzero((X == 1).all(axis=0))
    if ones.size:
        beta = np.zeros(X.shape[1])
        beta[ones[0]] = eta
        return beta
    return np.asarray(np.linalg.lstsq(X, np.full(len(X), eta), rcond=1e-8)[0])


def bins_of(y: FloatArray, edges: FloatArray) -> FloatArray:
    """Bin of each outcome by its upper end, NaN for none, shape (n,)."""
    place = np.searchsorted(edges, y, side="left").astype(np.float64)
    return np.where(np.isfinite(y), place, np.nan)


def range_of(law: Law, edges: FloatArray, eta: float, u: float) -> tuple[float, float]:
    """The ends of the bins that a law fills, and one bin below them."""
    with np.errstate(all="ignore"):
        below = law.cdf(edges, eta, law.size_at(u))
    inside = np.flatnonzero((below > 1e-3) & (below < 1 - 1e-3))
    first = int(np.searchsorted(below, 1e-3)) if not inside.size else int(inside[0])
    last = first if not inside.size else int(inside[-1]) + 1
    finite = edges.size - 2
    low, high = edges[min(max(first - 2, 0), finite - 1)], edges[min(last, finite)]
    return float(low), float(max(high, np.nextafter(low, np.inf)))


def fit_histogram(
    law: Law,
    edges: FloatArray,
    counts: FloatArray,
    noise: float,
    near: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """eta and u of the law nearest to counts (B,) in bins with these upper ends, whose noise has a
    deviation of `noise`; by least squares over single bins, pairs, fours, ... of bins."""
    n, finite = max(float(counts.sum()), 1.0), edges[:-1]
    middle = np.concatenate([finite[:1], (finite[1:] + finite[:-1]) / 2, finite[-1:]])
    with np.errstate(all="ignore"):
        etas = law.eta_of(middle)
    likely = counts > 2 * noise
    likely[np.argmax(counts)] = True
    tried = np.unique(etas[likely & np.isfinite(etas)] if etas.size == likely.size else etas)
    if not tried.size:
        tried = np.zeros(1)
    tried = tried[np.unique(np.linspace(0, tried.size - 1, min(tried.size, 40)).astype(int))]
    scales = np.zeros(1) if law.size is None else law.scales(finite)

    def loss(at: FloatArray) -> float:
        with np.errstate(all="ignore"):
            below = law.cdf(finite, float(at[0]), law.size_at(float(at[1])))
        expected = n * np.maximum(np.diff(np.concatenate([[0.0], below, [1.0]])), 0)
        residual, variance = counts - expected, noise**2 + expected
        beyond = [max(v[0] - x, x - v[-1], 0.0) for v, x in zip((tried, scales), at, strict=True)]
        value = float(np.square(beyond).sum() * 100 + ((at / np.array(law.start_sd)) ** 2).sum())
        while residual.size:  # of bins, pairs of bins, ...: single bins are too fine for few values
            value += float((residual**2 / variance).sum())
            pairs = np.arange(0, residual.size if residual.size > 1 else 0, 2)
            residual, variance = (
                np.add.reduceat(values, pairs) if pairs.size else values[:0]
                for values in (residual, variance)
            )  # fmt: skip
        return value if np.isfinite(value) else np.inf

    grid = [np.array([eta, u]) for eta in tried for u in scales]
    if near is not None:
        grid.append(np.array(near))
    best = min(grid, key=loss)
    optimum = scipy.optimize.minimize(loss, best, method="Nelder-Mead", options={"maxiter": 200})
    at = optimum.x if np.isfinite(optimum.fun) else best
    return float(at[0]), float(at[1])
