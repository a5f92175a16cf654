"""The privacy charge of a fit: its epsilon, and in words what it assumes and leaves open.

The privacy charge of a censored fit: what the cap costs, and in words what it rests on.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.fitting.session import PosteriorFit
from pyhybrid.mechanisms.accounting.loss_account import quoted
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.case_deletion import Refits
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.effective_draws import effective_draws
from pyhybrid.privacy.epsilon import ASYMPTOTIC_LOCAL, STRICT, add_epsilons
from pyhybrid.privacy.hypothetical_records import PossibleAccount
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.privacy.split_draws import share_bound

__all__ = [
    "OWNERS_WORD",
    "SAY_SO",
    "WARNINGS",
    "charge_of_censored_fit",
    "charge_of_fit",
    "check_delta_of",
    "public_sentences",
    "released_by_record",
    "unsynthesized_sentence",
    "with_bought",
    "with_evidence",
]

_EPSILON_TELLS = (
    "The epsilon stated here: it was computed from the confidential data, and the Lipschitz "
    "bound can be worked out from it, as can range and mu from theirs."
)


def charge_of_fit(
    mechanism: str,
    fit: PosteriorFit,
    bound: BoundModel,
    *,
    n_synthetic: int,
    n_draws_released: int,
    relation: str,
    safety_factor: float,
    account: LocalAccount,
    accounting: str,
    delta: float,
    unit: str | None = None,
    possible: PossibleAccount | None = None,
    support: str | None = None,
) -> PrivacyCharge:
    """Charge of releasing `n_draws_released` draws of `fit`; local and asymptotic.

    Where Gaussian accounting was asked for and its limit does not hold, the range is charged, no
    less than what terms that go on beyond the draws would lose with probability delta, and where
    that is not finite, the Lipschitz bound. With `possible`, what could be added from the
    declared `support` counts, too.

    Raises
    ------
    SamplingError
        If the bound is not finite, so that no epsilon can be stated.
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
        account = quoted(account, possible)
        overall = max(overall, possible.lipschitz_bound)
        if not math.isfinite(overall):
            raise SamplingError(
                "a possible record has a likelihood of 0 under some draw, and a weight above 0: no "
                "epsilon can be stated for this support; narrow it, or take weights that fall to 0"
            )
    counted = _counted(account, accounting, dropped=dropped)
    mu = account.largest_of_limit if counted == "gaussian" else account.mu
    failing = None
    sentences = _of_account(account, accounting, counted, delta, dropped=dropped)
    if accounting == "gaussian" and not dropped and (counted == "range" or not account.limit_holds):
        price = account.range_to(delta, otherwise=2 * overall)
        failing = price if counted == "gaussian" else None
        account = replace(account, loss_range=max(account.loss_range, price))
    return made_charge(
        fit,
        bound,
        mechanism=mechanism,
        kind=ASYMPTOTIC_LOCAL,
        lipschitz_bound=overall,
        assumes=(
            *sentences,
            *_of_relation(relation, counted, unit),
            *_assumes(fit, bound, account),
        ),
        accounting=counted,
        delta=delta if counted == "gaussian" else 0.0,
        loss_range=account.loss_range if math.isfinite(account.loss_range) else None,
        range_failing=failing,
        mu=mu if math.isfinite(mu) else None,
        mu_standard_error=account.mu_standard_error
        if math.isfinite(mu) and math.isfinite(account.mu_standard_error)
        else None,
        not_covered=not_covered_sentences(bound, unit),
        n_synthetic=n_synthetic,
        n_draws_released=n_draws_released,
        relation=relation,
        safety_factor=safety_factor,
        unit=unit,
        **({} if possible is None else _of_present(present, of_present, support, counted)),
    )


def _of_present(
    account: LocalAccount, overall: float, support: str | None, counted: str
) -> dict[str, Any]:
    """What stands beside the numbers of a declared support: those of the records present."""
    mu = account.largest_of_limit if counted == "gaussian" else account.mu
    return {
        "support": support,
        "bound_present": overall,
        "loss_range_present": account.loss_range if math.isfinite(account.loss_range) else None,
        "mu_present": mu if math.isfinite(mu) else None,
    }


def with_evidence(charge: PrivacyCharge, refits: Refits) -> PrivacyCharge:
    """The charge, made of an account that refits were taken into, with a sentence on them."""
    one, made = "record" if charge.unit is None else f"{' '.join(charge.unit.split())}", refits.each
    sentences = []
    if made:
        whose = f"the {one} that" if len(made) == 1 else f"each of the {len(made)} {one}s that"
        sentences.append(
            f"The posterior was also fitted without {whose} the release tells most about; range "
            "and mu are the larger of what either fit says."
        )
    if refits.failed:
        sentences.append(
            f"No fit could be made without {refits.failed} of the {one}s that the release tells "
            "most about: for these the charge rests on the draws of one posterior alone, and with "
            "few records it may be too small."
        )
    return replace(charge, assumes=(*charge.assumes, *sentences)).sealed()


