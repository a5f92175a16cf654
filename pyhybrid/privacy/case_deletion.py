"""Refits without the records that most is told about, and the account that takes them in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy.gaussian_limit import gaussian_limit
from pyhybrid.privacy.gaussian_mu import STANDARD_ERRORS
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.privacy.refit_loss import RefitLoss

__all__ = ["Refit", "Refits", "most_told", "with_refits"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Refit:
    """A fit without one record, or unit, beside what was said of it before. Confidential.

    Attributes
    ----------
    record : int
        Position of the record, or of the unit.
    mu, loss_range : float
        What the account of the fit said of it.
    loss : RefitLoss
        At draws of both posteriors. Weights that depend on the data are made anew from fits
        without the record: risks at the same standardized extreme, with the mean and deviation
        that these fits give, so that the chance of extremes over draws is not in it.
    chains : int
        That the draws of the fit come from; 1 where some were dropped.
    converged : bool
        Whether the refit has.
    """

    record: int
    mu: float
    loss_range: float
    loss: RefitLoss
    chains: int = 1
    converged: bool

    @property
    def mu_upper(self) -> float:
        """What is charged if it is the larger one: the deviation under the refit, its upper end;
        that under the fit, with its skewness; or the distance of the posteriors."""
        under = self.loss.mu_without + STANDARD_ERRORS * self.loss.standard_error_without
        own = gaussian_limit(self.loss.by_draw[:, None], chains=self.chains).overall
        return float(max(under, own, self.loss.moved))

    @property
    def within(self) -> bool:
        """Whether the refit found no more than the account said."""
        return self.loss.largest <= self.loss_range and self.mu_upper <= self.mu


@dataclass(frozen=True, kw_only=True, eq=False)
class Refits:
    """All refits of one release, the record that most is told about first. Confidential.

    Attributes
    ----------
    each : tuple of Refit
    failed : int
        Records that no refit could be made without.
    """

    each: tuple[Refit, ...]
    failed: int = 0

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
    """Records that most is told about by the whole change, one of those that are alike.

    With `leverage` (n,), also the record that moves the draws most which risks were read from: its
    importance weights are the least to be trusted.
    """
    order = np.lexsort((-account.loss_ranges, -account.mu_by_record))
    told = np.column_stack([account.mu_by_record, account.loss_ranges])[order]
    first = np.sort(np.unique(told, axis=0, return_index=True)[1])
    chosen = [int(place) for place in order[first[:k]]]
    if leverage is not None and leverage.any():
        chosen.append(int(np.argmax(leverage)))
    return list(dict.fromkeys(chosen))


def with_refits(account: LocalAccount, refits: Refits) -> LocalAccount:
    """The account with the larger number charged where a refit says more."""
    mu, ranges = account.mu_by_record.copy(), account.loss_ranges.copy()
    error, of_limit = account.mu_standard_error, account.mu_of_limit
    failing = account.failing.copy()
    for refit in refits.each:
        upper = refit.mu_upper
        known = np.flatnonzero((failing[0] == refit.loss_range) & (failing[1] == refit.mu))
        ranges[refit.record] = max(ranges[refit.record], refit.loss.loss_range)
        if upper > mu.max():
            error = refit.loss.standard_error_without
        mu[refit.record] = max(mu[refit.record], upper)
        if known.size:
            failing[:, known] = np.array([[ranges[refit.record]], [mu[refit.record]]])
        elif of_limit is not None:
            of_limit = max(of_limit, upper)
    return replace(
        account,
        mu_by_record=mu,
        loss_ranges=ranges,
        mu=float(mu.max()),
        loss_range=float(ranges.max()),
        mu_standard_error=error,
        mu_of_limit=of_limit,
        failing=failing,
    )
