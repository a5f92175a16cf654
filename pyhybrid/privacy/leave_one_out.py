r"""Leave-one-out loss: what a release of these draws really tells about each record.

.. math:: L_{is} = g_{is} + \log \frac{1}{S} \sum_t \exp(-g_{it})

is the log ratio of the posterior with record i to the one without it, at draw s: the privacy loss
of releasing that draw. It is estimated, not bounded. The sum is Pareto smoothed, as in PSIS-LOO.

**From a refit without the record.** With T the log ratio of the two unnormalized densities,
:math:`L = T - \log r`, r the ratio of their normalizing constants, which draws of both give by the
bridge of [B76] and [MW96]: the c that solves

.. math:: E_x[1 / (1 + e^{T - c})] = E_{-i}[1 / (1 + e^{c - T})]

Nothing is smoothed and no limit is used: this is the evidence that the numbers from one posterior
are held against, and the account of a fit takes it in where it says more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from scipy.special import expit, logsumexp

from pyhybrid.core.checks import FloatArray, IntArray, check_nonnegative, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.diagnostics import (
    RELIABLE_K,
    check_chains,
    effective_draws,
    expansion_of,
    heavy_tail,
    smoothed_log_weights,
)
from pyhybrid.privacy.gaussian_limit import GaussianLimit, gaussian_limit
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.privacy.log_lik import terms_of

_PROBABILITIES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, kw_only=True, eq=False)
class LeaveOneOutLoss:
    """Estimated privacy losses, in nats. Confidential: functions of the data.

    Attributes
    ----------
    by_record, by_draw : ndarray, shape (n,) and (S,)
        Largest abs(L_is) over the draws, what the most telling draw says of record i; and over the
        records, what releasing draw s says of anybody.
    quantiles : ndarray, shape (n, 3)
        Of abs(L_is) over the draws, at `probabilities`: 0.5, 0.9 and 0.99.
    pareto_k : ndarray, shape (n,)
        Shape of the smoothed tail. Above 0.7 the loss of that record is unreliable; -inf where the
        term does not move; inf where there are too few draws to tell.
    """

    by_record: FloatArray
    by_draw: FloatArray
    quantiles: FloatArray
    probabilities: tuple[float, ...]
    pareto_k: FloatArray

    @property
    def reliable(self) -> bool:
        """True if Pareto k is at most 0.7 for every record."""
        return bool((self.pareto_k <= RELIABLE_K).all())


def leave_one_out_loss(log_lik: Any, alpha: Any = None) -> LeaveOneOutLoss:
    """Estimated loss of releasing one draw, by record and by draw [V17] sec. 2.

    Parameters
    ----------
    log_lik, alpha
        As for `loss_ranges`. A record that is not finite in any draw has an infinite loss.

    Examples
    --------
    >>> leave_one_out_loss([[-1.0, -3.0], [-2.0, -3.0]]).by_record.round(3)
    array([0.62, 0.  ])
    """
    by_draw: list[FloatArray] = []

    def compute(g: FloatArray, _: FloatArray, __: IntArray) -> tuple[FloatArray, ...]:
        smoothed, k = smoothed_log_weights(-g)
        loss = np.abs(g + logsumexp(smoothed, axis=0) - np.log(g.shape[0]))
        loss[:, np.isneginf(k)] = 0.0  # of a term that does not move, up to rounding
        by_draw.append(loss.max(axis=1))
        return loss.max(axis=0), np.quantile(loss, _PROBABILITIES, axis=0).T, k

    (largest, quantiles, k), unbounded = terms_of(log_lik, alpha).by_record(compute)
    return LeaveOneOutLoss(
        by_record=np.where(unbounded, np.inf, largest),
        by_draw=np.full(len(by_draw[0]), np.inf) if unbounded.any() else np.max(by_draw, axis=0),
        quantiles=np.where(unbounded[:, None], np.inf, quantiles),
        probabilities=_PROBABILITIES,
        pareto_k=np.where(unbounded, np.inf, k),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RefitLoss:
    """Privacy loss about one record, at draws of both posteriors. Confidential.

    Attributes
    ----------
    by_draw, by_draw_without : ndarray, shape (S,) and (S',)
        L at draws of the posterior with the record, and without it, nats.
    loss_range : float
        Largest less smallest T over the draws of both.
    mu, mu_without, standard_error, standard_error_without : float
        Deviation of T under either posterior, which agree in the Gaussian limit; Monte Carlo
        standard errors of both.
    moved : float
        Root of the mean of L with the record less its mean without: the distance of the
        posteriors, mu in the Gaussian limit.
    """

    by_draw: FloatArray
    by_draw_without: FloatArray
    loss_range: float
    mu: float
    mu_without: float
    standard_error: float
    standard_error_without: float
    moved: float

    @property
    def largest(self) -> float:
        """Largest abs(L) over the draws of both, nats."""
        return float(max(np.abs(self.by_draw).max(), np.abs(self.by_draw_without).max()))

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`, >= 0, from the draws: the larger of both directions."""
        epsilon = check_nonnegative(epsilon, "epsilon")
        with_record = -np.expm1(np.minimum(epsilon - self.by_draw, 0.0)).mean()
        without = -np.expm1(np.minimum(epsilon + self.by_draw_without, 0.0)).mean()
        return float(max(with_record, without))


def refit_loss(terms: Any, terms_without: Any, *, chains: int = 1) -> RefitLoss:
    """Loss about one record from draws with it and of a refit without it [B76], [MW96] sec. 3.

    Parameters
    ----------
    terms : array_like, shape (S,)
        T at draws of the posterior with the record, nats: what the record adds to the weighted
        log-likelihood, alpha_i f_i where no other weight changes. Not NaN; where one is infinite,
        `largest` and `loss_range` are.
    terms_without : array_like, shape (S',)
        T at draws of the posterior without it.
    chains : int, default 1
        Chains that either come from, at least 4 draws each.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> z = norm.ppf((np.arange(4000) + 0.5) / 4000)  # N(0.5, 1) against N(0, 1)
    >>> round(refit_loss(0.5 * (z + 0.5), 0.5 * z).moved, 2)
    0.5
    """
    present = _checked(terms, "terms", chains)
    absent = _checked(terms_without, "terms_without", chains)
    constant = _log_ratio(present, absent)
    with np.errstate(invalid="ignore"):
        loss, loss_without = present - constant, absent - constant
        spread = max(present.max(), absent.max()) - min(present.min(), absent.min())
        distance = loss.mean() - loss_without.mean()
    mu, error = _deviation(present, chains)
    mu_without, error_without = _deviation(absent, chains)
    return RefitLoss(
        by_draw=loss,
        by_draw_without=loss_without,
        loss_range=math.inf if np.isnan(spread) else float(spread),
        mu=mu,
        mu_without=mu_without,
        standard_error=error,
        standard_error_without=error_without,
        moved=math.inf if np.isnan(distance) else math.sqrt(max(distance, 0.0)),
    )


def _checked(values: Any, name: str, chains: int) -> FloatArray:
    vector = check_vector(values, name)
    if np.isnan(vector).any():
        raise InvalidInput(f"{name} must not be NaN: draw {int(np.isnan(vector).argmax())} is")
    check_chains(vector.size, chains)
    return vector


def _log_ratio(present: FloatArray, absent: FloatArray) -> float:
    """log r; the bridge's equation is monotone in it."""
    both = np.concatenate([present, absent])
    finite = both[np.isfinite(both)]
    if not finite.size:
        return math.nan
    low, high = float(finite.min()), float(finite.max())

    def difference(c: float) -> float:
        return float(expit(c - present).mean() - expit(absent - c).mean())

    while difference(low) > 0:
        low -= 1 + high - low
    while difference(high) < 0:
        high += 1 + high - low
    if low == high:
        return low
    return float(scipy.optimize.brentq(difference, low, high, xtol=1e-12, maxiter=5000))


def _deviation(terms: FloatArray, chains: int) -> tuple[float, float]:
    """Standard deviation of terms and its Monte Carlo standard error; infinite if they are."""
    if not np.isfinite(terms).all():
        return math.inf, math.inf
    squares = (terms - terms.mean()) ** 2
    variance = float(squares.mean())
    if variance == 0:
        return 0.0, 0.0
    noise = float(squares.std()) / math.sqrt(float(effective_draws(squares[:, None], chains)[0]))
    return math.sqrt(variance), noise / (2 * math.sqrt(variance))


@dataclass(frozen=True, kw_only=True, eq=False)
class Refit:
    """A fit without one record, or unit, beside its account, weights made anew where they depend on
    data: risks at the same standardized extreme, without the chance of extremes. Confidential."""

    record: int  # position of the record, or of the unit
    mu: float
    loss_range: float
    loss: RefitLoss
    chains: int = 1  # that the draws of the fit come from; 1 where some were dropped
    converged: bool  # whether the refit has
    far: float = 0.0  # loss as far beyond the draws without it as delta decides, if known

    @cached_property
    def _limits(self) -> tuple[GaussianLimit, ...]:
        """Of the change under both posteriors, each the other's neighbor."""
        changes = self.loss.by_draw, -self.loss.by_draw_without
        return tuple(gaussian_limit(own[:, None], chains=self.chains) for own in changes)

    @property
    def limit_holds(self) -> bool:
        """True if the Gaussian limit holds under both posteriors."""
        return all(limit.holds.all() for limit in self._limits)

    @property
    def mu_upper(self) -> float:
        """Mu to charge if it is the larger one: the deviation under either fit, its upper end, with
        its skewness; or the distance of the posteriors."""
        return float(max(self.loss.moved, *(limit.overall for limit in self._limits)))

    def expansion(self) -> FloatArray:
        """How the change goes on beyond the draws of either posterior, (4, 2)."""
        changes = self.loss.by_draw, -self.loss.by_draw_without
        finite = all(np.isfinite(own).all() for own in changes)
        told = [expansion_of(own[:, None], self.chains) for own in changes] if finite else []
        return np.hstack(told) if told else np.full((4, 2), np.inf)

    @property
    def farthest(self) -> float:
        """Loss to charge where the limit does not hold: of the draws, or beyond them, as under
        the prior of a parameter that the record alone informs, where the change may rise steeply or
        have a heavy tail."""
        changes = self.loss.by_draw, -self.loss.by_draw_without
        tails = (heavy_tail(own) for own in changes if np.isfinite(own).all())
        return max([self.loss.largest, self.far, *tails])

    @property
    def within(self) -> bool:
        """True if the refit shows no more than the account said."""
        return self.loss.largest <= self.loss_range and self.mu_upper <= self.mu


@dataclass(frozen=True, kw_only=True, eq=False)
class Refits:
    """All refits of one release, the record of largest mu first. Confidential."""

    each: tuple[Refit, ...]
    failed: int = 0  # records that no refit could be made without

    def rows(self) -> list[dict[str, Any]]:
        """One mapping for each refit, for a table."""
        return [
            {
                "record": each.record,
                "mu": each.mu,
                "loss_range": each.loss_range,
                "refit_mu": each.loss.mu_without,
                "refit_mu_standard_error": each.loss.standard_error_without,
                "refit_moved": each.loss.moved,
                "refit_largest_loss": each.loss.largest,
                "refit_loss_range": each.loss.loss_range,
                "converged": each.converged,
            }
            for each in self.each
        ]

    def __repr__(self) -> str:
        return f"<Refits without each of {len(self.each)} records>"


def most_told(account: LocalAccount, k: int, leverage: FloatArray | None = None) -> list[int]:
    """The `k` records with the largest privacy loss, one of those alike, and the one that pays most
    of those whose limit does not hold; with `leverage` (n,) also the one that moves most the draws
    that risks were read from: its importance weights are least to be trusted."""
    order = np.lexsort((-account.loss_ranges, -account.mu_by_record))
    told = np.column_stack([account.mu_by_record, account.loss_ranges])[order]
    first = np.sort(np.unique(told, axis=0, return_index=True)[1])
    chosen = [int(place) for place in order[first[:k]]]
    if account.costliest is not None:
        chosen.append(account.costliest)
    if leverage is not None and leverage.any():
        chosen.append(int(np.argmax(leverage)))
    return list(dict.fromkeys(chosen))


def with_refits(account: LocalAccount, refits: Refits) -> LocalAccount:
    """The account with the larger number charged where a refit says more."""
    mu, ranges = account.mu_by_record.copy(), account.loss_ranges.copy()
    error, of_limit = account.mu_standard_error, account.largest_of_limit
    failing, expansion = [account.failing], [account.expansion]
    for refit in refits.each:
        upper = refit.mu_upper
        ranges[refit.record] = max(ranges[refit.record], refit.loss.loss_range)
        if upper > mu.max():
            error = refit.loss.standard_error_without
        mu[refit.record] = max(mu[refit.record], upper)
        if refit.limit_holds:
            of_limit = max(of_limit, upper)
        else:
            failing.append(np.array([[refit.farthest], [upper]]))
            expansion.append(refit.expansion())
    return replace(
        account,
        mu_by_record=mu,
        loss_ranges=ranges,
        mu=float(mu.max()),
        loss_range=float(ranges.max()),
        mu_standard_error=error,
        mu_of_limit=of_limit,
        limit_holds=account.limit_holds and len(failing) == 1,
        failing=np.hstack(failing),
        expansion=np.hstack(expansion),
    )