def check_delta_of(delta: float, n: int) -> None:
    """Raise InvalidInput unless `delta` is below one over the number of records or units."""
    if delta >= 1 / n:
        raise InvalidInput(
            f"delta must be below 1 / n = {1 / n:.1e}, n the number of records or units of "
            f"privacy: found {delta:g}; a larger delta allows that a whole record is disclosed"
        )


def _counted(account: LocalAccount, accounting: str, *, dropped: bool) -> str:
    """The accounting that holds, the one asked for if it does."""
    limit = account.limit_holds or account.largest_of_limit > 0
    if accounting == "gaussian" and (
        dropped or not limit or not math.isfinite(account.largest_of_limit)
    ):
        accounting = "range"
    return accounting if accounting != "range" or math.isfinite(account.loss_range) else "lipschitz"


def _of_relation(relation: str, counted: str, unit: str | None) -> tuple[str, ...]:
    """What counting a replaced record by those present assumes."""
    if relation != "replace" or counted == "lipschitz":
        return ()
    one = "record" if unit is None else "unit"
    return (
        f"A {one} that could be put in the place of another tells no more than those present: the "
        f"cost is twice that of the {one} that tells most.",
    )


def _of_account(
    account: LocalAccount, asked: str, counted: str, delta: float, *, dropped: bool
) -> tuple[str, ...]:
    """What the chosen accounting assumes."""
    if counted == "gaussian":
        by_range = (
            "For some records the limit does not hold: they pay without a delta, by the range of "
            "their log-likelihoods or what it may be beyond the draws. Epsilon is the larger of "
            "both.",
        )
        return (
            "Many records: the posteriors with and without a record are close to normal, so that a "
            "released draw is Gaussian differentially private. This was checked record by record "
            f"on {account.n_draws} posterior draws, down to probabilities of about one in that "
            "number; below, delta rests on the limit. The upper end of mu is charged.",
            *(() if account.limit_holds else by_range),
        )
    sentences = []
    if asked != counted:
        why = "some log-likelihoods have no finite range"
        if asked == "gaussian":
            why = (
                "draws were dropped, with a probability above delta"
                if dropped
                else "the check of its limit failed for some record"
            )
        by = "range of the log-likelihoods" if counted == "range" else "Lipschitz bound"
        sentences.append(
            f"{asked.capitalize()} accounting was asked for; {why}; epsilon is counted by the {by}."
        )
    if counted == "range":
        sentences.append(
            f"The range is that over {account.n_draws} posterior draws, an estimate from below of "
            "the largest possible one: it says nothing of losses rarer than about one in "
            f"{account.n_draws}."
        )
    if counted == "range" and asked == "gaussian" and not dropped:
        told = math.isfinite(account.loss_beyond(delta))
        sentences.append(
            "No less is charged than the Gaussian epsilon of mu, and than "
            + (
                f"the loss of a draw at probability {delta:g} where the log-likelihoods go on "
                "beyond the draws as quadratic functions of a normal value."
                if told
                else f"twice the Lipschitz bound: what a draw loses at probability {delta:g} "
                "cannot be told from these draws."
            )
        )
    return tuple(sentences)


def _centered(fit: PosteriorFit) -> bool:
    """A term less its center has either sign, whatever the outcome."""
    return fit.cap is not None and fit.cap.reference is not None


def released_by_record(bound: BoundModel) -> bool:
    """True if coding of the predictors and form of the released values do not depend on which
    records there are, and a cap bounds each term; without that no charge is strict."""
    return bound.decimals_given and not (bound.data_dependent or getattr(bound, "never_strict", ()))


def made_charge(
    fit: PosteriorFit,
    bound: BoundModel,
    *,
    lipschitz_bound: float,
    kind: str,
    n_draws_released: int,
    relation: str,
    safety_factor: float,
    **fields: Any,
) -> PrivacyCharge:
    """A charge whose epsilon is what its accounting makes of the bound, the range or mu."""
    return PrivacyCharge.counted(
        kind=kind,
        relation=relation,
        n_draws_released=n_draws_released,
        bound=lipschitz_bound,
        # A strict bound was given; how many draws there were depends on whether a first try failed.
        n_draws=None if kind == STRICT else int(fit.bounds.kept_draws.size),
        draw_quantile=fit.bounds.draw_quantile,
        cap=None if fit.cap is None else fit.cap.above,
        safety_factor=safety_factor,
        density_above_one=bound.density_above_one or _centered(fit),
        converged=fit.converged,
        **fields,
    ).sealed()


