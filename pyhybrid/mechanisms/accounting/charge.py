"""The privacy charge of a fit: its accounts, and the facts that a statement is made of."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting.local_loss import sole_informants_of
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.bounds import share_bound
from pyhybrid.privacy.charge import Account, Gaussian, Lipschitz, PrivacyCharge, Range, Spent
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, at_least, epsilon_of_bound, shown
from pyhybrid.privacy.diagnostics import effective_draws
from pyhybrid.privacy.refits import LocalLoss

SAY_SO = (
    "if the reference holds none of the records to be released, confirm it: "
    "holds_no_released_record=True of what reads it, or of Calibration.load"
)
UNCONFIRMED = f"the owner has not confirmed that the calibration has other records: {{}}; {SAY_SO}"
_CHOSEN = "the model and its formula, scale, shift, k"


# --- Local charges -------------------------------------------------------------------------------


def charge_of_fit(
    mechanism: str,
    fit: PosteriorFit,
    session: FitSession,
    *,
    loss: LocalLoss,
    accounting: str,
    delta: float,
    relation: str,
    safety_factor: float,
    n_synthetic: int,
    n_draws_released: int,
) -> PrivacyCharge:
    """Charge of releasing draws of `fit`; local and asymptotic. SamplingError if no epsilon is
    finite.
    """
    bound, overall = session.bound, fit.bounds.overall
    if not math.isfinite(overall):
        raise SamplingError(
            "the Lipschitz bound must be finite: a record with a positive weight has a likelihood "
            "of 0 under some draw; use a mechanism that gives such records weight 0"
        )
    if accounting == "gaussian":
        check_delta_of(delta, session.n_units)

    def safe(number: float) -> float:
        return at_least(shown(safety_factor) * shown(number))

    accounts: dict[str, Account] = {}
    if math.isfinite(loss.change):
        accounts["lipschitz"] = Lipschitz(
            bound=safe(overall), change=safe(loss.change), either_sign=bound.density_above_one
        )
    if math.isfinite(loss.loss_range):
        accounts["range"] = Range(loss_range=safe(loss.loss_range))
    if math.isfinite(loss.mu):
        accounts["gaussian"] = Gaussian(mu=safe(loss.mu))
    if accounting not in accounts:
        raise SamplingError(
            "what leaves with a record must be finite at every draw: it is not in a refit without "
            "one; use a mechanism that gives such records weight 0"
        )
    return PrivacyCharge(
        mechanism=mechanism,
        kind=ASYMPTOTIC_LOCAL,
        relation=relation,
        accounts=accounts,
        accounting=accounting,
        delta=delta if accounting == "gaussian" else 0.0,
        bound=overall,
        n_draws=int(fit.bounds.kept_draws.size),
        draw_quantile=fit.bounds.draw_quantile,
        safety_factor=safety_factor,
        density_above_one=bound.density_above_one,
        converged=fit.converged,
        unit=session.unit,
        facts={**_facts_of_fit(fit, bound), **_facts_of_loss(fit, session, loss)},
        n_synthetic=n_synthetic,
        n_draws_released=n_draws_released,
    )


def _facts_of_loss(fit: PosteriorFit, session: FitSession, loss: LocalLoss) -> dict[str, Any]:
    facts: dict[str, Any] = {"refits": len(loss.refits)}
    alone = [] if loss.refits else sole_informants_of(session)
    if alone:
        columns = sorted({one.column for one in alone})
        facts["alone"] = {"records": len(alone), "columns": columns}
    if fit.bounds.draw_quantile < 1:
        facts["failing"] = _delta_of_dropped(fit)
    return facts


def check_delta_of(delta: float, n: int) -> None:
    """Raise InvalidInput unless `delta` is below one over the number of records or units."""
    if delta >= 1 / n:
        raise InvalidInput(
            f"delta must be below 1 / n = {1 / n:.1e}, n the number of records or units of "
            f"privacy: found {delta:g}; a larger delta allows that a whole record is disclosed"
        )


def _delta_of_dropped(fit: PosteriorFit) -> float:
    """Upper confidence bound of the probability that a draw is one of those dropped."""
    dropped = (~fit.bounds.kept_draws).astype(np.float64)
    known = effective_draws(dropped[:, None], 1)[0]  # chains that disagree count as one that drifts
    return share_bound(float(dropped.mean()), float(known), 0.95)


# --- Censored charges ----------------------------------------------------------------------------


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


def charge_of_censored_fit(
    mechanism: str,
    fit: PosteriorFit,
    bound: BoundModel,
    *,
    record_indexed: bool,
    calibrated: bool,
    relation: str,
    safety_factor: float,
    n_draws_released: int,
    unit: str | None = None,
    unconfirmed: bool = False,
    center: str | None = None,
    n_synthetic: int,
) -> PrivacyCharge:
    """Charge of releasing draws of a censored fit: the cap is charged, whatever the data.

    Strict if weights and predictors are functions of single records. If they were computed from the
    same database, or may have been (`unconfirmed`), those of a neighbor differ, which the cap
    does not bound: the charge stays local. So it does if the draws are not known to come from the
    censored posterior: the chains have not converged, or others ended in another mode. With a
    `center` ("given", "public" or "reference") a term has either sign: a draw costs
    the length of the cap's interval under `remove` and twice that under `replace`.
    """
    assert fit.cap is not None
    by_record = record_indexed and not unconfirmed and why_local(bound) is None
    strict = by_record and fit.converged and not fit.n_elsewhere
    above = bound.density_above_one or center is not None
    half = fit.cap.span / 2
    epsilon = epsilon_of_bound(
        half, relation=relation, density_above_one=above, safety_factor=safety_factor, kind="strict"
    )
    charge = PrivacyCharge.strict(
        mechanism=mechanism,
        epsilon=epsilon,
        loss_range=epsilon,
        relation=relation,
        n_draws_released=n_draws_released,
        bound=half,
        cap=fit.cap.above,
        safety_factor=safety_factor,
        density_above_one=above,
        converged=fit.converged,
        unit=unit,
        facts={
            **_facts_of_fit(fit, bound),
            "clipped": True,
            "center": center,
            "exact": None if fit.exact is None else fit.exact.grid.size,
            "fixed_draws": fit.fixed_draws,
            "excess": fit.cap.frozen is not None,
            "unconfirmed": unconfirmed,
            "by_record": record_indexed,
            "other_reference": calibrated,
            "modes": fit.n_elsewhere,
        },
        n_synthetic=n_synthetic,
    )
    return charge if strict else _local(charge, fit)


def _local(charge: PrivacyCharge, fit: PosteriorFit) -> PrivacyCharge:
    """The same cost, not for every database."""
    accounts: dict[str, Account] = {"pure": Spent(pure=charge.epsilon, rho_of_pure=None)}
    return replace(
        charge,
        kind=ASYMPTOTIC_LOCAL,
        accounts=accounts,
        n_draws=int(fit.bounds.kept_draws.size),
        draw_quantile=fit.bounds.draw_quantile,
    )


def _facts_of_fit(fit: PosteriorFit, bound: BoundModel) -> dict[str, Any]:
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
