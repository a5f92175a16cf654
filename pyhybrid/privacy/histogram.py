"""The perturbed histogram's arithmetic: counts in given bins, and probabilities from noisy counts.

[C25] supplement 1. The noise itself comes from OpenDP (`primitives`); here it is an argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_count, check_each, check_finite, check_vector
from pyhybrid.core.errors import InvalidInput

_ROUNDING, _ULPS = 1e-9, 1e-15  # of a number of steps: absolute, and relative to it


def in_steps(values: FloatArray, step: float) -> FloatArray:
    """`values` in steps, whole where multiples of `step` but for rounding: 6.6 is 65.99999999999999
    or 66 times 0.1, by how it was computed, which must not tell edges of bins from values."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinite ones stay
        steps = np.asarray(values, dtype=np.float64) / step
        near = np.rint(steps)
        apart = np.abs(steps - near)
    close = apart <= np.minimum(_ROUNDING + _ULPS * np.abs(near), 0.25)
    return np.where(close, near, steps) + 0.0  # no negative zero


def histogram_counts(y: Any, *, lower: float, upper: float, n_bins: int) -> npt.NDArray[np.int64]:
    """Counts of y in `n_bins` equal bins of [lower, upper], shape (n_bins,).

    Bins are closed on the left and open on the right; the last one is closed on both sides. The
    bounds are public, part of the guarantee: given by the user, never read from the data.

    Raises
    ------
    InvalidInput
        For a value outside the bounds or not finite (its record is named), lower >= upper, or
        n_bins < 2.
    """
    values = check_vector(y, "y")
    low, high = check_finite(lower, "lower"), check_finite(upper, "upper")
    if low >= high:
        raise InvalidInput(f"lower must be below upper: found {low:g} and {high:g}")
    bins = check_count(n_bins, "n_bins", at_least=2)
    within = (values >= low) & (values <= high)
    check_each(within, "y must lie in [lower, upper]: record {} does not")
    place = np.floor(in_steps(values - low, (high - low) / bins)).astype(np.int64)
    return np.bincount(np.minimum(place, bins - 1), minlength=bins)


def perturbed_probabilities(counts: Any, noise: Any) -> FloatArray:
    """Bin probabilities from counts + noise: negatives to 0, then normalized, shape (B,).

    If nothing positive is left, the bins are equally likely.
    """
    noisy = check_vector(counts, "counts")
    noisy = noisy + check_vector(noise, "noise", length=noisy.size)
    if not np.isfinite(noisy).all():
        raise InvalidInput("counts and noise must be finite")
    kept = np.maximum(noisy, 0)
    total = kept.sum()
    return kept / total if total > 0 else np.full(kept.size, 1 / kept.size)
