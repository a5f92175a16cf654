r"""Privacy loss of one released draw, from full refits without single records.

A record that leaves takes its own term with it, and, where weights were computed on the same data,
changes the weights of all others. With weights :math:`\alpha` of all records and
:math:`\alpha^{(-i)}` computed anew without record i, the log pseudo posterior changes by

.. math:: T_i(\theta) = \sum_j (\alpha_j - \alpha_j^{(-i)}) f_j(\theta),
    \quad f_j(\theta) = \log p(x_j \mid \theta), \quad \alpha_i^{(-i)} = 0,

so that the loss of a draw is :math:`T_i(\theta) - c`, with :math:`e^c` the ratio of both evidences,
estimated from draws of both posteriors [B76]. Its quantile beyond which a share of delta lies, from
mean, deviation and skewness, in either direction, times 1.25, is charged:

``lipschitz``: 2 Delta, or that loss if more [S22]; ``range``: the largest range of own terms, or
that loss [DR19]; ``gaussian``: the largest deviation of own terms, or the mu whose epsilon at delta
is that loss [DRS22].

Refits are made without the records of largest deviation under the weights, and of largest size
without any, which the maps of weights depend on. Of 440 exact posteriors (n of 20 to 1,000, eleven
maps) nine are charged below the exact epsilon, by up to 42 %, all of them at n <= 200 and six by
the softmax map or re-weighting; the median is 1.4 times as much.

**Records that nearly alone inform a coefficient** cannot be charged from draws: without such a
record the coefficient has little but its prior. `sole_informants` finds them from the predictors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.special import expit, ndtri

from pyhybrid.core.checks import FloatArray, IntArray, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.conversions import mu_of_epsilon

ACCOUNTINGS = ("lipschitz", "range", "gaussian")
"""Ways to count what a local release costs, the default first."""
MARGIN = 1.25
"""Factor on the loss of refits, for records that were not left out."""
DELTA = 1e-6
"""Share of draws that may lose more, where a mechanism has no delta of its own."""
_ALONE = 0.3  # share of the information along some direction
_MOST_SKEWED = 3.0  # of a loss: draws tell of no more
_RANK = 1e-10  # singular values below this share of the largest inform nothing


@dataclass(frozen=True, kw_only=True)
class Refit:
    """What a draw loses when one record or unit, by its position, leaves: with it, or without it, a
    draw loses more nats with probability delta at most. Confidential."""

    record: int
    loss: float


def refit_of(change: Any, change_without: Any, *, delta: float = DELTA, record: int = 0) -> Refit:
    """Loss of a draw, from T at draws with a record (S,) and at those of a refit without it.

    Examples
    --------
    >>> z = np.random.default_rng(1).normal(size=4000)
    >>> round(refit_of(0.5 * (z + 0.5), 0.5 * z).loss, 1)  # N(.5, 1) and N(0, 1)
    2.6
    """
    values = [check_vector(change, "change"), check_vector(change_without, "change_without")]
    for name, vector in zip(("change", "change_without"), values, strict=True):
        if vector.size < 2 or np.isnan(vector).any():
            raise InvalidInput(f"{name} must have 2 draws or more, none of them NaN")
    there, gone = values
    if not (np.isfinite(there).all() and np.isfinite(gone).all()):
        return Refit(record=record, loss=math.inf)
    ratio = _log_evidence_ratio(there, gone)
    loss = max(_quantile(there - ratio, delta), _quantile(ratio - gone, delta), 0.0)
    return Refit(record=record, loss=loss)


def _log_evidence_ratio(there: FloatArray, gone: FloatArray) -> float:
    """c, at which Bennett's acceptance ratios of both posteriors are equal."""

    def excess(c: float) -> float:
        return float(expit(c - there).mean() - expit(gone - c).mean())

    low, high = min(there.min(), gone.min()) - 1.0, max(there.max(), gone.max()) + 1.0
    while excess(low) > 0:
        low -= high - low
    while excess(high) < 0:
        high += high - low
    return float(scipy.optimize.brentq(excess, low, high))


