r"""Privacy loss of one released draw about the records present: three accounts of one fit.

============= ==================================================== =====================
account       quantity                                             guarantee
============= ==================================================== =====================
``lipschitz`` :math:`\Delta = \max_i \sup |\alpha_i f_i|`          2 Delta [S22]
``range``     :math:`R = \max_i (\sup T_i - \inf T_i)`             R [DR19]
``gaussian``  :math:`\mu = \max_i \mathrm{sd}(T_i)`, with its limit (epsilon, delta) [DRS22]
============= ==================================================== =====================

T_i is the change of the weighted log-likelihood when record i leaves: alpha_i f_i where weights do
not depend on other records, and the recomputed change where they do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtri

from pyhybrid.core.checks import FloatArray, IntArray
from pyhybrid.privacy.bounds import loss_ranges
from pyhybrid.privacy.conversions import epsilon_of_mu
from pyhybrid.privacy.count_risk import CountWithout
from pyhybrid.privacy.diagnostics import (
    DEPTH,
    RELIABLE_K,
    STANDARD_ERRORS,
    effective_draws,
    expansion_of,
    loss_of_expansion,
)
from pyhybrid.privacy.gaussian_limit import GaussianLimit, gaussian_limit
from pyhybrid.privacy.log_lik import LogLik, range_of
from pyhybrid.privacy.weight_sensitivity import PARTS, WeightsWithout, moved_terms

WeightsWithoutRecords = WeightsWithout | CountWithout
"""Weights of a database and of it without each record."""
ACCOUNTINGS = ("gaussian", "range", "lipschitz")
"""Ways to count what a local release costs, the default first."""

_EXAMINED = 200  # records whose limit is checked: those that move most
_CHANCE_OF = 4  # records that the chance of weights is computed for
_ROUNDS = 3  # in which records are examined that could come above those known
_MOVES = 0.1  # of the largest leverage: below it the gain of a record is mostly noise
_RARE = 1e-6  # probability by which records whose limit does not hold are ordered
_FEW_DRAWS = 8  # below this nothing can be said of a limit
_NONE = np.empty((4, 0))
_RECOUNTED = 10_000_000  # elements of a slice in which all weights are recomputed


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalAccount:
    """Accounts of one draw of n records: `mu_by_record`, of those not examined from above, and by
    `expansion` how terms whose limit does not hold go on beyond the draws, infinite where that
    cannot be told. Confidential."""

    loss_ranges: FloatArray  # (n,) R_i in nats
    mu_by_record: FloatArray  # (n,)
    loss_range: float  # the largest of each
    mu: float
    mu_standard_error: float  # of the largest deviation; `mu` is above it by two
    limit_holds: bool  # the Gaussian one, for every record that matters
    n_draws: int
    draws_recounted: int = 0  # in which the weights without each record were recomputed, if any
    mu_of_limit: float | None = None  # of the records whose limit holds; `mu` if omitted
    failing: FloatArray = field(default_factory=lambda: _NONE[:2])  # (2, k) loss, mu of the rest
    expansion: FloatArray = field(default_factory=lambda: _NONE)  # (4, k)
    costliest: int | None = None  # record that pays most of those whose limit does not hold

    @property
    def largest_of_limit(self) -> float:
        """`mu_of_limit`, or `mu` where the limit holds for all; 0 where it holds for none."""
        if self.mu_of_limit is not None:
            return self.mu_of_limit
        return self.mu if self.limit_holds else 0.0

    def loss_to(self, delta: float, *, otherwise: float, n_draws: int = 1) -> float:
        """Cost of released draws to records whose Gaussian limit does not hold, nats: the largest
        of their loss over the draws, their deviation's epsilon and the loss at `delta` beyond the
        draws, which say nothing of rarer ones; by range, or `otherwise`, a draw if untold."""
        largest, mu = self.failing if self.failing.size else ([self.loss_range], [self.mu])
        most, beyond = float(np.max(largest)), self.loss_beyond(delta, n_draws)
        if not np.isfinite(beyond):
            return n_draws * max(most, self.loss_range, otherwise)
        return max(most, beyond, epsilon_of_mu(math.sqrt(n_draws) * float(np.max(mu)), delta))

    def loss_beyond(self, delta: float, n_draws: int = 1) -> float:
        """Loss at probability `delta` beyond the draws, nats; infinite where they do not tell."""
        if not self.expansion.size:
            return np.inf
        return float(loss_of_expansion(self.expansion, delta, n_draws).max())

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

    From the unweighted log-likelihood at S = `n_draws` draws, `chains` one after the other;
    `without` says how the weights change when a record leaves, omitted: they do not. The limit, and
    the deviation without the record, are computed for the 200 records whose terms move most. Where
    weights change, the whole change T_i is computed for these, for the 200 that move the draws most
    which risks were read from, and then for those that could come above them: what weights add to a
    record's deviation is at most the largest gain seen, times how far it moves those draws.
    """
    ranges = loss_ranges(log_lik, alpha).by_record
    deviations = alpha * log_lik.by_record(_deviation)
    deviations = np.where(np.isfinite(ranges), deviations, np.inf)
    deviations[alpha == 0] = 0.0
    recounted, chance = n_draws, 0.0
    if isinstance(without, WeightsWithout) and without.movers.size:
        limits = _weights_moved(log_lik, without, ranges, deviations, chains)
        chance = _chance(log_lik, without, limits)
    elif without is None or isinstance(without, WeightsWithout):
        chosen = _largest(deviations, ranges)
        terms = np.where(alpha[chosen] > 0, columns_of(log_lik, chosen), 0.0) * alpha[chosen]
        limits = [_Examined.of(chosen, terms, chains)]
        recounted = 0 if without is None else n_draws
    else:
        spread, moved = _recount(log_lik, without, n_draws)
        ranges[:], deviations[:] = spread, moved
        chosen = _largest(moved, spread)
        terms = np.concatenate([part[:, chosen] for part in _slices(log_lik, without, n_draws)])
        limits = [_Examined.of(chosen, terms, chains)]
    for examined in limits:
        deviations[examined.records] = examined.charged
    deviations[deviations > 0] += chance
    by_row = without is None or (isinstance(without, WeightsWithout) and not _unread(without))
    alike = log_lik.row_of + 1j * alpha if by_row else np.arange(log_lik.n)
    return _account(ranges, deviations, limits, alike, chance, n_draws=n_draws, recounted=recounted)


