"""The privacy charge of a fit: its epsilon, and in words what it assumes and leaves open.

All sentences are in one table, each beside its name; functions say under which condition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyhybrid.core.checks import number_of
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting.local_loss import sole_informants_of
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.bounds import share_bound
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT
from pyhybrid.privacy.diagnostics import effective_draws
from pyhybrid.privacy.refits import LocalLoss
from pyhybrid.releases.words import in_one_line

OWNERS_WORD = "The owner states that the reference holds no record that is released here."
SAY_SO = (
    "if the reference holds none of the records to be released, confirm it: "
    "holds_no_released_record=True of ph.calibrate, ph.synthesize_table, "
    "ph.NoisyMarginals and ph.mechanisms.Calibration.load (--holds-no-released-record)"
)
UNCONFIRMED = f"the owner has not confirmed that the calibration has other records: {{}}; {SAY_SO}"
CENTERS = {
    "given": "a public center, given by hand",
    "released": "a center that is public, or was released before under a separate charge",
    "public": "a center made from a public reference",
    "reference": "a center made from a reference, whose records this charge does not cover",
}
"""Where a center may have come from, in words."""


_SENTENCES = {
    # What a local charge assumes of accounting, draws, weights and records
    "gaussian": "Many records: the posteriors with and without a record are close to normal, so "
    "that a released draw is Gaussian differentially private.",
    "largest": "Sizes, ranges and deviations are taken over {n_kept} posterior draws, a lower "
    "estimate of the largest possible ones.",
    "many": "There are enough records for the local bound to be near the global one. The "
    "guarantee holds for this database and extends to others only as their size grows.",
    "refits": "Everything was computed anew, weights too, without each of {n_refits} records, "
    "those of largest deviation with weights and without: no other record is assumed to tell much "
    "more. Deviations of these refits are charged with a factor of 1.25.",
    "as published": "As published: the weights are taken as fixed, and removing one record is "
    "assumed not to change those of the others.",
    "alone": "{n_alone} alone {informs} a coefficient ({columns_alone}): what a draw discloses of "
    "that is not in the epsilon stated here.",
    "coded": "Columns are coded with values computed from all records ({terms}), assumed not to "
    "change for neighbors{strict}.",
    "decimals": "Released values of {columns} have {decimals} decimals, a number fixed without "
    "looking at the data.",
    "converged": "The sampler has converged, by the rule stated below.",
    "not converged": "THE SAMPLER HAS NOT CONVERGED and the release was made anyway: the epsilon "
    "stated here may be too small. {problems}.",
    "dropped": "Draws above the {quantile:g} quantile of the largest weighted log-likelihood were "
    "dropped: the bound may fail, with a probability delta of at most {failing:.2g} for a draw "
    "(95 % confidence, from the share dropped).",
    # What a censored charge assumes
    "center": "Each record's term was clipped after subtracting its value at {center}",
    "discrete": "The outcome is discrete, so terms lie between -M and 0. Removing a record moves "
    "the log posterior by at most M; 2 M is charged for a draw.",
    "chains": "Released draws come from the censored posterior exactly; a sampler that has "
    "converged comes close to that. {stopped}",
    "exact": "Exact sampling from a grid of parameters that was fixed without these records, of "
    "{size} candidates: OpenDP's exponential mechanism draws from it, without chains and without a "
    "seed. The guarantee is that of the posterior on the grid.",
    "excess": "The average loss by clipping was computed from frozen rows and added to each term "
    "before clipping. A term still ranges over no more than the cap's interval.",
    "type": "The type of the synthesized column and the levels of categorical predictors are "
    "public and the same for every possible record.",
    "unconfirmed": "The owner has not confirmed that the calibration's reference holds no record "
    "released here. Weights and center are assumed not to change for neighbors. With the "
    "confirmation, the guarantee would be strict.",
    "by record": "Each record's weight is a function of that record alone.",
    "same database": "Weights were computed from the same database and are assumed not to change "
    "for its neighbors; a frozen calibration or weights of 1 would make the guarantee strict.",
    "owners word": OWNERS_WORD,
    "modes": "Some chains ended elsewhere, so the censored posterior may have more than one mode. "
    "Modes that the release was not drawn from are assumed to have no weight. For this reason the "
    "guarantee is not strict.",
    # What no charge covers
    "unsynthesized": "Columns other than {columns}, if there are any, are published unchanged.",
    "public": "The number of records, their labels and order, {whose}and who is in the data: they "
    "are taken as public. The guarantee hides values and their influence, not membership.",
    "several rows": "A person with several rows: the unit of privacy is one row, and k rows of one "
    "person cost k times the epsilon stated here.",
    "decimals read": "The number of decimals of the released values of {columns}, {decimals}: it "
    "was read from the confidential data; decimals=, an option of the model, fixes it, "
    "and a strict charge needs that.",
    "epsilon": "The epsilon stated here: it was computed from the confidential data. The "
    "Lipschitz bound, the range and mu can be computed from the epsilons stated.",
    "choices": "Choices made by looking at the confidential data: {chosen}, and which of several "
    "releases was kept.",
    "others": "Other releases from the same data: their epsilons add up.",
    "answer": "Whether anything was released, and whether its charge is strict, is itself an "
    "answer: {refused} shared with a calibration change it, and {depend} on the data.",
    "refusal": "Whether anything was released is itself an answer: {refused} are refused.",
    "calibration": "The records that the calibration was made from.",
}
"""All that a charge says, each once; the functions below say when."""


def _said(conditions: Mapping[str, Any], **values: Any) -> tuple[str, ...]:
    """The sentences whose condition holds, in the order of `conditions`; under a name that is none
    of theirs, sentences as they are."""
    said: list[str] = []
    for name, holds in conditions.items():
        if name not in _SENTENCES:
            said += holds
        elif holds:
            said.append(_SENTENCES[name].format(**values))
    return tuple(said)


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
    **cost: Any,
) -> PrivacyCharge:
    """Charge of releasing draws of `fit`; local and asymptotic. SamplingError if no epsilon is
    finite. `cost` are n_synthetic, n_draws_released and safety_factor.
    """
    if not math.isfinite(fit.bounds.overall):
        raise SamplingError(
            "the Lipschitz bound must be finite: a record with a positive weight has a likelihood "
            "of 0 under some draw; use a mechanism that gives such records weight 0"
        )
    if accounting == "gaussian":
        check_delta_of(delta, session.n_units)
    largest = max(fit.bounds.overall, loss.change / 2)
    counted = {"lipschitz": largest, "range": loss.loss_range, "gaussian": loss.mu}
    if not math.isfinite(counted[accounting]):
        raise SamplingError(
            "what leaves with a record must be finite at every draw: it is not in a refit without "
            "one; use a mechanism that gives such records weight 0"
        )
    above = session.bound.density_above_one or largest > fit.bounds.overall
    return _charge(
        fit,
        session.bound,
        mechanism=mechanism,
        kind=ASYMPTOTIC_LOCAL,
        bound=largest,
        published_bound=fit.bounds.overall,
        assumes=_of_local(fit, session, loss, accounting),
        not_covered=_not_covered(session.bound, session.unit),
        accounting=accounting,
        delta=delta if accounting == "gaussian" else 0.0,
        loss_range=_finite(loss.loss_range),
        mu=_finite(loss.mu),
        relation=relation,
        unit=session.unit,
        density_above_one=above,
        **cost,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def check_delta_of(delta: float, n: int) -> None:
    """Raise InvalidInput unless `delta` is below one over the number of records or units."""
    if delta >= 1 / n:
        raise InvalidInput(
            f"delta must be below 1 / n = {1 / n:.1e}, n the number of records or units of "
            f"privacy: found {delta:g}; a larger delta allows that a whole record is disclosed"
        )


def _charge(fit: PosteriorFit, model: BoundModel, *, kind: str, **fields: Any) -> PrivacyCharge:
    """A charge whose epsilon is what its accounting makes of the bound, the range or mu."""
    centered = fit.cap is not None and fit.cap.reference is not None  # terms of either sign
    return PrivacyCharge.counted(
        kind=kind,
        # A strict bound was given; how many draws there were depends on whether a first try failed.
        n_draws=None if kind == STRICT else int(fit.bounds.kept_draws.size),
        draw_quantile=fit.bounds.draw_quantile,
        cap=None if fit.cap is None else fit.cap.above,
        converged=fit.converged,
        **{"density_above_one": model.density_above_one or centered, **fields},
    ).sealed()


# --- Censored charges ----------------------------------------------------------------------------


def why_local(bound: BoundModel) -> str | None:
    """What a strict release of a model lacks: the coding of its predictors and the form of the
    released values may not depend on which records there are."""
    if not bound.decimals_given:
        columns = ", ".join(bound.synthesized)
        return f"declared decimals of {columns}: decimals= (--model NAME:decimals=2)"
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
    unit: str | None = None,
    unconfirmed: bool = False,
    center: str | None = None,
    **cost: Any,
) -> PrivacyCharge:
    """Charge of releasing draws of a censored fit: the bound is the cap, whatever the data.

    Strict if weights and predictors are functions of single records. If they were computed from the
    same database, or may have been (`unconfirmed`), those of a neighbor differ, which the cap
    does not bound: the charge stays local. So it does if the draws are not known to come from the
    censored posterior: the chains have not converged, or others ended in another mode. With a
    `center` (one of `CENTERS`) a term has either sign: a draw costs the length of the cap's
    interval under `remove` and twice that under `replace`. `cost` as of `charge_of_fit`.
    """
    assert fit.cap is not None
    by_record = record_indexed and not unconfirmed and why_local(bound) is None
    strict = by_record and fit.converged and not fit.n_elsewhere
    return _charge(
        fit,
        bound,
        mechanism=mechanism,
        kind=STRICT if strict else ASYMPTOTIC_LOCAL,
        bound=fit.cap.span / 2,
        assumes=_of_censored(fit, bound, record_indexed, calibrated, unconfirmed, center, relation),
        not_covered=(
            *_not_covered(bound, unit, computed=False),
            *_said(
                {"answer": True, "calibration": calibrated},
                refused="chains that do not converge, another mode of the posterior or records"
                if fit.exact is None
                else "records that the model refuses, or that are",
                depend="all of them depend" if fit.exact is None else "they depend",
            ),
        ),
        relation=relation,
        unit=unit,
        **cost,
    )


# --- What charges assume -------------------------------------------------------------------------


def _of_local(
    fit: PosteriorFit, session: FitSession, loss: LocalLoss, accounting: str
) -> tuple[str, ...]:
    """Assumptions of a local charge on its accounting, draws, weights and model."""
    bound, unit = session.bound, session.unit
    alone = [] if loss.refits else sole_informants_of(session)
    dropped = fit.bounds.draw_quantile < 1
    return _said(
        {
            "gaussian": accounting == "gaussian",
            "largest": True,
            "many": True,
            "refits": loss.refits,
            "as published": not loss.refits,
            "alone": alone,
            **_of_model(bound),
            **_of_chains(fit),
            "dropped": dropped,
        },
        n_kept=fit.bounds.kept_draws.size,
        n_refits=len(loss.refits),
        n_alone=number_of(len(alone), "record" if unit is None else "unit"),
        informs="informs" if len(alone) == 1 else "inform",
        columns_alone=in_one_line(*sorted({each.column for each in alone})),
        quantile=fit.bounds.draw_quantile,
        failing=_delta_of_dropped(fit) if dropped else 0.0,
        **_words(fit, bound, strict=""),
    )


def _of_model(bound: BoundModel, modes: int = 0) -> dict[str, Any]:
    """Conditions on coding and modes, the model's own sentences, and its decimals."""
    return {
        "coded": bound.data_dependent,
        "modes": modes,
        "of the model": bound.assumptions,
        "decimals": bound.decimals_given and bound.density_above_one,  # no function of the data
    }


