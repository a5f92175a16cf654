"""What re-weighting levels: the weighted size, range or deviation of each record, or unit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.engines import Draws
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.privacy.bounds import LipschitzBounds, scaled_maxima
from pyhybrid.privacy.log_lik import LogLik, unit_terms
from pyhybrid.privacy.weights import risk_of

__all__ = ["told_at", "told_by"]


def told_by(session: FitSession, fit: PosteriorFit, risk: str) -> LipschitzBounds:
    """By record and overall, nats: the bounds of `fit` under "size", else as in `told_at`."""
    if risk == "size":
        return fit.bounds
    kept = fit.bounds.kept_draws
    by_record = told_at(session, fit.draws, fit.alpha, risk, np.flatnonzero(kept))
    return LipschitzBounds(
        by_record=by_record,
        overall=float(by_record.max()),
        kept_draws=kept,
        draw_quantile=fit.bounds.draw_quantile,
    )


def told_at(
    session: FitSession,
    draws: Draws,
    alpha: FloatArray,
    risk: str,
    chosen: npt.NDArray[np.intp],
) -> FloatArray:
    """Risk of alpha_i f_i, or of the sum over a record's unit, at some draws; shape (n,), nats.

    Infinite where a record of positive weight is unbounded; see `pyhybrid.lipschitz_weights`.
    """
    log_lik = session.bound.log_lik(draws).at(chosen)
    if session.units is None:
        return scaled_maxima(risk_of(log_lik, risk), alpha)
    of = session.units.of
    return risk_of(LogLik.of(unit_terms(log_lik, alpha, of)), risk)[of]
