"""`pyhybrid synthesize`, `utility` and `report` of a table that stays where it is."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from pyhybrid.cli.console import note, progress_bars, show, table_of
from pyhybrid.cli.options import names_of, others_given
from pyhybrid.cli.plan import (
    drafted_types,
    say_repeated,
    say_unconfirmed,
    undecided_of,
    write_draft,
)
from pyhybrid.cli.tables import SourceTable
from pyhybrid.core.checks import number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms import PseudoPosteriorMechanism
from pyhybrid.models.columns.types_files import read_types
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.record import Origin
from pyhybrid.releases.release import Release
from pyhybrid.sources import rows
from pyhybrid.sources.by_formula import synthesize_by_formula
from pyhybrid.sources.comparing import compare_numbers, count_distances
from pyhybrid.sources.drafting import columns_to_look_at
from pyhybrid.sources.parts import ReleaseInParts
from pyhybrid.sources.release import synthesize_source
from pyhybrid.sources.rows import read_columns
from pyhybrid.sources.source import Source, open_source
from pyhybrid.tables.domains import default_delta

_MOST_SHOWN = 10
_MANY = 20_000  # rows whose fit takes a while
_SHOWN, _RARE = 1_000_000, 20  # records by which a model is chosen, and of a rare row at least
_REPORT = "How near it is to the table: pyhybrid report {0} --data TABLE, then pyhybrid open {0}"
TAKEN = (
    "data", "out", "types", "epsilon", "mechanism", "relation", "n_synthetic", "file_format",
    "ledger", "drop", "identifier", "overwrite", "delta", "select", "unit", "rows_per_unit",
    "workers",
)  # fmt: skip
"""Options of `pyhybrid synthesize` that are read."""
TAKEN_BY_ROWS = (
    "data", "out", "formula", "model", "mechanism", "epsilon", "reference", "calibration",
    "holds_no_released_record", "keep", "draw_quantile", "relation", "safety_factor", "accounting",
    "delta", "n_synthetic", "one_draw", "seed", "engine", "chains", "warmup", "draws",
    "adapt_delta", "on_not_converged", "file_format", "ledger", "allow_unlike", "workers",
    "overwrite", "strict", "local",
)  # fmt: skip
"""Of these with a formula, where distinct rows are fitted."""


def release_where_it_is(data: str, given: Mapping[str, Any], book: Ledger | None) -> None:
    """Release by noisy marginals, in parts; without types a draft of them is written."""
    with open_source(data) as source:
        drop = names_of(given["drop"], source.columns)
        ids = names_of(given["identifier"], source.columns)
        if len(ids) > 1:
            raise InvalidInput(f"--id must name one column: found {', '.join(ids)}")
        if given["types"] is None:
            raise InvalidInput(_draft(source, data, given, {*drop, *ids, given["unit"]}))
        types, delta = read_types(given["types"]), given["delta"]
        if delta is None and book is None:
            ((n,),) = source.ask(source.table.aggregate(n=source.table.count()))
            delta = default_delta(n)
        with progress_bars() as progress:
            release = synthesize_source(
                source, types=types, drop=drop, id=next(iter(ids), None),
                select=given["select"], delta=delta or None, relation=given["relation"] or "remove",
                file_format=given["file_format"] or "parquet", ledger=book, progress=progress,
                **{name: given[name] for name in ("epsilon", "out", "unit", "workers",
                   "rows_per_unit", "n_synthetic", "overwrite")},
            )  # fmt: skip
    say_unconfirmed(types)
    show(
        f"{given['out']}: {number_of(release.charge.n_synthetic, 'synthetic set')} of "
        f"{release.n_records:,} records, {release.charge.cost} ({release.charge.kind}); counted by "
        f"{source.engine}. Read a set as one table: "
        f"pandas.read_parquet({str(Path(given['out'], 'public', 'synthetic_1'))!r})"
        if given["file_format"] != "csv"
        else f"{given['out']}: {release.n_records:,} records in CSV parts, {release.charge.cost}",
        _REPORT.format(given["out"]),
    )


def rows_that_stay(data: str) -> int:
    """Number, which is public, of rows that are counted, not read, for a formula; 0 if all are."""
    with open_source(data) as source:
        ((n,),) = source.ask(source.table.aggregate(n=source.table.count()))
    return int(n) if n > rows.MOST_ROWS else 0


def check_taken_by_rows(context: typer.Context) -> None:
    """Refuse, by their names, options that do not go with a fit of distinct rows."""
    given, others = context.params, others_given(context, TAKEN_BY_ROWS)
    once = len(given["formula"] or ()) == 1 and len(given["model"] or ()) <= 1
    if others or not (once or given["calibration"] is not None):
        leave = f"; leave out {', '.join(others)}" if others else ""
        raise InvalidInput(
            f"a table of more than {rows.MOST_ROWS:,} rows is not read into memory: its distinct "
            f"rows are fitted, by one --formula, or by --calibration{leave}"
        )


def rows_to_choose_by(data: str, formula: str) -> pd.DataFrame:
    """Outcome and predictors of about a million records, by which a model is chosen: each distinct
    row in proportion to its number, rare ones as often as they are."""
    with open_source(data) as source:
        parsed = parse_formula(formula, source.columns)
        outcome = parsed.outcome
        counted = rows.count_rows(source, [outcome, *parsed.predictors], outcomes=[outcome])
    share = np.ceil(counted.times * min(1.0, _SHOWN / counted.n)).astype(np.int64)
    shown = np.maximum(share, np.minimum(counted.times, _RARE))
    return replace(counted, times=shown).records


def release_distinct_rows(
    given: Mapping[str, Any],
    mechanism: PseudoPosteriorMechanism,
    book: Ledger | None,
    **fitting: Any,
) -> None:
    """A column of more rows than are read into memory, released in parts by a model that is fitted
    to distinct ones."""
    with open_source(given["data"]) as source:
        release = synthesize_by_formula(
            source, mechanism, out=given["out"], keep=names_of(given["keep"], source.columns),
            file_format=given["file_format"] or "parquet", ledger=book, workers=given["workers"],
            overwrite=given["overwrite"], **fitting,
        )  # fmt: skip
    show(
        f"{given['out']}: {number_of(release.charge.n_synthetic, 'synthetic set')} of "
        f"{release.n_records:,} records, {release.charge.cost} ({release.charge.kind}); "
        f"{source.engine} counted the distinct rows, to which the model was fitted",
        _REPORT.format(given["out"]),
    )


def columns_where_they_are(
    data: str,
    formulas: Sequence[str],
    others: Sequence[str],
    asked: Sequence[str],
    seed: int | None,
) -> SourceTable:
    """Columns that formulas and mechanisms read, and those of options, of a table that stays where
    it is."""
    with open_source(data) as source:
        parsed = [parse_formula(text, source.columns) for text in formulas]
        outcomes = [own.outcome for own in parsed]
        read = [name for own in parsed for name in own.predictors]
        named = [*outcomes, *read, *others, *names_of(asked, source.columns)]
        frame = read_columns(source, named, outcomes=outcomes, seed=seed)
        where = source.name
    distinct = len(frame.drop_duplicates())
    note(
        f"{len(frame):,} rows, of which {distinct:,} distinct ones are fitted with their numbers; "
        "released are the columns that are named"
    )
    if read and 2 * distinct > len(frame) > _MANY:
        most = max(dict.fromkeys(read), key=lambda name: frame[name].nunique())
        note(
            f"{most} has {frame[most].nunique():,} values: rounded in a view, fewer rows are "
            "distinct, and the fit is faster"
        )
    return SourceTable(frame=frame, text=None, file_format="parquet", name=where)


def sample_where_it_is(data: str, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of a table that stays where it is, for measures that need them; says if not all."""
    rows_by_chance, n = rows.read_sample(data, columns)
    if len(rows_by_chance) < n:
        note(f"{data}: {len(rows_by_chance):,} of {n:,} rows, by chance")
    return rows_by_chance


