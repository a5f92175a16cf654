"""What --households, --total, --rows and --public ask of a release after it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pyhybrid.cli.named import converted, named
from pyhybrid.cli.released import show_release
from pyhybrid.cli.tables import SourceTable
from pyhybrid.core.checks import check_count, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.mechanism import Mechanism
from pyhybrid.models.composite.survey_weighted import SurveyWeighted
from pyhybrid.models.formula.row_rules import read_rules
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.postprocess import with_households, with_rows, with_totals
from pyhybrid.releases.release import Release
from pyhybrid.releases.statement import AFTERWARDS, check_still_published

__all__ = ["Afterwards", "check_afterwards", "predictors_of", "read_afterwards",
           "save_with_these", "with_these"]  # fmt: skip

_OF_HOUSEHOLDS = ("unit", "same", "one", "at_most_one", "sums", "eligible")
_OF_TOTAL = ("total", "by", "weights")


@dataclass(frozen=True, kw_only=True)
class Afterwards:
    """What is asked, as text; nothing of it if all is empty.

    Attributes
    ----------
    households : mapping or None
        ``unit``, ``same``, ``one``, ``at_most_one``, ``sums`` and ``eligible``, those given.
    totals : sequence of (str, mapping)
        Column, and its ``total`` or totals by level, with ``by`` and ``weights``.
    rows : int or None
    public : sequence of str
    """

    households: Mapping[str, Any] | None = None
    totals: Sequence[tuple[str, Mapping[str, str]]] = ()
    rows: int | None = None
    public: Sequence[str] = field(default=())

    @property
    def unit(self) -> str | None:
        """Of the households."""
        return None if self.households is None else self.households.get("unit")

    @property
    def sums(self) -> list[str]:
        """Columns that will hold sums of synthetic values."""
        return list((self.households or {}).get("sums", {}))


def read_afterwards(
    households: str | None,
    totals: Sequence[str] | None,
    rows: int | None,
    public: Sequence[str] | None,
    *,
    unit: str | None,
) -> Afterwards:
    """The options' texts; `unit` is that of privacy, which households have if they name none.

    Raises
    ------
    InvalidInput
        For a text of another form.
    """
    if public and rows is None:
        raise InvalidInput("--public goes with --rows: without it all columns stay, but for --drop")
    return Afterwards(
        households=None if households is None else _households(households, unit),
        totals=[_total(text) for text in totals or ()],
        rows=None if rows is None else check_count(rows, "--rows", at_least=2),
        public=tuple(public or ()),
    )


def _households(text: str, unit: str | None) -> dict[str, Any]:
    given: dict[str, Any] = {} if unit is None else {"unit": unit}
    given |= named(f"households:{text}")[1]
    for key in given:
        if key not in _OF_HOUSEHOLDS:
            raise InvalidInput(
                f"--households takes {', '.join(_OF_HOUSEHOLDS)}: found {key!r}"
                f"{did_you_mean(key, _OF_HOUSEHOLDS)}"
            )
    if "unit" not in given:
        raise InvalidInput(f"--households must name unit=COLUMN, or --unit: found {text!r}")
    if "same" in given:
        given["same"] = given["same"].split("+")
    for key in ("one", "at_most_one", "sums"):
        if key in given:
            given[key] = _pairs(given[key], key)
    return given


def _pairs(text: str, key: str) -> dict[str, str]:
    pairs = [each.partition(":") for each in text.split("+")]
    if not all(name.strip() and own.strip() for name, _, own in pairs):
        right = "SUMMED" if key == "sums" else "VALUE"
        raise InvalidInput(f"--households {key} must be COLUMN:{right}, with + between: {text!r}")
    return {name.strip(): own.strip() for name, _, own in pairs}


def _total(text: str) -> tuple[str, dict[str, str]]:
    column, given = named(text)
    if not column or ("total" in given) == ("by" in given):
        raise InvalidInput(
            "--total must be COLUMN:total=NUMBER or COLUMN:by=COLUMN,LEVEL=NUMBER,..., either with "
            f"weights=COLUMN: found {text!r}"
        )
    return column, given


def check_afterwards(
    asked: Afterwards,
    table: pd.DataFrame,
    synthesized: Sequence[str],
    decisions: Decisions,
    predictors: Iterable[str] = (),
) -> None:
    """What can be said before any fit: names of columns, rules, and what must be published.

    Raises
    ------
    InvalidInput
        In one line.
    """
    own, columns = asked.households or {}, list(table.columns)
    sums = own.get("sums", {})
    changed = [*own.get("same", ()), *own.get("one", {}), *own.get("at_most_one", {})]
    changed = [*changed, *sums.values(), *(column for column, _ in asked.totals)]
    read = {"households": [own["unit"]] if own else [], "totals": _read_by(asked.totals)}
    if "eligible" in own:
        read["households"] += read_rules([own["eligible"]], columns)[0].columns
    for name in (*sums, *changed, *read["households"], *read["totals"], *asked.public):
        if name not in columns:
            raise InvalidInput(
                f"{name!r} must be a column of the data: it is not{did_you_mean(name, columns)}"
            )
    whole = {*synthesized, *sums}
    for name in changed:
        if name not in whole:
            raise InvalidInput(f"{name!r} must be synthesized, to be changed afterwards: it is not")
    said = [
        {what: {"unit": own.get("unit"), "reads": [n for n in names if n not in whole]}}
        for what, names in read.items()
    ]
    check_still_published({AFTERWARDS: said}, decisions.drop, decisions.ids)
    stay = {*whole, *asked.public, *decisions.drop, asked.unit}
    hidden = [n for n in (*predictors, *read["households"], *read["totals"]) if n not in stay]
    if asked.rows is not None and hidden:
        raise InvalidInput(
            f"--rows needs --public {hidden[0]}: values were drawn for what the records have in "
            "it; or synthesize it, too"
        )


def _read_by(totals: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
    return [given[key] for _, given in totals for key in ("by", "weights") if key in given]


def predictors_of(mechanism: Mechanism, table: pd.DataFrame) -> list[str]:
    """Columns that the models read and no step replaces; what is wrong with a model is said when
    it is fitted."""
    found: list[str] = []
    for step in getattr(mechanism, "mechanisms", (mechanism,)):
        model = getattr(step, "model", None)
        if isinstance(model, SurveyWeighted):  # the design's columns weigh terms alone
            model = model.model
        try:
            found += [] if model is None else model.bind(table).predictors
        except InvalidInput:
            return []
    return [name for name in dict.fromkeys(found) if name not in mechanism.synthesizes]


def with_these(
    release: Release, asked: Afterwards, source: SourceTable, decisions: Decisions, seed: int | None
) -> Release:
    """The release as it is saved, but for marks of missing values: households agree, other columns
    are as in the file, decided columns are gone, rows are drawn, totals are met."""
    made = release
    if asked.households is not None:
        values, table = dict(asked.households), release.synthetic[0]
        for key in {"one", "at_most_one"} & values.keys():
            values[key] = {name: _typed(table[name], v, name) for name, v in values[key].items()}
        made = with_households(made, **values, seed=seed)
    keep = [name for name in decisions.keep if name not in asked.sums]  # now a sum, as asked
    own = Decisions.of(decisions.drop, keep, decisions.ids)
    made = source.restore(made).with_decisions(own)
    if asked.rows is not None:
        made = with_rows(made, asked.rows, public=asked.public, unit=asked.unit, seed=seed)
    for column, given in asked.totals:
        made = _with_total(made, column, dict(given))
    return made


def save_with_these(
    release: Release,
    asked: Afterwards,
    source: SourceTable,
    decisions: Decisions,
    out: Path,
    *,
    seed: int | None,
    overwrite: bool,
    file_format: str | None,
    ledger: Ledger | None,
) -> None:
    """Save the release with what is asked, its missing values as in the file, and show it."""
    made = with_these(release, asked, source, decisions, seed)
    source.marked(made).save(
        out, overwrite=overwrite, file_format=file_format or source.file_format, ledger=ledger
    )
    show_release(source.frame, made, out)


def _with_total(release: Release, column: str, given: dict[str, str]) -> Release:
    by, weights = given.pop("by", None), given.pop("weights", None)
    numbers = {name: converted(own, float, f"--total {column}, {name}") for name, own in
               given.items()}  # fmt: skip
    if by is None:
        unknown = [name for name in numbers if name not in _OF_TOTAL]
        if unknown:
            raise InvalidInput(f"--total {column} must have by=COLUMN for levels: {unknown[0]!r}")
        return with_totals(release, column, numbers["total"], weights=weights)
    table = release.synthetic[0]
    levels = {str(own): own for own in table[by].dropna().unique()} if by in table else {}
    totals = {levels.get(name, name): own for name, own in numbers.items()}
    return with_totals(release, column, totals, by=by, weights=weights)


def _typed(column: pd.Series, text: str, name: str) -> Any:
    """A value of the column from text: a number where the column has numbers."""
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return text
    number = converted(text, float, f"--households, value of {name}")
    return int(number) if number == int(number) else number
