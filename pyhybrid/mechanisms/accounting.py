"""What a local release costs: own terms, full refits without some records, and the facts that the
statement of a charge is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.engines.convergence import effective_draws
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.bounds import share_bound
from pyhybrid.privacy.refits import LocalLoss, Refit, candidates, refit_of, sole_informants

SAY_SO = (
    "if the reference holds none of the records to be released, confirm it: "
    "holds_no_released_record=True of what reads it"
)
UNCONFIRMED = f"the owner has not confirmed that the calibration has other records: {{}}; {SAY_SO}"
_CHOSEN = "the model and its formula, scale, shift, k"
Fitted = Callable[[FitSession], PosteriorFit]
"""A mechanism: from a session to the fit that it would release from."""


def local_loss(
    session: FitSession, fit: PosteriorFit, fitted: Fitted, *, refits: int, delta: float
) -> LocalLoss:
    """Own terms of `fit` by record or unit, and so many `refits` of what is `fitted` to the session
    without one, whose losses are those that a share of `delta` exceeds."""
    terms = LocalLoss(
        lipschitz=session.once(fit.bounds.by_record),
        ranges=session.once(session.risks(fit, "range")),
        deviations=session.once(session.risks(fit, "deviation")),
        delta=delta,
    )
    if not refits:
        return terms
    unweighted = session.unweighted(draw_quantile=fit.bounds.draw_quantile)
    sizes = session.once(session.risks(unweighted, "size"))
    chosen = candidates(terms.deviations, sizes, refits)
    return replace(
        terms,
        refits=tuple(_without(session, fit, unweighted, fitted, unit, delta) for unit in chosen),
    )


def _without(
    session: FitSession,
    fit: PosteriorFit,
    unweighted: PosteriorFit,
    fitted: Fitted,
    unit: int,
    delta: float,
) -> Refit:
    """What leaves with one record or unit: of the same mechanism on the same data without it."""
    other = session.without(unit, unweighted.draws.warm_start())
    try:
        refit = fitted(other)
    except (InvalidInput, SamplingError) as error:
        raise SamplingError(
            f"a refit without {_name(session, unit)} must be possible, or its loss is not known: "
            f"{error}; refits=0 takes the weights as fixed"
        ) from error
    weights = fit.alpha - refit.alpha

    def change(of: PosteriorFit) -> FloatArray:
        log_lik = session.bound.log_lik(of.draws).at(np.flatnonzero(of.bounds.kept_draws))
        total = log_lik.total(weights)
        return np.where(np.isnan(total), np.inf, total)

    return refit_of(change(fit), change(refit), delta=delta, record=unit)


def sole_informants_of(session: FitSession) -> list[tuple[str, str, float]]:
    """Records or units that nearly alone inform a coefficient of the session's model, in words,
    with its column and their share of its information."""
    matrix = session.bound.matrix
    if matrix is None:
        return []
    unit = None if session.units is None else session.owner
    return [
        (_name(session, one.record), matrix.named(one.column), one.share)
        for one in sole_informants(matrix.X, unit)
    ]


def _name(session: FitSession, unit: int) -> str:
    """A record by its label; a unit, whose values may be confidential, by its first row."""
    labels = session.bound.table.index
    if session.units is None:
        return f"record {labels[unit]!r}"
    return f"the {session.unit} of record {labels[session.units.first[unit]]!r}"


def facts_of_fit(fit: PosteriorFit, bound: BoundModel) -> dict[str, Any]:
    """What any fit says of columns, coding, chains and choices."""
    diagnostics = fit.diagnostics
    return {
        "columns": list(bound.synthesized),
        "public_rows": True,
        "chosen": _CHOSEN,
        "coded": list(bound.data_dependent),
        "assumes": list(bound.assumptions),
        "decimals": bound.decimals,
        "decimals_given": bound.decimals_given,
        "chains": diagnostics is not None,
        "problems": [] if diagnostics is None else list(diagnostics.problems),
    }


def facts_of_loss(fit: PosteriorFit, session: FitSession, loss: LocalLoss) -> dict[str, Any]:
    """What a local charge says of refits, of sole informants, and of draws that were dropped."""
    facts: dict[str, Any] = {"refits": len(loss.refits)}
    alone = [] if loss.refits else sole_informants_of(session)
    if alone:
        columns = sorted({column for _, column, _ in alone})
        facts["alone"] = {"records": len(alone), "columns": columns}
    if fit.bounds.draw_quantile < 1:
        # Upper confidence bound of the probability that a draw is one of those dropped; chains
        # that disagree count as one that drifts.
        dropped = (~fit.bounds.kept_draws).astype(np.float64)
        known = effective_draws(dropped[:, None], 1)[0]
        facts["failing"] = share_bound(float(dropped.mean()), float(known), 0.95)
    return facts


def check_delta_of(delta: float, n: int) -> None:
    """Raise InvalidInput unless `delta` is below one over the number of records or units."""
    if delta >= 1 / n:
        raise InvalidInput(
            f"delta must be below 1 / n = {1 / n:.1e}, n the number of records or units of "
            f"privacy: found {delta:g}; a larger delta allows that a whole record is disclosed"
        )


def why_local(bound: BoundModel) -> str | None:
    """What a strict release of a model lacks: the coding of its predictors and the form of the
    released values may not depend on which records there are."""
    if not bound.decimals_given:
        columns = ", ".join(bound.synthesized)
        return f"declared decimals of {columns}: decimals="
    if bound.data_dependent:
        term = bound.data_dependent[0]
        return f"predictors coded record by record: {term} depends on all; give its constants"
    return None
