"""What was done to a release after it was made, in words.

It is post-processing of released values and public settings, and costs nothing; the statement, the
reviewer's checklist and the public metadata say it, of sequences and whole tables, too. The
columns that it read as they are in the data must be published with the release: values that were
changed by what the reader does not have would tell of it, and no epsilon covers that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyhybrid.core.errors import InvalidInput

__all__ = ["AFTERWARDS", "afterwards_of", "afterwards_sentences", "check_still_published",
           "decisions_afterwards", "read_afterwards"]  # fmt: skip

AFTERWARDS = "afterwards"
"""Name of the public setting: a list of what was done, in its order."""


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
_READ_FOR = {
    "households": "make rows of a household agree",
    "totals": "scale values to totals",
    "rows": "draw whole units",
}
