"""`pyhybrid mask`: quasi-identifiers replaced by masking and multiple imputation."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pandas as pd
from rich.markup import escape

from pyhybrid.cli.console import note, progress_bars, show, table_of
from pyhybrid.cli.measures import read_keys
from pyhybrid.cli.options import listed, names_of, options
from pyhybrid.cli.tables import read_table
from pyhybrid.core.checks import check_choice, check_count, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.masking import (
    MaskedImputation,
    MaskedRelease,
    masked_utility,
    masks_by_type,
    risk_subgroups,
)
from pyhybrid.masking.columns import read_keys as read_key_columns
from pyhybrid.masking.imputation import naming_share, release_risk
from pyhybrid.measures.matching import MatchingRisk
from pyhybrid.measures.models import ModelUtility
from pyhybrid.models.columns.types_files import read_types
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.folder import FORMATS

ANALYSES = ("ols", "probit", "logit")
_KINDS = {"Ordered": "ordered", "Nominal": "nominal"}  # others are of numbers


@options
def mask(
    data: Path,
    key: list[str],
    out: Path,
    copies: int = 20,
    variance: float = 1.0,
    separation: float = 2.0,
    association: str = "sequential",
    predictors: list[str] | None = None,
    types: str | None = None,
    drop: list[str] | None = None,
    keep: list[str] | None = None,
    identifier: list[str] | None = None,
    n_synthetic: int = 5,
    n_imputations: int | None = None,
    formula: str | None = None,
    model: str = "ols",
    k0: int = 5,
    seed: int | None = None,
    on_not_converged: str = "raise",
    file_format: str | None = None,
    overwrite: bool = False,
) -> None:
    """Mask quasi-identifiers by multiple imputation. NOT differentially private.

    Options:
    key: Quasi-identifiers to replace: sex,region or age:radius=2, within which it matches [default:
        equal]; repeatable.
    out: Folder for the release, new or empty.
    copies: K, the number of masked copies of a continuous key.
    variance: s2, their variance relative to that of the key.
    separation: a, separation of the masks of all other keys; smaller is safer.
    association: sequential (any keys) or copula (none of them nominal).
    predictors: Columns of the association model; with commas between, repeatable.
        [default: all that it covers]
    types: JSON file of types by column, where codes do not show them, e.g.
        {"region": {"kind": "Nominal"}}.
    identifier (--id): Columns whose values are replaced by numbers, separated by commas;
        repeatable.
    n_synthetic: m, the number of sets; per imputation where keys have missing values.
    n_imputations: Number of imputations of missing keys. [default: 5 if any is missing]
    formula: Analysis to compare, e.g. 'income ~ age + C(region)'.
    model: Model of --formula: ols, probit or logit.
    k0 (--k0): Number of matches that makes a record low risk.
    """
    check_output_folder(out, overwrite=overwrite)
    check_choice(model, "--model", ANALYSES)
    check_count(n_synthetic, "--n-synthetic")
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    source = read_table(data)
    frame, said = source.frame, _types(types, source.frame.columns)
    asked = read_keys(key, "--key", frame.columns)
    names = [name for name, _ in asked]
    within = {name: own["radius"] for name, own in asked if "radius" in own} or None
    if any("kind" in own for _, own in asked):
        raise InvalidInput("--key of mask takes radius alone, in the unit of the column")
    imputation = MaskedImputation(
        keys=names,
        masks=masks_by_type(
            frame, names, copies=copies, variance=variance, separation=separation, types=said
        ),
        association=association,
        n_synthetic=n_synthetic,
        n_imputations=n_imputations,
        predictors=None if predictors is None else names_of(predictors, frame),
        types=said,
        on_not_converged=on_not_converged,
    )
    decided = _decided(frame, names, drop=drop, keep=keep, ids=identifier)
    columns = read_key_columns(frame, names, types=said)
    continuous = {column.name for column in columns if column.kind == "continuous"}
    known = within and {k: v for k, v in within.items() if k in continuous}
    groups = risk_subgroups(frame, names, k0, known, types=said)
    with progress_bars() as progress:
        release = imputation.release(frame, seed=seed, progress=progress)
    before, after = (
        release_risk(each, frame, keys=names, radius=within) for each in (None, release)
    )
    utility = None if formula is None else masked_utility(release, frame, formula, model=model)
    from pyhybrid.reports.masking import mask_report  # imports figures, which a refusal needs not

    page = mask_report(
        release, frame, before=before, after=after, utility=utility, subgroups=groups,
        table=data.name,
    )  # fmt: skip
    source.restore(release).save(
        out, overwrite=overwrite, file_format=file_format or source.file_format, report=False,
        attachments={"report.html": page}, **decided,
    )  # fmt: skip
    _show(release, out, before, after, utility)


def _show(
    release: MaskedRelease, out: Path, before: MatchingRisk, after: MatchingRisk,
    utility: ModelUtility | None,
) -> None:  # fmt: skip
    numbers = {
        "share of records identified correctly": [
            f"{naming_share(r):.4f}" for r in (before, after)
        ],
        "match probability, mean": [f"{r.mean_risk:.4f}" for r in (before, after)],
        "unique matches": [f"{r.n_unique_matches:.1f}" for r in (before, after)],
        "false match rate": [f"{r.false_match_rate:.4f}" for r in (before, after)],
    }
    header = ("", "data (confidential)", "synthetic")
    rows = ([label, *cells] for label, cells in numbers.items())
    show(table_of("Masked release: NOT differentially private", header, rows))
    if utility is not None:
        title = f"{escape(utility.formula)} ({utility.model}): confidential"
        columns = {"estimate": ".4g", "synthetic_estimate": ".4g", "interval_overlap": ".3f",
                   "standardised_difference": ".3f"}  # fmt: skip
        terms = (
            [escape(str(term)), *(format(row[name], form) for name, form in columns.items())]
            for term, row in utility.table.iterrows()
        )
        show(table_of(title, ("", "data", "synthetic", "overlap of 95 %", "std. diff."), terms))
    kinds = ", ".join(f"{k} {kind}" for k, kind in release.settings["keys"].items())
    unused = ", ".join(release.settings["not_predictors"])
    statement = release.statement
    unchanged = ", ".join(f"{key} {share:.0%}" for key, share in release.unchanged.items())
    show(
        f"\nkeys: {escape(kinds)}",
        f"records that keep their own value (confidential): {escape(unchanged)}",
        *(
            f"{escape(key)} is left as it was in nearly all records: give a weaker mask, by "
            "--separation or --variance"
            for key in statement.left_as_they_were
        ),
        *([f"not used as predictors: {escape(unused)}"] if unused else []),
        f"{len(release.synthetic)} sets; combine estimates by the rule {release.rule}",
        f"\n{out}/public/        to give away: synthetic data and risk_statement.md",
        f"{out}/confidential/  to keep: seed, diagnostics and report.html",
    )


def _decided(
    frame: pd.DataFrame, keys: list[str], **given: list[str] | None
) -> dict[str, list[str]]:
    """Columns by what was decided; InvalidInput if one needs a decision."""
    decided = {what: names_of(named, frame.columns) for what, named in given.items()}
    exposed = exposed_columns(frame, keys)
    check_decided(exposed, Decisions.of(**decided), map(str, frame.columns), keys)
    return decided


def _types(given: str | None, columns: Collection[str]) -> dict[str, str]:
    """Types of columns from a file, those of the table, in the words of masks."""
    if given is not None and "=" in given and not Path(given).exists():  # as in version 0.2
        note("--types takes a JSON file of types, as in other commands; NAME=KIND is its old form")
        return {name: kind for name, _, kind in (part.partition("=") for part in listed(given))}
    told = {} if given is None else read_types(given)
    kinds = {name: own["kind"] for name, own in told.items() if name in columns}
    return {name: _KINDS.get(kind, "continuous") for name, kind in kinds.items()}