def _account(
    ranges: FloatArray,
    deviations: FloatArray,
    limits: list[_Examined],
    alike: npt.NDArray[Any],
    chance: float,
    *,
    n_draws: int,
    recounted: int,
) -> LocalAccount:
    """Every record pays by mu if its limit holds, and else by its own loss or more; so do those
    that are `alike`, of an equal value (n,)."""
    sure = max((examined.largest_sure for examined in limits), default=0.0)
    pairs = [(examined, examined.failing(sure)) for examined in limits]
    failed = np.concatenate([examined.records[mask] for examined, mask in pairs])
    holding = deviations[~np.isin(alike, alike[failed])] if failed.size else deviations
    expansion = np.concatenate([examined.expansion(mask) for examined, mask in pairs], axis=1)
    beyond = loss_of_expansion(expansion, _RARE)
    top = max(limits, key=lambda examined: float(examined.charged.max(initial=0.0)))
    upper = np.concatenate([examined.upper[mask] for examined, mask in pairs])
    largest = np.concatenate([_largest_loss(examined.terms[:, mask]) for examined, mask in pairs])
    return LocalAccount(
        loss_ranges=ranges,
        mu_by_record=deviations,
        loss_range=float(ranges.max()),
        mu=float(deviations.max()),
        mu_standard_error=top.standard_error + chance / STANDARD_ERRORS,
        limit_holds=not failed.size,
        n_draws=n_draws,
        draws_recounted=recounted,
        mu_of_limit=float(holding.max(initial=0.0)),
        failing=np.stack([largest, upper + chance]),
        expansion=expansion,
        costliest=int(failed[np.argmax(beyond)]) if failed.size else None,
    )


def _weights_moved(
    log_lik: LogLik,
    without: WeightsWithout,
    ranges: FloatArray,
    deviations: FloatArray,
    chains: int,
) -> list[_Examined]:
    """The whole change of the records that may cost most; raises the others' to what they may."""
    leverage, limits = without.leverage, list[_Examined]()
    distinct, place = _distinct(log_lik, without)
    above, gain = deviations.copy(), 0.0
    chosen = distinct
    if not _unread(without):
        measures = (deviations, ranges, leverage)
        chosen = distinct[_largest(*(measure[distinct] for measure in measures))]
    while chosen.size:
        terms = moved_terms(log_lik, without, chosen)
        limits.append(_Examined.of(chosen, terms, chains))
        columns = np.where(without.alpha[chosen] > 0, columns_of(log_lik, chosen), 0.0)
        added = _deviation(terms - without.alpha[chosen] * columns)
        moving = (leverage[chosen] > _MOVES * leverage.max()) & np.isfinite(added)
        gain = max(gain, float((added[moving] / leverage[chosen][moving]).max(initial=0.0)))
        ranges[chosen], above[chosen] = range_of(terms), limits[-1].charged
        rest = np.setdiff1d(distinct, np.concatenate([known.records for known in limits]))
        above[rest] = deviations[rest] + gain * leverage[rest]
        beyond = rest[
            above[rest] > np.delete(above[distinct], np.searchsorted(distinct, rest)).max()
        ]
        if len(limits) == _ROUNDS:
            break
        chosen = beyond[np.argsort(-above[beyond], kind="stable")[:_EXAMINED]]
    deviations[:], ranges[:] = above[place], ranges[place]
    return limits


