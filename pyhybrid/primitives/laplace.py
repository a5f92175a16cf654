r"""Laplace mechanism: sums and means (and `counts`) with noise of scale sensitivity / epsilon.

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

from pyhybrid.core.checks import check_choice, check_fraction, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.answer import PrivateAnswer
from pyhybrid.primitives.checks import check_bounds, check_within
from pyhybrid.primitives.library import calibrated, load_opendp, refusals
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS

__all__ = [
    "CHANGED",
    "LaplaceAnswer",
    "NoisyNumber",
    "laplace_mean",
    "laplace_sum",
]

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
        An int for a sum of whole numbers.
    sensitivity : float
        Largest change of the true value between neighbors, as OpenDP states it: floating-point
        sums add a trifle.
    scale : float
        Of the noise; its standard deviation is sqrt(2) times this.
    """

    value: float


def laplace_sum(
    values: Any,
    *,
    lower: float,
    upper: float,
    epsilon: float,
    relation: str = "remove",
    clamp: bool = False,
) -> NoisyNumber:
    r"""Sum of values in [lower, upper] with Laplace noise.

    Sensitivity: leaving a record out moves the sum by its value, at most max(|lower|, |upper|);
    replacing it moves the sum by the difference of two values, at most upper - lower. For real
    numbers under ``remove`` OpenDP also counts upper - lower, since it caps the number of records.

    Parameters
    ----------
    values : array_like, shape (n,)
        Confidential. Whole numbers (an integer dtype, whole bounds) stay whole: noise is then
        drawn from the discrete Laplace distribution.
    lower, upper : float
        Public bounds: known before the data, as from a codebook.
    epsilon : float
        Above 0, nats.
    relation : {"remove", "replace"}
        See the module; ``replace`` makes n public.
    clamp : bool, default False
        Move values outside the bounds to the nearer bound instead of refusing them.

    Returns
    -------
    NoisyNumber

    Raises
    ------
    InvalidInput
        For bounds that are missing or reversed, epsilon <= 0, a value that is outside the bounds
        or not finite (its record number is given).
    EngineUnavailable
        If OpenDP is not installed.

    Examples
    --------
    >>> laplace_sum([1, 0, 1, 1], lower=0, upper=1, epsilon=1.0).scale
    1.0
    """
    check_choice(relation, "relation", RELATIONS)
    return _noisy_total(
        values, lower, upper, epsilon=epsilon, relation=relation, clamp=clamp, mean=False
    )


def laplace_mean(
    values: Any, *, lower: float, upper: float, epsilon: float, clamp: bool = False
) -> NoisyNumber:
    r"""Mean of n values in [lower, upper] with Laplace noise; n is public.

    Sensitivity: replacing one of n records moves the mean by at most (upper - lower) / n. The
    relation is ``replace``, as n cannot be used under ``remove`` without noise of its own: there,
    divide a noisy sum by a noisy count and add their charges.

    Parameters, errors and result as in `laplace_sum`.

    Examples
    --------
    >>> round(laplace_mean([0.2, 0.4, 0.9, 0.1], lower=0, upper=1, epsilon=0.5).scale, 6)
    0.5
    """
    return _noisy_total(
        values, lower, upper, epsilon=epsilon, relation="replace", clamp=clamp, mean=True
    )


def _are_whole(values: Any, low: float, high: float) -> bool:
    """True for an integer dtype and whole bounds that a float holds exactly."""
    whole = np.asarray(values).dtype.kind in "iub" and low % 1 == high % 1 == 0
    return whole and max(abs(low), abs(high)) <= _LARGEST_EXACT


def _noisy_total(
    values: Any,
    lower: float,
    upper: float,
    *,
    epsilon: float,
    relation: str,
    clamp: bool,
    mean: bool,
) -> NoisyNumber:
    low, high = check_bounds(lower, upper)
    eps = check_positive(epsilon, "epsilon")
    y = check_within(values, low, high, clamp=clamp, name="values")
    whole = not mean and _are_whole(values, low, high)
    known_size = y.size if relation == "replace" else None
    if known_size is None and not whole and y.size > _LARGEST_REAL_SUM:
        raise InvalidInput(
            f"values must be at most {_LARGEST_REAL_SUM} real numbers under relation='remove', as "
            f"OpenDP would sum a random part of more: found {y.size}; state relation='replace', "
            "or count in whole units"
        )
    ends = (int(low), int(high)) if whole else (low, high)
    measurement, sensitivity, scale = _measurement(ends, known_size, mean, CHANGED[relation], eps)
    return NoisyNumber(
        value=measurement(y.astype(np.int64).tolist() if whole else y),
        sensitivity=sensitivity,
        scale=scale,
        charge=PrivacyCharge.strict(
            mechanism="laplace_mean" if mean else "laplace_sum",
            epsilon=eps,
            relation=relation,
            assumes=("The bounds were fixed without looking at the data.",),
        ),
    )


@functools.lru_cache(maxsize=32, typed=True)
def _measurement(
    ends: tuple[float, float], known_size: int | None, mean: bool, changed: int, epsilon: float
) -> tuple[Any, float, float]:
    """OpenDP's sum or mean with noise, its sensitivity and scale; `ends` are ints for whole values.

    All that it is made of is public, so that it may be kept from one answer to the next.
    """
    dp = load_opendp()
    with refusals():
        if isinstance(ends[0], int):  # 64 bits by name: OpenDP takes such numbers for 32-bit ones
            atoms = dp.atom_domain(bounds=ends, T=dp.i64)
        else:
            atoms = dp.atom_domain(bounds=ends, nan=False)
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
