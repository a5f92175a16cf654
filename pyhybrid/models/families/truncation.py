"""Probabilities of an interval, and draws within it, that keep their digits in the tails."""

from __future__ import annotations

import numpy as np
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv, log_ndtr

from pyhybrid.core.checks import FloatArray

__all__ = ["gamma_log_mass", "gamma_within", "normal_log_mass", "normal_within"]

Ends = tuple[float, float]


def normal_log_mass(mean: FloatArray, sd: FloatArray, ends: Ends) -> FloatArray:
    """log P(ends[0] <= Y <= ends[1]) of Y ~ N(mean, sd^2), nats; arrays broadcast."""
    low, high = ((end - mean) / sd for end in ends)
    return _log_mass(log_ndtr(low), log_ndtr(high), log_ndtr(-low), log_ndtr(-high))


def normal_within(mean: FloatArray, sd: float, ends: Ends, rng: np.random.Generator) -> FloatArray:
    """Draws from N(mean, sd^2) given that they lie within the ends, shape (n,)."""
    from scipy.stats import truncnorm  # a second to import

    low, high = ((end - mean) / sd for end in ends)
    drawn = truncnorm.ppf(rng.random(mean.size), low, high)
    return np.asarray(np.clip(mean + sd * drawn, *ends))  # by what rounding adds


def gamma_log_mass(shape: FloatArray, rate: FloatArray, ends: Ends) -> FloatArray:
    """log P(ends[0] <= Y <= ends[1]) of Y ~ Gamma(shape, rate), nats; arrays broadcast."""
    low, high = (np.maximum(end, 0.0) * rate for end in ends)
    with np.errstate(divide="ignore"):
        below = (np.log(gammainc(shape, x)) for x in (low, high))
        above = (np.log(gammaincc(shape, x)) for x in (low, high))
        return _log_mass(*below, *above)


def gamma_within(
    shape: float, rate: FloatArray, ends: Ends, rng: np.random.Generator
) -> FloatArray:
    """Draws from Gamma(shape, rate) given that they lie within the ends, shape (n,)."""
    low, high = (np.maximum(end, 0.0) * rate for end in ends)
    share = rng.random(rate.size)
    below = [gammainc(shape, x) for x in (low, high)]
    above = [gammaincc(shape, x) for x in (low, high)]
    drawn = np.where(
        below[1] < above[0],
        gammaincinv(shape, below[0] + share * (below[1] - below[0])),
        gammainccinv(shape, above[1] + share * (above[0] - above[1])),
    )
    return np.asarray(np.clip(drawn / rate, *ends))


def _log_mass(
    below_lower: FloatArray,
    below_upper: FloatArray,
    above_lower: FloatArray,
    above_upper: FloatArray,
) -> FloatArray:
    """log(F(upper) - F(lower)) from the tail that is nearer."""
    lower_tail = below_upper < above_lower
    large = np.where(lower_tail, below_upper, above_lower)
    small = np.where(lower_tail, below_lower, above_upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(large + np.log1p(-np.exp(small - large)))
