"""A whole table that stays where it is, released by noisy marginals, part by part."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from pyhybrid.core.checks import (
    check_choice,
    check_count,
    check_output_folder,
    check_positive,
    did_you_mean,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import new_identifier, streams
from pyhybrid.mechanisms import NoisyMarginals
from pyhybrid.models.columns.kinds import Kind, Leveled
from pyhybrid.releases.folder import FORMATS
from pyhybrid.releases.ledger import Ledger
from pyhybrid.running.resumable import fingerprint
from pyhybrid.running.tasks import Progress
from pyhybrid.sources.counting import Counted
from pyhybrid.sources.parts import Drawn, DrawnFromCells, ReleaseInParts, release_in_parts
from pyhybrid.sources.source import Source, name_of, opened
from pyhybrid.tables.plan import Table
from pyhybrid.tables.synthesis import check_declared, marginals_by_plan
from pyhybrid.tables.table_spec import kinds_of

ROWS_PER_PART = 500_000


@bar_in_notebooks
def synthesize_source(
    data: Any,
    *,
    types: Mapping[str, Any],
    epsilon: float,
    out: str | os.PathLike[str],
    drop: Sequence[str] = (),
    id: str | None = None,
    delta: float | None = None,
    select: str | None = None,
    relation: str = "remove",
    unit: str | None = None,
    rows_per_unit: int | None = None,
    n_synthetic: int = 1,
    file_format: str = "parquet",
    rows_per_part: int = ROWS_PER_PART,
    ledger: Ledger | None = None,
    overwrite: bool = False,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> ReleaseInParts:
    """Release a whole table by noisy marginals without moving it: cells are counted where the
    records are, and synthetic rows are written part by part.

    A run that was stopped goes on when it is called again with the same arguments. Nothing is
    charged or drawn twice.

    Parameters
    ----------
    data : str, path, ibis table, DuckDB relation or Source
        See `open_source`. Read only.
    types : mapping of str to Kind
        What each column can hold, declared; see `pyhybrid.Table`. All columns but those of `drop`,
        `id` and `unit` are synthesized.
    epsilon : float
        Of the whole release, all sets together, nats.
    out : path
        Folder for the release, new or empty.
    drop : sequence of str
        Columns that are not released.
    id : str, optional
        Column that is released as running numbers.
    delta, select, relation
        See `pyhybrid.synthesize_table`.
    unit, rows_per_unit : str, int, optional
        Column whose equal values are one person's rows, which is not released, and how many rows a
        person can have, public; more are refused.
    n_synthetic : int, default 1
        m, the number of sets, at one price.
    file_format : {"parquet", "csv"}
    rows_per_part : int, default 500000
        Memory is that of so many rows, for each worker.
    ledger : Ledger, optional
        Takes the charge before a row is drawn. It knows the data by the counts of their cells, so
        that further releases need the same types.
    overwrite : bool, default False
        Replace what is in `out`.
    workers, executor
        Processes that draw, and that count Parquet files; an executor in their place, e.g.
        ``distributed.Client().get_executor()``.
    progress : callable, optional
        Called with ("parts", done, in all).

    Returns
    -------
    ReleaseInParts
        What is in `out`.

    Raises
    ------
    InvalidInput
        For data that cannot be read or change while they are counted, columns without a type or of
        one that has no such cells, and values outside of their domain; nothing is charged.
    BudgetExceeded
        If the ledger has less left; nothing is written.
    """
    target = Path(out)
    check_positive(epsilon, "epsilon")
    check_choice(file_format, "file_format", FORMATS)
    check_count(n_synthetic, "n_synthetic")
    check_count(rows_per_part, "rows_per_part")
    check_count(workers, "workers")
    check_output_folder(target, overwrite=overwrite)
    kinds = kinds_of(types)
    left_out = [*drop, *([] if unit is None or unit in drop or unit == id else [unit])]
    asked = {
        "types": {name: own.as_dict() for name, own in kinds.items()}, "epsilon": epsilon,
        "drop": left_out, "id": id, "delta": delta, "select": select, "relation": relation,
        "unit": unit, "rows_per_unit": rows_per_unit, "n_synthetic": n_synthetic,
        "file_format": file_format, "rows_per_part": rows_per_part,
    }  # fmt: skip
    at_work: dict[str, Any] = {"workers": workers, "executor": executor}
    begun_with = fingerprint({"data": name_of(data), **asked})

    def measured() -> Drawn:
        if progress is not None:
            progress("noisy counts and their model", 0, 0)
        with opened(data) as source:
            return _measured(source, kinds, asked, begun_with, at_work)

    return release_in_parts(
        target, begun_with, measured, overwrite=overwrite, ledger=ledger, progress=progress,
        **at_work,
    )  # fmt: skip


def _measured(
    source: Source,
    kinds: Mapping[str, Kind],
    asked: Mapping[str, Any],
    begun_with: str,
    at_work: Mapping[str, Any],
) -> Drawn:
    """Count, add noise, fit: all that rows are drawn from."""
    columns = _columns(source, kinds, asked)
    ids = [] if asked["id"] is None else [asked["id"]]
    own = {name: kinds[name] for name in columns if name not in ids}
    mechanism = mechanism_of(own, asked)
    counted, random = Counted(source, mechanism.domain, **at_work), streams()
    told = mechanism.sets_of(counted, asked["n_synthetic"], random)
    factors = [factors for factors, _ in told.sets]
    return DrawnFromCells(
        identifier=new_identifier(),
        begun_with=begun_with,
        n_records=len(counted),
        rows_per_part=asked["rows_per_part"],
        file_format=asked["file_format"],
        entropy=str(random.child("rows").entropy),
        columns=columns,
        ids=ids,
        dropped=asked["drop"],
        charge=told.charge.as_dict(),
        settings=told.settings,
        noise=told.noise,
        counted=source.engine,
        data=_mark(counted),
        order={name: list(reads) for name, reads in factors[0].order.items()},
        domain={name: own.as_dict() for name, own in told.domain.items()},
        few={name: own.as_dict() for name, own in factors[0].domain.items()},
        sets=[
            {
                "effects": {name: own.tolist() for name, own in factors.effects.items()},
                "shares": {name: own.tolist() for name, own in shares.items()},
            }
            for factors, shares in told.sets
        ],
    )


def _columns(source: Source, kinds: Mapping[str, Kind], asked: Mapping[str, Any]) -> list[str]:
    """Columns of the release, in the order of the source."""
    ids = [] if asked["id"] is None else [asked["id"]]
    source.check_columns([*asked["drop"], *ids])
    for name in kinds:
        if name not in source.columns:
            raise InvalidInput(
                f"types must name columns of {source.name}: {name!r} is none"
                f"{did_you_mean(name, source.columns)}"
            )
    columns = [name for name in source.columns if name not in asked["drop"]]
    bare = [name for name in columns if name not in kinds and name not in ids]
    if bare:
        raise InvalidInput(
            f"columns of {source.name} must have a type, or be left out: {', '.join(bare)} have "
            "none; add them to types, or to drop (--types, --drop)"
        )
    return columns


def mechanism_of(kinds: Mapping[str, Kind], asked: Mapping[str, Any]) -> NoisyMarginals:
    """The mechanism of a plan that is made of the types alone: two rows stand for the table, so
    that no record can change an order, a choice of tables or a bin."""
    stub: pd.DataFrame = pd.DataFrame({name: _two_values(own) for name, own in kinds.items()})
    plan = Table(stub, sensitive=[*kinds], types=kinds).plan()
    check_declared(plan)
    given = {name: asked[name] for name in ("delta", "select") if name in asked}
    made = marginals_by_plan(plan, asked["epsilon"], asked["relation"], **given)
    return replace(made, unit=asked.get("unit"), rows_per_unit=asked.get("rows_per_unit"))


def _two_values(kind: Kind) -> list[Any]:
    if isinstance(kind, Leveled):
        return list(kind.levels[:2])
    low, high = (getattr(kind, end) for end in ("lower", "upper"))
    first = 0.0 if low is None else float(low)
    return [first, first + 1.0 if high is None else float(high)]


def _mark(counted: Counted) -> dict[str, Any]:
    """Which data a ledger holds it to be: by the counts of each column's cells."""
    columns = {
        names[0]: hashlib.sha256(counts.tobytes()).hexdigest()[:32]
        for names, counts in counted.alone.items()
    }
    return {"n_records": len(counted), "columns": columns}