def _of_chains(fit: PosteriorFit) -> dict[str, bool]:
    met = fit.diagnostics is None or fit.diagnostics.converged
    return {"converged": met, "not converged": not met}


def _words(fit: PosteriorFit, bound: BoundModel, *, strict: str) -> dict[str, Any]:
    """What the sentences of `_of_model` and `_of_chains` are filled with."""
    return {
        "columns": in_one_line(*bound.synthesized),
        "terms": ", ".join(bound.data_dependent),
        "decimals": bound.decimals,
        "problems": "" if fit.diagnostics is None else "; ".join(fit.diagnostics.problems),
        "strict": strict,
    }


def _delta_of_dropped(fit: PosteriorFit) -> float:
    """Upper confidence bound of the probability that a draw is one of those dropped."""
    dropped = (~fit.bounds.kept_draws).astype(np.float64)
    known = effective_draws(dropped[:, None], 1)[0]  # chains that disagree count as one that drifts
    return share_bound(float(dropped.mean()), float(known), 0.95)


def _of_censored(
    fit: PosteriorFit,
    bound: BoundModel,
    record_indexed: bool,
    of_others: bool,
    unconfirmed: bool,
    center: str | None,
    relation: str,
) -> tuple[str, ...]:
    """Assumptions of a censored charge on clipping, draws, weights and model."""
    before = "; the center was frozen before these records were looked at"
    stopped = (
        "The number of draws was fixed beforehand: when chains stop does not depend on the data."
        if fit.fixed_draws
        else "Chains go on until they have converged, up to a public limit (max_draws; equal to "
        "draws it is a number fixed beforehand): when they stop depends on the data."
    )
    return _said(
        {
            "center": center is not None,
            "discrete": center is None and relation == "remove" and not bound.density_above_one,
            "chains": fit.exact is None,
            "exact": fit.exact is not None,
            "excess": fit.cap is not None and fit.cap.frozen is not None,
            "type": True,
            "unconfirmed": unconfirmed,
            "by record": not unconfirmed and record_indexed,
            "same database": not unconfirmed and not record_indexed,
            "owners word": not unconfirmed and of_others,
            **_of_model(bound, fit.n_elsewhere),
            **(_of_chains(fit) if fit.exact is None else {}),
        },
        center=f"{CENTERS.get(center or '')}{before}.",
        stopped=stopped,
        size=0 if fit.exact is None else fit.exact.grid.size,
        **_words(fit, bound, strict="; constants given by hand would make the guarantee strict"),
    )


