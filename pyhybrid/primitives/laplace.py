r"""Laplace mechanism: sums, means and counts with noise of scale sensitivity / epsilon.

The sensitivity is the largest |q(x) - q(x')| of the true answer q over all neighboring databases x
and x', worked out from the stated bounds and never from the data. The Laplace density at z is
proportional to exp(-|z - q| / b), so that the densities of the two answers differ by at most

.. math:: \exp(|q(x) - q(x')| / b) \le \exp(\text{sensitivity} / b) = e^{\epsilon}.

Under ``remove`` one record may be there or not, and n is confidential. Under ``replace`` the values
of one record may be any others within the bounds, and n is public. Values outside the bounds are
refused: clip them first, by public bounds (``values.clip(lower, upper)``).

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

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_each,
    check_finite,
    check_flag,
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
    """A sum, mean or counts with Laplace noise.

    Attributes
    ----------
    value : float, int (of a sum with `whole`) or ndarray of int, shape (B,)
        Counts may be negative.
    edges : ndarray, shape (B + 1,), or None
        Edges of the bins of a histogram.
    sensitivity : float
        Largest change of the true value between neighbors (of all counts together, in L1), as
        OpenDP states it: floating-point sums add a trifle.
    scale : float
        Of the noise on each number; its standard deviation is sqrt(2) times this.
    """

    sensitivity: float
    scale: float
    edges: FloatArray | None = None

    def cost(self) -> float:
        """Sensitivity / scale."""
        return self.sensitivity / self.scale


def laplace_sum(
    values: Any,
    *,
    lower: float,
    upper: float,
    epsilon: float,
    relation: str = "remove",
    whole: bool = False,
) -> LaplaceAnswer:
    """Sum of values in [lower, upper] with Laplace noise.

    Sensitivity: leaving a record out moves the sum by at most max(|lower|, |upper|), replacing it
    by at most upper - lower. For real numbers under ``remove`` OpenDP also counts upper - lower,
    since it caps the number of records.

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
    changed = CHANGED[check_choice(relation, "relation", RELATIONS)]
    low, high = check_bounds(lower, upper)
    eps = check_positive(epsilon, "epsilon")
    y = _within(values, low, high)
    known_size = y.size if relation == "replace" else None
    if check_flag(whole, "whole"):
        if low % 1 or high % 1 or max(-low, high) > _LARGEST_EXACT:
            raise InvalidInput(
                "lower and upper must be whole, within +-2^53, for whole=True: found "
                f"{low:g}, {high:g}"
            )
        check_each(y == np.rint(y), "values must be whole with whole=True: record {} is not")
        noise = _noise(int(low), int(high), known_size, False, changed, eps)
        return _answer("laplace_sum", y.astype(np.int64).tolist(), noise, eps, relation)
    if known_size is None and y.size > _LARGEST_REAL_SUM:
        raise InvalidInput(
            f"values must be at most {_LARGEST_REAL_SUM} real numbers under relation='remove', as "
            f"OpenDP would sum a random part of more: found {y.size}; state relation='replace', "
            "or count in whole units, with whole=True"
        )
    noise = _noise(low, high, known_size, False, changed, eps)
    return _answer("laplace_sum", y, noise, eps, relation)


def laplace_mean(values: Any, *, lower: float, upper: float, epsilon: float) -> LaplaceAnswer:
    r"""Mean of n values in [lower, upper] with Laplace noise; n is public.

    Sensitivity: replacing one of n records moves the mean by at most (upper - lower) / n. The
    relation is ``replace``, as n cannot be used under ``remove`` without noise of its own: there,
    divide a noisy sum by a noisy count and add their charges.

    Parameters, errors and result as in `laplace_sum`, without `relation` and `whole`.

    Examples
    --------
    >>> round(laplace_mean([0.2, 0.4, 0.9, 0.1], lower=0, upper=1, epsilon=0.5).scale, 6)
    0.5
    """
    low, high = check_bounds(lower, upper)
    eps = check_positive(epsilon, "epsilon")
    y = _within(values, low, high)
    noise = _noise(low, high, y.size, True, CHANGED["replace"], eps)
    return _answer("laplace_mean", y, noise, eps, "replace")


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
    another, 2 together. The number of bins does not matter: a record is in one of them.

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
    counts = histogram_counts(_within(values, low, high), lower=low, upper=high, n_bins=bins)
    edges = np.linspace(low, high, bins + 1)
    return _noisy_counts("laplace_histogram", counts, epsilon, relation, edges)


def laplace_counts(
    codes: Any, *, n_categories: int, epsilon: float, relation: str = "remove"
) -> LaplaceAnswer:
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
    return _noisy_counts("laplace_counts", counts, epsilon, relation)


def _noisy_counts(
    name: str, counts: Any, epsilon: float, relation: str, edges: FloatArray | None = None
) -> LaplaceAnswer:
    eps = check_positive(epsilon, "epsilon")
    changed = CHANGED[check_choice(relation, "relation", RELATIONS)]
    measurement, scale = whole_number_noise(changed, eps)
    noise = (lambda values: np.array(measurement(values), dtype=np.int64)), float(changed), scale
    return _answer(name, counts.tolist(), noise, eps, relation, edges)


def _answer(
    name: str,
    values: Any,
    noise: tuple[Any, float, float],
    epsilon: float,
    relation: str,
    edges: FloatArray | None = None,
) -> LaplaceAnswer:
    """The answer of a measurement with its sensitivity and scale."""
    measurement, sensitivity, scale = noise
    assumed = "The bounds or categories were fixed without looking at the data."
    return LaplaceAnswer(
        value=measurement(values),
        edges=edges,
        sensitivity=sensitivity,
        scale=scale,
        charge=PrivacyCharge.strict(
            mechanism=name, epsilon=epsilon, relation=relation, facts={"assumes": [assumed]}
        ),
    )


@functools.lru_cache(maxsize=32, typed=True)  # of each argument; within a tuple 1 would be 1.0
def _noise(
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


def _within(values: Any, low: float, high: float) -> FloatArray:
    """`values` (n,), finite and within [low, high]."""
    array = check_vector(values, "values")
    check_each(np.isfinite(array), "values must be finite: record {} is not")
    check_each(
        (array >= low) & (array <= high),
        f"values must lie in [{low:g}, {high:g}]: record {{}} does not; clip them by public bounds",
    )
    return array
