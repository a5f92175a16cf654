"""`pyhybrid verify`: does an estimate from synthetic data hold in the data? A private answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pyhybrid.cli.measures import Json, Overwrite, Real, Synthetic, check_outputs, read_versions
from pyhybrid.cli.tables import read_table, read_types
from pyhybrid.running.files import write_files

__all__ = ["verify"]


def verify(
    real: Real,
    synthetic: Synthetic,
    query: Annotated[
        str,
        typer.Option(
            help="mean:COLUMN, share:COLUMN:LEVEL, quantile:COLUMN:P or "
            "coefficient:FORMULA:TERM[:MODEL], e.g. 'coefficient:income ~ age:age'."
        ),
    ],
    tolerance: Annotated[
        float, typer.Option(help="In the unit of the estimate; about two standard errors.")
    ],
    epsilon: Annotated[float, typer.Option(help="Of the answer, nats; strict.")],
    relation: Annotated[str, typer.Option(help="remove or replace.")] = "remove",
    unit: Annotated[
        str | None, typer.Option(help="Column that says whose row it is; one row if left out.")
    ] = None,
    blocks: Annotated[
        int | None, typer.Option(help="Blocks of records. \\[default: n / 100, from 10 to 100]")
    ] = None,
    reach: Annotated[
        float | None,
        typer.Option(
            help="Largest difference of a block. \\[default: (1 + sqrt(blocks)) tolerances]"
        ),
    ] = None,
    types: Annotated[
        Path | None,
        typer.Option(
            help="JSON file of types by column, where they are not those of the synthetic sets, "
            'e.g. {"region": {"kind": "Nominal", "levels": ["n", "s", "w"]}}.'
        ),
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Enter the charge here first.")] = None,
    json_out: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """A differentially private answer to whether an estimate from synthetic data holds."""
    from pyhybrid.cli.console import show
    from pyhybrid.releases.ledger import Ledger
    from pyhybrid.verification import verify as verified

    check_outputs(json_out, None, overwrite)
    versions = read_versions(real, synthetic, ())[1]
    answer = verified(
        versions["synthetic"],
        read_table(real).by_cell,
        query,
        tolerance=tolerance,
        epsilon=epsilon,
        relation=relation,
        unit=unit,
        blocks=blocks,
        reach=reach,
        types=None if types is None else read_types(types),
        ledger=None if ledger is None else Ledger(ledger),
    )
    text = json.dumps(answer.as_dict(), indent=2, allow_nan=False) + "\n"
    if json_out == "-":
        print(text, end="")
        return
    if json_out is not None:
        write_files({Path(json_out): text}, private=False, overwrite=overwrite)
    show(answer.summary())