def is_in_parts(release: Path) -> bool:
    """True of the folder of a release in parts."""
    return (release / "public" / "synthetic_1").is_dir()


def sampled_release(folder: Path, data: str) -> tuple[Release, pd.DataFrame]:
    """A release and the table that it was made from for the owner's report, where one of them is
    not read as a whole: rows of both by chance, as many of each."""
    parts = ReleaseInParts.load(folder) if is_in_parts(folder) else None
    made = Release.load(folder) if parts is None else Release.of(parts.record, [])
    n = len(made.synthetic[0]) if parts is None else parts.n_records
    gone = {*made.decisions.drop, *made.decisions.ids}
    read = [name for name in (*made.synthesized, *made.predictors) if name not in gone]
    real, n_real = rows.read_sample(data, read)
    if n_real != n:
        raise InvalidInput(f"data must have the {n:,} records of the release: found {n_real:,}")
    places = range(1, made.charge.n_synthetic + 1)
    whole = (table[read] for table in made.synthetic) if parts is None else (
        rows.read_sample(str(folder / "public" / f"synthetic_{place}"), read)[0] for place in places
    )  # fmt: skip
    sampled = [real, *whole]
    few = min(map(len, sampled))
    if few < n:
        note(f"{few:,} of {n:,} rows, by chance")
    real, *sets = (
        own.sample(few, random_state=1).reset_index(drop=True) if len(own) > few else own
        for own in sampled
    )
    return replace(made, synthetic=sets, origin=Origin(data=real, rows=n)), real


def utility_where_it_is(data: str, release: Path, types: Path) -> None:
    """Distances of tables and numbers of all rows, of the first set of a release."""
    sets = sorted(release.glob("public/synthetic_*")) or [release]
    first, kinds = str(sets[0]), read_types(types)
    far = count_distances(data, first, types=kinds)
    numbers = compare_numbers(data, first, types=kinds)
    for title, own in (
        ("column", far[far.other.isna()]),
        ("pair", far.dropna().assign(column=far.column + " and " + far.other)),
    ):
        rows = [[str(name), f"{d:.4f}"] for name, d in zip(own.column, own.distance, strict=True)]
        named = f"total variation distance by {title}: median {own.distance.median():.4f}, largest:"
        if rows:
            show(table_of(named, (title, "distance"), rows[:_MOST_SHOWN]))
    rows = [[name, quantity, f"{real:.5g}", f"{synthetic:.5g}"]
            for name, quantity, real, synthetic in numbers.to_numpy().tolist()]  # fmt: skip
    show(table_of("numbers, all rows", ("column", "quantity", "data", "synthetic"), rows,
                  left=("quantity",)))  # fmt: skip


def _draft(source: Source, data: str, given: Mapping[str, Any], said: set[str | None]) -> str:
    """Write a draft of the types; returns what is to be done with it."""
    named = [part for part in re.split(r"[/:]+", data) if part and not glob.has_magic(part)]
    path = Path(given["out"]).absolute().parent / f"{named[-1] if named else 'table'}.types.json"
    looked_at = columns_to_look_at(source, [name for name in source.columns if name not in said])
    if given["unit"] is None:
        say_repeated(looked_at.repeated, " --rows-per-unit ROWS")
    draft, risky = drafted_types(looked_at.columns), undecided_of(looked_at)
    kept = {name: kind for name, kind in draft.items() if name not in risky}
    return write_draft(path, kept, risky, given)
