"""The account of a fit: range and deviation of what each record, or unit, adds to a draw.

Three parts count: the records present, from draws of one posterior; possible records, on a grid
over a declared support; and refits without the records that a release discloses most about, which
sample the posterior without a record, too. Where weights were computed on the data, they are made
anew from fits without the record, by the moments of their risks
(`pyhybrid.privacy.weight_sensitivity`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from pyhybrid.core.checks import FloatArray, IntArray
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.engines import Draws
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession, FitStore, PosteriorFit
from pyhybrid.models.base import BoundModel
from pyhybrid.models.composite.survey_weighted import without_survey
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.hypothetical_records import (
    Support,
    crossed,
    of_records,
    outcome_grid,
    predictor_grid,
    regression_of,
)
from pyhybrid.models.stan_model import BoundStanModel
from pyhybrid.privacy.diagnostics import DEPTH
from pyhybrid.privacy.hypothetical_records import PossibleAccount, WeightsWith, joined_terms
from pyhybrid.privacy.leave_one_out import Refit, Refits, most_told, refit_loss
from pyhybrid.privacy.local_account import (
    LocalAccount,
    WeightsWithoutRecords,
    columns_of,
    local_account,
)
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.weight_sensitivity import (
    RiskDraws,
    WeightsWithout,
    constant_weights,
    reweight_map,
    risk_weights_without,
)
from pyhybrid.privacy.weights import risk_of

_TERMS_OF_UNITS = 50_000_000  # elements; beyond, the account is made from fewer draws
_ROWS = 10  # of predictors, those whose records move most
_LOOKED_AT = 5  # outcomes by which they are found
_DRAWS = 200
_FEW, _BY_DEFAULT = 2000, 2
_FAR = DEPTH + 0.2  # deviations; some thousands of draws leave a little to chance
_STRETCH = 2.0  # more would leave less to chance, but add up over many parameters


def account_of_fit(
    session: FitSession, fit: PosteriorFit, without: WeightsWithoutRecords | None
) -> LocalAccount:
    """Range and mu of one kept draw of `fit`, by record, or by unit if the session has units.

    `without` says how weights change when a record or unit leaves; None if they do not."""
    kept, alpha = np.flatnonzero(fit.bounds.kept_draws), fit.alpha
    whole = kept.size == fit.draws.n_draws
    log_lik = session.bound.log_lik(fit.draws)
    if not whole:
        log_lik = log_lik.at(kept)
    n_draws = kept.size
    if session.units is not None:
        shared = _shared(session, alpha)
        log_lik, thinned = _of_units(session, log_lik, n_draws, None if shared else alpha)
        alpha = session.once(alpha) if shared else np.ones(session.n_units)
        n_draws, whole = thinned, whole and thinned == n_draws
    without = known_without(session, fit, without)
    chains = fit.draws.n_chains if whole else 1
    return local_account(log_lik, alpha, n_draws=n_draws, chains=chains, without=without)


def risks_joined(
    draws: RiskDraws, risks: FloatArray, possible: LogLik, possible_risks: FloatArray
) -> tuple[FloatArray, Callable[[int], tuple[FloatArray, float]]]:
    """How far each possible record moves the draws, (H,), and the risks with it: (n,) and its own.

    `risks` (n,) were read from `draws`; `possible` are terms at these draws, and the risks of these
    records `possible_risks` (H,)."""
    matrix = RiskDraws(
        log_lik=possible.at(draws.chosen),
        risk=draws.risk,
        weights=constant_weights(np.ones(possible.n)),
        thinned=False,
    )

    def joined(h: int) -> tuple[FloatArray, float]:
        ratio = matrix.by_row[:, matrix.log_lik.row_of[[h]]]
        moved = matrix.risks_under(possible_risks, ratio)[h, 0]
        return draws.risks_under(risks, ratio)[:, 0], float(moved)

    return matrix.leverage, joined


def known_without(
    session: FitSession, fit: PosteriorFit, without: WeightsWithoutRecords | None
) -> WeightsWithoutRecords | None:
    """`without` if it is of the weights of `fit`; None for units whose records have weights of
    their own."""
    if not _shared(session, fit.alpha):
        return None
    alpha = session.once(fit.alpha)
    return without if without is not None and _same(without.alpha, alpha) else None


def _general(without: WeightsWithoutRecords | None, alpha: FloatArray) -> WeightsWithout:
    """Weights by record in one form; None stands for weights `alpha` that do not change."""
    return constant_weights(alpha) if without is None else without.general()


def _of_units(
    session: FitSession, log_lik: LogLik, n_draws: int, alpha: FloatArray | None = None
) -> tuple[LogLik, int]:
    """Terms of the session's units under `alpha` (n,), 1 if omitted, and at how many draws; without
    units, the log-likelihood as it is.
    """
    looked_at = _thinned(session, n_draws)
    if looked_at.size < n_draws:
        log_lik = log_lik.at(looked_at)
    by_record = np.ones(session.bound.n) if alpha is None else alpha
    return session.terms(log_lik, by_record)[0], looked_at.size


def _thinned(session: FitSession, n_draws: int) -> IntArray:
    """Draws that the terms of units are computed at."""
    most = n_draws if session.units is None else max(100, _TERMS_OF_UNITS // session.n_units)
    return np.unique(np.linspace(0, n_draws - 1, min(most, n_draws)).astype(np.intp))


def risk_draws(
    session: FitSession, fit: PosteriorFit, risk: str, weights: WeightsWithout | None = None
) -> RiskDraws:
    """The kept draws of `fit`, which risks were read from; of weights 1 if `weights` is omitted."""
    kept = np.flatnonzero(fit.bounds.kept_draws)
    log_lik, _ = _of_units(session, session.bound.log_lik(fit.draws).at(kept), kept.size)
    weights = constant_weights(np.ones(log_lik.n)) if weights is None else weights
    points = None
    if risk == "depth":  # the papers' weights move as array layer and R have it, from draws alone
        places = kept[_thinned(session, kept.size)]
        names = [n for n in session.bound.likelihood_parameters if n in fit.draws.variables]
        values = [fit.draws.flat(name)[places].reshape(places.size, -1) for name in names]
        points = np.column_stack(values) if values else None
    return RiskDraws(log_lik=log_lik, risk=risk, weights=weights, points=points)


def stepped(
    session: FitSession, path: Reweighted, base: WeightsWithoutRecords | None
) -> WeightsWithoutRecords | None:
    """`base` (None: weights that do not change) after the re-weighting of `path`, repeated at the
    same k and on the same draws [V25 eq. 2.1]; None where it cannot be repeated without a record.
    """
    if path.fit is path.start:
        return base
    if not _shared(session, path.start.alpha):
        return None  # a unit has no weight of its own
    without: WeightsWithout | None = _general(base, session.once(path.start.alpha))
    results = [*path.rounds[1:], path.fit]
    for number, (start, result) in enumerate(zip(path.rounds, results, strict=True), 1):
        if without is None:
            return None
        steps = {step.k for step in path.steps if step.round == number and step.accepted}
        without = _step(session, without, start, result, steps, path.risk)
    return without


def _step(
    session: FitSession,
    base: WeightsWithout,
    start: PosteriorFit,
    result: PosteriorFit,
    tried: set[float],
    risk: str,
) -> WeightsWithout | None:
    """One application of the formula to the weights of `start`, at the k that gave `result`."""
    weighted = session.once(session.leveled(start, risk).by_record)
    alpha = session.once(start.alpha)
    largest = np.divide(weighted, alpha, out=np.zeros(alpha.size), where=alpha > 0)
    if not np.isfinite(largest).all():
        return None
    draws = risk_draws(session, start, risk, base)
    for k in tried:
        moved = risk_weights_without(draws, largest, reweight_map(k), base)
        if _same(moved.alpha, session.once(result.alpha)):
            return moved
    return None


def _shared(session: FitSession, alpha: FloatArray) -> bool:
    """True if the records of each unit share a weight, as for units of one record."""
    return np.array_equal(session.once(alpha)[session.owner], alpha)


def _same(alpha: FloatArray, other: FloatArray) -> bool:
    return alpha.shape == other.shape and np.allclose(alpha, other, rtol=1e-9, atol=1e-12)


Joined = Callable[[FitSession, BoundModel], WeightsWith]
"""From a session and possible records to the weights with each of them."""


def possible_account(
    session: FitSession, fit: PosteriorFit, support: Support, joined: Joined
) -> PossibleAccount:
    """The account of `fit` over records of the declared support, each added to the database.

    Rows of predictors are first looked at with a few outcomes, under weights of 1; of those whose
    terms move most all outcomes are. `joined` are the mechanism's weights with possible records.
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


