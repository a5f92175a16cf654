"""Options of `pyhybrid utility` and `pyhybrid risk`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["risk", "utility"]

Real = Annotated[Path, typer.Argument(help="Confidential records, .csv or .parquet.")]
Synthetic = Annotated[
    list[Path],
    typer.Argument(help="Synthetic sets from anywhere, or the folder of a release."),
]
Versus = Annotated[
    list[Path] | None,
    typer.Option(help="Sets of another synthetic version, to show beside; once for each set."),
]
Json = Annotated[
    str | None, typer.Option("--json", help="Numbers into a file; - for standard output.")
]
Html = Annotated[Path | None, typer.Option(help="Report with figures, an HTML file.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]


def utility(
    real: Real,
    synthetic: Synthetic,
    versus: Versus = None,
    columns: Annotated[
        str | None, typer.Option(help="To compare, with commas between. [default: all]")
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are codes; repeatable.")
    ] = None,
    formula: Annotated[
        list[str] | None,
        typer.Option(help="An analyst's model, e.g. 'income ~ age + C(region)'; repeatable."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Of statsmodels: ols, logit, poisson, negativebinomial, ...")
    ] = "ols",
    rule: Annotated[
        str | None,
        typer.Option(
            help="partially_synthetic, fully_synthetic, multiple_imputation or single. "
            "[default: partially_synthetic; single for one set]"
        ),
    ] = None,
    interactions: Annotated[
        bool, typer.Option("--interactions", help="Products of columns for the logistic pMSE.")
    ] = False,
    permutations: Annotated[int, typer.Option(help="For the null of CART.")] = 20,
    seed: Annotated[int, typer.Option(help="Of resamples and permutations.")] = 1,
    json_out: Json = None,
    html: Html = None,
    overwrite: Overwrite = False,
) -> None:
    """Utility of synthetic data from anywhere: pMSE, ECDFs, tables, models. Confidential."""
    from pyhybrid.cli.measures import utility as command

    command(
        real,
        synthetic,
        versus=versus or (),
        columns=columns,
        categorical=categorical or (),
        formulas=formula or (),
        model=model,
        rule=rule,
        interactions=interactions,
        n_permutations=permutations,
        seed=seed,
        json_out=json_out,
        html=html,
        overwrite=overwrite,
    )


def risk(
    real: Real,
    synthetic: Synthetic,
    key: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that the intruder knows: sex, age:radius=2 or "
            "income:radius=0.1,kind=relative; repeatable."
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="A column that he wants to learn, e.g. income:radius=1000; repeatable."),
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option(help="Records that were not used for the synthesis, to compare.")
    ] = None,
    rows_correspond: Annotated[
        bool | None,
        typer.Option(
            help="Row i of a set is the synthetic version of row i of REAL. "
            "[default: if a column is the same in every row]"
        ),
    ] = None,
    versus: Versus = None,
    json_out: Json = None,
    html: Html = None,
    overwrite: Overwrite = False,
) -> None:
    """Disclosure risk of synthetic data from anywhere: matching on keys. Confidential."""
    from pyhybrid.cli.measures import risk as command

    command(
        real,
        synthetic,
        versus=versus or (),
        keys=key or (),
        sensitive=sensitive or (),
        holdout=holdout,
        rows_correspond=rows_correspond,
        json_out=json_out,
        html=html,
        overwrite=overwrite,
    )
