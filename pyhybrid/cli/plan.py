"""`pyhybrid plan`: which model, which predictors, in which order; and releases by a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pyhybrid.cli.afterwards import Afterwards, check_afterwards, save_with_these
from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.open_ledger import open_ledger
from pyhybrid.cli.parameters import Data, HoldsNoReleasedRecord, Overwrite
from pyhybrid.cli.tables import read_table, read_types
from pyhybrid.core.checks import check_choice, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.privacy.conversions import RELATIONS
from pyhybrid.releases.folder import FORMATS
from pyhybrid.running.files import check_new_file
from pyhybrid.tables.plan import SPLITS, Plan
from pyhybrid.tables.synthesis import MECHANISMS, delta_of, synthesize_table
from pyhybrid.tables.table import Table

__all__ = ["check_taken_by_plan", "plan", "synthesize_by_plan"]

_TAKEN = (
    "data", "out", "plan", "epsilon", "reference", "mechanism", "relation", "n_synthetic",
    "one_draw", "engine", "seed", "chains", "warmup", "draws", "adapt_delta", "on_not_converged",
    "file_format", "ledger", "allow_unlike", "overwrite", "households", "total", "rows", "public",
    "delta", "select", "holds_no_released_record",
)  # fmt: skip


def plan(
    data: Data,
    sensitive: Annotated[str, typer.Option(help="Columns to synthesize, with commas between.")],
    out: Annotated[Path, typer.Option(help="File for the plan, .json; it belongs to the owner.")],
    identifier: Annotated[
        str | None, typer.Option("--id", help="Column that names each row; replaced by numbers.")
    ] = None,
    drop: Annotated[
        str, typer.Option(help="Columns that are not released, with commas between.")
    ] = "",
    keep: Annotated[
        str, typer.Option(help="Columns to release although they look risky, commas between.")
    ] = "",
    types: Annotated[
        Path | None,
        typer.Option(
            help="JSON file of types by column, e.g. "
            '{"income": {"kind": "SemiContinuous", "lower": 0, "unit": 20000}}.'
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(help="That every row meets, e.g. 'wage <= income'; repeatable."),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Public or historical records that types are read from.")
    ] = None,
    holds_no_released_record: HoldsNoReleasedRecord = False,
    split: Annotated[str, typer.Option(help=f"Of epsilon: {' or '.join(SPLITS)}.")] = "equal",
    overwrite: Overwrite = False,
) -> None:
    """Plan the release of a whole table: print it, change the file, then synthesize by it."""
    check_new_file(out, overwrite=overwrite, what="plan")
    made = Table(
        read_table(data).frame,
        sensitive=_names(sensitive),
        id=identifier,
        drop=_names(drop),
        keep=_names(keep),
        types={} if types is None else read_types(types),
        rules=rule or [],
        reference=None if reference is None else read_table(reference).frame,
        holds_no_released_record=holds_no_released_record,
    ).plan(split=split)
    made.save(out)
    show(str(made), f"\n{out}: the plan, to keep; pyhybrid synthesize {data} --plan {out}")


def check_taken_by_plan(context: typer.Context) -> None:
    """Refuse, by their names, all options given to `pyhybrid synthesize` that a plan does not take.

    Whatever is not listed in `_TAKEN` is refused, so that a new option is not ignored in silence.
    """
    given = [
        own.opts[0]
        for own in context.command.params
        if own.name not in _TAKEN and own.name in context.params
        if _on_command_line(context, own.name)
    ]
    if given:
        raise InvalidInput(
            f"--plan says what is synthesized and how: leave out {', '.join(given)}, or --plan"
        )


def _on_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def synthesize_by_plan(
    data: Path,
    plan: Path,
    out: Path,
    *,
    mechanism: Sequence[str],
    epsilon: float | None,
    delta: float | None,
    select: str | None,
    reference: Path | None,
    holds_no_released_record: bool,
    relation: str,
    n_synthetic: int,
    one_draw: bool,
    seed: int | None,
    engine: str,
    settings: SamplerSettings | None,
    on_not_converged: str,
    file_format: str | None,
    ledger: Path | None,
    allow_unlike: bool,
    overwrite: bool,
    asked: Afterwards,
) -> None:
    """Release a whole table by a plan; see `pyhybrid synthesize` for the options."""
    if len(mechanism) > 1:
        raise InvalidInput("--plan takes one --mechanism, for all columns")
    check_choice(mechanism[0], "mechanism", MECHANISMS)
    check_choice(relation, "relation", RELATIONS)
    check_output_folder(out, overwrite=overwrite)
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    if allow_unlike and ledger is None:
        raise InvalidInput("--allow-unlike goes with --ledger")
    book = None
    if ledger is not None:
        book = open_ledger(
            ledger,
            name=mechanism[0],
            relation=relation,
            delta=delta_of(mechanism[0], delta),
            epsilon=epsilon if mechanism[0] in ("censored", "marginals") else None,
            allow_unlike=allow_unlike,
        )
    source = read_table(data)
    made = Plan.load(plan, source.frame)
    own = [column.name for column in made.columns]
    check_afterwards(asked, source.frame, own, made.decisions, made.kept)
    with progress_bars() as progress:  # text of other columns comes back before the decisions
        release = synthesize_table(
            made,
            epsilon=epsilon,
            delta=delta,
            select=select,
            mechanism=mechanism[0],
            reference=None if reference is None else read_table(reference).frame,
            holds_no_released_record=holds_no_released_record,
            relation=relation,
            n_synthetic=n_synthetic,
            n_draws_released=1 if one_draw else None,
            seed=seed,
            engine=engine,
            settings=settings,
            on_not_converged=on_not_converged,
            decided=False,
            progress=progress,
        )
    save_with_these(
        release, asked, source, made.decisions, out, seed=seed, overwrite=overwrite,
        file_format=file_format, ledger=book,
    )  # fmt: skip


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