def with_possible(account: LocalAccount, possible: PossibleAccount) -> LocalAccount:
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


def refits_by_default(
    session: FitSession, account: LocalAccount, without: WeightsWithoutRecords | None
) -> int:
    """Refits that are made unasked: where weights depend on fewer than 2,000 records or units, and
    where the limit does not hold for some. Draws with such a record do not show how far the
    posterior without it reaches: it may be that of a parameter that the record alone informs."""
    few = without is not None and session.n_units < _FEW
    return _BY_DEFAULT if few else 1 if account.costliest is not None else 0


def refits_without(
    session: FitSession,
    fit: PosteriorFit,
    account: LocalAccount,
    *,
    k: int,
    without: WeightsWithoutRecords | None,
    asked: bool = True,
) -> Refits:
    """Fits without each of the `k` records, or units, with the largest loss in the `account` of
    `fit`, one of those that are alike. Predictors stay coded as they are: what the record alone
    informs has its prior. Where refits were not `asked` for, a record that none can be made without
    is counted in `Refits.failed`.
    """
    known = None if without is None else _general(without, fit.alpha)
    chosen = most_told(account, k, None if known is None else known.leverage)
    made = []
    for number, place in enumerate(chosen, 1):
        label = f"refit {number} of {len(chosen)}"
        try:
            made.append(_refit_without(session, fit, account, place, known, label))
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
    label: str,
) -> Refit:
    other = replace(session, store=FitStore())
    left = (session.owner != place).astype(np.float64)

    def fitted(alpha: FloatArray) -> PosteriorFit:
        weights, near = left * np.minimum(alpha, 1.0), fit.draws.warm_start()
        quantile = fit.bounds.draw_quantile
        return other.fit(weights, label=label, draw_quantile=quantile, warm_start=near)

    def at_refit(weights: FloatArray) -> LogLik:
        draws = fitted(weights[session.owner]).draws
        return _of_units(session, session.bound.log_lik(draws), draws.n_draws)[0]

    known = None if without is None else without.refitted(place, at_refit)[session.owner]
    refit = fitted(fit.alpha if known is None else known)

    def change(of: PosteriorFit, draws: Draws) -> FloatArray:
        log_lik = session.bound.log_lik(draws).at(of.bounds.kept_draws)
        return log_lik.total(fit.alpha - refit.alpha)

    chains = {each.draws.n_chains if each.bounds.kept_draws.all() else 1 for each in (fit, refit)}
    same, without_it = chains.pop() if len(chains) == 1 else 1, change(refit, refit.draws)
    made = Refit(
        record=place,
        mu=float(account.mu_by_record[place]),
        loss_range=float(account.loss_ranges[place]),
        loss=refit_loss(change(fit, fit.draws), without_it, chains=same),
        chains=same,
        converged=refit.converged,
    )
    if made.limit_holds or isinstance(without_survey(session.bound), BoundStanModel):
        return made
    farther = _stretched(refit.draws, session.bound.likelihood_parameters)
    with np.errstate(all="ignore"):
        moved = made.loss.by_draw_without[0] - without_it[0] + change(refit, farther)
    lost = np.where(np.isnan(moved), -np.inf, -moved)
    return replace(made, far=float(np.quantile(lost, ndtr(_FAR / _STRETCH), method="higher")))


def _stretched(draws: Draws, names: Collection[str]) -> Draws:
    """Draws whose parameters, or their logarithms where all are positive, are `_STRETCH` times as
    far from their mean: a quantile of a function of one of them, normal, is one farther out."""

    def moved(values: FloatArray) -> FloatArray:
        middle = values.mean(axis=(0, 1))
        return np.asarray(middle + _STRETCH * (values - middle))

    with np.errstate(over="ignore"):
        farther = {
            name: np.exp(moved(np.log(own))) if (own > 0).all() else moved(own)
            for name, own in draws.variables.items()
            if name in names
        }
    return replace(draws, variables={**draws.variables, **farther})
