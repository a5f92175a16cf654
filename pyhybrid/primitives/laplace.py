r"""Laplace mechanism: sums, means and counts with noise of scale sensitivity / epsilon.

**Why this scale.** Let q(x) be the true answer and q(x') the answer from a neighboring database.
The sensitivity is the largest |q(x) - q(x')| over all neighbors, worked out from the stated bounds
and never from the data. The Laplace density at z is proportional to exp(-|z - q| / b), so that the
densities of the two answers differ by a factor of at most

.. math:: \exp(|q(x) - q(x')| / b) \le \exp(\text{sensitivity} / b) = e^{\epsilon}.

**Neighbors.** Under ``remove`` one record may be there or not, and n is confidential. Under
``replace`` the values of one record may be any others within the bounds, and n is public.

References
----------
[JC]; [DR14] sec. 3.3.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_each,
    check_finite,
    check_flag,
    check_fraction,
    check_numeric,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.noise import (
    PrivateAnswer,
    calibrated,
    load_opendp,
    refusals,
    whole_number_noise,
)
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS
from pyhybrid.privacy.histogram import histogram_counts

CHANGED = {"remove": 1, "replace": 2}
"""Records that a neighbor differs by: a replacement takes one out and puts one in."""
_LARGEST_EXACT = 2**53
_LARGEST_REAL_SUM = 2**20  # OpenDP sums a random subset of more, if n is confidential


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LaplaceAnswer(PrivateAnswer):
    """Sensitivity and scale of the noise, both public."""

    sensitivity: float
    scale: float

    def cost(self) -> float:
        """Sensitivity / scale."""
        return self.sensitivity / self.scale

    def margin(self, confidence: float = 0.95) -> float:
        """Half width that holds the noise of one value with this probability, in (0, 1)."""
        level = check_fraction(confidence, "confidence")
        return math.inf if level == 1 else self.scale * math.log(1 / (1 - level))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyNumber(LaplaceAnswer):
    """A sum or mean with Laplace noise.

    Attributes
    ----------
    value : float or int
        An int for a sum with `whole`.
    sensitivity : float
        Largest change of the true value between neighbors, as OpenDP states it: floating-point
        sums add a trifle.
    scale : float
        Of the noise; its standard deviation is sqrt(2) times this.
    """

    value: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyCounts(LaplaceAnswer):
    """Counts with Laplace noise on each; they may be negative.

    Attributes
    ----------
    value : ndarray of int, shape (B,)
    edges : ndarray, shape (B + 1,), or None
        Edges of the bins; None for categories.
    sensitivity, scale : float
        Largest change of all counts together (L1); scale of the noise of one count.
    """

    value: npt.NDArray[np.int64]
    edges: FloatArray | None = None


def laplace_sum(
    values: Any,
    *,
    lower: float,
    upper: float,
    epsilon: float,
    relation: str = "remove",
    clamp: bool = False,
    whole: bool = False,
) -> NoisyNumber:
    """Sum of values in [lower, upper] with Laplace noise.

    Sensitivity: leaving a record out moves the sum by its value, at most max(|lower|, |upper|);
    replacing it moves the sum by the difference of two values, at most upper - lower. For real
    numbers under ``remove`` OpenDP also counts upper - lower, since it caps the number of records.

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
    clamp : bool, default False
        Move values outside the bounds to the nearer bound instead of refusing them, and with
        `whole` others to the nearest whole number.
    whole : bool, default False
        Values are whole numbers, with whole bounds, and stay so: noise is drawn from the discrete
        Laplace distribution. Public: said by you, and never read from the values.

    Raises
    ------
    InvalidInput
        For bounds that are missing or reversed, epsilon <= 0, a value that is outside the bounds,
        not finite or, with `whole`, not whole (its record number is given).
    EngineUnavailable
        If OpenDP is not installed.

    Examples
    --------
    >>> laplace_sum([1, 0, 1, 1], lower=0, upper=1, epsilon=1.0, whole=True).scale
    1.0
    """
    check_choice(relation, "relation", RELATIONS)
    return _noisy_total(
        values, lower, upper, epsilon=epsilon, relation=relation, clamp=clamp, whole=whole
    )


def laplace_mean(
    values: Any, *, lower: float, upper: float, epsilon: float, clamp: bool = False
) -> NoisyNumber:
    r"""Mean of n values in [lower, upper] with Laplace noise; n is public.

    Sensitivity: replacing one of n records moves the mean by at most (upper - lower) / n. The
    relation is ``replace``, as n cannot be used under ``remove`` without noise of its own: there,
    divide a noisy sum by a noisy count and add their charges.

    Parameters, errors and result as in `laplace_sum`, without `whole`.

    Examples
    --------
    >>> round(laplace_mean([0.2, 0.4, 0.9, 0.1], lower=0, upper=1, epsilon=0.5).scale, 6)
    0.5
    """
    return _noisy_total(
        values, lower, upper, epsilon=epsilon, relation="replace", clamp=clamp, mean=True
    )


def laplace_histogram(
    values: Any,
    *,
    lower: float,
    upper: float,
    n_bins: int,
    epsilon: float,
    relation: str = "remove",
    clamp: bool = False,
) -> NoisyCounts:
    r"""Counts in `n_bins` equal bins of [lower, upper] with Laplace noise on each.

    Sensitivity: leaving a record out lowers one count by 1; replacing it may lower one and raise
    another, 2 together. The number of bins does not matter: a record is in one of them. Hence the
    scale 1 / epsilon under ``remove`` and 2 / epsilon under ``replace``.

    Parameters
    ----------
    n_bins : int
        B >= 2, public. Bins are closed on the left; the last one on both sides.

    Other parameters, errors and result as in `pyhybrid.primitives.laplace_sum`.

    Examples
    --------
    >>> laplace_histogram([1.5, 2.5], lower=0, upper=4, n_bins=4, epsilon=1.0).edges
    array([0., 1., 2., 3., 4.])
    """
    low, high = check_bounds(lower, upper)
    bins = check_count(n_bins, "n_bins", at_least=2)
    y = check_within(values, low, high, clamp=clamp, name="values")
    counts = histogram_counts(y, lower=low, upper=high, n_bins=bins)
    edges = np.linspace(low, high, bins + 1)
    return _noisy_counts(counts, epsilon, relation, "laplace_histogram", edges)


def laplace_counts(
    codes: Any, *, n_categories: int, epsilon: float, relation: str = "remove"
) -> NoisyCounts:
    """Records in each of `n_categories` categories with Laplace noise on each count.

    Parameters
    ----------
    codes : array_like of int, shape (n,)
        Category of each record, 0 .. n_categories - 1. Confidential; may be empty.
    n_categories : int
        At least 2, public: categories without records are counted, too.

    Sensitivity, other parameters, errors and result as in `laplace_histogram`.
    """
    categories = check_count(n_categories, "n_categories", at_least=2)
    array = check_numeric(codes, "codes")
    if array.ndim != 1:
        raise InvalidInput(f"codes must be a vector of shape (n,): found {array.shape}")
    check_each(
        (array >= 0) & (array < categories) & (array == np.floor(array)),
        f"codes must be whole numbers in 0 .. {categories - 1}: record {{}} is not",
    )
    counts = np.bincount(array.astype(np.int64), minlength=categories)
    return _noisy_counts(counts, epsilon, relation, "laplace_counts", None)


def _noisy_counts(
    counts: npt.NDArray[np.int64],
    epsilon: float,
    relation: str,
    name: str,
    edges: FloatArray | None,
) -> NoisyCounts:
    eps = check_positive(epsilon, "epsilon")
    changed = CHANGED[check_choice(relation, "relation", RELATIONS)]
    measurement, scale = whole_number_noise(changed, eps)
    return NoisyCounts(
        value=np.array(measurement(counts.tolist()), dtype=np.int64),
        edges=edges,
        sensitivity=float(changed),
        scale=scale,
        charge=PrivacyCharge.strict(
            mechanism=name,
            epsilon=eps,
            relation=relation,
            facts={"assumes": ["The categories were fixed without looking at the data."]},
        ),
    )


def _noisy_total(
    values: Any,
    lower: float,
    upper: float,
    *,
    epsilon: float,
    relation: str,
    clamp: bool,
    whole: bool = False,
    mean: bool = False,
) -> NoisyNumber:
    low, high = check_bounds(lower, upper)
    if check_flag(whole, "whole") and (low % 1 or high % 1 or max(-low, high) > _LARGEST_EXACT):
        raise InvalidInput(
            f"lower and upper must be whole, within +-2^53, for whole=True: found {low:g}, {high:g}"
        )
    eps = check_positive(epsilon, "epsilon")
    y = check_within(values, low, high, clamp=clamp, name="values")
    if whole:
        check_each(
            (y == np.rint(y)) | clamp,
            "values must be whole with whole=True: record {} is not; clamp=True rounds such values",
        )
    known_size = y.size if relation == "replace" else None
    if known_size is None and not whole and y.size > _LARGEST_REAL_SUM:
        raise InvalidInput(
            f"values must be at most {_LARGEST_REAL_SUM} real numbers under relation='remove', as "
            f"OpenDP would sum a random part of more: found {y.size}; state relation='replace', "
            "or count in whole units, with whole=True"
        )
    ends = (int(low), int(high)) if whole else (low, high)
    measurement, sensitivity, scale = _measurement(*ends, known_size, mean, CHANGED[relation], eps)
    return NoisyNumber(
        value=measurement(np.rint(y).astype(np.int64).tolist() if whole else y),
        sensitivity=sensitivity,
        scale=scale,
        charge=PrivacyCharge.strict(
            mechanism="laplace_mean" if mean else "laplace_sum",
            epsilon=eps,
            relation=relation,
            facts={"assumes": ["The bounds were fixed without looking at the data."]},
        ),
    )


@functools.lru_cache(maxsize=32, typed=True)  # of each argument; within a tuple 1 would be 1.0
def _measurement(
    low: float, high: float, known_size: int | None, mean: bool, changed: int, epsilon: float
) -> tuple[Any, float, float]:
    """OpenDP's sum or mean with noise, its sensitivity and scale, all made of what is public and
    kept from one answer to the next; `low` and `high` are ints for whole values."""
    dp = load_opendp()
    with refusals():
        if isinstance(low, int):  # 64 bits by name: OpenDP takes such numbers for 32-bit ones
            atoms = dp.atom_domain(bounds=(low, high), T=dp.i64)
        else:
            atoms = dp.atom_domain(bounds=(low, high), nan=False)
        space = dp.vector_domain(atoms, size=known_size), dp.symmetric_distance()
        exact = space >> (dp.t.then_mean() if mean else dp.t.then_sum())
        sensitivity = float(exact.map(changed))
    measurement, scale = calibrated(
        lambda b: exact >> dp.m.then_laplace(scale=b),
        scale=sensitivity / epsilon,
        d_in=changed,
        epsilon=epsilon,
    )
    return measurement, sensitivity, scale


def check_bounds(lower: Any, upper: Any) -> tuple[float, float]:
    """Return stated bounds, lower < upper, or say why they cannot be read from the data."""
    for name, value in (("lower", lower), ("upper", upper)):
        if value is None or isinstance(value, str):
            raise InvalidInput(
                f"{name} must be a number: found {value!r}; bounds are never read from the data: "
                "give them, they are part of the guarantee"
            )
    low, high = check_finite(lower, "lower"), check_finite(upper, "upper")
    if low >= high:
        raise InvalidInput(f"lower must be below upper: found {low:g} and {high:g}")
    if math.isinf(high - low):
        raise InvalidInput(f"upper - lower must be finite: found {low:g} and {high:g}")
    return low, high


def check_within(values: Any, low: float, high: float, *, clamp: bool, name: str) -> FloatArray:
    """Return `values` (n,), finite and within [low, high]; those outside clamped if asked."""
    check_flag(clamp, "clamp")
    array = check_vector(values, name)
    check_each(np.isfinite(array), f"{name} must be finite: record {{}} is not")
    check_each(
        (array >= low) & (array <= high) | clamp,
        f"{name} must lie in [{low:g}, {high:g}]: record {{}} does not; clamp=True moves such "
        "values to the nearer bound",
    )
    return np.clip(array, low, high)