def _chance(log_lik: LogLik, without: WeightsWithout, limits: list[_Examined]) -> float:
    """What two standard errors of the change of weights add to those of mu: the largest of the
    records that pay most, by the jackknife over parts of the draws that weights are read from."""
    if without.part is None:
        return 0.0
    records = np.concatenate([examined.records for examined in limits])
    charged = np.concatenate([examined.charged for examined in limits])
    errors = np.concatenate([examined.errors for examined in limits])
    top = np.argsort(-np.where(np.isfinite(charged), charged, 0.0), kind="stable")[:_CHANCE_OF]
    parts = [
        _deviation(moved_terms(log_lik, without.of_part(p), records[top])) for p in range(PARTS)
    ]
    squares = (PARTS - 1) * np.var(parts, axis=0)
    added = STANDARD_ERRORS * (np.sqrt(errors[top] ** 2 + squares) - errors[top])
    added = np.where(np.isnan(added), np.inf, added)  # nothing is known of what has no number
    return float(np.where(np.isfinite(errors[top]), added, 0.0).max(initial=0.0))


def _unread(without: WeightsWithout) -> bool:
    """True of weights that read no draws, so that no leverage tells how far they move."""
    return not without.leverage.any()


def _distinct(log_lik: LogLik, without: WeightsWithout) -> tuple[IntArray, IntArray]:
    """Records that stand for all others with their row and weight, and which one for each (n,)."""
    if _unread(without):  # weights by what the rows of the model may not show
        everyone = np.arange(log_lik.n)
        return everyone, everyone
    pairs = np.column_stack([log_lik.row_of, without.alpha])
    _, first, place = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return np.sort(first), first[place.reshape(-1)]


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


def _deviation(block: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(block.std(axis=0))


def _largest_loss(terms: FloatArray) -> FloatArray:
    """Of terms (S, k) over the draws, nats, (k,); the loss is a term less the logarithm of what
    makes the density without it one, as in leave-one-out; infinite where one is."""
    with np.errstate(invalid="ignore"):
        loss = terms + logsumexp(-terms, axis=0) - math.log(len(terms))
    return np.where(np.isfinite(terms).all(axis=0), np.abs(loss).max(axis=0), np.inf)


def _largest(*measures: FloatArray) -> IntArray:
    """Records with the largest values of any of the measures."""
    most = min(_EXAMINED, measures[0].size)
    largest = [np.argpartition(-measure, most - 1)[:most] for measure in measures]
    return np.unique(np.concatenate(largest))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Examined:
    """Terms (S, k) of some records, and their limit; None where draws do not allow one."""

    records: IntArray
    terms: FloatArray
    chains: int
    limit: GaussianLimit | None

    @classmethod
    def of(cls, records: IntArray, terms: FloatArray, chains: int) -> _Examined:
        known = np.where(np.isnan(terms), np.inf, terms)
        enough = terms.shape[0] >= _FEW_DRAWS * chains
        limit = gaussian_limit(known, chains=chains) if enough else None
        return cls(records=records, terms=known, chains=chains, limit=limit)

    @property
    def charged(self) -> FloatArray:
        """Mu to charge of each record, (k,)."""
        return np.full(self.records.size, np.inf) if self.limit is None else self.limit.mu_charged

    @property
    def upper(self) -> FloatArray:
        """Upper end of the deviation of each record, (k,), as a normal term would be charged."""
        return self.charged if self.limit is None else self.limit.mu.upper_by_record

    @property
    def errors(self) -> FloatArray:
        """Standard error of mu of each record, (k,)."""
        if self.limit is None:
            return np.full(self.records.size, np.inf)
        return self.limit.mu.standard_error_by_record

    @property
    def largest_sure(self) -> float:
        """Largest mu of the records whose limit holds."""
        return 0.0 if self.limit is None else float(self.charged[self.limit.holds].max(initial=0.0))

    @property
    def standard_error(self) -> float:
        return np.inf if self.limit is None else self.limit.mu.standard_error

    def expansion(self, chosen: npt.NDArray[np.bool_]) -> FloatArray:
        """Of the terms of some records, (4, k), infinite where unbounded or of few draws."""
        terms = self.terms[:, chosen]
        told = np.isfinite(range_of(terms)) if self.limit else np.zeros(terms.shape[1], bool)
        expansion = np.full((4, told.size), np.inf)
        if told.any():
            expansion[:, told] = expansion_of(terms[:, told], self.chains)
        return expansion

    def failing(self, mu: float) -> npt.NDArray[np.bool_]:
        """Records (k,) with a heavier tail than N(0, mu), mu being charged. A term a z + b z^2 of a
        normal z, of range R over draws up to z_S, is at depth z at most R (z^2 - 1) / z_S^2 from
        its mean: small enough if no more than z mu."""
        failing = np.ones(self.records.size, dtype=bool)
        if self.limit is None:
            return failing
        doubtful = np.flatnonzero(~self.limit.holds)
        failing[self.limit.holds] = False
        terms = self.terms[:, doubtful]
        spread = range_of(terms)
        trusted = (self.limit.mu.pareto_k[doubtful] <= RELIABLE_K) & np.isfinite(spread)
        reach = ndtri(
            1 - 1 / np.maximum(effective_draws(np.where(trusted, terms, 0.0), self.chains), 2.0)
        )
        small = np.where(trusted, spread, np.inf) * (DEPTH**2 - 1) <= reach**2 * DEPTH * mu
        failing[doubtful] = ~(small | (spread == 0))
        return failing


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
