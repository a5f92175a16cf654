r"""Differentially private k-means: Lloyd's algorithm with noise in every round.

Each round assigns every row to its nearest center and moves the center to the mean of its rows,
which counts the rows of each cluster and sums them: two looks at the data. With T rounds each look
gets :math:`\epsilon' = \epsilon / (2 T)`, and by sequential composition all looks cost epsilon.

**Sensitivity.** Rows have an L1 norm of at most 1, and each row is in one cluster: replacing one
changes all counts together by at most 2 (one less here, one more there) and all sums together
by at most 1 + 1 = 2 in L1. Both get Laplace(2 / epsilon') noise in every coordinate. A center is
sum / count where the noisy count is at least 1; else it starts anew, uniform in the L1 ball. The
initial centers come from there, too, and not from the data.

References
----------
[JC]; Blum, Dwork, McSherry, Nissim (2005), PODS; Lloyd (1982).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_count, check_each, check_numeric, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.primitives.noise import UNIT, PrivateAnswer, whole_number_noise
from pyhybrid.privacy.charge import PrivacyCharge

IntArray = npt.NDArray[np.int64]
_SENSITIVITY = 2
_BELOW = 1 - 2**-50  # of a share: the sum of all is not above epsilon, however floats round


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyCenters(PrivateAnswer):
    """Centers of clusters (`value`, which noise may carry out of the L1 ball); noisy sizes of them
    in the last of T rounds (`counts`); `scale` of the Laplace noise on both, 4 T / epsilon."""

    value: FloatArray  # (k, d)
    counts: IntArray  # (k,)
    n_rounds: int
    scale: float

    def cost(self) -> float:
        """2 T looks of 2 / scale each."""
        return 2 * self.n_rounds * _SENSITIVITY / self.scale


def dp_kmeans(
    rows: Any,
    *,
    n_clusters: int,
    n_rounds: int,
    epsilon: float,
    start: Any = None,
    n_averaged: int = 1,
) -> NoisyCenters:
    """Cluster centers of rows with an L1 norm of at most 1, under ``replace``; n is public.

    Parameters
    ----------
    rows : array_like, shape (n, d)
        Confidential; the absolute values of each row, divided by public bounds, sum to at most 1.
    n_clusters, n_rounds : int
        k >= 1 and T >= 1, public. More rounds mean more noise in each.
    epsilon : float
        Above 0, nats, for all rounds together.
    start : array_like, shape (k, d), optional
        Initial centers, fixed without looking at the data; uniform in the L1 ball if omitted.
    n_averaged : int, default 1
        Last rounds whose centers are averaged, at most `n_rounds`: less noise at no further cost
        once clusters no longer change [JC].

    Errors as of `laplace_sum`; and for initial centers of another shape.
    """
    eps = check_positive(epsilon, "epsilon")
    k, rounds = check_count(n_clusters, "n_clusters"), check_count(n_rounds, "n_rounds")
    averaged = check_count(n_averaged, "n_averaged")
    if averaged > rounds:
        raise InvalidInput(f"n_averaged must be at most n_rounds, {rounds}: found {averaged}")
    units = _whole_units(rows)
    rng = streams().generator("k-means")
    centers = _uniform_in_l1_ball(k, units.shape[1], rng)
    if start is not None:
        shape, centers = centers.shape, check_numeric(start, "start")
        if centers.shape != shape or not np.isfinite(centers).all():
            raise InvalidInput(f"start must be finite, of shape {shape}: found {centers.shape}")
    share = check_positive(eps / (2 * rounds) * _BELOW, "epsilon / (2 n_rounds)")
    count_noise, scale = whole_number_noise(_SENSITIVITY, share)
    sum_noise, _ = whole_number_noise(_SENSITIVITY, share, UNIT)
    total = np.zeros_like(centers)
    for done in range(1, rounds + 1):
        # Squared distances up to the rows' norms, which do not change which center is nearest.
        nearest = np.argmin((centers**2).sum(axis=1) - 2 * units / UNIT @ centers.T, axis=1)
        sums = np.zeros(centers.shape, dtype=np.int64)
        np.add.at(sums, nearest, units)
        counts = np.array(count_noise(np.bincount(nearest, minlength=k).tolist()), dtype=np.int64)
        noisy = np.array(sum_noise(sums.ravel().tolist()), dtype=np.float64).reshape(sums.shape)
        centers = _uniform_in_l1_ball(k, units.shape[1], rng)
        filled = counts >= 1
        centers[filled] = noisy[filled] / UNIT / counts[filled, None]
        if done > rounds - averaged:
            total += centers
    facts = {"assumes": ["Rows were brought to an L1 norm of at most 1 by public constants."]}
    charge = PrivacyCharge.strict(
        mechanism="dp_kmeans", epsilon=eps, relation="replace", facts=facts
    )
    return NoisyCenters(
        value=total / averaged, counts=counts, n_rounds=rounds, scale=scale, charge=charge
    )


def _whole_units(rows: Any) -> IntArray:
    """Rows (n, d) in units of 2^-30, rounded towards 0, so that no row gets longer."""
    matrix = check_numeric(rows, "rows")
    if matrix.ndim != 2 or matrix.size == 0:
        raise InvalidInput(f"rows must have shape (n, d), n >= 1, d >= 1: found {matrix.shape}")
    check_each(np.isfinite(matrix).all(axis=1), "rows must be finite: record {} is not")
    units = np.trunc(matrix * UNIT)
    check_each(
        np.abs(units).sum(axis=1) <= UNIT,
        "rows must have an L1 norm of at most 1: record {} has more; divide by public bounds",
    )
    return units.astype(np.int64)


def _uniform_in_l1_ball(k: int, d: int, rng: np.random.Generator) -> FloatArray:
    """Points uniform in the L1 unit ball, shape (k, d): a Dirichlet point with random signs."""
    points: FloatArray = rng.dirichlet(np.ones(d + 1), size=k)[:, :d]
    points *= rng.choice([-1.0, 1.0], size=(k, d))
    return points
