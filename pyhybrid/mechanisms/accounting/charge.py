"""Facts of a charge: what its statement is made of, beside the accounts."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting.local_loss import sole_informants_of
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.bounds import share_bound
from pyhybrid.privacy.diagnostics import effective_draws
from pyhybrid.privacy.refits import LocalLoss

SAY_SO = (
    "if the reference holds none of the records to be released, confirm it: "
    "holds_no_released_record=True of what reads it, or of Calibration.load"
)
UNCONFIRMED = f"the owner has not confirmed that the calibration has other records: {{}}; {SAY_SO}"
_CHOSEN = "the model and its formula, scale, shift, k"


def facts_of_fit(fit: PosteriorFit, bound: BoundModel) -> dict[str, Any]:
    """What any fit says of columns, coding, chains and choices."""
    diagnostics = fit.diagnostics
    failed = diagnostics is not None and not diagnostics.converged
    return {
        "columns": list(bound.synthesized),
        "public_rows": True,
        "chosen": _CHOSEN,
        "coded": list(bound.data_dependent),
        "assumes": list(bound.assumptions),
        "decimals": bound.decimals,
        "decimals_given": bound.decimals_given,
        "chains": diagnostics is not None,
        "problems": list(diagnostics.problems) if failed and diagnostics is not None else [],
    }


def facts_of_loss(fit: PosteriorFit, session: FitSession, loss: LocalLoss) -> dict[str, Any]:
    """What a local charge says of refits, of records that alone inform a coefficient, and of draws
    that were dropped."""
    facts: dict[str, Any] = {"refits": len(loss.refits)}
    alone = [] if loss.refits else sole_informants_of(session)
    if alone:
        columns = sorted({one.column for one in alone})
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
