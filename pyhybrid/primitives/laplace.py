r"""Laplace mechanism: sums, means and counts with noise of scale sensitivity / epsilon.

The sensitivity is the largest |q(x) - q(x')| of the true answer q over all neighboring databases x
and x', worked out from the stated bounds and never from the data. The Laplace density at z is
proportional to exp(-|z - q| / b), so that the densities of the two answers differ by at most

.. math:: \exp(|q(x) - q(x')| / b) \le \exp(\text{sensitivity} / b) = e^{\epsilon}.

Under ``remove`` one record may be there or not, and n is confidential. Under ``replace`` its values
may be any others within the bounds, and n is public. Values outside the bounds are refused: clip
them first, by public bounds (``values.clip(lower, upper)``).

References
----------
[JC]; [DR14] sec. 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_each,
    check_finite,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.noise import UNIT, PrivateAnswer, whole_number_noise
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import CHANGED, RELATIONS
from pyhybrid.privacy.histogram import histogram_counts


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LaplaceAnswer(PrivateAnswer):
    """A sum or mean, or counts (B,), which may be negative, with Laplace noise.

    The sensitivity is that of all counts together, in L1; the noise on each number has the scale,
    and sqrt(2) times it as its standard deviation. Bins of a histogram have edges (B + 1,).
    """

    sensitivity: float
    scale: float
    edges: FloatArray | None = None

    def cost(self) -> float:
        """Sensitivity / scale."""
        return self.sensitivity / self.scale


def laplace_sum(
    values: Any, *, lower: float, upper: float, epsilon: float, relation: str = "remove"
) -> LaplaceAnswer:
    """Sum of values in [lower, upper] with Laplace noise.

    Sensitivity: leaving a record out moves the sum by at most max(|lower|, |upper|), replacing it
    by at most upper - lower. Values are rounded to whole units, 2^30 of which are the power of 2
    above the larger bound, so that sums are exact in any order; noise is drawn in these.

    Parameters
    ----------
    values : array_like, shape (n,)
        Confidential.
    lower, upper : float
        Public bounds: known before the data, as from a codebook.
    epsilon : float
        Above 0, nats.
    relation : {"remove", "replace"}
        See the module; ``replace`` makes n public.

    Raises
    ------
    InvalidInput
        For bounds that are missing or reversed, epsilon <= 0, a value that is outside the bounds or
        not finite (its record number is given).
    EngineUnavailable
        If OpenDP is not installed.

    Examples
    --------
    >>> laplace_sum([1, 0, 1, 1], lower=0, upper=1, epsilon=0.5).scale
    2.0
    """
    return _noisy_sum("laplace_sum", values, lower, upper, epsilon, relation)


def laplace_mean(values: Any, *, lower: float, upper: float, epsilon: float) -> LaplaceAnswer:
    """Mean of n values in [lower, upper] with Laplace noise, under ``replace``; n is public.

    Sensitivity: replacing one of n records moves the mean by at most (upper - lower) / n. Under
    ``remove`` n needs noise of its own: divide a noisy sum by a noisy count, and add their charges.
    Other parameters, errors and result as in `laplace_sum`.
    """
    return _noisy_sum("laplace_mean", values, lower, upper, epsilon, "replace")


def laplace_histogram(
    values: Any,
    *,
    lower: float,
    upper: float,
    n_bins: int,
    epsilon: float,
    relation: str = "remove",
) -> LaplaceAnswer:
    r"""Counts in `n_bins` equal bins of [lower, upper] with Laplace noise on each.

    Sensitivity: leaving a record out lowers one count by 1; replacing it may lower one and raise
    another, 2 together, whatever the number of bins, B >= 2 and public. Bins are closed on the
    left; the last one on both sides. Other parameters, errors and result as in `laplace_sum`.
    """
    low, high = check_bounds(lower, upper)
    counts = histogram_counts(_within(values, low, high), lower=low, upper=high, n_bins=n_bins)
    edges = np.linspace(low, high, counts.size + 1)
    return _answer("laplace_histogram", counts, CHANGED, epsilon, relation, edges=edges)


def laplace_counts(
    codes: Any, *, n_categories: int, epsilon: float, relation: str = "remove"
) -> LaplaceAnswer:
    """Records in each of `n_categories` categories with Laplace noise on each count.

    `codes` (n,), confidential, are 0 .. n_categories - 1; categories are public, at least 2, those
    without records among them. Sensitivity, other parameters and result as in `laplace_histogram`.
    """
    categories = check_count(n_categories, "n_categories", at_least=2)
    array = check_vector(codes, "codes") if np.size(codes) else np.zeros(0)
    check_each(
        (array >= 0) & (array < categories) & (array == np.floor(array)),
        f"codes must be whole numbers in 0 .. {categories - 1}: record {{}} is not",
    )
    counts = np.bincount(array.astype(np.int64), minlength=categories)
    return _answer("laplace_counts", counts, CHANGED, epsilon, relation)


def laplace_vector(
    value: Any, *, sensitivity: float, epsilon: float, relation: str = "remove"
) -> LaplaceAnswer:
    r"""A statistic f(x) in R^k with Laplace noise on each coordinate.

    `value` (k,) is the true f(x), within 2^30 sensitivities of 0; `sensitivity`, above 0,
    is the largest L1 distance of f between neighbors, which **you state**: it must hold for all
    possible databases and is never seen in one. Statistics without a finite one, such as regression
    coefficients, have no place here: see `pyhybrid.ClippedScores`. Values are rounded to units as
    in `laplace_sum`, which adds k of them to the sensitivity.
    """
    change, array = check_positive(sensitivity, "sensitivity"), check_vector(value, "value")
    unit = check_positive(math.ldexp(1 / UNIT, math.frexp(change)[1]), "2^-30 of sensitivity")
    check_each(np.abs(array) < 2.0**60 * unit, "value must be within 2^30 sensitivities: {} is not")
    steps = math.ceil(change / unit) + array.size
    whole = np.rint(array / unit).astype(np.int64)
    return _answer("laplace_vector", whole, {relation: steps}, epsilon, relation, unit=unit)


def _noisy_sum(
    name: str, values: Any, lower: float, upper: float, epsilon: float, relation: str
) -> LaplaceAnswer:
    bounds = check_bounds(lower, upper)
    y = _within(values, *bounds)
    power = math.frexp(max(-bounds[0], bounds[1]))[1]
    unit = check_positive(math.ldexp(1 / UNIT, power), "the unit of sums, 2^-30 of a bound,")
    least, most = (round(bound / unit) for bound in bounds)
    sensitivity = {"remove": max(-least, most), "replace": max(most - least, 1)}
    total = np.rint(y / unit).astype(np.int64).sum()
    n = y.size if name == "laplace_mean" else 1
    return _answer(name, total, sensitivity, epsilon, relation, unit=unit / n)


def _answer(
    name: str,
    whole: Any,
    sensitivity: Mapping[str, int],
    epsilon: float,
    relation: str,
    *,
    unit: float = 1,
    edges: FloatArray | None = None,
) -> LaplaceAnswer:
    """A whole number or an array of them with noise, times `unit`; `sensitivity` by relation."""
    change = sensitivity[check_choice(relation, "relation", RELATIONS)]
    eps = check_positive(epsilon, "epsilon")
    measurement, scale = whole_number_noise(change, eps)
    noisy = np.array(measurement(np.ravel(whole).tolist()), dtype=np.int64) * unit
    facts = {"assumes": ["The bounds or categories were fixed without looking at the data."]}
    return LaplaceAnswer(
        value=noisy if np.ndim(whole) else float(noisy[0]),
        edges=edges,
        sensitivity=float(change * unit),
        scale=scale * unit,
        charge=PrivacyCharge.strict(mechanism=name, epsilon=eps, relation=relation, facts=facts),
    )


def check_bounds(lower: Any, upper: Any) -> tuple[float, float]:
    """Return stated bounds, lower < upper."""
    if lower is None or upper is None:
        raise InvalidInput("bounds are never read from the data: give them, lower and upper")
    low, high = check_finite(lower, "lower"), check_finite(upper, "upper")
    if low >= high:
        raise InvalidInput(f"lower must be below upper: found {low:g} and {high:g}")
    if math.isinf(high - low):
        raise InvalidInput(f"upper - lower must be finite: found {low:g} and {high:g}")
    return low, high


def _within(values: Any, low: float, high: float) -> FloatArray:
    """`values` (n,), finite and within [low, high]."""
    array = check_vector(values, "values")
    check_each(
        (array >= low) & (array <= high),
        f"values must lie in [{low:g}, {high:g}]: record {{}} does not; clip them by public bounds",
    )
    return array
