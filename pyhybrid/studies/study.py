"""A study: simulated or given databases, quantities measured on each, published numbers."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

from pyhybrid.core.randomness import Streams
from pyhybrid.releases.words import Words

ROW = ("setting", "synthesizer", "quantity")
LESS = "less the data's"
"""Of centers of intervals: what a database has in common with its synthetic data falls out."""
_WORDS = Words("pyhybrid.studies")
NOTES = {"Censor_w": _WORDS.sentence("Censor_w", "note")}
"""Of synthesizers, in each line that names them."""
FEWEST = 10
"""Databases that a verdict needs."""
Pairs = Mapping[str, Sequence[tuple[str, str]]]
"""Synthesizers whose difference is judged on the same databases, by quantity."""
Found = tuple[str, bool | None]
"""A finding in words, and whether a claim holds; None if that cannot be said."""
Check = Callable[[pd.DataFrame], Found]
"""What a study's summary says of a claim."""


class Measured(NamedTuple):
    """One number from one database: what was measured, on which synthesizer."""

    synthesizer: str
    quantity: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number of a paper, `shown` as published, and the row of the study's summary beside it.

    Ours agrees if the 95 % interval of our mean over databases, with the `error` (standard) of
    theirs, reaches [low, high]; beside the number of one database, if the 95 % prediction interval
    of another database does, and does not hold `null`. A number of `other_data` than ours, which
    are not at hand, is no evidence. A `note` says why ours may differ: simulated data, one chain
    against several. `experiment` is what was tried as a cause, and what came of it.
    """

    setting: str
    synthesizer: str
    quantity: str
    shown: str
    low: float
    high: float
    error: float = 0.0
    one_database: bool = False
    other_data: bool = False
    note: str = ""
    experiment: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement that is no single number, of a paper or `by` ourselves; `check` takes the study's
    summary and gives what was found, and whether the claim holds by the `threshold`, in words.
    `note` and `experiment` are those of `Published`; `fewest` databases it needs."""

    text: str
    threshold: str
    check: Check
    by: str = "stated"
    note: str = ""
    experiment: str = ""
    fewest: int = FEWEST


def claim(name: str, check: Check, /, *, fewest: int = FEWEST, **values: Any) -> Claim:
    """The claim whose words are in the section `name` of `words.jinja`, with `values` filled in."""
    fields = ("text", "threshold", "by", "note", "experiment")
    words = {field: text for field in fields for text in _WORDS.rendered(name, field, **values)}
    return Claim(check=check, fewest=fewest, **words)


def published_in(study: str) -> tuple[Published, ...]:
    """The published numbers of a study, from `published.csv`, in its order."""
    table = files("pyhybrid.studies").joinpath("published.csv").read_text("utf-8")
    lines = []
    for row in csv.DictReader(table.splitlines()):
        if row.pop("study") == study:
            flags = {name: row[name] == "yes" for name in ("one_database", "other_data")}
            numbers = {name: float(row[name] or 0) for name in ("low", "high", "error")}
            fields: dict[str, Any] = {**row, **flags, **numbers}
            lines.append(Published(**fields))
    return tuple(lines)


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of a study is run: databases per setting, and what else makes it quick."""

    replicates: int
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study of the papers, A to J, or of what they leave open, and its source, a paper and its
    section.

    `measure` gives the rows of one database from its setting, random streams and options; it is at
    the top level of a module and runs in any process. `quick` takes about a minute.
    """

    name: str
    title: str
    source: str
    settings: tuple[str, ...]  # kinds of database, such as sample sizes
    measure: Callable[[str, Streams, Mapping[str, Any]], list[Measured]]
    quick: Size
    paper: Size
    read_data: Callable[[str | os.PathLike[str]], Any] | None = None  # of real ones, if any
    data_setting: str = ""  # the one that is then run in the place of all others
    needs_data: str = ""  # the file that it cannot be run without, and where it is
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()
    compared: Pairs = field(default_factory=dict)
