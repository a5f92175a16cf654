"""`pyhybrid mask`: quasi-identifiers replaced by masking and multiple imputation."""

from __future__ import annotations

from pathlib import Path

from pyhybrid.cli.console import frame_table, progress_bars, show
from pyhybrid.cli.measures import read_keys
from pyhybrid.cli.options import names_of, read_table
from pyhybrid.cli.released import show_opening
from pyhybrid.core.checks import check_choice, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.masking import MaskedImputation, masked_utility, masks_by_type
from pyhybrid.masking.imputation import release_risk
from pyhybrid.models.columns.types_files import read_types
from pyhybrid.releases.column_decisions import Decisions, check_decided

ANALYSES = ("ols", "probit", "logit")
_KINDS = {"Ordered": "ordered", "Nominal": "nominal"}  # others are of numbers


def mask(
    data: Path,
    *,
    key: list[str],
    out: Path,
    copies: int = 20,
    variance: float = 1.0,
    separation: float = 2.0,
    types: Path | None = None,
    drop: list[str] | None = None,
    keep: list[str] | None = None,
    id: list[str] | None = None,
    n_synthetic: int = 5,
    formula: str | None = None,
    model: str = "ols",
    seed: int | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Mask, measure the risk before and after, save and show."""
    check_output_folder(out, overwrite=overwrite)
    check_choice(model, "--model", ANALYSES)
    source = read_table(data, read=read)
    frame, kinds = source.frame, {} if types is None else read_types(types)
    said = {name: _KINDS.get(of["kind"], "continuous")
            for name, of in kinds.items() if name in frame.columns}  # fmt: skip
    asked = read_keys(key, "--key", frame.columns)
    names = list(asked)
    within = {name: of["radius"] for name, of in asked.items() if "radius" in of} or None
    if any("kind" in of for of in asked.values()):
        raise InvalidInput("--key of mask takes radius alone, in the unit of the column")
    imputation = MaskedImputation(
        keys=names,
        masks=masks_by_type(
            frame, names, copies=copies, variance=variance, separation=separation, types=said
        ),
        n_synthetic=n_synthetic, types=said,
    )  # fmt: skip
    decided = Decisions.of(*(names_of(given, frame.columns) for given in (drop, keep, id)))
    check_decided(exposed_columns(frame, names), decided, map(str, frame.columns), names)
    release_risk(None, frame, keys=names, radius=within)  # refuses a radius before any work
    from pyhybrid.reports import masking  # figures, which a refusal needs not

    with progress_bars() as progress:
        release = imputation.release(frame, seed=seed, progress=progress)
    utility = None if formula is None else masked_utility(release, frame, formula, model=model)
    sections = masking.mask_sections(release, radius=within, utility=utility)
    page = masking.mask_report(release, sections, table=data.name)
    source.restore(release).save(
        out, overwrite=overwrite, file_format=source.file_format, report=False,
        attachments={"report.html": page}, drop=decided.drop, keep=decided.keep, ids=decided.ids,
    )  # fmt: skip
    show("Masked release: NOT differentially private")
    show_opening(sections[0])
    if utility is not None:
        title = f"{utility.formula} ({utility.model}): confidential"
        shown = ["estimate", "synthetic_estimate", "interval_overlap", "standardised_difference"]
        show(frame_table(title, utility.table[shown].rename_axis("term").reset_index()))
    show(
        f"{len(release.synthetic)} sets; combine estimates by the rule {release.rule}",
        f"\n{out}/public/        to give away: synthetic data and risk_statement.md",
        f"{out}/confidential/  to keep: seed, diagnostics and report.html",
    )
