"""`pyhybrid describe`: what a table holds, and what needs a decision."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from rich.markup import escape

from pyhybrid.cli.console import frame_table, note, show
from pyhybrid.cli.in_parts import source_of
from pyhybrid.cli.options import read_table
from pyhybrid.models.columns.form import Kind
from pyhybrid.models.columns.kinds import Counts, Dates, Leveled, Real
from pyhybrid.models.columns.types_files import legend
from pyhybrid.sources.opening import open_source
from pyhybrid.tables.describe import no_records, relations_of, seen_kind, to_decide
from pyhybrid.tables.read import typed_texts

_MOST_RELATIONS = 20
_MOST_SHOWN, _LONGEST, _SHOWN = 5, 40, 0.0005


def describe(data: Path, *, read: list[str] | None = None) -> None:
    """Print a row for each column."""
    many = source_of(data)
    codes: Mapping[str, tuple[int, ...]] = {}
    if many is None:
        source = read_table(data, read=read)
        df, codes = source.frame, source.codes
        shown_rows = f"{len(df):,} rows"
    else:
        table = open_source(many)
        df, remarks = typed_texts(table.sample(table.columns))
        for told in remarks:
            note(f"column {told!r}: {remarks[told]}")
        shown_rows = f"{table.count():,} rows, {len(df):,} of them looked at"
    risky, rows, kinds = to_decide(df), [], []
    for name, column in df.items():
        kind, share = seen_kind(column, codes.get(str(name))), column.isna().mean()
        missing = f"{share:.1%}" if share >= _SHOWN else "<0.1%" if share else ""
        shown = ("", "") if kind is None else (kind.name, _values(kind))
        kinds.append(kind)
        rows.append([str(name), *shown, missing, risky.get(str(name), "")])
    title = f"{many or data}: {shown_rows}, {df.shape[1]} columns"
    header = ["column", "kind", "drafted range", "missing", "to decide"]
    show(frame_table(title, pd.DataFrame(rows, columns=header)))
    if why := no_records(df):
        show(f"{why[0].upper()}{why[1:]}.")
    found = relations_of(df)
    if found:
        more = [f"and {len(found) - _MOST_RELATIONS} more"] if len(found) > _MOST_RELATIONS else []
        show(
            "All records keep these relations (confidential). Synthetic rows will if they stand "
            'in the list "after" of the file of types, if it is known that they hold for all. Of '
            "one value for each group, and of constant sums, leave a column out that others give.",
            *(f"  {escape(relation)}" for relation in [*found[:_MOST_RELATIONS], *more]),
        )
    words = " ".join(
        f"[bold]{word}[/]: {escape(said)}" for word, said in legend(filter(None, kinds)).items()
    )
    show(f"\nIn the draft of types: {words}")


def _values(kind: Kind) -> str:
    if isinstance(kind, Dates):
        codes = f", and codes {', '.join(kind.codes)}" if kind.codes else ""
        return f"{kind.lower} to {kind.upper} as {kind.format}{codes}"
    if isinstance(kind, Real):
        steps = "" if isinstance(kind, Counts) else f" by {10.0 ** -(kind.decimals or 0):g}"
        codes = f", and codes {', '.join(map(str, kind.codes))}" if kind.codes else ""
        return f"{kind.lower:g} to {kind.upper:g}{steps}{codes}"
    assert isinstance(kind, Leveled)
    texts = [f"{level:g}" if isinstance(level, float) else " ".join(str(level).split())
             for level in kind.levels[:_MOST_SHOWN]]  # fmt: skip
    short = [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..." for text in texts]
    shown = ("; " if any("," in text for text in short) else ", ").join(short)
    return shown if len(kind.levels) <= _MOST_SHOWN else f"{shown}, ... ({len(kind.levels)})"
