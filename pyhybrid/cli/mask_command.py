"""The options of `pyhybrid mask`; the work is in `pyhybrid.cli.mask`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["mask"]


def mask(
    data: Annotated[Path, typer.Argument(help="Confidential records, .csv or .parquet.")],
    keys: Annotated[str, typer.Option(help="Quasi-identifiers to replace: age,sex,...")],
    out: Annotated[Path, typer.Option(help="Folder for the release, new or empty.")],
    copies: Annotated[int, typer.Option(help="K, copies of the mask of a continuous key.")] = 20,
    variance: Annotated[
        float, typer.Option(help="s2, their variance in units of the key's own.")
    ] = 1.0,
    separation: Annotated[
        float, typer.Option(help="a, of the masks of all other keys; smaller is safer.")
    ] = 2.0,
    association: Annotated[
        str, typer.Option(help="sequential (any keys) or copula (none of them nominal).")
    ] = "sequential",
    predictors: Annotated[
        str | None,
        typer.Option(help="Columns of the association model. [default: all that it covers]"),
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(help="NAME=continuous|binary|ordered|nominal,... where codes mislead."),
    ] = None,
    n_synthetic: Annotated[
        int, typer.Option(help="m, sets; of each imputation where keys have missing values.")
    ] = 5,
    n_imputations: Annotated[
        int | None, typer.Option(help="Of missing keys. [default: 5 if any is missing]")
    ] = None,
    formula: Annotated[
        str | None, typer.Option(help="Analysis to compare, e.g. 'income ~ age + C(region)'.")
    ] = None,
    family: Annotated[str, typer.Option(help="Of --formula: linear, probit or logit.")] = "linear",
    radius: Annotated[
        str | None, typer.Option(help="What matches on continuous keys: age=2,... [default: equal]")
    ] = None,
    k0: Annotated[int, typer.Option("--k0", help="Matches that make a record low risk.")] = 5,
    target_risk: Annotated[
        float | None,
        typer.Option(
            help="Choose the mask strength: largest share of records named correctly, with the "
            "least change of --formula's coefficients."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="For tests and papers; a release seed must stay secret.")
    ] = None,
    on_not_converged: Annotated[str, typer.Option(help="raise or warn.")] = "raise",
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv or parquet. [default: as DATA]")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what --out holds.")
    ] = False,
) -> None:
    """Mask quasi-identifiers by multiple imputation. NOT differentially private."""
    from pyhybrid.cli.mask import MaskOptions
    from pyhybrid.cli.mask import mask as command

    options = MaskOptions(
        keys=keys,
        copies=copies,
        variance=variance,
        separation=separation,
        association=association,
        predictors=predictors,
        types=types,
        n_synthetic=n_synthetic,
        n_imputations=n_imputations,
        formula=formula,
        family=family,
        radius=radius,
        k0=k0,
        target_risk=target_risk,
    )
    command(
        data, options, out=out, seed=seed, on_not_converged=on_not_converged,
        file_format=file_format, overwrite=overwrite,
    )  # fmt: skip
