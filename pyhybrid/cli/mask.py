"""`pyhybrid mask`: quasi-identifiers replaced by masking and multiple imputation."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape

from pyhybrid.cli.console import progress_bars, show, table_of
from pyhybrid.cli.options import listed, names_of, options
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

FAMILIES = {"linear": "ols", "probit": "probit", "logit": "logit"}


@options
def mask(
    data: str,
    keys: list[str],
    out: Path,
    copies: int = 20,
    variance: float = 1.0,
    separation: float = 2.0,
    association: str = "sequential",
    predictors: list[str] | None = None,
    types: str | None = None,
    n_synthetic: int = 5,
    n_imputations: int | None = None,
    formula: str | None = None,
    family: str = "linear",
    radius: str | None = None,
    k0: int = 5,
    target_risk: float | None = None,
    seed: int | None = None,
    on_not_converged: str = "raise",
    file_format: str | None = None,
    overwrite: bool = False,
) -> None:
    """Mask quasi-identifiers by multiple imputation. NOT differentially private.

    Options:
    keys: Quasi-identifiers to replace: age,sex,...; repeatable.
    out: Folder for the release, new or empty.
    copies: K, the number of masked copies of a continuous key.
    variance: s2, their variance relative to that of the key.
    separation: a, separation of the masks of all other keys; smaller is safer.
    association: sequential (any keys) or copula (none of them nominal).
    predictors: Columns of the association model; with commas between, repeatable.
        [default: all that it covers]
    types: NAME=continuous, binary, ordered or nominal, ... where codes do not show it.
    n_synthetic: m, the number of sets; per imputation where keys have missing values.
    n_imputations: Number of imputations of missing keys. [default: 5 if any is missing]
    formula: Analysis to compare, e.g. 'income ~ age + C(region)'.
    family: Model of --formula: linear, probit or logit.
    radius: Radius within which continuous keys match: age=2,... [default: equal]
    k0 (--k0): Number of matches that makes a record low risk.
    target_risk: Choose the mask strength: largest share of records identified correctly, with the
        least change of --formula's coefficients.
    """
    check_output_folder(out, overwrite=overwrite)
    check_choice(family, "--family", FAMILIES)
    check_count(n_synthetic, "--n-synthetic")
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    if target_risk is not None and formula is None:
        raise InvalidInput("--target-risk needs --formula, whose coefficients are the loss")
    source, analysis = read_table(data), FAMILIES[family]
    frame, names, said = source.frame, names_of(keys, source.frame), _pairs(types, "--types")
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
        release, frame, before=before, after=after, utility=utility, subgroups=groups, tuned=tuned,
        table=Path(data).name,
    )  # fmt: skip
    source.restore(release).save(
        out, overwrite=overwrite, file_format=file_format or source.file_format, report=False,
        attachments={"report.html": page},
    )  # fmt: skip
    _show(release, out, before, after, utility, tuned)


def _show(
    release: MaskedRelease, out: Path, before: MatchingRisk, after: MatchingRisk,
    utility: ModelUtility | None, tuned: TunedMask | None,
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


def _pairs(text: str | None, option: str) -> dict[str, str]:
    """NAME=value with commas between."""
    pairs = {}
    for part in listed(text or ""):
        name, mark, value = part.partition("=")
        if not mark or not value:
            raise InvalidInput(f"{option} must be NAME=value,...: found {part!r}")
        pairs[name.strip()] = value.strip()
    return pairs


def _radius(text: str | None) -> dict[str, float] | None:
    pairs = _pairs(text, "--radius")
    try:
        return {name: float(value) for name, value in pairs.items()} or None
    except ValueError:
        raise InvalidInput(f"--radius must be NAME=number,...: found {text!r}") from None
