"""Refits without the records that a release tells most about, whose larger numbers are charged.

The charge is made from draws of one posterior. Here the posterior without a record is sampled, too:
where weights were computed on the data, they are made anew from fits without the record, by the
moments of their risks (`pyhybrid.privacy.weight_sensitivity`).

References
----------
[S22] sec. 2; the bridge of `pyhybrid.privacy.leave_one_out`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, IntArray
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting.loss_account import log_lik_by_unit
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.count_risk import CountWithout
from pyhybrid.privacy.leave_one_out import Refit, RefitLoss, Refits, most_told, refit_loss
from pyhybrid.privacy.local_account import LocalAccount, WeightsWithoutRecords
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weight_sensitivity import WeightsWithout

__all__ = ["check_same_coding", "refits_by_default", "refits_without"]

_FEW, _BY_DEFAULT = 2000, 2


def refits_by_default(session: FitSession, without: WeightsWithoutRecords | None) -> int:
    """Refits that are made unasked: where weights depend on fewer than 2,000 records or units.

    From there on what is charged from the draws of one posterior is above the exact number by
    4 to 14 % in conjugate models; below it can be less (`python -m benchmarks weights`).
    """
    n = session.bound.n if session.units is None else session.units.n
    return _BY_DEFAULT if without is not None and n < _FEW else 0


def check_same_coding(bound: BoundModel) -> None:
    """Raise InvalidInput if parameters with and without a record would not mean the same."""
    if bound.data_dependent:
        raise InvalidInput(
            "leave_one_out needs predictors that are coded record by record: "
            f"{', '.join(bound.data_dependent)} is computed from all of them; give its constants"
        )


def refits_without(
    session: FitSession,
    fit: PosteriorFit,
    account: LocalAccount,
    *,
    k: int,
    without: WeightsWithoutRecords | None,
    bind: Callable[[pd.DataFrame], BoundModel],
    asked: bool = True,
) -> Refits:
    """Fits without each of the `k` records, or units, that `account` says most is told about.

    Parameters
    ----------
    session : FitSession
        Of the released fit.
    fit : PosteriorFit
        The released fit, by chains.
    account : LocalAccount
        Made from it.
    k : int
        At least 1; all records if there are fewer. Of records that are alike one is left out.
    without : WeightsWithoutRecords or None
        As for `account_of_fit`.
    bind : callable
        From a table to the bound model.
    asked : bool, default True
        False for refits that nobody asked for: a record that no refit can be made without is
        counted in `Refits.failed`.

    Raises
    ------
    InvalidInput
        If predictors are coded with values of all records, or a level is gone with a record.
    """
    if asked:
        check_same_coding(session.bound)
    if isinstance(without, CountWithout):
        without = without.general()
    known = without if isinstance(without, WeightsWithout) else None
    chosen = most_told(account, k, None if known is None else known.leverage)
    if session.bound.data_dependent:
        return Refits(each=(), failed=len(chosen))
    made = []
    for number, place in enumerate(chosen, 1):
        label = f"refit {number} of {len(chosen)}"
        try:
            made.append(_refit_without(session, fit, account, place, known, bind, label))
        except (InvalidInput, NotConverged):
            if asked:
                raise
    return Refits(each=tuple(made), failed=len(chosen) - len(made))


def _refit_without(
    session: FitSession,
    fit: PosteriorFit,
    account: LocalAccount,
    place: int,
    without: WeightsWithout | None,
    bind: Callable[[pd.DataFrame], BoundModel],
    label: str,
) -> Refit:
    kept, other = _session_without(session, place, bind)
    owner = _owner(session)

    def fitted(alpha: FloatArray) -> PosteriorFit:
        return other.fit(
            alpha[kept],
            label=label,
            draw_quantile=fit.bounds.draw_quantile,
            warm_start=fit.draws.warm_start(),
        )

    def at_refit(weights: FloatArray) -> LogLik:
        draws = fitted(weights[owner]).draws
        return log_lik_by_unit(session, session.bound.log_lik(draws), draws.n_draws)[0]

    alpha = fit.alpha if without is None else without.refitted(place, at_refit)[owner]
    refit = fitted(alpha)
    chains = {each.draws.n_chains if each.bounds.kept_draws.all() else 1 for each in (fit, refit)}
    same = chains.pop() if len(chains) == 1 else 1
    return Refit(
        record=place,
        mu=float(account.mu_by_record[place]),
        loss_range=float(account.loss_ranges[place]),
        loss=_loss(session, fit, refit, kept, same),
        chains=same,
        converged=refit.converged,
    )


def _session_without(
    session: FitSession, place: int, bind: Callable[[pd.DataFrame], BoundModel]
) -> tuple[IntArray, FitSession]:
    """Rows kept, and a session like this one over them."""
    kept = np.flatnonzero(_owner(session) != place)
    bound = bind(session.bound.table.iloc[kept])
    if bound.design_columns != session.bound.design_columns:
        raise InvalidInput(
            "leave_one_out needs the same columns of predictors without a record: a level that "
            "one record alone has is among those that most is told about; put levels together"
        )
    fresh: dict[str, object] = {"_kept": {}, "_bounds": {}, "_exact": {}, "_released": {}}
    other = replace(session, bound=bound, units=None, **fresh)  # type: ignore[arg-type]
    return kept, other if session.units is None else other.by_unit(session.units.column)


def _owner(session: FitSession) -> IntArray:
    """Record, or unit, that each row belongs to, shape (n,)."""
    return np.arange(session.bound.n) if session.units is None else session.units.of


def _loss(
    session: FitSession, fit: PosteriorFit, refit: PosteriorFit, kept: IntArray, chains: int
) -> RefitLoss:
    change = fit.alpha.copy()
    change[kept] -= refit.alpha

    def terms(of: PosteriorFit) -> FloatArray:
        log_lik = session.bound.log_lik(of.draws)
        return log_lik.at(of.bounds.kept_draws).total(change)

    return refit_loss(terms(fit), terms(refit), chains=chains)
