"""What a released draw tells about records: own terms, and full refits without some of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.privacy.refits import LocalLoss, Refit, candidates, refit_of, sole_informants

Fitted = Callable[[FitSession], PosteriorFit]
"""A mechanism: from a session to the fit that it would release from."""


@dataclass(frozen=True, kw_only=True)
class Alone:
    """A record or unit that nearly alone informs a coefficient: whose it is in words, the column
    of the design that it has most of, and its share of the information."""

    whose: str
    column: str
    share: float


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


def sole_informants_of(session: FitSession) -> list[Alone]:
    """Records or units that nearly alone inform a coefficient of the session's model."""
    matrix = session.bound.matrix
    if matrix is None:
        return []
    informants = sole_informants(matrix.X, None if session.units is None else session.owner)
    return [
        Alone(whose=_name(session, one.record), column=matrix.named(one.column), share=one.share)
        for one in informants
    ]


def _name(session: FitSession, unit: int) -> str:
    """A record by its label; a unit, whose values may be confidential, by its first row."""
    labels = session.bound.table.index
    if session.units is None:
        return f"record {labels[unit]!r}"
    return f"the {session.unit} of record {labels[session.units.first[unit]]!r}"
