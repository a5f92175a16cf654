"""Public words on a release: the privacy statement, what was done afterwards, metadata.

Made only of what may be published: no weight, no bound, no seed; of settings those that were asked
for, as those that ran may depend on the data. What is done to a release after it was made is
post-processing of released values and public settings, and costs nothing; the statement, the
reviewer's checklist and the metadata say it. The columns that it read as they are in the data must
be published with the release: values that were changed by what the reader does not have would tell
of it, and no epsilon covers that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

import pyhybrid
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Provenance
from pyhybrid.primitives.noise import NoiseProvenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.record import ReleaseRecord

AFTERWARDS = "afterwards"
"""Name of the public setting: a list of what was done, in its order."""
_READ_FOR = {
    "households": "make rows of a household agree",
    "totals": "scale values to totals",
    "rows": "draw whole units",
}
_DRAWN_FROM = {
    "histogram": "a histogram with noise on its counts",
    "tables": "a log-linear model fitted to tables with noise on their counts",
}
_RELATION = {
    "remove": "differ in the presence of {}",
    "replace": "differ in the values of {}",
}


def afterwards_of(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What was done, in its order; empty if nothing was."""
    return list(settings.get(AFTERWARDS, ()))


def read_afterwards(settings: Mapping[str, Any]) -> dict[str, str]:
    """Columns that were read as they are in the data, and what for."""
    return {
        column: _READ_FOR[what]
        for done in afterwards_of(settings)
        for what, own in done.items()
        for column in own.get("reads", ())
    }


def check_still_published(
    settings: Mapping[str, Any], hidden: Iterable[str], numbered: Iterable[str]
) -> None:
    """Raise InvalidInput if a column that was read afterwards is left out, or replaced by numbers.

    Only the unit may have numbers: which rows belong together is all that was read of it.
    """
    units = {own.get("unit") for done in afterwards_of(settings) for own in done.values()}
    gone = {*hidden, *(name for name in numbered if name not in units)}
    for column, what in read_afterwards(settings).items():
        if column in gone:
            raise InvalidInput(
                f"{column!r} must be published as it is: it was read to {what}, and no epsilon "
                "covers what the changed values would tell of it; publish it, or do not"
            )


def afterwards_sentences(settings: Mapping[str, Any]) -> list[str]:
    """What was done, one sentence for each, without line breaks."""
    return [
        " ".join(_SAID[what](own).split())
        for done in afterwards_of(settings)
        for what, own in done.items()
    ]


def decisions_afterwards(settings: Mapping[str, Any]) -> list[str]:
    """What the owner declared to be public, for the statement's list of what is not covered."""
    said = []
    for done in afterwards_of(settings):
        if "totals" in done:
            column = done["totals"]["column"]
            said.append(f"The totals of {column}, which are taken as public: they were not drawn.")
        if done.get("rows", {}).get("public"):
            named = ", ".join(done["rows"]["public"])
            said.append(f"Columns that stayed as they are in the data, as public: {named}.")
    return [" ".join(each.split()) for each in said]


def _households(own: Mapping[str, Any]) -> str:
    eligible = own.get("eligible")
    only = f" (one with {eligible}, where there is any)" if eligible else ""
    parts = [f"one value of {column}" for column in own.get("same", ())]
    for key, number in (("one", "exactly one row has"), ("at_most_one", "at most one row has")):
        parts += [f"{number} {name} = {value}{only}" for name, value in own.get(key, {}).items()]
    parts += [f"{whole} is the sum of {part}" for whole, part in own.get("sums", {}).items()]
    return (
        f"Values were made to agree within each {own['unit']}: {'; '.join(parts)}. Which rows "
        "belong together is as in the data."
    )


def _totals(own: Mapping[str, Any]) -> str:
    totals = own["totals"]
    weighted = f", weighted by {own['weights']}," if "weights" in own else ""
    if not isinstance(totals, Mapping):
        return f"{own['column']} was scaled{weighted} to a public total, {totals:.15g}."
    named = "; ".join(f"{level}: {total:.15g}" for level, total in totals.items())
    return f"{own['column']} was scaled{weighted} to public totals by {own['by']} ({named})."


def _rows(own: Mapping[str, Any]) -> str:
    again = "with replacement: some repeat" if own["again"] else "without replacement"
    drawn = f"{own['rows']} of {own['of']} rows were drawn"
    if "unit" in own:
        drawn = (
            f"Rows of whole units ({own['unit']}, numbered anew) were drawn until there were "
            f"{own['rows']}, of {own['of']}"
        )
    return f"{drawn}, {again}, the same from each set."


