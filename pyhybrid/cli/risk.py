"""`pyhybrid risk`: what synthetic data from anywhere disclose of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pyhybrid.cli.measures import (
    Html,
    Json,
    Overwrite,
    Real,
    Synthetic,
    Versus,
    check_outputs,
    finish,
    read_versions,
)
from pyhybrid.cli.tables import read_table
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures import risk_summary
from pyhybrid.measures.summaries import risk_as_dict

__all__ = ["parse_key", "risk"]


def risk(
    real: Real,
    synthetic: Synthetic,
    key: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that the intruder knows: sex or age:radius=2; a radius that is a share "
            "of the value is followed by ,kind=relative; repeatable."
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that the intruder wants to learn, e.g. income:radius=1000; repeatable."
        ),
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option(help="Records that were not used for the synthesis, to compare.")
    ] = None,
    rows_correspond: Annotated[
        bool | None,
        typer.Option(
            help="Row i of a set is the synthetic version of row i of REAL. "
            "\\[default: if a column is the same in every row]"
        ),
    ] = None,
    versus: Versus = None,
    json_out: Json = None,
    html: Html = None,
    overwrite: Overwrite = False,
) -> None:
    """Disclosure risk of synthetic data from anywhere: matching on keys. Confidential."""
    check_outputs(json_out, html, overwrite)
    if not key:
        raise InvalidInput("--key must be given, e.g. --key age:radius=2 --key sex")
    named = [parse_key(text, "--key") for text in key]
    hidden = [parse_key(text, "--sensitive") for text in sensitive or ()]
    twice = [name for name, _ in named if [other for other, _ in named].count(name) > 1]
    if twice:
        raise InvalidInput(f"each --key must be given once: {twice[0]!r} is there twice")
    data, versions = read_versions(real, synthetic, versus or ())
    outside = None if holdout is None else read_table(holdout).frame
    found = {
        name: risk_summary(
            data,
            sets,
            keys=[name for name, _ in named],
            radius={name: own["radius"] for name, own in named if "radius" in own},
            kind={name: own["kind"] for name, own in [*named, *hidden] if "kind" in own},
            sensitive={column: own.get("radius") for column, own in hidden},
            holdout=outside,
            rows_correspond=rows_correspond,
        )
        for name, sets in versions.items()
    }
    page = None
    if html is not None:
        from pyhybrid.reports.measures import risk_report

        page = risk_report(found)
    finish("Disclosure risk", found, risk_as_dict(found), page, json_out, html, overwrite)


def parse_key(text: str, option: str) -> tuple[str, dict[str, Any]]:
    """Column and settings of ``COLUMN`` or ``COLUMN:radius=2,kind=relative``.

    Raises
    ------
    InvalidInput
        For another setting or a radius that is no number.
    """
    name, _, rest = text.rpartition(":")
    if "=" not in rest:  # a column may have a colon in its name
        name, rest = text, ""
    settings: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key not in ("radius", "kind"):
            raise InvalidInput(f"{option} {text!r} takes radius and kind: found {key!r}")
        if key == "radius":
            try:
                settings[key] = float(value)
            except ValueError:
                raise InvalidInput(
                    f"radius of {option} {name!r} must be a number: found {value!r}"
                ) from None
        else:
            settings[key] = value
    return name, settings
