"""`pyhybrid mask`: quasi-identifiers replaced by masking and multiple imputation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.parameters import Data, FileFormat, OnNotConverged, Overwrite, Seed
from pyhybrid.cli.tables import read_table
from pyhybrid.core.checks import check_choice, check_count, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking import (
    MaskedImputation,
    MaskedRelease,
    TunedMask,
    masked_utility,
    masks_by_type,
    risk_subgroups,
)
from pyhybrid.masking.columns import key_kinds
from pyhybrid.masking.imputation import naming_share, release_risk
from pyhybrid.measures.arrays.matching import MatchingRisk
from pyhybrid.measures.tables.models import ModelUtility
from pyhybrid.releases.folder import FORMATS
from pyhybrid.reports.masking import mask_report

__all__ = ["mask"]

FAMILIES = {"linear": "ols", "probit": "probit", "logit": "logit"}


def mask(
    data: Data,
    keys: Annotated[str, typer.Option(help="Quasi-identifiers to replace: age,sex,...")],
    out: Annotated[Path, typer.Option(help="Folder for the release, new or empty.")],
    copies: Annotated[
        int, typer.Option(help="K, the number of masked copies of a continuous key.")
    ] = 20,
    variance: Annotated[
        float, typer.Option(help="s2, their variance relative to that of the key.")
    ] = 1.0,
    separation: Annotated[
        float, typer.Option(help="a, separation of the masks of all other keys; smaller is safer.")
    ] = 2.0,
    association: Annotated[
        str, typer.Option(help="sequential (any keys) or copula (none of them nominal).")
    ] = "sequential",
    predictors: Annotated[
        str | None,
        typer.Option(help="Columns of the association model. \\[default: all that it covers]"),
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(
            help="NAME=continuous, binary, ordered or nominal, ... where codes do not show it."
        ),
    ] = None,
    n_synthetic: Annotated[
        int,
        typer.Option(help="m, the number of sets; per imputation where keys have missing values."),
    ] = 5,
    n_imputations: Annotated[
        int | None,
        typer.Option(
            help="Number of imputations of missing keys. \\[default: 5 if any is missing]"
        ),
    ] = None,
    formula: Annotated[
        str | None, typer.Option(help="Analysis to compare, e.g. 'income ~ age + C(region)'.")
    ] = None,
    family: Annotated[
        str, typer.Option(help="Model of --formula: linear, probit or logit.")
    ] = "linear",
    radius: Annotated[
        str | None,
        typer.Option(
            help="Radius within which continuous keys match: age=2,... \\[default: equal]"
        ),
    ] = None,
    k0: Annotated[
        int, typer.Option("--k0", help="Number of matches that makes a record low risk.")
    ] = 5,
    target_risk: Annotated[
        float | None,
        typer.Option(
            help="Choose the mask strength: largest share of records identified correctly, with "
            "the least change of --formula's coefficients."
        ),
    ] = None,
    seed: Seed = None,
    on_not_converged: OnNotConverged = "raise",
    file_format: FileFormat = None,
    overwrite: Overwrite = False,
) -> None:
    """Mask quasi-identifiers by multiple imputation. NOT differentially private."""
    check_output_folder(out, overwrite=overwrite)
    check_choice(family, "--family", FAMILIES)
    check_count(n_synthetic, "--n-synthetic")
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    if target_risk is not None and formula is None:
        raise InvalidInput("--target-risk needs --formula, whose coefficients are the loss")
    source, analysis = read_table(data), FAMILIES[family]
    frame, names, said = source.frame, _names(keys), _pairs(types, "--types")
    imputation = MaskedImputation(
        keys=names,
        masks=masks_by_type(
            frame, names, copies=copies, variance=variance, separation=separation, types=said
        ),
        association=association,
        n_synthetic=n_synthetic,
        n_imputations=n_imputations,
        predictors=None if predictors is None else _names(predictors),
        types=said,
        on_not_converged=on_not_converged,
    )
    within = _radius(radius)
    kinds = key_kinds(frame, names, said)
    known = within and {k: v for k, v in within.items() if kinds.get(k) == "continuous"}
    groups = risk_subgroups(frame, names, k0, known, types=said)
    tuned, utility = None, None
    with progress_bars() as progress:
        if target_risk is not None:
            tuned = imputation.tune(
                frame, target_risk=target_risk, formula=formula, model=analysis, radius=within,
                seed=seed, progress=progress,
            )  # fmt: skip
        release = (
            imputation.release(frame, seed=seed, progress=progress)
            if tuned is None
            else tuned.release()
        )
    before, after = (
        release_risk(each, frame, keys=names, radius=within) for each in (None, release)
    )
    if formula is not None:
        utility = masked_utility(release, frame, formula, model=analysis)
    page = mask_report(
        release, frame, before=before, after=after, utility=utility, subgroups=groups, tuned=tuned
    )
    source.restore(release).save(
        out, overwrite=overwrite, file_format=file_format or source.file_format, report=False,
        attachments={"report.html": page},
    )  # fmt: skip
    _show(release, out, before, after, utility, tuned)


def _show(
    release: MaskedRelease, out: Path, before: MatchingRisk, after: MatchingRisk,
    utility: ModelUtility | None, tuned: TunedMask | None,
) -> None:  # fmt: skip
    table = Table(title="Masked release: NOT differentially private", title_justify="left")
    for name in ("", "data (confidential)", "synthetic"):
        table.add_column(name, justify="right" if name else "left")
    table.add_row(
        "share of records identified correctly",
        *(f"{naming_share(r):.4f}" for r in (before, after)),
    )
    table.add_row("match probability, mean", *(f"{r.mean_risk:.4f}" for r in (before, after)))
    table.add_row("unique matches", *(f"{r.n_unique_matches:.1f}" for r in (before, after)))
    table.add_row("false match rate", *(f"{r.false_match_rate:.4f}" for r in (before, after)))
    show(table)
    if utility is not None:
        show(_coefficients(utility))
    kinds = ", ".join(f"{k} {kind}" for k, kind in release.settings["keys"].items())
    unused = ", ".join(release.settings["not_predictors"])
    statement = release.statement
    given = {k: s for k, s in statement.unchanged.items() if s is not None}
    unchanged = ", ".join(f"{k} {share:.0%}" for k, share in given.items())
    show(
        f"\nkeys: {escape(kinds)}",
        *([f"records that keep their own value: {escape(unchanged)}"] if given else []),
        *(
            f"{escape(key)} is left as it was in nearly all records: give a weaker mask, by "
            "--separation or --variance"
            for key in statement.left_as_they_were
        ),
        *([f"not used as predictors: {escape(unused)}"] if unused else []),
        *([f"chosen mask factor: {tuned.factor:.4g}"] if tuned is not None else []),
        f"{len(release.synthetic)} sets; combine estimates by the rule {release.rule}",
        f"\n{out}/public/        to give away: synthetic data and risk_statement.md",
        f"{out}/confidential/  to keep: seed, diagnostics and report.html",
    )


def _coefficients(found: ModelUtility) -> Table:
    title = f"{escape(found.formula)} ({found.model}): confidential"
    table = Table(title=title, title_justify="left")
    for name in ("", "data", "synthetic", "overlap of 95 %", "std. diff."):
        table.add_column(name, justify="right" if name else "left")
    for term, row in found.table.iterrows():
        table.add_row(
            escape(str(term)),
            f"{row['estimate']:.4g}",
            f"{row['synthetic_estimate']:.4g}",
            f"{row['interval_overlap']:.3f}",
            f"{row['standardised_difference']:.3f}",
        )
    return table


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"column names must be given with commas between: found {text!r}")
    return names


def _pairs(text: str | None, option: str) -> dict[str, str]:
    """NAME=value with commas between."""
    found = {}
    for part in _names(text) if text is not None else []:
        name, mark, value = part.partition("=")
        if not mark or not value:
            raise InvalidInput(f"{option} must be NAME=value,...: found {part!r}")
        found[name.strip()] = value.strip()
    return found


def _radius(text: str | None) -> dict[str, float] | None:
    pairs = _pairs(text, "--radius")
    try:
        return {name: float(value) for name, value in pairs.items()} or None
    except ValueError:
        raise InvalidInput(f"--radius must be NAME=number,...: found {text!r}") from None
