r"""What one released draw tells of the records present: three accounts of one fit.

============= ==================================================== =====================
account       quantity                                             guarantee
============= ==================================================== =====================
``lipschitz`` :math:`\Delta = \max_i \sup |\alpha_i f_i|`          2 Delta [S22]
``range``     :math:`R = \max_i (\sup T_i - \inf T_i)`             R [DR19]
``gaussian``  :math:`\mu = \max_i \mathrm{sd}(T_i)`, with its limit (epsilon, delta) [DRS22]
============= ==================================================== =====================

T_i is the change of the weighted log-likelihood when record i leaves: alpha_i f_i where weights do
not depend on other records, and the recomputed change where they do.

References
----------
[S22] sec. 2; [DR19] sec. 3; [DRS22] def. 2.6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from pyhybrid.checks import FloatArray
from pyhybrid.privacy.beyond_draws import expansion_of, loss_of_expansion
from pyhybrid.privacy.effective_draws import effective_draws
from pyhybrid.privacy.gaussian_curve import epsilon_of_mu
from pyhybrid.privacy.gaussian_limit import GaussianLimit, gaussian_limit
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.pareto import RELIABLE_K
from pyhybrid.privacy.ranges import ranges_of
from pyhybrid.privacy.recomputed import WeightsWithout, moved_terms
from pyhybrid.privacy.terms import IntArray

__all__ = ["ACCOUNTINGS", "LocalAccount", "WeightsWithoutRecords", "local_account"]

ACCOUNTINGS = ("gaussian", "range", "lipschitz")
"""Ways to count what a local release costs, the default first."""

_EXAMINED = 200  # records whose limit is checked: those that move most
_DEPTH = 5.0  # normal deviations at which probabilities are those of a delta of 1e-6
_FEW_DRAWS = 8  # below this nothing can be said of a limit
_NONE = np.empty((3, 0))
_RECOUNTED = 10_000_000  # elements of a slice in which all weights are recomputed


class WeightsWithoutRecords(Protocol):
    """Weights of a database and of it without each record: `privacy.recomputed`."""

    @property
    def alpha(self) -> FloatArray:
        """Weights of the whole database, shape (n,)."""

    def terms(self, matrix: FloatArray) -> FloatArray:
        """T, shape (S, n), from the log-likelihood matrix."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalAccount:
    """Accounts of one released draw. Confidential: functions of the data.

    Attributes
    ----------
    loss_ranges : ndarray, shape (n,)
        R_i in nats.
    mu_by_record : ndarray, shape (n,)
        What is charged for each record that was examined; the deviation of the term for the rest.
    loss_range, mu : float
        The largest of each: what is charged.
    mu_standard_error : float
        Monte Carlo standard error of the largest deviation; `mu` is above it by two.
    limit_holds : bool
        Whether the Gaussian limit holds for every record that matters.
    n_draws : int
        Draws of the posterior that the account was made from.
    draws_recounted : int
        Draws in which the weights without each record were recomputed; 0 if they do not change.
    expansion : ndarray, shape (3, k)
        How the terms of k records go on beyond the draws (`privacy.beyond_draws`): of those that
        were examined where the limit does not hold, none elsewhere.
    """

    loss_ranges: FloatArray
    mu_by_record: FloatArray
    loss_range: float
    mu: float
    mu_standard_error: float
    limit_holds: bool
    n_draws: int
    draws_recounted: int = 0
    expansion: FloatArray = field(default_factory=lambda: _NONE)

    def range_to(self, delta: float, *, otherwise: float) -> float:
        """What is charged for one draw where the Gaussian limit does not hold, nats.

        A range of S draws says nothing of losses rarer than about 1/S. The largest of: that range;
        the epsilon of mu; and the loss at probability `delta` of terms that go on beyond the draws
        as they do within, or `otherwise` where that cannot be told.
        """
        beyond = self.loss_beyond(delta)
        gaussian = epsilon_of_mu(self.mu, delta) if np.isfinite(self.mu) else 0.0
        return max(self.loss_range, gaussian, beyond if np.isfinite(beyond) else otherwise)

    def loss_beyond(self, delta: float) -> float:
        """Loss at probability `delta` beyond the draws, nats; infinite where they do not tell."""
        if not self.expansion.size:
            return np.inf
        return float(loss_of_expansion(self.expansion, delta).max())

    def __repr__(self) -> str:
        return f"<LocalAccount of {self.loss_ranges.size} records, {self.n_draws} draws>"