# --- What charges do not cover -------------------------------------------------------------------


def unsynthesized_sentence(synthesized: tuple[str, ...]) -> str:
    """That columns other than those given are published unchanged."""
    return _said({"unsynthesized": True}, columns=in_one_line(*synthesized))[0]


def not_covered_by_noise(
    synthesized: tuple[str, ...], unit: str | None, *, chosen: str, refused: str
) -> tuple[str, ...]:
    """What no charge of noisy counts covers, where these choices and values could be read."""
    said = {"choices": True, "others": True, "refusal": True}
    return (
        unsynthesized_sentence(synthesized),
        *_public_sentences(unit),
        *_said(said, chosen=chosen, refused=refused),
    )


def _public_sentences(unit: str | None) -> tuple[str, ...]:
    """What is public in any case, and what a person with several rows pays."""
    whose = "" if unit is None else f"which rows belong to one {in_one_line(unit)}, "
    return _said({"public": True, "several rows": unit is None}, whose=whose)


def _not_covered(bound: BoundModel, unit: str | None, *, computed: bool = True) -> tuple[str, ...]:
    """What no charge of a fit covers; `computed` if its epsilon came from the data: one that was
    made of a cap given beforehand discloses nothing."""
    decimals = "all that floating point has" if bound.decimals is None else str(bound.decimals)
    said = {
        "decimals read": not bound.decimals_given,
        "epsilon": computed,
        "choices": True,
        "others": True,
    }
    return (
        unsynthesized_sentence(bound.synthesized),
        *_public_sentences(unit),
        *_said(
            said,
            columns=in_one_line(*bound.synthesized),
            decimals=decimals,
            chosen="the model and its formula, scale, shift, k",
        ),
    )