_SAID: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "households": _households, "totals": _totals, "rows": _rows
}  # fmt: skip


def privacy_statement(
    release: ReleaseRecord, *, n_records: int, parts: Sequence[ReleaseRecord] = ()
) -> str:
    """The statement as Markdown, for tables of `n_records`; `parts` are steps of a sequence."""
    charge, decisions = release.charge, release.decisions
    shaped = shaping_columns(release, parts)
    hidden = _names(name for name in (*decisions.drop, *decisions.ids) if name in shaped)
    told = [
        f"True values of {hidden}: synthetic values were drawn given them, and may tell of them, "
        "although they are not in the released table as they are. No epsilon covers that."
    ]
    blocks = [
        "# Privacy statement",
        _summary(release, n_records),
        "## What the number means",
        _meaning(charge),
        "## Assumed",
        _bullets(charge.assumes),
        "## Not covered",
        _bullets(
            [
                *charge.not_covered,
                *(told if hidden else []),
                *decisions_afterwards(release.settings),
            ]
        ),
        "## How it was made",
        *_how_each(parts or (release,), numbered=bool(parts)),
    ]
    if decisions.sentences:
        blocks.append(_bullets(decisions.sentences))
    done = afterwards_sentences(release.settings)
    if done:
        free = (
            "This used released values and public settings alone: it is post-processing, and "
            "costs nothing."
        )
        blocks += ["## Changed afterwards", _bullets([*done, free])]
    return "\n\n".join(blocks) + "\n"


def _names(names: Iterable[str]) -> str:
    """Names in a row: a line break in one could forge a heading."""
    return " ".join(", ".join(names).split())


def _summary(release: ReleaseRecord, n_records: int) -> str:
    charge = release.charge
    sets = f"{charge.n_synthetic} synthetic data set{'s' if charge.n_synthetic > 1 else ''}"
    p = release.provenance
    from_noise = isinstance(p, NoiseProvenance)
    from_tables = isinstance(p, NoiseProvenance) and p.counts == "tables"
    drawn_from = _DRAWN_FROM[p.counts] if isinstance(p, NoiseProvenance) else "a Bayesian model"
    columns = _names(release.synthesized)
    several = len(release.synthesized) > 1
    replaced = f"column{'s' if several else ''} {columns}", "were" if several else "was"
    together = "" if charge.n_synthetic == 1 else " together"
    source = _source_of_tables(release) if from_tables else _source(charge, from_noise=from_noise)
    return (
        f"**{charge.cost}** for {sets}{together}; "
        f"kind: **{charge.kind}**; "
        f"neighbor relation: **{charge.relation} {charge.protected}**; "
        f"mechanism: {charge.mechanism}.\n\n"
        f"The {replaced[0]} of {n_records} records {replaced[1]} replaced by values "
        f"drawn from {drawn_from}. {source}"
    )


def shaping_columns(release: ReleaseRecord, parts: Sequence[ReleaseRecord]) -> set[str]:
    """Columns that formulas and rules read as they are in the data; not those of a survey's design
    that no formula reads, which weigh terms alone."""
    shaped, of_models = set(), set()
    for step in parts or (release,):
        of_models |= {*step.predictors}
        design, formula = step.settings.get("design"), str(step.settings.get("formula"))
        weighing = {*design.values()} if isinstance(design, Mapping) else set()
        for name in step.predictors:
            read = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", formula) is not None
            if read or name not in weighing:
                shaped.add(name)
    return shaped | (set(release.predictors) - of_models)


def _source_of_tables(release: ReleaseRecord) -> str:
    """What several sets from one measurement show, and how inferences from them are combined."""
    one = (
        "Drawing from a model that was fitted to noisy tables is post-processing: any number of "
        "sets costs no more than one."
    )
    if release.charge.n_synthetic == 1:
        return f"{one} This set was drawn at the mode: alone it does not show how the noise varies."
    if not release.settings.get("noise_aware"):
        return f"{one} All sets share one fit: they do not show how the noise varies."
    return (
        f"{one} Each set has effects of its own from their posterior, which holds the noise as "
        "well as the sampling of the records: estimates from 20 sets or more are combined by the "
        'rule "noise_aware".'
    )


