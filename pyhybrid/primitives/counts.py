"""Laplace mechanism on counts: categories given beforehand, or equal bins of a given range.

References
----------
[JC]; [DR14] sec. 3.3. Why the scale is what it is: `pyhybrid.primitives.laplace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_numeric,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.checks import check_bounds, check_within
from pyhybrid.primitives.laplace import CHANGED, LaplaceAnswer
from pyhybrid.primitives.library import whole_number_noise
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS
from pyhybrid.privacy.histogram import histogram_counts

__all__ = ["NoisyCounts", "laplace_counts", "laplace_histogram"]


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

    Other parameters, errors and result as in `pyhybrid.laplace_sum`.

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
    wrong = np.flatnonzero(~((array >= 0) & (array < categories) & (array == np.floor(array))))
    if wrong.size:
        raise InvalidInput(
            f"codes must be whole numbers in 0 .. {categories - 1}: record {wrong[0]} is not"
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
            assumes=("The categories were fixed without looking at the data.",),
        ),
    )