def local_account(
    log_lik: LogLik,
    alpha: FloatArray,
    *,
    n_draws: int,
    chains: int = 1,
    without: WeightsWithoutRecords | None = None,
) -> LocalAccount:
    """Range and mu of one draw of the posterior weighted by `alpha` (n,).

    Parameters
    ----------
    log_lik : LogLik
        Unweighted, at draws of the weighted posterior that may be released.
    alpha : ndarray, shape (n,)
        Record weights in [0, 1].
    n_draws : int
        S.
    chains : int, default 1
        Chains that the draws come from, one after the other.
    without : WeightsWithoutRecords, optional
        How the weights change when a record leaves. Omitted: they do not.

    Notes
    -----
    Deviations and ranges are computed for all records. The limit, and the deviation under the
    posterior without the record, are computed for the 200 records whose terms move most: no other
    comes near them unless its deviation more than doubles without it. Where more than 600 records
    move the weights of others, their changes are computed for those whose terms move most and for
    the 200 with the lowest and the 200 with the highest weights: a record moves the weights of
    others the more, the farther out its own is.
    """
    ranges = ranges_of(log_lik, alpha).by_record
    deviations = alpha * log_lik.by_record(_deviation)
    deviations = np.where(np.isfinite(ranges), deviations, np.inf)
    deviations[alpha == 0] = 0.0
    chosen = _largest(deviations, ranges)
    own_terms = np.where(alpha[chosen] > 0, columns_of(log_lik, chosen), 0.0) * alpha[chosen]
    limits = [_Examined.of(own_terms, chains)]
    recounted = 0
    if isinstance(without, WeightsWithout):
        recounted, movers = n_draws, _watched(without, chosen)
        if movers.size:
            terms = moved_terms(log_lik, without, movers)
            ranges[movers] = np.fmax(ranges[movers], _spread(terms))
            limits.append(_Examined.of(terms, chains))
            _raise(deviations, movers, limits[1])
    elif without is not None:
        recounted = n_draws
        spread, moved = _recount(log_lik, without, n_draws)
        ranges, deviations = np.fmax(ranges, spread), np.fmax(deviations, moved)
        own = _largest(moved, spread)
        terms = np.concatenate([part[:, own] for part in _slices(log_lik, without, n_draws)])
        limits.append(_Examined.of(terms, chains))
        _raise(deviations, own, limits[1])
    _raise(deviations, chosen, limits[0])
    top = max(limits, key=lambda examined: examined.overall)
    mu = float(deviations.max())
    holds = all(examined.holds_within(mu) for examined in limits)
    return LocalAccount(
        loss_ranges=ranges,
        mu_by_record=deviations,
        loss_range=float(ranges.max()),
        mu=mu,
        mu_standard_error=top.standard_error,
        limit_holds=holds,
        n_draws=n_draws,
        draws_recounted=recounted,
        expansion=np.concatenate([each.expansion() for each in limits if not holds] or [_NONE], 1),
    )


def columns_of(log_lik: LogLik, records: IntArray) -> FloatArray:
    """Log-likelihood of some records, shape (S, k)."""
    rows = log_lik.row_of[records]
    wanted = np.unique(rows)
    parts = []
    for here, block in log_lik.blocks():
        inside = wanted[(wanted >= here.start) & (wanted < here.stop)]
        if inside.size:
            parts.append(np.asarray(block[:, inside - here.start], dtype=np.float64))
    return np.concatenate(parts, axis=1)[:, np.searchsorted(wanted, rows)]


