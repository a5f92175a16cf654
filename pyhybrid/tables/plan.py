"""The plan of a table's release: which model, which predictors, in which order, and why."""

from __future__ import annotations

import ast
import html
import json
import math
import os
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from pyhybrid.core.checks import check_choice, check_count, check_positive, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import html_table
from pyhybrid.mechanisms import PerturbedHistogram
from pyhybrid.mechanisms.sequential import Step
from pyhybrid.models.columns.kinds import Counts, Kind, Leveled, Number, kind_from_dict
from pyhybrid.models.default_model import (
    COUNTED,
    HISTOGRAM,
    MARGINALS,
    MOST_LEVELS,
    formula_of,
    n_coefficients,
    rule_for,
    unusable,
)
from pyhybrid.models.registry import BUILT, build_model, within
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.running.files import write_files
from pyhybrid.tables.domains import below_zero, measured_with, most_tables, note_of_tables
from pyhybrid.tables.table_spec import SOURCES, DescribedTable, KnownKind

SPLITS = ("equal", "need")
"""Rules for a column's share of epsilon: the same, or by the root of the coefficients of its
model: a record's term moves as that root over the root of n, and what moves further is clipped."""
_VERSION = 1
MOST_COEFFICIENTS = 60


@dataclass(frozen=True, kw_only=True)
class PlannedColumn:
    """How one column is synthesized: a `model` of `registry.BUILT`, "perturbed_histogram" or
    "noisy_marginals" with its options, on predictors before it, measured with `tables` by noisy
    marginals, at a `share` of epsilon."""

    name: str
    kind: KnownKind
    model: str
    options: Mapping[str, Any]
    predictors: tuple[str, ...]
    tables: tuple[str, ...] = ()
    share: float
    why: str

    def formula(self, kinds: Mapping[str, Kind]) -> str:
        """Formula of its model, with public constants only."""
        own = {name: kinds[name] for name in self.predictors}
        return formula_of(self.name, own)

    def model_of(self, kinds: Mapping[str, Kind]) -> Any:
        """The model, or None for noisy counts."""
        if self.model in COUNTED:
            return None
        fill = {
            name: own.typical[0] if own.typical else 0.0
            for name in self.predictors
            if isinstance(own := kinds[name], Number) and own.missing
        }
        missing = any(kinds[name].missing for name in (self.name, *self.predictors))
        own = kinds[self.name]
        ends = (own.lower, own.upper) if isinstance(own, Number) else (None, None)
        model = build_model(
            self.model, self.formula(kinds), self.options, missing=missing, fill=fill or None,
            marked=[name for name in self.predictors if kinds[name].missing],
            complete=not own.missing,
        )  # fmt: skip
        return within(model, *ends)

    def histogram(self, epsilon: float, relation: str) -> Step:
        """The perturbed histogram at an epsilon."""
        return PerturbedHistogram(
            column=self.name, epsilon=epsilon, relation=relation, **self.options
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "name": self.name,
            "type": self.kind.kind.as_dict(),
            "source": self.kind.source,
            "model": self.model,
            "options": {k: list(v) if isinstance(v, tuple) else v for k, v in self.options.items()},
            "predictors": list(self.predictors),
            "tables": list(self.tables),
            "share": self.share,
            "why": self.why,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A plan, made by `Table.plan`; print it, change it, keep it as JSON.

    Attributes
    ----------
    table : Table
    columns : tuple of PlannedColumn
        In the order of synthesis.
    kept : mapping of str to KnownKind
        Kept columns that can be predictors.
    notes : tuple of str
        What was left out, and why.
    of_reference : bool
        True if types, tables or models were chosen by a reference.
    """

    table: DescribedTable = field(repr=False)
    columns: tuple[PlannedColumn, ...]
    kept: Mapping[str, KnownKind]
    notes: tuple[str, ...] = ()
    of_reference: bool = False

    def __post_init__(self) -> None:
        before: list[str] = list(self.kept)
        for column in self.columns:
            for name in (*column.predictors, *column.tables):
                if name not in before:
                    raise InvalidInput(_no_predictor(self, column, name))
            before.append(column.name)
        total = math.fsum(column.share for column in self.columns)
        if abs(total - 1) > 1e-9 or any(column.share <= 0 for column in self.columns):
            raise InvalidInput(f"shares must be above 0 and add to 1: found a sum of {total:g}")

    def __repr__(self) -> str:
        return f"<Plan for {', '.join(column.name for column in self.columns)}>"

    def __str__(self) -> str:
        table = self.table
        lines = _wrapped(
            f"Plan for {len(table.df)} rows: {len(self.columns)} columns are synthesized, "
            f"{len(table.kept)} kept.",
            "",
        )
        for place, column in enumerate(self.columns, start=1):
            given = f" given {', '.join(column.predictors)}" if column.predictors else ""
            lines += _wrapped(f"{column.name}: {column.model}{given}", _IN, f"{place:>3}. ")
            lines += _wrapped(_why(column, table.df), _IN, _IN)
            if column.tables and column.tables != column.predictors:
                lines += _wrapped(f"noisy marginals: with {', '.join(column.tables)}", _IN, _IN)
        roles = {"Kept": table.kept, "Not released": table.drop,
                 "Replaced by running numbers": [] if table.id is None else [table.id]}  # fmt: skip
        below = [f"{role}: {', '.join(names)}." for role, names in roles.items() if names]
        below += [f"Rule: {rule}" for rule in table.rules]
        below += [f"Note: {note}." for note in _notes(self)]
        return "\n".join([*lines, *(line for text in below for line in _wrapped(text, "  "))])

    def _repr_html_(self) -> str:
        header = ("", "column", "model", "given", "of epsilon", "why")
        rows = [
            (
                place,
                column.name,
                column.model,
                ", ".join(column.predictors) or "none",
                f"{column.share:.1%}",
                _why(column, self.table.df, share=False),
            )
            for place, column in enumerate(self.columns, start=1)
        ]
        table = html_table(f"Plan for {len(self.table.df):,} rows", header, rows)
        notes = [*(f"Rule: {rule}" for rule in self.table.rules), *_notes(self)]
        below = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
        return f"{table}<ul>{below}</ul>" if below else table

    def __getitem__(self, name: str) -> PlannedColumn:
        found = {column.name: column for column in self.columns}
        if name not in found:
            raise InvalidInput(
                f"the plan must have a column {name!r}: it has none{did_you_mean(name, found)}"
            )
        return found[name]

    @property
    def kinds(self) -> dict[str, Kind]:
        """Kind of each column that is synthesized or read."""
        own = {column.name: column.kind.kind for column in self.columns}
        return {**{name: each.kind for name, each in self.kept.items()}, **own}

    @property
    def decisions(self) -> Decisions:
        """What is published of columns that are not synthesized."""
        table = self.table
        return Decisions.of(table.drop, table.keep, () if table.id is None else (table.id,))

    @property
    def not_declared(self) -> tuple[str, ...]:
        """Sensitive columns whose kind was, or may have been, read from the confidential data."""
        given = ("declared", "reference")
        return tuple(column.name for column in self.columns if column.kind.source not in given)

    def with_column(
        self,
        name: str,
        *,
        model: str | None = None,
        options: Mapping[str, Any] | None = None,
        predictors: Sequence[str] | None = None,
        tables: Sequence[str] | None = None,
    ) -> Plan:
        """The plan with another model, settings or predictors for one column; `tables` are what
        noisy marginals measure it with, the predictors if these alone are given. A column of the
        model "noisy_marginals" comes first, see `counted`."""
        own = self[name]
        if model is not None:
            check_choice(model, "model", [*BUILT, *COUNTED])
            given = {} if options is None else dict(options)
            own = replace(own, model=model, options=given, why="chosen by hand")
        elif options is not None:
            own = replace(own, options={**own.options, **options})
        if predictors is not None:
            own = replace(own, predictors=tuple(predictors), tables=tuple(predictors))
        if tables is not None:
            own = replace(own, tables=tuple(tables))
        if own.model in COUNTED and own.predictors:
            own = replace(own, predictors=())
        columns = tuple(own if column.name == name else column for column in self.columns)
        changed = replace(self, columns=columns)
        own.model_of(self.kinds)  # settings that the model does not take are refused here
        if model == MARGINALS and (options or predictors is not None):
            raise InvalidInput(f"{MARGINALS} takes neither options nor predictors: give tables")
        return changed.counted({name: own.why}) if model == MARGINALS else changed

    def counted(self, why: Mapping[str, str]) -> Plan:
        """The plan with columns released by noisy marginals, together and before all others, which
        are given them as predictors; histograms are counted with them. `why` is the reason by
        column."""
        first = [c.name for c in self.columns if c.name in why or c.model in COUNTED]
        rest = [c.name for c in self.columns if c.name not in first]
        usable: dict[str, Kind] = {name: own.kind for name, own in self.kept.items()}
        columns, most = [], most_tables(len(self.columns))
        for own in (self[name] for name in (*first, *rest)):
            kind, reference = own.kind.kind, self.table.reference
            few = measured_with(own.name, {**usable, own.name: kind}, usable, kept=self.kept,
                                most=most, reference=reference)  # fmt: skip
            if own.name in first:
                told = why.get(own.name, own.why)
                own = replace(own, model=MARGINALS, options={}, predictors=(), why=told)
            elif own.predictors:
                read = {n: k for n, k in usable.items() if n in (*own.predictors, *first)}
                chosen = _kept_first(read, self.kept, MOST_COEFFICIENTS)
                if {*chosen} != {*own.predictors}:  # or its calibration holds
                    own = replace(own, predictors=chosen)
            columns.append(replace(own, tables=few))
            if unusable(kind) is None:
                usable[own.name] = kind
        return replace(self, columns=tuple(columns))

    def reading_pairs(self, pairs: Collection[frozenset[str]]) -> Plan:
        """The plan with models that read a predictor only if it makes one of `pairs` with their
        column."""
        columns = tuple(
            replace(
                own,
                predictors=tuple(n for n in own.predictors if frozenset((own.name, n)) in pairs),
            )
            for own in self.columns
        )
        return replace(self, columns=columns)

    def with_shares(self, split: str | Mapping[str, float]) -> Plan:
        """The plan with epsilon split anew: by a rule of `SPLITS`, or as given by column."""
        shares = _shares(self.columns, self.kinds, split)
        columns = tuple(replace(column, share=shares[column.name]) for column in self.columns)
        return replace(self, columns=columns)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types, without the table."""
        table = self.table
        return {
            "pyhybrid_plan": _VERSION,
            "sensitive": list(table.sensitive),
            "id": table.id,
            "drop": list(table.drop),
            "keep": list(table.keep),
            "rules": list(table.rules),
            "of_reference": self.of_reference,
            "holds_no_released_record": table.holds_no_released_record,
            "columns": [column.as_dict() for column in self.columns],
            "kept": {
                name: {"type": own.kind.as_dict(), "source": own.source}
                for name, own in self.kept.items()
            },
            "notes": list(self.notes),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON. It belongs to the owner: it may hold levels read from the data,
        and says so."""
        write_files({Path(path): json.dumps(self.as_dict(), indent=2) + "\n"}, private=True)

    @staticmethod
    def load(path: str | os.PathLike[str], df: Any) -> Plan:
        """The plan in a file, for the table `df`, or what the function `df` makes of the kinds.

        Raises
        ------
        InvalidInput
            If the file is no plan, or does not fit the table.
        """
        try:
            given = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInput(f"plan {path} must be readable: {error.strerror}") from None
        except ValueError:
            raise InvalidInput(f"plan {path} must be JSON: it does not parse") from None
        return Plan.from_dict(given, df)

    @staticmethod
    def from_dict(given: Any, df: Any) -> Plan:
        """Inverse of `as_dict`, for the table `df`."""
        if not isinstance(given, Mapping) or given.get("pyhybrid_plan") != _VERSION:
            raise InvalidInput(f"a plan must be an object with pyhybrid_plan: {_VERSION}")
        try:
            columns = tuple(_column_of(own) for own in given["columns"])
            kept = {str(name): _known(own) for name, own in given["kept"].items()}
            sensitive, drop, keep, rules = (
                tuple(given[name]) for name in ("sensitive", "drop", "keep", "rules")
            )
            notes = tuple(str(note) for note in given.get("notes", ()))
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(f"the plan must be whole: {error} is missing or wrong") from None
        kinds = {name: own.kind for name, own in kept.items()}
        kinds |= {column.name: column.kind.kind for column in columns}
        table = DescribedTable(
            df(kinds) if callable(df) else df,
            id=given.get("id"),
            types=kinds,
            order=[column.name for column in columns],
            sensitive=sensitive,
            drop=drop,
            keep=keep,
            rules=rules,
            holds_no_released_record=given.get("holds_no_released_record", False),
        )
        table.kinds()  # values that are none of the plan's levels are refused
        by_type = any(column.kind.source == "reference" for column in columns)
        of = bool(given.get("of_reference", by_type))  # version 0.2 did not say
        counted = {column.name: column.why for column in columns if column.model == MARGINALS}
        first = columns[: len(counted)]
        if all(column.name in counted for column in first):
            return Plan(table=table, columns=columns, kept=kept, notes=notes, of_reference=of)
        bare = tuple(replace(column, tables=()) for column in columns)  # written by hand: they move
        moved = Plan(table=table, columns=bare, kept=kept, notes=notes, of_reference=of)
        return moved.counted(counted)


def plan_of(
    table: DescribedTable,
    *,
    split: str | Mapping[str, float] = "equal",
    most_coefficients: int = MOST_COEFFICIENTS,
) -> Plan:
    """Plan a release: each column is given all kept ones and those before it, up to
    `most_coefficients`; of confidential columns only kinds are read, where undeclared, and the plan
    says so."""
    limit = check_count(most_coefficients, "most_coefficients")
    known, notes = table.kinds(), []
    kept: dict[str, KnownKind] = {}
    for name in table.kept:
        why = "of no kind that is read" if name not in known else unusable(known[name].kind)
        if why is None:
            kept[name] = known[name]
        else:
            notes.append(f"{name} is kept as it is, and is no predictor: {why}")
    columns: list[PlannedColumn] = []
    most = most_tables(len(table.sensitive))
    for name in _ordered(table, known):
        kinds = {**kept, **{column.name: column.kind for column in columns}}
        usable = {key: own.kind for key, own in kinds.items() if unusable(own.kind) is None}
        predictors = _kept_first(usable, kept, limit)
        left = [key for key in usable if key not in predictors]
        if left:
            notes.append(f"{name} is not given {', '.join(left)}: {limit} coefficients at most")
        planned = _planned(name, known[name], predictors)
        own = {**usable, name: known[name].kind}
        few = measured_with(name, own, usable, kept=kept, most=most, reference=table.reference)
        options, noted = below_zero(name, planned.options, table.reference)
        notes += noted
        columns.append(replace(planned, tables=few, options=options))
    notes.append(note_of_tables(most, table.reference))
    shares = _shares(columns, {name: own.kind for name, own in known.items()}, split)
    made = tuple(replace(column, share=shares[column.name]) for column in columns)
    shaped = table.reference is not None
    return Plan(table=table, columns=made, kept=kept, notes=tuple(notes), of_reference=shaped)


def _planned(name: str, known: KnownKind, predictors: tuple[str, ...]) -> PlannedColumn:
    rule = rule_for(known.kind, predicted=bool(predictors))
    return PlannedColumn(
        name=name,
        kind=known,
        model=rule.model,
        options=rule.options(known.kind),
        predictors=() if rule.model == HISTOGRAM else predictors,
        share=1.0,
        why=rule.why,
    )


def _shares(
    columns: Sequence[PlannedColumn], kinds: Mapping[str, Kind], split: str | Mapping[str, float]
) -> dict[str, float]:
    """Share of epsilon of each column; they add to 1."""
    if isinstance(split, Mapping):
        names = [column.name for column in columns]
        if sorted(split) != sorted(names):
            raise InvalidInput(f"split must give a share to each of {', '.join(names)}")
        need = {name: check_positive(split[name], f"share of {name!r}") for name in names}
    else:
        check_choice(split, "split", SPLITS)
        need = {
            column.name: 1.0
            if split == "equal"
            else math.sqrt(1 + sum(n_coefficients(kinds[name]) for name in column.predictors))
            for column in columns
        }
    total = math.fsum(need.values())
    return {name: own / total for name, own in need.items()}


def _no_predictor(plan: Plan, column: PlannedColumn, name: str) -> str:
    if name in [other.name for other in plan.columns]:
        return (
            f"column {column.name!r} must not read {name!r}, a sensitive column that is not "
            "synthesized before it: its true values would shape what is released; change the order"
        )
    return (
        f"column {column.name!r} must have predictors that are kept or synthesized before it: "
        f"{name!r} is neither{did_you_mean(name, plan.kinds)}"
    )


def _known(given: Mapping[str, Any]) -> KnownKind:
    return KnownKind(kind=kind_from_dict(given["type"]), source=str(given["source"]))


def _column_of(given: Mapping[str, Any]) -> PlannedColumn:
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in given["options"].items()}
    return PlannedColumn(
        name=str(given["name"]),
        kind=_known(given),
        model=check_choice(given["model"], "model", [*BUILT, *COUNTED]),
        options=options,
        predictors=tuple(str(name) for name in given["predictors"]),
        tables=tuple(str(name) for name in given.get("tables", given["predictors"])),
        share=check_positive(given["share"], "share"),
        why=str(given["why"]),
    )


def _ordered(table: DescribedTable, known: Mapping[str, KnownKind]) -> list[str]:
    """Sensitive columns in the order given; or few levels first, then counts, then numbers, and the
    smaller side of a rule before the larger. Nothing of it looks at the data beyond the kinds."""
    if not isinstance(table.order, str):
        return list(table.order)
    names = [str(name) for name in table.df.columns if name in table.sensitive]
    left = sorted(names, key=lambda name: _rank(known[name].kind))  # stable
    after = _smaller_sides(table, names)
    found: list[str] = []
    while left:
        ready = next((n for n in left if not after.get(n, set()) - set(found)), None)
        if ready is None:
            raise InvalidInput(
                f"rules must leave an order for {', '.join(left)}: each is the larger side of one "
                "and the smaller of another; give order="
            )
        left.remove(ready)
        found.append(ready)
    return found


def _kept_first(usable: Mapping[str, Kind], kept: Collection[str], limit: int) -> tuple[str, ...]:
    """Predictors of at most `limit` coefficients: kept columns, then the last before it."""
    own = [name for name in usable if name in kept]
    near = [name for name in reversed(list(usable)) if name not in kept]
    found, used = set(), 0
    for name in (*own, *near):
        if used + n_coefficients(usable[name]) <= limit:
            found.add(name)
            used += n_coefficients(usable[name])
    return tuple(name for name in usable if name in found)


def _rank(kind: Kind) -> tuple[int, int]:
    if isinstance(kind, Leveled):
        size = len(kind.levels)
        return (0, size) if size <= MOST_LEVELS else (4, size)
    if isinstance(kind, Counts):
        return (1, 0)
    return (2, 0) if isinstance(kind, Number) else (3, 0)


def _smaller_sides(table: DescribedTable, names: Collection[str]) -> dict[str, set[str]]:
    """For plain rules ``a <= b`` of two sensitive columns: a before b, which has no upper end."""
    before: dict[str, set[str]] = {}
    for rule in table.read_rules:
        if "->" in rule.text or "`" in rule.text:
            continue
        tree = ast.parse(rule.text, mode="eval").body
        if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
            continue
        left, right = tree.left, tree.comparators[0]
        if not (isinstance(left, ast.Name) and isinstance(right, ast.Name)):
            continue
        small, large = left.id, right.id
        if isinstance(tree.ops[0], ast.Gt | ast.GtE):
            small, large = large, small
        elif not isinstance(tree.ops[0], ast.Lt | ast.LtE):
            continue
        if small in names and large in names:
            before.setdefault(large, set()).add(small)
    return before


_WIDTH = 80
_IN = " " * 5


def _why(column: Any, df: pd.DataFrame, *, share: bool = True) -> str:
    shown = f"; {column.share:.1%} of epsilon" if share else ""
    kind, gone = column.kind.kind, float(df[column.name].isna().mean())
    if isinstance(kind, Number) and kind.form.decimals:
        shown = f"; in steps of {10.0**-kind.form.decimals:g}{shown}"
    if gone:
        shown = f"; {gone:.1%} missing{shown}"
    return f"{kind.name}, {SOURCES[column.kind.source]}; {column.why}{shown}"


def _notes(plan: Plan) -> list[str]:
    if not plan.not_declared:
        return list(plan.notes)
    read = (
        f"types of {', '.join(plan.not_declared)} were read from confidential columns: a strict "
        "charge needs types= or reference="
    )
    return [*plan.notes, read]


def _wrapped(text: str, rest: str = "", first: str = "") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False
    )


@dataclass(frozen=True, repr=False)
class Table(DescribedTable):
    """A table with confidential columns.

    Parameters
    ----------
    df : DataFrame
        Confidential records, one row each. Not modified.
    sensitive : sequence of str
        Columns to synthesize.
    id : str, optional
        Column that names each row once; it is released as running numbers.
    drop : sequence of str
        Columns that are not released, and that nothing reads.
    keep : sequence of str
        Columns to release as they are also where they look risky. All others that are not
        sensitive are kept, too, unless `Release.save` asks for a decision. Kept columns are the
        first predictors.
    types : mapping of str to Kind
        What columns can hold, e.g. ``{"income": ph.SemiContinuous(lower=0, unit=20_000)}``. For
        all sensitive columns a strict charge needs a type, here or from `reference`. Categories are
        none: ``astype("category")`` takes them from the records.
    rules : sequence of str
        That every row meets, e.g. ``"wage <= income"``, or ``"age < 16 -> income == 0"`` for a
        structural zero; see `pyhybrid.models.formula.row_rules`.
    order : "auto" or sequence of str
        In which sensitive columns are synthesized; "auto" by their kinds, few levels first.
    reference : DataFrame, optional
        Public or historical records that types may be read from. Their own records are not
        protected by releases of `df`.
    holds_no_released_record : bool, default False
        The owner confirms that the reference holds none of the records of `df`; without that, types
        read from it make no charge strict.

    Raises
    ------
    InvalidInput
        For names that are no columns, columns with two roles, an id with a value in two rows,
        columns without any value or with one only, values that are none of the declared levels (the
        row is named), and rules that no row can meet.

    Examples
    --------
    >>> table = ph.Table(df, sensitive=["voted", "income"], id="person", keep=["age", "sex"])
    >>> print(table.plan())
    """

    def plan(
        self,
        *,
        split: str | Mapping[str, float] = "equal",
        most_coefficients: int = MOST_COEFFICIENTS,
    ) -> Plan:
        """Which model, which predictors, in which order; see `pyhybrid.tables.plan.plan_of`."""
        return plan_of(self, split=split, most_coefficients=most_coefficients)