def _quantile(loss: FloatArray, delta: float) -> float:
    """What a share of delta exceeds, by Cornish and Fisher's first correction for a longer upper
    tail; a shorter one is not believed."""
    mean, deviation = float(loss.mean()), float(loss.std(ddof=1))
    if deviation == 0:
        return mean
    skewness = float(((loss - mean) ** 3).mean()) / deviation**3
    z = -float(ndtri(delta))
    return mean + deviation * (z + (z * z - 1) * min(max(skewness, 0.0), _MOST_SKEWED) / 6)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalLoss:
    """What one released draw tells, by record or unit, and by refits without some. Confidential.

    Attributes
    ----------
    lipschitz, ranges, deviations : ndarray, shape (n,)
        Size, range and deviation of the own weighted terms alpha_i f_i over the draws, nats.
    refits : tuple of Refit
        Empty where weights were taken as fixed.
    delta : float
        That their losses are of.
    """

    lipschitz: FloatArray
    ranges: FloatArray
    deviations: FloatArray
    refits: tuple[Refit, ...] = ()
    delta: float = DELTA

    @property
    def bound(self) -> float:
        """The papers' Delta, at the weights as they are."""
        return float(self.lipschitz.max())

    @property
    def change(self) -> float:
        """1.25 times the largest loss over the refits; 0 without any."""
        return MARGIN * max((refit.loss for refit in self.refits), default=0.0)

    @property
    def loss_range(self) -> float:
        """The largest range of own terms, or `change` if that is more."""
        return max(float(self.ranges.max()), self.change)

    @property
    def mu(self) -> float:
        """The largest deviation of own terms, or the mu of `change` at delta if that is more."""
        largest = float(self.deviations.max())
        if not 0 < self.change < math.inf:
            return max(largest, self.change)
        return max(largest, mu_of_epsilon(self.change, self.delta))


def candidates(deviations: FloatArray, sizes: FloatArray, k: int) -> list[int]:
    """Positions of the k / 2 records of largest `deviations` of own terms and the k / 2 of largest
    `sizes` under weights of 1, in that order; of records that are alike, one."""
    half, chosen, seen = k // 2, [], set()
    pairs = list(zip(deviations.tolist(), sizes.tolist(), strict=True))
    for values in (deviations, sizes):
        taken = 0
        for place in np.argsort(-values, kind="stable"):
            if taken == half:
                break
            if place in chosen:
                taken += 1
            elif pairs[place] not in seen:
                chosen.append(int(place))
                seen.add(pairs[place])
                taken += 1
    return chosen


@dataclass(frozen=True, kw_only=True)
class Informant:
    """A record, or unit, that nearly alone informs a coefficient: its position, the column of the
    design that it has most of, and its share of the information in some direction."""

    record: int
    column: int
    share: float


def sole_informants(X: Any, unit: IntArray | None = None) -> list[Informant]:
    r"""Records, or units, with more than .3 of the information in some direction, from the
    predictors alone: of one record :math:`x_i' (X' X)^{-1} x_i > .3`, its leverage.

    Parameters
    ----------
    X : array_like, shape (n, K)
        Design matrix of one block of a model; K may be 0.
    unit : ndarray of int, shape (n,), optional
        Unit of each record, from 0; each record is one if omitted.
    """
    matrix = np.asarray(X, dtype=np.float64)
    if not matrix.size:
        return []
    size = np.sqrt(np.square(matrix).sum(axis=0))
    scaled = matrix / np.where(size > 0, size, 1.0)
    left, values, _ = np.linalg.svd(scaled, full_matrices=False)
    basis = left[:, values > _RANK * values[0]]
    owner = np.arange(len(matrix)) if unit is None else unit
    leverage = np.bincount(owner, weights=np.square(basis).sum(axis=1))
    informants = []
    for place in np.flatnonzero(leverage > _ALONE):
        rows = np.flatnonzero(owner == place)
        share = float(np.linalg.norm(basis[rows], 2) ** 2)
        if share > _ALONE + _RANK:
            column = int(np.square(scaled[rows]).sum(axis=0).argmax())
            informants.append(Informant(record=int(place), column=column, share=share))
    return informants
