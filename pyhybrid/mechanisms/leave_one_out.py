"""Refits without the records that a release tells most about: evidence for what is charged.

The charge is made from draws of one posterior. Here the posterior without a record is sampled, too:
its weights by the same map without the record, on the same reference draws, as they are charged;
and, for weights computed on the data, once more with everything made anew.

References
----------
[S22] sec. 2; the bridge of `pyhybrid.privacy.refit_loss`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from pyhybrid.checks import FloatArray
from pyhybrid.errors import InvalidInput
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.count_recomputed import CountWithout
from pyhybrid.privacy.local_account import LocalAccount, WeightsWithoutRecords
from pyhybrid.privacy.recomputed import WeightsWithout
from pyhybrid.privacy.refit_loss import RefitLoss, refit_loss
from pyhybrid.privacy.refits import Refit, Refits
from pyhybrid.privacy.terms import IntArray

__all__ = ["check_same_coding", "refits_without"]

Fitted = Callable[[FitSession], PosteriorFit]


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
    anew: Fitted | None = None,
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
        At least 1; all records if there are fewer.
    without : WeightsWithoutRecords or None
        As for `account_of_fit`.
    bind : callable
        From a table to the bound model.
    anew : callable, optional
        From a session to its fit with all weights made anew. Omitted: weights do not depend on the
        data.

    Raises
    ------
    InvalidInput
        If predictors are coded with values of all records, or a level is gone with a record.
    """
    check_same_coding(session.bound)
    chosen = np.lexsort((-account.loss_ranges, -account.mu_by_record))[:k].tolist()
    if isinstance(without, CountWithout):
        without = without.general()
    known = without if isinstance(without, WeightsWithout) else None
    made = []
    for number, place in enumerate(chosen, 1):
        kept, other = _session_without(session, place, bind)
        alpha = _weights_without(session, fit, known, place)
        refit = other.fit(
            alpha[kept],
            label=f"refit {number} of {len(chosen)}",
            draw_quantile=fit.bounds.draw_quantile,
            warm_start=fit.draws.warm_start(),
        )
        whole = None if anew is None else anew(other)
        made.append(
            Refit(
                record=place,
                mu=float(account.mu_by_record[place]),
                loss_range=float(account.loss_ranges[place]),
                loss=_loss(session, fit, refit, kept),
                anew=None if whole is None else _loss(session, fit, whole, kept),
                converged=refit.converged,
            )
        )
    return Refits(each=tuple(made), chance=None if anew is None else _chance(session, fit, anew))


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
    return kept, _like(session, bound=bound)


def _like(session: FitSession, **changes: object) -> FitSession:
    """A session with other data or random numbers and no fits yet."""
    fresh: dict[str, object] = {"_kept": {}, "_bounds": {}, "_exact": {}, "_released": {}}
    other = replace(session, units=None, **fresh, **changes)  # type: ignore[arg-type]
    return other if session.units is None else other.by_unit(session.units.column)


def _owner(session: FitSession) -> IntArray:
    """Record, or unit, that each row belongs to, shape (n,)."""
    return np.arange(session.bound.n) if session.units is None else session.units.of


def _weights_without(
    session: FitSession, fit: PosteriorFit, without: WeightsWithout | None, place: int
) -> FloatArray:
    """Weights (n,) of the database without a record, or unit; its own do not count."""
    if without is None or place not in without.movers:
        return fit.alpha
    return without.without(place)[_owner(session)]


def _chance(session: FitSession, fit: PosteriorFit, anew: Fitted) -> RefitLoss:
    """The same data and another seed: what differs is chance."""
    whole = anew(_like(session, streams=session.streams.child("leave-one-out, another seed")))
    return _loss(session, fit, whole, np.arange(session.bound.n))


def _loss(session: FitSession, fit: PosteriorFit, refit: PosteriorFit, kept: IntArray) -> RefitLoss:
    change = fit.alpha.copy()
    change[kept] -= refit.alpha

    def terms(of: PosteriorFit) -> FloatArray:
        log_lik = session.bound.log_lik(of.draws)
        return log_lik.at(of.bounds.kept_draws).total(change)

    of_chains = {
        each.draws.n_chains if each.bounds.kept_draws.all() else 1 for each in (fit, refit)
    }
    return refit_loss(
        terms(fit), terms(refit), chains=of_chains.pop() if len(of_chains) == 1 else 1
    )
