"""Public words on a release: the privacy statement and metadata.

Made only of what may be published: no weight, no bound, no seed; of settings those that were asked
for, as those that ran may depend on the data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.record import Estimates, ReleaseRecord
from pyhybrid.releases.words import Words, in_one_line

_MOST_LISTED = 12
_FACTS = (
    "columns", "assumes", "not_covered", "public_rows", "chosen", "refused",  # of all, of noise
    "types_stated", "coded", "decimals", "decimals_given", "chains", "problems",  # of fits
    "refits", "alone", "failing",  # of local ones
    "clipped", "center", "exact", "fixed_draws", "excess", "unconfirmed", "by_record",
    "other_reference",  # of censored ones
)  # fmt: skip
"""Facts of a charge that sentences are made of; one that it has not counts as none."""
_WORDS = Words("pyhybrid.releases")


def privacy_statement(
    release: ReleaseRecord, *, n_records: int, parts: Sequence[ReleaseRecord] = ()
) -> str:
    """The statement as Markdown, for tables of `n_records`; `parts` are steps of a sequence."""
    charge, decisions = release.charge, release.decisions
    shaped = shaping_columns(release, parts)
    hidden = in_one_line(*(name for name in (*decisions.drop, *decisions.ids) if name in shaped))
    untold = _WORDS.rendered("not covered", "hidden", hidden=hidden)
    blocks = [
        "# Privacy statement",
        *_summary(release, n_records),
        "## What the number means",
        *_meaning(charge),
        "## Assumed",
        _bullets(assumptions(charge)),
        "## Not covered",
        _bullets([*not_covered(charge), *untold]),
        "## How it was made",
        *_how_each(parts or (release,), numbered=bool(parts)),
    ]
    if decided := decided_sentences(decisions):
        blocks.append(_bullets(decided))
    if release.estimates is not None:
        blocks += ["## Estimates", *_WORDS.rendered("estimates"), _estimates(release.estimates)]
    # Names and relations of columns are in it: no tag of theirs is HTML, nothing of theirs a link.
    return "\n\n".join(blocks).replace("<", "&lt;").replace("](", "] (") + "\n"


def _estimates(own: Estimates) -> str:
    """A Markdown table of the coordinates."""
    lines = [
        "| coordinate | estimate | 95 % interval | error, of it without noise |",
        "|---|---|---|---|",
    ]
    for row in own.frame().itertuples():
        name = in_one_line(str(row.Index)).replace("|", "&#124;")
        lines.append(
            f"| {name} | {row.estimate:.4g} | {row.lower:.4g} to {row.upper:.4g} | "
            f"{row.std_error:.2g}, {row.std_error_without_noise:.2g} |"
        )
    return "\n".join(lines)


def decided_sentences(decisions: Decisions) -> list[str]:
    """What a reader of the released table must know of its columns."""
    columns = {"drop": in_one_line(*decisions.drop), "ids": in_one_line(*decisions.ids)}
    return _WORDS.rendered("decided", **columns)


def assumptions(charge: PrivacyCharge) -> list[str]:
    """What a charge assumes, in sentences, each once."""
    said: list[str] = []
    for part in charge.parts or (charge,):
        facts = {**dict.fromkeys(_FACTS), **part.facts}
        said += _WORDS.rendered("assumed", charge=part, f=facts)
        said += [" ".join(str(text).split()) for text in facts["assumes"] or ()]
    return list(dict.fromkeys(said))


def not_covered(charge: PrivacyCharge) -> list[str]:
    """What a charge does not cover, in sentences, each once."""
    columns = in_one_line(*charge.facts.get("columns", ()))
    said = _WORDS.rendered("left open", "unsynthesized", columns=columns)
    unit = "" if charge.unit is None else in_one_line(charge.unit)
    for part in charge.parts or (charge,):
        facts = {**dict.fromkeys(_FACTS), **part.facts}
        said += _WORDS.rendered("left open", charge=part, f=facts, unit=unit)
        said += [" ".join(str(text).split()) for text in facts["not_covered"] or ()]
    return list(dict.fromkeys(said))


def stated_charge(charge: PrivacyCharge) -> dict[str, Any]:
    """The public part of a charge, with its sentences: plain JSON."""
    said = {"assumes": assumptions(charge), "not_covered": not_covered(charge)}
    return {**charge.public(), **said}


def _summary(release: ReleaseRecord, n_records: int) -> list[str]:
    values: dict[str, Any] = {"charge": release.charge, "counts": release.provenance.counts}
    field = values["counts"] if values["counts"] in ("tables", "scores") else "draws"
    source = _WORDS.sentence("source", field, **values)
    columns, several = in_one_line(*release.synthesized), len(release.synthesized) > 1
    return _WORDS.rendered(
        "summary", columns=columns, several=several, n_records=n_records, source=source, **values
    )


def shaping_columns(release: ReleaseRecord, parts: Sequence[ReleaseRecord]) -> set[str]:
    """Columns that formulas and rules read as they are in the data; not survey weights that no
    formula reads, which weigh terms alone."""
    shaped, of_models = set(), set()
    for step in parts or (release,):
        of_models |= {*step.predictors}
        weighing, formula = step.settings.get("design"), str(step.settings.get("formula"))
        for name in step.predictors:
            if name != weighing or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", formula):
                shaped.add(name)
    return shaped | (set(release.predictors) - of_models)


def _meaning(charge: PrivacyCharge) -> list[str]:
    """What epsilon promises; of a local charge what stands beside it, by other accountings."""
    whose = "record" if charge.unit is None else in_one_line(charge.unit)
    ways, published = _WORDS.meanings("accountings"), charge.epsilon_published
    counted = ways.pop(charge.accounting, None)
    values = {way: charge.epsilon_by(way) for way in ways}
    others = [f"{epsilon_text(v)} {ways[way]}" for way, v in values.items() if v is not None]
    return _WORDS.rendered(
        "meaning", charge=charge, whose=whose, strict=charge.kind == STRICT, counted=counted,
        others=others, published=published, local=published is not None,
    )  # fmt: skip


def _how_each(steps: Sequence[ReleaseRecord], *, numbered: bool) -> list[str]:
    """How the release was made; of a sequence, each step with its own epsilon."""
    lines = [_bullets(_how(step)) for step in steps]
    for place, step in enumerate(steps if numbered else ()):
        column = in_one_line(*step.synthesized)
        lines[place] = (
            f"### Step {place + 1}: {column} by {step.charge.mechanism}, "
            f"{step.charge.cost} ({step.charge.kind})\n\n{lines[place]}"
        )
    return lines


def _how(release: ReleaseRecord) -> list[str]:
    given = {k: v for k, v in release.settings.items() if v is not None}
    read = given.get("predictors")
    if isinstance(read, Mapping) and all(
        [*columns_read] == [*read][:place] for place, columns_read in enumerate(read.values())
    ):
        given["predictors"] = "the columns before each one"
    settings = ", ".join(f"{name} = {in_words(value)}" for name, value in given.items())
    diagnostics = release.diagnostics
    return _WORDS.rendered(
        "how",
        settings=" ".join(settings.split()),  # as above: no line break forges a heading
        counts=release.provenance.counts,
        made=release.provenance,
        own=release.settings.get("program", "published") != "published",  # not of pyhybrid's
        asked=release.requested,  # none of R's
        rule=None if diagnostics is None else diagnostics.rule.describe(),
        charge=release.charge,
        seeded=release.seeded,
    )


def in_words(value: Any) -> str:
    """A setting as text, numbers to ten digits, long lists by their ends. Settings of settings in
    brackets, as the outer ones are written."""
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{k} = {in_words(v)}" for k, v in value.items()) + ")"
    if isinstance(value, (list, tuple)):
        words = [in_words(part) for part in value]
        if len(words) > _MOST_LISTED:
            words = [*words[:3], f"... {words[-1]} ({len(words)} in all)"]
        return "; ".join(words)
    return f"{value:.10g}" if isinstance(value, float) and value != round(value, 9) else str(value)


def _bullets(sentences: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