def _source(charge: PrivacyCharge, *, from_noise: bool) -> str:
    """Whether the sets share what they were simulated from, and what that costs."""
    whole, varying = ("noisy histogram", "noise") if from_noise else ("posterior draw", "posterior")
    part = "histogram" if from_noise else "draw"
    if charge.n_draws_released == 1 and charge.n_synthetic > 1:
        return (
            f"All sets were simulated from one {whole}. Simulating from a released {part} is "
            f"post-processing, so they cost no more than one; they do not show how the {varying} "
            "varies."
        )
    if charge.accounting == "gaussian" and charge.n_synthetic > 1:
        cost = "mu grows with the square root of their number"
    else:
        cost = "the cost is the sum over the sets"
    return f"Each set was simulated from a {whole} of its own, and {cost}."


def _meaning(charge: PrivacyCharge) -> str:
    difference = _RELATION[charge.relation].format(charge.protected)
    whose = "record" if charge.unit is None else " ".join(charge.unit.split())
    if charge.kind == STRICT:
        scope = "This holds for every pair of such databases, at any size."
    else:
        scope = (
            "The guarantee is local and asymptotic: epsilon was computed for this database from "
            "posterior draws, and it becomes a guarantee for all databases only as the number of "
            "records grows."
        )
    doubled = (
        " A record's term can be above and below 0 here, so that replacing a record may change the "
        "log density in both directions; the cost is doubled for it."
        if charge.relation == "replace"
        and charge.density_above_one
        and charge.accounting == "lipschitz"
        else ""
    )
    exception = f" and, beyond that, by at most delta = {charge.delta:g}" if charge.delta else ""
    of_what = "of any set of outcomes"
    if not charge.delta:
        of_what = "(density) of releasing what was released"
    return (
        f"For two databases that {difference}, the probability {of_what} differs by "
        f"a factor of at most exp(epsilon){exception}. Smaller is safer; 0 would mean "
        f"that the release tells nothing about any {whose}. {scope}{doubled}"
        f"{_accounts(charge)}"
    )


def _accounts(charge: PrivacyCharge) -> str:
    """What stands beside the number: rho of noise, the other accountings of a local charge."""
    if charge.rho is not None:
        return (
            f" It was counted by zero-concentrated differential privacy of Gaussian noise: rho = "
            f"{charge.rho:.4g}, which adds over releases."
        )
    if charge.kind == STRICT or charge.mu is None:
        return ""
    ways = {
        "range": ("by the range of the log-likelihoods over the draws", charge.epsilon_range),
        "lipschitz": (
            "by the Lipschitz bound of the papers, weights held fixed",
            charge.epsilon_lipschitz,
        ),
    }
    own, others = ways.pop(charge.accounting, None), list(ways.values())
    shown = [f"{epsilon_text(value)} {how}" for how, value in others if value is not None]
    counted = "" if own is None else f" The epsilon above was counted {own[0]}."
    beside = ""
    if shown:
        beside = (
            f" For comparison, without a delta: {'; '.join(shown)}. These are estimates from "
            "below, from the draws at hand: they say nothing of losses rarer than one in the "
            "number of draws, and where one is smaller than epsilon it is no guarantee."
        )
    if charge.range_failing is not None:
        beside = (
            " Where the limit does not hold for a record, it pays by its range or more, without a "
            f"delta: {epsilon_text(charge.epsilon_failing)}, which epsilon is not below.{beside}"
        )
    error = charge.mu_standard_error
    known = (
        ""
        if error is None
        else f" (upper end of the estimate, whose standard error is {error:.1g})"
    )
    drawn = "One released draw is" if charge.n_draws_released == 1 else "Each released draw is"
    limit = "" if charge.accounting == "gaussian" else " as far as the Gaussian limit holds"
    per_instance = (
        "The guarantee is per instance: it covers the records that are in these data, not records "
        "that could have been in them."
    )
    if charge.support is not None:
        alone = charge.epsilon_present
        of_present = "" if alone is None else f"; of those present alone epsilon is {alone:g}"
        per_instance = (
            "The guarantee covers the records that are in these data and all that could be "
            f"added to them from a declared support ({charge.support}): epsilon is the largest "
            f"over both, on a grid{of_present}."
        )
    return (
        f"\n\n{per_instance}{counted}{beside} {drawn} "
        f"mu-Gaussian differentially private{limit}, with mu = {charge.mu:.4g}{known}."
    )


def _how_each(steps: Sequence[ReleaseRecord], *, numbered: bool) -> list[str]:
    """How the release was made; of a sequence, each step with its own epsilon."""
    lines = [_bullets(_how(step)) for step in steps]
    for place, step in enumerate(steps if numbered else ()):
        column = _names(step.synthesized)
        lines[place] = (
            f"### Step {place + 1}: {column} by {step.charge.mechanism}, "
            f"{step.charge.cost} ({step.charge.kind})\n\n{lines[place]}"
        )
    return lines


