"""Refits without the records that most is told about, and the account that takes them in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyhybrid.privacy.gaussian_mu import STANDARD_ERRORS
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.privacy.refit_loss import RefitLoss

__all__ = ["Refit", "Refits", "with_refits"]


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
        At draws of both posteriors, weights as they are charged: by the map without the record, on
        the same reference draws.
    anew : RefitLoss or None
        The same with all weights made anew without the record, from reference draws of its own:
        it holds what chance does to weights, too. None where they do not depend on the data.
    converged : bool
        Whether the refit has.
    """

    record: int
    mu: float
    loss_range: float
    loss: RefitLoss
    anew: RefitLoss | None
    converged: bool

    @property
    def mu_upper(self) -> float:
        """Upper end of the deviation under the refit: what is charged if it is the larger one."""
        return self.loss.mu_without + STANDARD_ERRORS * self.loss.standard_error_without

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
    chance : RefitLoss or None
        The fit against another of the same data whose weights were made anew under another seed:
        what `anew` shows of no record. None where weights do not depend on the data.
    """

    each: tuple[Refit, ...]
    chance: RefitLoss | None

    def rows(self) -> list[dict[str, Any]]:
        """One mapping for each refit, for a table; record -1 is chance."""
        rows = [
            {
                "record": each.record,
                "mu": each.mu,
                "loss_range": each.loss_range,
                **_numbers("refit", each.loss),
                **({} if each.anew is None else _numbers("anew", each.anew)),
                "converged": each.converged,
            }
            for each in self.each
        ]
        if self.chance is not None:
            rows.append({"record": -1, **_numbers("anew", self.chance)})
        return rows

    def __repr__(self) -> str:
        return f"<Refits without each of {len(self.each)} records>"


def _numbers(of: str, loss: RefitLoss) -> dict[str, float]:
    return {
        f"{of}_mu": loss.mu_without,
        f"{of}_mu_standard_error": loss.standard_error_without,
        f"{of}_moved": loss.moved,
        f"{of}_largest_loss": loss.largest,
        f"{of}_loss_range": loss.loss_range,
    }


def with_refits(account: LocalAccount, refits: Refits) -> LocalAccount:
    """The account with the larger number charged where a refit says more."""
    mu, ranges = account.mu_by_record.copy(), account.loss_ranges.copy()
    error = account.mu_standard_error
    for refit in refits.each:
        ranges[refit.record] = max(ranges[refit.record], refit.loss.loss_range)
        if refit.mu_upper > mu.max():
            error = refit.loss.standard_error_without
        mu[refit.record] = max(mu[refit.record], refit.mu_upper)
    return replace(
        account,
        mu_by_record=mu,
        loss_ranges=ranges,
        mu=float(mu.max()),
        loss_range=float(ranges.max()),
        mu_standard_error=error,
    )
