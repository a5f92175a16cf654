"""The top of the owner's report: what is promised, how good the data are, what looks wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.release import Release
from pyhybrid.reports.by_predictor import lost_relations
from pyhybrid.reports.judged import FAIR, GOOD, POOR, Judged, judge_outcome
from pyhybrid.reports.page import Cell, Marked, Section, Table

__all__ = ["in_short", "judged_columns", "verdict_section"]

_EPSILON_OF_LITTLE_USE = 10.0  # nats: a factor of 22,000


def verdict_section(release: Release, data: pd.DataFrame) -> Section:
    """Plain words and one row for each synthesized column. Confidential."""
    judged = judged_columns(release, data)
    wrong = [*_wrong(release, judged), *lost_relations(release, data)]
    said = {"Promised. ": _promise(release), "How good. ": _how_good(judged)}
    return in_short(said, wrong, [_table(judged)] if judged else [])


def in_short(
    said: Mapping[str, str], wrong: Sequence[str], tables: Sequence[Table] = ()
) -> Section:
    """The section that a page opens with: sentences after a bold word, what looks wrong, tables."""
    return Section(
        heading="In short",
        paragraphs=[["", opening, text] for opening, text in said.items()],
        bullets=list(wrong) or ["Nothing that this page checks looks wrong."],
        tables=tables,
    )


def judged_columns(release: Release, data: pd.DataFrame) -> dict[str, tuple[Judged, ...]]:
    """Judged measures of each synthesized column that has some, in their order."""
    found = {
        column: judge_outcome(data[column], [table[column] for table in release.synthetic])
        for column in release.synthesized
    }
    return {column: judged for column, judged in found.items() if judged}


def _promise(release: Release) -> str:
    charge = release.charge
    which = "Whether any" if charge.relation == "remove" else "What any"
    does = "was in the data" if charge.relation == "remove" else "holds"
    factor = (
        f"{which} {charge.protected} {does} changes the probability of what is released by a "
        f"factor of at most exp(epsilon): {charge.cost}"
    )
    if charge.kind == STRICT:
        return f"{factor}. It is strict: it holds for every database."
    return (
        f"{factor}. It is local: estimated for this database from posterior draws, and no promise "
        "for another one."
    )


def _how_good(judged: Mapping[str, Sequence[Judged]]) -> str:
    worst = {column: _worst(each) for column, each in judged.items()}
    if not worst:
        return "No synthesized column could be compared with the data."
    parts = []
    for word, text in (
        (GOOD, "about as near to the data as a second sample would be"),
        (FAIR, "further from the data than a second sample, and still usable for much"),
        (POOR, "further from the data than chance explains"),
    ):
        columns = [column for column, own in worst.items() if own == word]
        if columns:
            parts.append(f"{word[0].upper()}{word[1:]} ({text}): {_listed(columns)}.")
    return " ".join(parts)


def _worst(judged: Sequence[Judged]) -> str:
    words = {each.word for each in judged}
    return next(word for word in (POOR, FAIR, GOOD) if word in words)


def _wrong(release: Release, judged: Mapping[str, Sequence[Judged]]) -> list[str]:
    found = [
        f"{column}: {', '.join(f'{e.label} {e.text}' for e in each if e.word == POOR)} (POOR). Do "
        "not use it for inference as it is; look at the figures below for what is lost."
        for column, each in judged.items()
        if any(e.word == POOR for e in each)
    ]
    charge, diagnostics = release.charge, release.diagnostics
    if not charge.converged or (diagnostics is not None and not diagnostics.converged):
        found.append("The sampler has NOT CONVERGED: epsilon may be too small.")
    if charge.epsilon > _EPSILON_OF_LITTLE_USE:
        found.append(
            f"Epsilon is above {_EPSILON_OF_LITTLE_USE:g}: by itself it promises next to nothing."
        )
    if release.confidential.censored is not None and release.confidential.censored.mean() > 0.5:
        found.append("More than half of the records met the cap: the model hears little of them.")
    return found


def _table(judged: Mapping[str, Sequence[Judged]]) -> Table:
    labels = list(dict.fromkeys(each.label for own in judged.values() for each in own))
    rows = []
    for column, own in judged.items():
        cells: dict[str, Cell] = {
            each.label: Marked(text=each.text, word=each.word) for each in own
        }
        rows.append([column, *(cells.get(label, "–") for label in labels)])
    return Table(
        caption="Synthetic data against the data, a row for each synthesized column. Error, "
        "standardized difference and interval overlap are of the mean. Good: like a second sample; "
        "POOR: more than chance explains.",
        header=["Column", *labels],
        rows=rows,
        numbers=True,
    )


def _listed(names: Sequence[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