def _how(release: ReleaseRecord) -> list[str]:
    own = {k: v for k, v in release.settings.items() if k != AFTERWARDS}
    shown: dict[str, Any] = {k: v for k, v in own.items() if v is not None}
    settings = ", ".join(f"{name} = {in_words(value)}" for name, value in shown.items())
    settings = " ".join(settings.split())  # as above: no line break forges a heading
    lines = [f"Settings: {settings}.", *_made_by(release)]
    if release.diagnostics is not None:
        lines.append(f"Convergence was judged by: {release.diagnostics.rule.describe()}.")
    if release.charge.safety_factor > 1:
        lines.append(f"A safety factor of {release.charge.safety_factor:g} is included in epsilon.")
    if release.seeded:
        lines.append(
            "A seed was set by hand. Whoever knows it can recompute the release from guesses of "
            "the data: it must stay secret, and seeds are for tests."
        )
    else:
        lines.append("Random numbers came from the operating system's entropy.")
    return lines


def in_words(value: Any) -> str:
    """A setting as text. Settings of settings in brackets, as the outer ones are written."""
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{k} = {in_words(v)}" for k, v in value.items()) + ")"
    if isinstance(value, (list, tuple)):
        return "; ".join(in_words(each) for each in value)
    return str(value)


def _made_by(release: ReleaseRecord) -> list[str]:
    p = release.provenance
    if isinstance(p, NoiseProvenance):
        return [f"Noise: {p.noise}, from the {p.library} library {p.version}."]
    own = "program" in release.settings  # a StanModel's: not one of pyhybrid's
    program = f"the user's own, {p.program}" if own else f"stan/{p.program}.stan"
    return [f"Program: {program}, sha256 {p.program_sha256}.", _engine(release, p)]


def _engine(release: ReleaseRecord, ran: Provenance) -> str:
    asked = release.requested
    if ran.engine == "exact":
        return (
            f"Drawn exactly, without chains, by the exponential mechanism of {ran.engine_version}."
        )
    if asked is None:  # a release of an earlier version
        s = ran.settings
        return (
            f"Engine: {ran.engine} {ran.engine_version}; {s.chains} chains of {s.warmup} warm-up "
            f"and {s.draws} kept iterations."
        )
    delta = "by default" if asked.adapt_delta is None else f"{asked.adapt_delta:g}"
    return (
        f"Engine: {ran.engine} {ran.engine_version}; asked for: {asked.chains} chains of "
        f"{asked.warmup} warm-up and {asked.draws} kept iterations, adapt_delta {delta}."
    )


def _bullets(sentences: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def public_metadata(
    charge: PrivacyCharge,
    synthesized: Collection[str],
    settings: Mapping[str, Any],
    tables: Sequence[pd.DataFrame],
    file_format: str,
) -> dict[str, Any]:
    """Variables, files and protection of the synthetic tables as they are published.

    What catalogs and readers' programs need, as plain JSON under the names of the Data
    Documentation Initiative (DDI-Codebook 2.5); nothing that tables, charge and statement do not
    say.
    """
    first = tables[0]
    done = (said for each in afterwards_of(settings) for said in each.values())
    sums = {name for said in done for name in said.get("sums", {})}
    return {
        "standard": "DDI-Codebook 2.5 names, as JSON",
        "stdyDscr": {
            "dataKind": "partially synthetic microdata",
            "method": str(settings.get("mechanism", charge.mechanism)),
            "software": {"name": "pyhybrid", "version": pyhybrid.__version__},
            "privacy": charge.public(),
            "cleanOps": afterwards_sentences(settings),
        },
        "fileDscr": [
            {
                "fileName": f"synthetic_{place}.{file_format}",
                "caseQnty": len(table),
                "varQnty": table.shape[1],
            }
            for place, table in enumerate(tables, start=1)
        ],
        "dataDscr": [
            _variable(str(name), first[name], synthesized, sums) for name in first.columns
        ],
    }


def _variable(
    name: str, values: pd.Series, synthesized: Collection[str], derived: Collection[str]
) -> dict[str, Any]:
    numeric = pd.api.types.is_numeric_dtype(values.dtype)
    continuous = numeric and not pd.api.types.is_bool_dtype(values.dtype)
    source = "drawn from the model" if name in synthesized else "as in the confidential data"
    return {
        "name": name,
        "intrvl": "contin" if continuous else "discrete",
        "varFormat": str(values.dtype),
        "synthesized": name in synthesized,
        "source": "summed from drawn values" if name in derived else source,
    }