def given_decimals(bound: BoundModel) -> tuple[str, ...]:
    """For continuous outcomes: that the number of decimals is not a function of the data."""
    if not bound.decimals_given or not bound.density_above_one:
        return ()
    return (
        f"Released values of {_columns(bound)} have {bound.decimals} decimals, a number fixed "
        "without looking at the data.",
    )


def _read_decimals(bound: BoundModel) -> tuple[str, ...]:
    """That the number of decimals is a function of the data."""
    if bound.decimals_given:
        return ()
    shown = "all that floating point has" if bound.decimals is None else str(bound.decimals)
    return (
        f"The number of decimals of the released values of {_columns(bound)}, {shown}: it was read "
        "from the confidential data; decimals= (--model NAME:decimals=...) fixes it, and a strict "
        "charge needs that.",
    )


def _columns(bound: BoundModel) -> str:
    return " ".join(", ".join(bound.synthesized).split())


def coded_sentence(bound: BoundModel) -> str:
    """Which predictors were coded with values of all records."""
    terms = ", ".join(bound.data_dependent)
    return f"Columns are coded with values computed from all records ({terms})"


def _assumes(fit: PosteriorFit, bound: BoundModel, account: LocalAccount) -> tuple[str, ...]:
    s = fit.bounds.kept_draws.size
    constant = bool((fit.alpha == fit.alpha[0]).all()) and not account.draws_recounted
    sentences = [
        f"The Lipschitz bound is the largest value over {s} posterior draws, an estimate from "
        "below of the largest possible one.",
        "The records are many enough for the local bound to be near the global one; the guarantee "
        "holds for this database and extends to others only as their size grows.",
    ]
    if account.draws_recounted:
        sentences.append(
            "Weights were computed from the same records. By range and mu the charge includes how "
            "they change when a record leaves, also because the risks of all others move then: "
            f"estimated from {account.draws_recounted} draws by importance weights. By the "
            "Lipschitz bound, as in the papers, it does not."
        )
    elif not constant:
        sentences.append(
            "Weights are tied to the record: taking one record out is assumed not to change the "
            "weights of the others."
        )
    if bound.data_dependent:
        sentences.append(f"{coded_sentence(bound)}, assumed not to change for neighbors.")
    sentences += [*bound.assumptions, *given_decimals(bound), converged_sentence(fit)]
    if fit.bounds.draw_quantile < 1:
        sentences.append(
            f"Draws above the {fit.bounds.draw_quantile:g} quantile of the largest weighted "
            "log-likelihood were dropped: the bound may fail, with a probability delta of at most "
            f"{_delta_of_dropped(fit):.2g} for a draw (95 % confidence, from the share dropped)."
        )
    return tuple(sentences)


def _delta_of_dropped(fit: PosteriorFit) -> float:
    """Upper confidence bound of the probability that a draw is one of those dropped."""
    dropped = (~fit.bounds.kept_draws).astype(np.float64)
    known = effective_draws(dropped[:, None], 1)[0]  # chains that disagree count as one that drifts
    return share_bound(float(dropped.mean()), float(known), 0.95)


def converged_sentence(fit: PosteriorFit) -> str:
    """Whether the chains met their rule."""
    if fit.diagnostics is None or fit.diagnostics.converged:
        return "The sampler has converged, by the rule stated below."
    return (
        "THE SAMPLER HAS NOT CONVERGED and the release was made anyway: the epsilon stated "
        "here may be too small. " + "; ".join(fit.diagnostics.problems) + "."
    )


def unsynthesized_sentence(synthesized: tuple[str, ...]) -> str:
    """That every column but those given is released as it is."""
    columns = " ".join(", ".join(synthesized).split())
    return f"Columns that were not synthesized: every column but {columns} is released as it is."


def public_sentences(unit: str | None) -> tuple[str, ...]:
    """What is public in any case, and what a person with several rows pays."""
    whose = f"which rows belong to one {' '.join(unit.split())}, " if unit is not None else ""
    public = (
        f"The number of records, their labels and order, {whose}and who is in the data: they are "
        "taken as public. The guarantee hides values and their influence, not membership."
    )
    if unit is not None:
        return (public,)
    return (
        public,
        "A person with several rows: the unit of privacy is one row, and k rows of one person cost "
        "k times the epsilon stated here.",
    )


