"""What a release would tell of records that could have been, on a grid over a declared support."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Draws
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.models.base import BoundModel
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.hypothetical_records import (
    Support,
    crossed,
    of_records,
    outcome_grid,
    predictor_grid,
    regression_of,
)
from pyhybrid.privacy.hypothetical_records import PossibleAccount, WeightsWith, joined_terms
from pyhybrid.privacy.local_account import LocalAccount, columns_of, local_account
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weights import risk_of

__all__ = ["Joined", "possible_account", "quoted"]

Joined = Callable[[FitSession, BoundModel], WeightsWith]
"""From a session and possible records to the weights with each of them."""

_ROWS = 10  # of predictors, those whose records move most
_LOOKED_AT = 5  # outcomes by which they are found
_DRAWS = 200


def possible_account(
    session: FitSession, fit: PosteriorFit, support: Support, joined: Joined
) -> PossibleAccount:
    """The account of `fit` over records of the declared support, each added to the database.

    Rows of predictors are first looked at with a few outcomes, under weights of 1; of those whose
    terms move most all outcomes are.

    Parameters
    ----------
    session : FitSession
        Without units.
    fit : PosteriorFit
        Whose kept draws may be released.
    support : mapping
        See `pyhybrid.models.hypothetical_records.Support`; it declares the outcome.
    joined : callable
        The mechanism's weights with possible records.

    Raises
    ------
    InvalidInput
        For a support that the model cannot take, or units.
    """
    if session.units is not None:
        raise InvalidInput(
            "support is of single records: a unit could have been any number of them; give no unit"
        )
    bound = regression_of(session.bound, support)
    candidates = _candidates(bound, support, fit.draws)
    kept = fit.bounds.kept_draws
    weights = joined(session, candidates)
    log_lik = candidates.log_lik(fit.draws).at(kept)
    matrix = columns_of(log_lik, np.arange(candidates.n))
    present = session.bound.log_lik(fit.draws).at(kept)
    terms = joined_terms(present, matrix, weights)
    chains = fit.draws.n_chains if kept.all() else 1
    # The neighbor is the database with the record: its weights are exp(+T), those of -T left out.
    account = local_account(
        LogLik.of(-terms), np.ones(terms.shape[1]), n_draws=terms.shape[0], chains=chains
    )
    largest = int(weights.examined[int(np.argmax(account.mu_by_record))])
    row = candidates.table.iloc[largest]
    with np.errstate(invalid="ignore"):
        size = np.where(weights.own > 0, weights.own * np.abs(matrix).max(axis=0), 0.0)
    return PossibleAccount(
        account=account,
        lipschitz_bound=float(size.max()),
        costliest={str(name): row[name] for name in candidates.table.columns},
        n_looked_at=candidates.n,
    )


def quoted(account: LocalAccount, possible: PossibleAccount) -> LocalAccount:
    """What is charged where a support is declared: the larger of present and possible records."""
    other = possible.account
    top = max(account, other, key=lambda each: each.mu)
    return replace(
        account,
        loss_range=max(account.loss_range, other.loss_range),
        mu=top.mu,
        mu_standard_error=top.mu_standard_error,
        limit_holds=account.limit_holds and other.limit_holds,
        mu_of_limit=max(account.largest_of_limit, other.largest_of_limit),
        failing=np.concatenate([account.failing, other.failing], axis=1),
        expansion=np.concatenate([account.expansion, other.expansion], axis=1),
    )


def _candidates(bound: BoundRegression, support: Support, draws: Draws) -> BoundRegression:
    rows, values = predictor_grid(bound, support), outcome_grid(bound, support)
    like = bound.table[bound.design.outcome]
    if len(rows) > _ROWS:
        few = draws.part(np.unique(np.linspace(0, draws.n_draws - 1, _DRAWS).astype(np.intp)))
        places = np.unique(np.linspace(0, len(values) - 1, _LOOKED_AT).astype(int))
        chosen = [values[place] for place in places]
        tried = of_records(bound, crossed(rows, bound.design.outcome, chosen, like))
        moved = risk_of(tried.log_lik(few), "deviation").reshape(len(rows), -1).max(axis=1)
        rows = rows.iloc[np.sort(np.argsort(-moved, kind="stable")[:_ROWS])].reset_index(drop=True)
    return of_records(bound, crossed(rows, bound.design.outcome, values, like))
