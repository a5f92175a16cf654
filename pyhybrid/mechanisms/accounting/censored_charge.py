"""The privacy charge of a censored fit: what the cap costs, and in words what it rests on."""

from __future__ import annotations

from dataclasses import replace

from pyhybrid.fitting.session import PosteriorFit
from pyhybrid.mechanisms.accounting.local_charge import (
    coded_sentence,
    converged_sentence,
    given_decimals,
    made_charge,
    not_covered_sentences,
    released_by_record,
)
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT, add_epsilons

__all__ = ["OWNERS_WORD", "SAY_SO", "WARNINGS", "charge_of_censored_fit", "with_bought"]

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
