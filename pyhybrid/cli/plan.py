"""`pyhybrid plan`: which model, which predictors, in which order."""

from __future__ import annotations

from pathlib import Path

from pyhybrid.cli.console import show
from pyhybrid.cli.options import listed, options
from pyhybrid.cli.tables import read_by_column, read_table
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.releases.column_decisions import check_decided
from pyhybrid.running.files import check_new_file
from pyhybrid.tables.plan import Table


@options
def plan(
    data: Path,
    sensitive: str,
    out: Path,
    identifier: str | None = None,
    drop: str = "",
    keep: str = "",
    types: Path | None = None,
    rule: list[str] | None = None,
    reference: Path | None = None,
    holds_no_released_record: bool = False,
    split: str = "equal",
    overwrite: bool = False,
) -> None:
    """Plan the release of a whole table: print it, change the file, then synthesize by it.

    Options:
    sensitive: Columns to synthesize, with commas between.
    out: File for the plan, .json; it belongs to the owner.
    identifier (--id): Column that names each row; replaced by numbers.
    drop: Columns that are not released, with commas between.
    keep: Columns to release although they look risky, commas between.
    types: JSON file of types by column, e.g.
        {"income": {"kind": "SemiContinuous", "lower": 0, "unit": 20000}}.
    rule: That every row meets, e.g. 'wage <= income'; repeatable.
    reference: Public or historical records that types are read from.
    split: Of epsilon: equal or need.
    """
    check_new_file(out, overwrite=overwrite, what="plan")
    made = Table(
        read_table(data).frame,
        sensitive=listed(sensitive),
        id=identifier,
        drop=listed(drop),
        keep=listed(keep),
        types={} if types is None else read_by_column(types, "types"),
        rules=rule or [],
        reference=None if reference is None else read_table(reference).frame,
        holds_no_released_record=holds_no_released_record,
    ).plan(split=split)
    frame, own = made.table.df, [column.name for column in made.columns]
    check_decided(exposed_columns(frame, own), made.decisions, list(frame.columns), own)
    made.save(out)
    show(str(made), f"\n{out}: the plan, to keep; pyhybrid synthesize {data} --plan {out}")
