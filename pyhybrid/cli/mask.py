"""`pyhybrid mask`: quasi-identifiers replaced by masking and multiple imputation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.markup import escape
from rich.table import Table

from pyhybrid.checks import check_choice, check_count, check_output_folder
from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.tables import read_table
from pyhybrid.errors import InvalidInput
from pyhybrid.masking import (
    MaskedImputation,
    MaskedRelease,
    RiskSubgroups,
    TunedMask,
    masked_utility,
    masks_by_type,
    risk_subgroups,
)
from pyhybrid.masking.analysis import naming_share, release_risk
from pyhybrid.masking.keys import key_kinds
from pyhybrid.measures.arrays.matching import MatchingRisk
from pyhybrid.measures.tables.intervals import ModelUtility
from pyhybrid.releases.folder import FORMATS

__all__ = ["MaskOptions", "mask"]

FAMILIES = {"linear": "ols", "probit": "probit", "logit": "logit"}


@dataclass(frozen=True, kw_only=True)
class MaskOptions:
    """What the command line says, as text where it is text; see `pyhybrid mask --help`."""

    keys: str
    copies: int
    variance: float
    separation: float
    association: str
    predictors: str | None
    types: str | None
    n_synthetic: int
    n_imputations: int | None
    formula: str | None
    family: str
    radius: str | None
    k0: int
    target_risk: float | None


def mask(
    data: Path,
    options: MaskOptions,
    *,
    out: Path,
    seed: int | None,
    on_not_converged: str,
    file_format: str | None,
    overwrite: bool,
) -> None:
    """Release from a file into a folder; nothing is written on any error."""
    check_output_folder(out, overwrite=overwrite)
    check_choice(options.family, "--family", FAMILIES)
    check_count(options.n_synthetic, "--n-synthetic")
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    if options.target_risk is not None and options.formula is None:
        raise InvalidInput("--target-risk needs --formula, whose coefficients are the loss")
    source = read_table(data)
    frame = source.frame
    imputation, groups = _imputation(options, frame, on_not_converged)
    radius = _radius(options.radius)
    with progress_bars() as progress:
        tuned = None
        if options.target_risk is not None:
            tuned = imputation.tune(
                frame, target_risk=options.target_risk, formula=options.formula,
                model=FAMILIES[options.family], radius=radius, seed=seed, progress=progress,
            )  # fmt: skip
        release = (
            imputation.release(frame, seed=seed, progress=progress)
            if tuned is None
            else tuned.release()
        )
    before = release_risk(None, frame, keys=imputation.keys, radius=radius)
    after = release_risk(release, frame, keys=imputation.keys, radius=radius)
    utility = None
    if options.formula is not None:
        utility = masked_utility(release, frame, options.formula, model=FAMILIES[options.family])
    _save(release, frame, source.text, out, overwrite, file_format or source.file_format,
          {"before": before, "after": after, "utility": utility, "subgroups": groups,
           "tuned": tuned})  # fmt: skip
    _show(release, out, before, after, utility, tuned)


def _imputation(
    options: MaskOptions, frame: pd.DataFrame, on_not_converged: str
) -> tuple[MaskedImputation, RiskSubgroups]:
    keys, types = _names(options.keys), _pairs(options.types, "--types")
    masks = masks_by_type(
        frame, keys, copies=options.copies, variance=options.variance,
        separation=options.separation, types=types,
    )  # fmt: skip
    imputation = MaskedImputation(
        keys=keys,
        masks=masks,
        association=options.association,
        n_synthetic=options.n_synthetic,
        n_imputations=options.n_imputations,
        predictors=None if options.predictors is None else _names(options.predictors),
        types=types,
        on_not_converged=on_not_converged,
    )
    radius = _radius(options.radius)
    kinds = key_kinds(frame, keys, types)
    known = radius and {k: v for k, v in radius.items() if kinds.get(k) == "continuous"}
    groups = risk_subgroups(frame, keys, options.k0, known, types=types)
    return imputation, groups


def _save(
    release: MaskedRelease, frame: pd.DataFrame, text: pd.DataFrame | None, out: Path,
    overwrite: bool, file_format: str, parts: dict[str, Any],
) -> None:  # fmt: skip
    from pyhybrid.reports.masking import mask_report

    report = mask_report(release, frame, **parts)
    whole = release if text is None else release.with_unsynthesized(text)
    whole.save(
        out, overwrite=overwrite, file_format=file_format, attachments={"report.html": report}
    )


def _show(
    release: MaskedRelease, out: Path, before: MatchingRisk, after: MatchingRisk,
    utility: ModelUtility | None, tuned: TunedMask | None,
) -> None:  # fmt: skip
    table = Table(title="Masked release: NOT differentially private", title_justify="left")
    for name in ("", "data (confidential)", "synthetic"):
        table.add_column(name, justify="right" if name else "left")
    table.add_row("records named correctly", *(f"{naming_share(r):.4f}" for r in (before, after)))
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