def _spread(terms: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        spread = np.ptp(terms, axis=0)
    return np.where(np.isnan(spread), np.inf, spread)


def _deviation(block: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(block.std(axis=0))


def _largest(*measures: FloatArray) -> IntArray:
    """Records with the largest values of any of the measures."""
    most = min(_EXAMINED, measures[0].size)
    found = [np.argpartition(-measure, most - 1)[:most] for measure in measures]
    return np.unique(np.concatenate(found))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Examined:
    """Terms (S, k) of some records, and their limit; None where draws do not allow one."""

    terms: FloatArray
    chains: int
    limit: GaussianLimit | None

    @classmethod
    def of(cls, terms: FloatArray, chains: int) -> _Examined:
        known = np.where(np.isnan(terms), np.inf, terms)
        enough = terms.shape[0] >= _FEW_DRAWS * chains
        limit = gaussian_limit(known, chains=chains) if enough else None
        return cls(terms=known, chains=chains, limit=limit)

    @property
    def overall(self) -> float:
        return np.inf if self.limit is None else self.limit.overall

    @property
    def standard_error(self) -> float:
        return np.inf if self.limit is None else self.limit.mu.standard_error

    def expansion(self) -> FloatArray:
        """Of the terms that move and are finite, (3, k); of none where draws are too few."""
        spread = _spread(self.terms)
        known = np.isfinite(spread) & (spread > 0)
        if self.limit is None or not known.any():
            return _NONE
        return expansion_of(self.terms[:, known], self.chains)

    def holds_within(self, mu: float) -> bool:
        """Whether no record's loss has a heavier tail than that of N(0, mu), mu being charged.

        The limit holds for the record, or its term is so small that it need not: a term
        a z + b z^2 of a normal z, of range R over draws that reach as far as z_S, is at depth z no
        farther from its mean than R (z^2 - 1) / z_S^2, which is to be at most z mu.
        """
        if self.limit is None or not np.isfinite(mu):
            return False
        doubtful = np.flatnonzero(~(self.limit.holds | self.limit.harmless))
        if not doubtful.size:
            return True
        terms = self.terms[:, doubtful]
        spread = _spread(terms)
        trusted = (self.limit.mu.pareto_k[doubtful] <= RELIABLE_K) & np.isfinite(spread)
        if not trusted.all():
            return False
        reach = ndtri(1 - 1 / np.maximum(effective_draws(terms, self.chains), 2.0))
        return bool((spread * (_DEPTH**2 - 1) <= reach**2 * _DEPTH * mu).all())


def _raise(deviations: FloatArray, records: IntArray, examined: _Examined) -> None:
    charged = np.inf if examined.limit is None else examined.limit.mu_charged
    deviations[records] = np.fmax(deviations[records], charged)


def _watched(without: WeightsWithout, chosen: IntArray) -> IntArray:
    """Of the records that move the weights of others those whose changes are computed."""
    movers = without.movers
    if movers.size <= 3 * _EXAMINED:
        return movers
    by_weight = movers[np.argsort(without.alpha[movers], kind="stable")]
    outer = np.concatenate([by_weight[:_EXAMINED], by_weight[-_EXAMINED:]])
    return np.union1d(np.intersect1d(chosen, movers), outer)


def _slices(log_lik: LogLik, without: WeightsWithoutRecords, n_draws: int) -> Iterator[FloatArray]:
    """T (s, n) of all records, a slice of draws at a time."""
    everyone, width = np.arange(log_lik.n), max(1, _RECOUNTED // log_lik.n)
    for start in range(0, n_draws, width):
        draws = np.arange(start, min(start + width, n_draws))
        yield without.terms(columns_of(log_lik.at(draws), everyone))


def _recount(
    log_lik: LogLik, without: WeightsWithoutRecords, n_draws: int
) -> tuple[FloatArray, FloatArray]:
    """Range and deviation of T of all records, each (n,), infinite where T is not finite."""
    first, low, high, total, squares = (np.zeros(0) for _ in range(5))
    for terms in _slices(log_lik, without, n_draws):
        with np.errstate(invalid="ignore"):
            if not first.size:
                first, low, high = terms[0], terms[0], terms[0]
                total, squares = np.zeros(first.size), np.zeros(first.size)
            low, high = np.minimum(low, terms.min(axis=0)), np.maximum(high, terms.max(axis=0))
            moved = terms - first  # a constant cancels, and is best taken off before squares
            total, squares = total + moved.sum(axis=0), squares + (moved**2).sum(axis=0)
    with np.errstate(invalid="ignore"):
        spread = high - low
        variance = np.maximum(squares / n_draws - (total / n_draws) ** 2, 0.0)
    bounded = np.isfinite(spread)
    return np.where(bounded, spread, np.inf), np.sqrt(np.where(bounded, variance, np.inf))
