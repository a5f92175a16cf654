"""The privacy charge of a fit: its epsilon, and in words what it assumes and leaves open.

All sentences are in one table, each beside its name; functions say under which condition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.fitting.session import PosteriorFit
from pyhybrid.mechanisms.accounting.loss_account import with_possible
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.bounds import share_bound
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import rho_of_draw
from pyhybrid.privacy.conversions import (
    ASYMPTOTIC_LOCAL,
    STRICT,
    add_epsilons,
    at_most,
    lipschitz_sides,
    round_up,
    shown,
)
from pyhybrid.privacy.diagnostics import effective_draws
from pyhybrid.privacy.hypothetical_records import PossibleAccount
from pyhybrid.privacy.leave_one_out import Refits
from pyhybrid.privacy.local_account import LocalAccount
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
    "bought": "a center drawn from these records before; this charge includes its cost",
}
"""Where a center may have come from, in words."""


_SENTENCES = {
    # What the accounting assumes
    "gaussian": "Many records: the posteriors with and without a record are close to normal, so "
    "that a released draw is Gaussian differentially private. This was checked record by record "
    "on {n_draws} posterior draws, down to probabilities of about one in that number; for smaller "
    "ones, delta relies on the limit. The upper end of the estimate of mu is charged.",
    "some by loss": "Records for which the limit does not hold are charged by their largest loss "
    "over the draws, or by an extrapolation beyond these. Epsilon is the larger of the two.",
    "other": "{asked} accounting was asked for; {why}; epsilon is counted by the {by}.",
    "range": "The range is taken over {n_draws} posterior draws. It is a lower estimate of the "
    "largest possible range: it misses losses rarer than about one in {n_draws}.",
    "beyond": "The charge is at least the Gaussian epsilon of mu, and at least {loss}",
    "replaced": "A {one} that replaces another is assumed to have no larger risk than those "
    "present: the cost is twice that of the {one} of largest risk.",
    # What a local charge assumes of draws, weights and records
    "largest": "The Lipschitz bound is the largest value over {n_kept} posterior draws, a lower "
    "estimate of the largest possible value.",
    "many": "There are enough records for the local bound to be near the global one. The "
    "guarantee holds for this database and extends to others only as their size grows.",
    "recounted": "Weights were computed from the same records. By range and mu, the charge "
    "includes how the weights change when a record leaves, because the risks of the others "
    "change, too: estimated from {recounted} draws by importance weights. By the Lipschitz bound, "
    "as in the papers, it does not.",
    "tied": "Removing one record is assumed not to change the weights of the others.",
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
    # What refits without a record say
    "refits": "The posterior was also fitted without {whose} of largest risk; range and mu are "
    "the larger of both fits.",
    "failed": "No fit could be made without {failed} of the {one}s of largest risk: their charge "
    "relies on the draws of one posterior alone and may be too small with few records.",
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
    bound: BoundModel,
    *,
    account: LocalAccount,
    accounting: str,
    delta: float,
    relation: str,
    unit: str | None = None,
    possible: PossibleAccount | None = None,
    support: str | None = None,
    **cost: Any,
) -> PrivacyCharge:
    """Charge of releasing draws of `fit`; local and asymptotic. SamplingError if no epsilon is
    finite.

    Where Gaussian accounting was asked for and its limit does not hold, the range is charged, no
    less than what terms that go on beyond the draws would lose with probability delta, and where
    that is not finite, the Lipschitz bound. With `possible`, what could be added from the declared
    `support` counts, too. `cost` are n_synthetic, n_draws_released and safety_factor.
    """
    overall = fit.bounds.overall
    if not math.isfinite(overall):
        raise SamplingError(
            "the Lipschitz bound must be finite: a record with a positive weight has a likelihood "
            "of 0 under some draw; use a mechanism that gives such records weight 0"
        )
    if accounting == "gaussian":
        check_delta_of(delta, account.loss_ranges.size)
    dropped = fit.bounds.draw_quantile < 1
    present, of_present = account, overall
    if possible is not None:
        account = with_possible(account, possible)
        overall = max(overall, possible.lipschitz_bound)
        if not math.isfinite(overall):
            raise SamplingError(
                "a possible record has a likelihood of 0 under some draw, and a weight above 0: no "
                "epsilon can be stated for this support; narrow it, or take weights that fall to 0"
            )
    counted = _counted(account, accounting, dropped=dropped)
    stated: dict[str, Any] = {}
    if possible is not None:
        stated = {
            "support": support,
            "bound_present": of_present,
            "loss_range_present": _finite(present.loss_range),
            "mu_present": _finite(_mu(present, counted)),
        }
    replaced = relation == "replace" and counted != "lipschitz"
    one = "" if not replaced else "record" if unit is None else "unit"
    assumes = _of_local(fit, bound, account, accounting, counted, delta, replaced=one)
    if accounting == "gaussian" and not dropped and (counted == "range" or not account.limit_holds):
        m = cost.get("n_draws_released", 1)
        price = account.loss_to(delta, otherwise=2 * overall, n_draws=m) / m
        stated["range_failing"] = price if counted == "gaussian" else None
        account = replace(account, loss_range=max(account.loss_range, price))
    mu = _finite(_mu(account, counted))
    return _charge(
        fit,
        bound,
        mechanism=mechanism,
        kind=ASYMPTOTIC_LOCAL,
        bound=overall,
        assumes=assumes,
        not_covered=_not_covered(bound, unit),
        accounting=counted,
        delta=delta if counted == "gaussian" else 0.0,
        loss_range=_finite(account.loss_range),
        mu=mu,
        mu_standard_error=None if mu is None else _finite(account.mu_standard_error),
        relation=relation,
        unit=unit,
        **stated,
        **cost,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mu(account: LocalAccount, counted: str) -> float:
    return account.largest_of_limit if counted == "gaussian" else account.mu


def _counted(account: LocalAccount, accounting: str, *, dropped: bool) -> str:
    """The accounting that holds, the one asked for if it does."""
    limit = account.limit_holds or account.largest_of_limit > 0
    if accounting == "gaussian" and (
        dropped or not limit or not math.isfinite(account.largest_of_limit)
    ):
        accounting = "range"
    return accounting if accounting != "range" or math.isfinite(account.loss_range) else "lipschitz"


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
        density_above_one=model.density_above_one or centered,
        converged=fit.converged,
        **fields,
    )


def with_evidence(charge: PrivacyCharge, refits: Refits) -> PrivacyCharge:
    """The charge, made of an account that refits were taken into, with a sentence on them."""
    one = "record" if charge.unit is None else in_one_line(charge.unit)
    n_made = len(refits.each)
    whose = f"the {one}" if n_made == 1 else f"each of the {n_made} {one}s"
    said = {"refits": n_made, "failed": refits.failed}
    sentences = _said(said, one=one, whose=whose, failed=refits.failed)
    return replace(charge, assumes=(*charge.assumes, *sentences))


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
    of_others = calibrated and center != "bought"
    return _charge(
        fit,
        bound,
        mechanism=mechanism,
        kind=STRICT if strict else ASYMPTOTIC_LOCAL,
        bound=fit.cap.span / 2,
        assumes=_of_censored(fit, bound, record_indexed, of_others, unconfirmed, center, relation),
        not_covered=(
            *_not_covered(bound, unit, computed=False),
            *_said(
                {"answer": True, "calibration": of_others},
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


def with_bought(charge: PrivacyCharge, bought: PrivacyCharge) -> PrivacyCharge:
    """The charge of a release with that of its center, which was drawn from the same records."""
    m, strict = charge.n_draws_released, charge.kind == bought.kind == STRICT
    kind = STRICT if strict else ASYMPTOTIC_LOCAL
    sides = lipschitz_sides(charge.relation, charge.density_above_one) * shown(charge.safety_factor)
    return replace(
        charge,
        kind=kind,
        epsilon=round_up(add_epsilons([charge.epsilon, bought.epsilon]), kind=kind),
        bound=at_most(shown(charge.bound) + shown(bought.epsilon) / (sides * m)),  # of one draw
        rho=rho_of_draw([charge, bought], m) if strict else None,
        n_draws=charge.n_draws if charge.n_draws is not None else bought.n_draws,
        converged=charge.converged and bought.converged,
        assumes=tuple(dict.fromkeys((*charge.assumes, *bought.assumes))),
    )


# --- What charges assume -------------------------------------------------------------------------


def _of_local(
    fit: PosteriorFit,
    bound: BoundModel,
    account: LocalAccount,
    asked: str,
    counted: str,
    delta: float,
    *,
    replaced: str,
) -> tuple[str, ...]:
    """Assumptions of a local charge on its accounting, draws, weights and model."""
    dropped, recounted = fit.bounds.draw_quantile < 1, account.draws_recounted
    why = "some log-likelihoods have no finite range"
    if asked == "gaussian":
        why = "the check of its limit failed for some record"
        if dropped:
            why = "draws were dropped, with a probability above delta"
    beyond = counted == "range" and asked == "gaussian" and not dropped
    loss = (
        f"the loss of a draw at probability {delta:g} where the log-likelihoods go on beyond the "
        "draws as cubic functions of a normal value."
        if beyond and math.isfinite(account.loss_beyond(delta))
        else f"twice the Lipschitz bound: what a draw loses at probability {delta:g} cannot be "
        "estimated from these draws."
    )
    return _said(
        {
            "gaussian": counted == "gaussian",
            "some by loss": counted == "gaussian" and not account.limit_holds,
            "other": asked != counted,
            "range": counted == "range",
            "beyond": beyond,
            "replaced": replaced,
            "largest": True,
            "many": True,
            "recounted": recounted,
            "tied": not recounted and bool((fit.alpha != fit.alpha[0]).any()),
            **_of_model(bound),
            **_of_chains(fit),
            "dropped": dropped,
        },
        asked=asked.capitalize(),
        why=why,
        by="range of the log-likelihoods" if counted == "range" else "Lipschitz bound",
        n_draws=account.n_draws,
        n_kept=fit.bounds.kept_draws.size,
        loss=loss,
        one=replaced,
        recounted=recounted,
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
        center=f"{CENTERS.get(center or '')}{'' if center == 'bought' else before}.",
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
