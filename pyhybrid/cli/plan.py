"""`pyhybrid plan`: which model, which predictors, in which order; and releases by a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pyhybrid.checks import check_choice, check_output_folder
from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.options import sampler_settings
from pyhybrid.cli.parameters import Data, Overwrite
from pyhybrid.cli.released import show_release
from pyhybrid.cli.tables import read_table
from pyhybrid.errors import InvalidInput
from pyhybrid.releases.folder import FORMATS
from pyhybrid.releases.ledger import Ledger
from pyhybrid.running.files import check_new_file
from pyhybrid.tables.plan import SPLITS, Plan
from pyhybrid.tables.synthesis import synthesize_table
from pyhybrid.tables.table import Table

__all__ = ["plan", "synthesize_by_plan"]

_ANSWERED = ("formula", "model", "calibration", "unit", "drop", "keep", "identifier")
_SETTINGS = ("chains", "warmup", "draws", "adapt_delta")


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
        types={} if types is None else _types(types),
        rules=rule or [],
        reference=None if reference is None else read_table(reference).frame,
    ).plan(split=split)
    made.save(out)
    show(str(made), f"\n{out}: the plan, to keep; pyhybrid synthesize {data} --plan {out}")


def synthesize_by_plan(given: Mapping[str, Any]) -> None:
    """Release a whole table by a plan; `given` are the options of `pyhybrid synthesize`."""
    if given["plan"] is None:
        raise InvalidInput(
            "--epsilon and --reference go with --plan; others take epsilon=... in --mechanism"
        )
    answered = [f"--{name.replace('identifier', 'id')}" for name in _ANSWERED if given[name]]
    if answered:
        raise InvalidInput(f"a plan says all of that: leave out {', '.join(answered)}, or --plan")
    mechanism, out = given["mechanism"] or ["censored"], given["out"]
    if len(mechanism) > 1:
        raise InvalidInput("--plan takes one --mechanism, for all columns")
    check_output_folder(out, overwrite=given["overwrite"])
    if given["file_format"] is not None:
        check_choice(given["file_format"], "--format", FORMATS)
    book = None if given["ledger"] is None else Ledger(given["ledger"])
    chains, warmup, draws, adapt = (given[name] for name in _SETTINGS)
    options = {name: given[name] for name in ("epsilon", "n_synthetic", "seed", "engine",
                                              "on_not_converged")}  # fmt: skip
    source, like = read_table(given["data"]), given["reference"]
    made = Plan.load(given["plan"], source.frame)
    with progress_bars() as progress:  # text of other columns comes back before the decisions
        release = synthesize_table(
            made,
            mechanism=mechanism[0],
            reference=None if like is None else read_table(like).frame,
            relation=given["relation"] or "remove",
            n_draws_released=1 if given["one_draw"] else None,
            settings=sampler_settings(chains, warmup, draws, adapt),
            decided=False,
            progress=progress,
            **options,
        )
    own = made.decisions
    source.marked(source.restore(release)).save(
        out,
        drop=own.drop,
        keep=own.keep,
        ids=own.ids,
        overwrite=given["overwrite"],
        file_format=given["file_format"] or source.file_format,
        ledger=book,
    )
    show_release(source.frame, release, out)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _types(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"types {path} must be readable: {error.strerror}") from None
    except ValueError:
        raise InvalidInput(f"types {path} must be JSON: it does not parse") from None
    if not isinstance(given, dict):
        raise InvalidInput(f"types {path} must be an object: types by the names of columns")
    return given