def not_covered_sentences(
    bound: BoundModel, unit: str | None, *, computed: bool = True
) -> tuple[str, ...]:
    """What no charge of a fit covers; `computed` if its epsilon came from the data."""
    sentences = (
        unsynthesized_sentence(bound.synthesized),
        *public_sentences(unit),
        *_read_decimals(bound),
        _EPSILON_TELLS,
        "Choices made by looking at the confidential data: the model and its formula, scale, "
        "shift, k, and which of several releases was kept.",
        "Other releases from the same data: their epsilons add up.",
    )
    # A cap was given beforehand: an epsilon made of it tells nothing.
    return sentences if computed else tuple(s for s in sentences if s != _EPSILON_TELLS)


_AN_ANSWER = (
    "Whether anything was released, and whether its charge is strict, is itself an answer: chains "
    "that do not converge, another mode of the posterior or records shared with a calibration "
    "change it, and all of them depend on the data."
)
_AN_EXACT_ANSWER = (
    "Whether anything was released, and whether its charge is strict, is itself an answer: records "
    "that the model refuses, or that are shared with a calibration, change it, and they depend on "
    "the data."
)
_SHARED = (
    "The calibration was made from records that are released here, or from more of them than "
    "chance explains: weights are assumed not to change for neighbors; a calibration from other "
    "records would make the guarantee strict."
)
_UNTOLD = (
    "Whether the calibration was made from the records that are released here cannot be told, as "
    "it was made by an earlier version of pyhybrid: weights are assumed not to change for "
    "neighbors; another calibration, from other records, would make the guarantee strict."
)
_UNSAID = (
    "Its owner has not said that the calibration's reference holds no record that is released "
    "here, and coincidences tell little where values are few: weights and center are assumed not "
    "to change for neighbors; with that word the guarantee would be strict."
)
OWNERS_WORD = "The owner states that the reference holds no record that is released here."
SAY_SO = (
    "if the reference holds none of the records to be released, say so: "
    "holds_no_released_record=True of ph.calibrate, ph.calibrate_table, ph.synthesize_table, "
    "ph.Table, ph.NoisyMarginals and ph.Calibration.load (--holds-no-released-record)"
)
_DOUBTS = {"shared": _SHARED, "untold": _UNTOLD, "unsaid": _UNSAID}
WARNINGS = {
    "shared": "the calibration was made from records that are released here: {}; calibrate on "
    "other records",
    "untold": "the calibration has no digests to tell whether it was made from records that are "
    "released here: {}; calibrate on other records",
    "unsaid": f"the owner has not said what records the calibration was made from: {{}}; {SAY_SO}",
}
"""What is said of a calibration's doubts, see
`pyhybrid.mechanisms.censored.calibration.Calibration`."""
_DISCRETE = (
    "The outcome is discrete, so that terms lie between -M and 0, and leaving a record out moves "
    "the log posterior by at most M; 2 M are charged for a draw."
)
_FROZEN_BEFORE = "; the center was frozen before these records were looked at."
_FIXED = "The number of draws was fixed beforehand: when chains stop does not depend on the data."
_GOING_ON = (
    "Chains go on until they have converged, up to a public limit (max_draws; equal to draws it "
    "is a number fixed beforehand): when they stop depends on the data."
)
_EXCESS = (
    "What clipping takes away on average was read from frozen rows and added to each term before "
    "it was clipped: a term still ranges over no more than the cap's interval."
)
CENTERS = {
    "given": "a public center, given by hand",
    "released": "a center that is public, or was released before at a charge of its own",
    "public": "a center made from a public reference",
    "reference": "a center made from a reference whose own records this charge does not cover",
    "bought": "a center that was drawn from these records before, at a charge that is part of this",
}
"""Where a center may have come from, in words."""


