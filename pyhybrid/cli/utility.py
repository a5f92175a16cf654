"""`pyhybrid utility`: what synthetic data from anywhere keep of the data."""

from __future__ import annotations

from collections.abc import Sized
from typing import Annotated

import typer

from pyhybrid.cli.console import progress_bars
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
from pyhybrid.cli.options import survey_design
from pyhybrid.measures import utility_summary
from pyhybrid.measures.as_json import utility_as_dict
from pyhybrid.running.tasks import Progress

__all__ = ["utility"]


def utility(
    real: Real,
    synthetic: Synthetic,
    versus: Versus = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns to compare, separated by commas. \\[default: all]")
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that are codes; repeatable.")
    ] = None,
    formula: Annotated[
        list[str] | None,
        typer.Option(help="An analyst's model, e.g. 'income ~ age + C(region)'; repeatable."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Model of statsmodels: ols, logit, poisson, negativebinomial, ...")
    ] = "ols",
    rule: Annotated[
        str | None,
        typer.Option(
            help="partially_synthetic, fully_synthetic, multiple_imputation or single. "
            "\\[default: partially_synthetic; single for one set]"
        ),
    ] = None,
    interactions: Annotated[
        bool,
        typer.Option("--interactions", help="Include products of columns in the logistic pMSE."),
    ] = False,
    permutations: Annotated[
        int, typer.Option(help="Permutations for the null expectation of CART.")
    ] = 20,
    weights: Annotated[
        str | None,
        typer.Option(
            help="Column of design weights, or a survey as in synthesize --survey: "
            "weights=COLUMN,clusters=COLUMN,..."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of resamples and permutations.")] = 1,
    json_out: Json = None,
    html: Html = None,
    overwrite: Overwrite = False,
) -> None:
    """Utility of synthetic data from anywhere: pMSE, ECDFs, tables, models. Confidential."""
    check_outputs(json_out, html, overwrite)
    design = survey_design(weights) if weights and "=" in weights else None
    data, versions = read_versions(real, synthetic, versus or ())
    with progress_bars() as progress:
        found = {
            name: utility_summary(
                data,
                sets,
                columns=None if columns is None else [name.strip() for name in columns.split(",")],
                categorical=categorical or (),
                formulas=formula or (),
                model=model,
                rule=rule,
                interactions=interactions,
                n_permutations=permutations,
                weights=design if weights and "=" in weights else weights,
                rng=seed,
                progress=None if progress is None else _of_version(progress, name, versions),
            )
            for name, sets in versions.items()
        }
    page = None
    if html is not None:
        from pyhybrid.reports.measures import utility_report

        page = utility_report(found)
    finish("Utility", found, utility_as_dict(found), page, json_out, html, overwrite)


def _of_version(progress: Progress, name: str, versions: Sized) -> Progress:
    """Says which version the work is on, where there are several."""
    if len(versions) == 1:
        return progress
    return lambda label, done, total: progress(f"{name}: {label}", done, total)