def charge_of_censored_fit(
    mechanism: str,
    fit: PosteriorFit,
    bound: BoundModel,
    *,
    n_synthetic: int,
    n_draws_released: int,
    relation: str,
    safety_factor: float,
    record_indexed: bool,
    calibrated: bool,
    unit: str | None = None,
    doubt: str | None = None,
    center: str | None = None,
) -> PrivacyCharge:
    """Charge of releasing draws of a censored fit: the bound is the cap, whatever the data.

    Strict if weights and predictors are functions of single records. If they were computed from
    the same database, those of a neighbor differ, which the cap does not bound: the charge stays
    local. So it does if the draws are not known to come from the censored posterior: the chains
    have not converged, or others ended in another mode. With a center a term has either sign: a
    draw costs the length of the cap's interval under `remove` and twice that under `replace`.

    Parameters
    ----------
    doubt : {"shared", "untold", "unsaid"}, optional
        Why the records may be among those that the calibration was made from, whose weights then
        were computed from the same database.
    center : {"given", "released", "public", "reference", "bought"}, optional
        Where the center came from, if there is one.
    """
    assert fit.cap is not None
    by_record = record_indexed and released_by_record(bound) and doubt is None
    strict = by_record and fit.converged and not fit.n_elsewhere
    other = calibrated and center != "bought"
    return made_charge(
        fit,
        bound,
        mechanism=mechanism,
        kind=STRICT if strict else ASYMPTOTIC_LOCAL,
        lipschitz_bound=fit.cap.span / 2,
        assumes=(
            *_of_clipping(fit, bound, center, relation),
            *_assumes_of_censoring(fit, bound, record_indexed, other, doubt),
        ),
        not_covered=(
            *not_covered_sentences(bound, unit, computed=False),
            _AN_ANSWER if fit.exact is None else _AN_EXACT_ANSWER,
            *(("The records that the calibration was made from.",) if other else ()),
        ),
        n_synthetic=n_synthetic,
        n_draws_released=n_draws_released,
        relation=relation,
        safety_factor=safety_factor,
        unit=unit,
    )


def _of_clipping(
    fit: PosteriorFit, bound: BoundModel, center: str | None, relation: str
) -> tuple[str, ...]:
    """From where terms are clipped, and how draws are made."""
    sentences = []
    if center is not None:
        sentences.append(
            f"Each record's term was clipped less its value at {CENTERS[center]}"
            + ("." if center == "bought" else _FROZEN_BEFORE)
        )
    elif relation == "remove" and not bound.density_above_one:
        sentences.append(_DISCRETE)
    if fit.exact is None:
        sentences.append(
            "Released draws come from the censored posterior exactly; a sampler that has converged "
            "comes close to that. " + (_FIXED if fit.fixed_draws else _GOING_ON)
        )
    else:
        sentences.append(
            "Exact sampling from a grid of parameters that was fixed without these records, of "
            f"{fit.exact.grid.size} candidates: OpenDP's exponential mechanism draws from it, "
            "without chains and without a seed. The guarantee is that of the posterior on the grid."
        )
    if fit.cap is not None and fit.cap.frozen is not None:
        sentences.append(_EXCESS)
    return tuple(sentences)


def _assumes_of_censoring(
    fit: PosteriorFit,
    bound: BoundModel,
    record_indexed: bool,
    other: bool,
    doubt: str | None,
) -> tuple[str, ...]:
    sentences = [
        "The type of the synthesized column and the levels of categorical predictors are public "
        "and the same for every possible record.",
    ]
    if doubt is not None:
        sentences.append(_DOUBTS[doubt])
    elif record_indexed:
        sentences.append("Each record's weight is a function of that record alone.")
    else:
        sentences.append(
            "Weights were computed from the same database and are assumed not to change for its "
            "neighbors; a frozen calibration or weights of 1 would make the guarantee strict."
        )
    if other and doubt is None:
        sentences.append(OWNERS_WORD)
    if bound.data_dependent:
        sentences.append(
            f"{coded_sentence(bound)}, assumed not to change for neighbors; constants given by "
            "hand would make the guarantee strict."
        )
    if fit.n_elsewhere:
        sentences.append(
            "The censored posterior may have more than one mode, as some chains ended elsewhere; "
            "modes that the release was not drawn from are assumed to have no weight, and the "
            "guarantee is not strict for that."
        )
    converged = () if fit.exact is not None else (converged_sentence(fit),)
    return (*sentences, *bound.assumptions, *given_decimals(bound), *converged)


def with_bought(charge: PrivacyCharge, bought: PrivacyCharge) -> PrivacyCharge:
    """The charge of a release with that of its center, which was drawn from the same records."""
    sides = 2 if charge.relation == "replace" and charge.density_above_one else 1
    own = charge.bound + bought.epsilon / (2 * sides * charge.n_draws_released)
    bound = min(own, charge.bound + bought.bound)  # of one draw; rounded up, epsilon is the sum
    strict = charge.kind == bought.kind == STRICT
    return replace(
        charge,
        kind=STRICT if strict else ASYMPTOTIC_LOCAL,
        epsilon=add_epsilons([charge.epsilon, bought.epsilon]),
        bound=bound,
        n_draws=charge.n_draws if charge.n_draws is not None else bought.n_draws,
        converged=charge.converged and bought.converged,
        assumes=tuple(dict.fromkeys((*charge.assumes, *bought.assumes))),
    ).sealed()
