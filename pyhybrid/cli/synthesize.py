"""`pyhybrid synthesize`: a release from a file into a folder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from pyhybrid.cli.console import note, progress_bars
from pyhybrid.cli.describe import say_repeated, say_unconfirmed, whole_table
from pyhybrid.cli.ledger import open_ledger
from pyhybrid.cli.options import (
    chosen_mechanism,
    default_models,
    mechanisms_asked_for,
    names_of,
    options,
    others_given,
    reference_model,
    reweighting_of,
    sampler_settings,
    with_program,
)
from pyhybrid.cli.released import (
    save_with_these,
)
from pyhybrid.cli.strict_formula import release_strictly, takes_scores
from pyhybrid.cli.tables import SourceTable, read_table
from pyhybrid.core.checks import check_choice, check_count, check_output_folder, check_positive
from pyhybrid.core.errors import BudgetExceeded, InvalidInput, SamplingError
from pyhybrid.fitting.disclosive_columns import exposed_columns, repeated_identifiers
from pyhybrid.fitting.session import FitProgress
from pyhybrid.mechanisms import Censored, NoisyMarginals
from pyhybrid.mechanisms.censored.calibration import calibrate
from pyhybrid.mechanisms.epsilon_search import WITH_EPSILON, meet_epsilon, with_epsilon
from pyhybrid.mechanisms.mechanism import REFITS, Mechanism
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models import Model
from pyhybrid.models.columns.form import levels_declared
from pyhybrid.models.columns.types_files import read_types
from pyhybrid.models.formula.values import is_number, with_columns
from pyhybrid.privacy.conversions import RELATIONS, STRICT
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.folder import FORMATS
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.tables.domains import default_delta
from pyhybrid.tables.synthesis import release_table, table_mechanism

_OF_WHOLE_TABLE = (
    "data", "out", "types", "epsilon", "reference", "mechanism", "relation", "n_synthetic",
    "seed", "file_format", "ledger", "allow_unlike", "overwrite",
    "delta", "select", "holds_no_released_record", "unit", "rows_per_unit", "drop",
    "keep", "identifier",
)  # fmt: skip
_DECIDED = ("drop", "keep", "identifier")
_OF_MECHANISM = (
    "scale", "shift", "transform", "threshold", "draw_quantile", "relation", "safety_factor",
    "accounting", "delta", "unit", "design",
)  # fmt: skip


@options
def synthesize(
    context: typer.Context,
    data: Path,
    out: Path,
    formula: list[str] | None = None,
    model: list[str] | None = None,
    types: Path | None = None,
    epsilon: float | None = None,
    reference: str | None = None,
    holds_no_released_record: bool = False,
    select: str | None = None,
    mechanism: list[str] | None = None,
    program: str | None = None,
    calibration: Path | None = None,
    scale: float | None = None,
    shift: float | None = None,
    transform: str | None = None,
    threshold: float | None = None,
    draw_quantile: float | None = None,
    relation: str | None = None,
    safety_factor: float | None = None,
    accounting: str | None = None,
    delta: float | None = None,
    strict: bool = False,
    local: bool = False,
    target_epsilon: float | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    design: str | None = None,
    reweight: bool = False,
    k: float | None = None,
    single_step: bool = False,
    n_synthetic: int = 1,
    one_draw: bool = False,
    refits: int = REFITS,
    engine: str = "auto",
    seed: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    adapt_delta: float | None = None,
    on_not_converged: str = "raise",
    file_format: str | None = None,
    drop: list[str] | None = None,
    keep: list[str] | None = None,
    identifier: list[str] | None = None,
    ledger: Path | None = None,
    allow_unlike: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
) -> None:
    """Release synthetic data: a whole table, or columns by formulas, with the others unchanged.

    Options:
    data (argument): Confidential records, .csv or .parquet.
    out: Folder for the release, new or empty.
    formula: As in R, e.g. 'visits ~ age + region'; several are synthesized in sequence, each given
        those before it.
    types: JSON file of types by column, for a whole table by noisy marginals (no --formula).
        Without it and without --reference, a draft is written.
    epsilon: Epsilon of the whole release, all columns and sets together. It sets the mechanism's
        own epsilon, or determines scale, weight or cap. [default: 1 for clipped
        scores, and with --reference]
    reference: Public or historical records, for a strict release. They give clipped scores
        their start (with --formula), or are used beside noisy tables.
    select: Tables that noisy marginals of a whole table measure: few, all (all pairs of columns) or
        private (a private choice). [default: few, and with --delta all, or private if too many]
    mechanism: clipped-scores, unweighted, lipschitz, count, scalar, truncated, censored,
        perturbed_histogram or noisy_marginals; with options as NAME:key=value,..., e.g.
        count:pattern=sex+region, scalar:target_epsilon=5; perturbed_histogram takes lower, upper,
        n_bins and epsilon, noisy_marginals epsilon and domain=FILE.json; once, or once per formula
        [default: clipped-scores, strict and without chains; censored with --calibration,
        lipschitz with --local]
    program: published: sample the Stan program that the papers print or describe; the default one
        has the same posterior and is faster.
    calibration: Folder of `pyhybrid calibrate`: a strict censored release.
    scale: c: lowers all weights when below 1. [default: 1]
    shift: g: lowers all weights when negative. [default: 0]
    transform: linear, reciprocal, threshold, logistic, softmax. [default: linear]
    threshold: f* in nats, for --transform threshold.
    draw_quantile: Drop draws whose bound is above this quantile. [default: 1]
    relation: Neighbors: remove or replace a record. [default: remove]
    safety_factor: s in epsilon = 2 s bound. [default: 1]
    strict: Refuse a release that is not strict; implied by --reference and --calibration.
    local: Allow a local release where a strict one is not possible.
    target_epsilon: Old name of --epsilon, of version 0.2; with --formula.
    unit: Column that identifies persons or other units: epsilon protects all rows of one.
    rows_per_unit: With --unit and a whole table: most rows of a unit, a public number.
    design: Column of survey weights, which average about 1: w n / N.
    reweight: Raise weights that leave slack below the bound.
    k: Re-weighting factor, with --reweight. [default: 0.95]
    single_step: With --reweight: one step at this k, as published.
    n_synthetic: m, the number of synthetic data sets.
    refits: Full refits without a record each, by which a local release is charged; 0 takes the
        weights as fixed, as published.
    identifier (--id): Columns whose values are replaced by numbers, separated by commas;
        repeatable.
    ledger: Ledger to charge; it refuses a release beyond its budget.
    allow_unlike: Accept charges of unlike kinds in a ledger or a sequence.
    dry_run: Of clipped scores: say how wide intervals will be, and stop before anything is spent.
    """
    of_counts = mechanism in (None, ["marginals"], ["noisy_marginals"])
    whole = not formula and not model and calibration is None and of_counts
    if not whole and select is not None:
        raise InvalidInput("--select goes with a whole table: leave out --formula")
    if holds_no_released_record and calibration is None and reference is None:
        raise InvalidInput("--holds-no-released-record goes with --reference or --calibration")
    if epsilon is not None:
        check_positive(epsilon, "--epsilon")
    fitting: dict[str, Any] = {
        "n_synthetic": check_count(n_synthetic, "--n-synthetic"),
        "n_draws_released": 1 if one_draw else None, "seed": seed, "engine": engine,
        "settings": sampler_settings(chains, warmup, draws, adapt_delta),
        "on_not_converged": on_not_converged,
    }  # fmt: skip
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    if allow_unlike and ledger is None and len(formula or []) < 2:
        raise InvalidInput("--allow-unlike goes with --ledger, or with several formulas")
    if whole:
        made = _whole_table(context, fitting)
    elif takes_scores(context.params):
        release, source, decisions, book = release_strictly(context, fitting)
        made = _Made(release=release, source=source, decisions=decisions, book=book)
    else:
        if rows_per_unit is not None:
            raise InvalidInput("--rows-per-unit goes with a whole table: leave out --formula")
        if types is not None:
            raise InvalidInput(
                "--types goes with a whole table: leave out --formula, or declare what the outcome "
                "can hold by --model, e.g. --model ordinal:levels=low+middle+high"
            )
        of_mechanism = {
            **{name: context.params[name] for name in _OF_MECHANISM},
            "design": design,
            "reweighting": reweighting_of(reweight, k, single_step),
        }  # fmt: skip
        made = _by_formula(context.params, of_mechanism, fitting)
    save_with_these(
        made.release, made.source, made.decisions, out, overwrite=overwrite,
        file_format=file_format, ledger=made.book,
    )  # fmt: skip


def _is_strict(given: Mapping[str, Any]) -> bool:
    """True if only a strict release is asked for."""
    centered = given["reference"] is not None or given["calibration"] is not None
    return given["strict"] or (centered and not given["local"])


def _with_delta_of_ledger(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Delta, if none is given, as the ledger that is charged has it."""
    if given["delta"] is not None or given["ledger"] is None:
        return given
    delta = Ledger(given["ledger"]).delta
    if delta is None:
        note(
            "the ledger has no delta: the release has pure epsilon and Laplace noise; with a delta "
            "it would have Gaussian noise, which is smaller for many columns"
        )
    return {**given, "delta": delta}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Made:
    """A release, and what saving it needs."""

    release: Release
    source: SourceTable
    decisions: Decisions
    book: Ledger | None


def _whole_table(context: typer.Context, fitting: Mapping[str, Any]) -> _Made:
    """A whole table by noisy marginals."""
    given: Mapping[str, Any] = context.params
    if given["epsilon"] is None:
        words = shlex.join(["pyhybrid", "synthesize", str(given["data"])])
        out = shlex.join(["--out", str(given["out"])])
        raise InvalidInput(
            f"--epsilon must be given for a whole table: {words} --epsilon 4 {out}; or --formula "
            f"for one column: {words} --formula 'visits ~ age + region' {out}"
        )
    others = others_given(context, _OF_WHOLE_TABLE)
    if others:
        raise InvalidInput(
            "a whole table, without --formula, comes from noisy marginals: leave out "
            f"{', '.join(others)}, or give --formula"
        )
    relation = check_choice(given["relation"] or "remove", "relation", RELATIONS)
    check_output_folder(given["out"], overwrite=given["overwrite"])
    given = _with_delta_of_ledger(given)
    book = open_ledger(
        given, NoisyMarginals.__name__, relation, given["delta"] or None, given["epsilon"]
    )
    types = given["types"]
    source = read_table(given["data"], unsaid=() if types is None else read_types(types))
    if given["delta"] is None and book is None:
        given = {**given, "delta": default_delta(len(source.frame))}
    table = whole_table(source, given)
    names = ("epsilon", "select", "unit", "rows_per_unit", "holds_no_released_record")
    mechanism = table_mechanism(
        table.kinds, table.kept, relation=relation, delta=given["delta"] or None,
        reference=table.reference, **{name: given[name] for name in names},
    )  # fmt: skip
    with progress_bars() as progress:
        progress("noisy counts and their model", 0, 0)
        options = {name: fitting[name] for name in ("n_synthetic", "seed")}
        release = release_table(table.frame, mechanism, table.kinds, progress=progress, **options)
    if given["types"] is not None:
        say_unconfirmed(read_types(given["types"]))
    return _Made(release=release, source=source, decisions=table.decisions, book=book)


def _by_formula(
    given: Mapping[str, Any], options: dict[str, Any], fitting: dict[str, Any]
) -> _Made:
    """Columns by their formulas; `options` are those of mechanisms."""
    formulas, models = given["formula"] or [], given["model"] or []
    if given["program"] is not None and not (given["reference"] is given["calibration"] is None):
        raise InvalidInput(
            "--program goes with neither --reference nor --calibration: a published program clips "
            "no terms about a center, and the default one needs no --program"
        )
    target = _target(given, formulas)
    texts = mechanisms_asked_for(given, formulas, target, options)
    chosen = _chosen(given, texts, models, options)
    check_output_folder(given["out"], overwrite=given["overwrite"])
    book = open_ledger(given, chosen.name, chosen.relation, chosen.delta_of_charge, None)
    source = read_table(given["data"])
    if book is None and given["delta"] is given["reference"] is given["calibration"] is None:
        options["delta"] = _delta_of_many(chosen, len(source.frame))
        texts = mechanisms_asked_for(given, formulas, target, options)
    decisions = Decisions.of(*(names_of(given[own], source.frame) for own in _DECIDED))
    like = None if given["reference"] is None else read_table(given["reference"])
    by_kind: list[Model | str | None]
    if like is not None:
        by_kind = [reference_model(models, formulas[0], like.frame)]
    else:
        by_kind = default_models(texts, models, formulas, source.frame)
    chosen = with_program(_chosen(given, texts, by_kind or models, options), given["program"])
    declared = chosen.forms(source.frame)
    source = source.read_as(declared)
    if like is not None:
        known = None if models else by_kind[0]
        source = _at_known_levels(source, chosen.synthesizes[0], levels_declared(known))
    _check_columns(source.frame, chosen, decisions)
    if given["unit"] is None:
        say_repeated(repeated_identifiers(source.frame))
    with progress_bars() as progress:
        if like is not None:
            reference = like.read_as(declared).frame
            chosen, target = _calibrated_on(reference, given, chosen, progress, fitting), None
        strict = _is_strict(given)
        if strict:
            _check_strict(chosen, source.frame)
        release = _release_within(
            chosen, source.frame, target, refits=given["refits"],
            progress=progress, **fitting,
        )  # fmt: skip
    if strict and release.charge.kind != STRICT:
        raise SamplingError(
            "nothing is released: some chains ended in other modes, so that the charge would be "
            "local, not strict; give more --draws, or --local"
        )
    return _Made(release=release, source=source, decisions=decisions, book=book)


def _chosen(
    given: Mapping[str, Any],
    texts: Sequence[str],
    models: Sequence[Model | str | None],
    options: dict[str, Any],
) -> Mechanism:
    return chosen_mechanism(
        texts, models, given["formula"] or [], given["calibration"], options,
        allow_unlike=given["allow_unlike"],
        holds_no_released_record=given["holds_no_released_record"],
    )  # fmt: skip


def _delta_of_many(chosen: Mechanism, n: int) -> float | None:
    """Delta for n records, where the mechanism's own is not below 1 / n."""
    own = chosen.delta_of_charge
    return None if own is None or own * n < 1 else default_delta(n)


def _at_known_levels(source: SourceTable, name: str, levels: tuple[Any, ...] | None) -> SourceTable:
    """The table with numbers of the outcome moved to the nearest of the levels that a reference
    has, each by itself."""
    column = source.frame[name] if name in source.frame else pd.Series([""])
    if levels is None or not is_number(column) or column.dropna().isin(levels).all():
        return source
    known = np.sort(np.array(levels, dtype=float))
    distance = np.abs(column.to_numpy(dtype=float)[:, None] - known)
    nearest = known[np.nan_to_num(distance, nan=np.inf).argmin(axis=1)]
    moved = pd.Series(nearest, index=column.index).where(column.notna())
    note(
        f"values of {name} that the reference does not have count as the nearest that it has; "
        "--model ordinal:levels=a+b+c declares all that are possible"
    )
    return replace(source, frame=with_columns(source.frame, {name: moved}))


def _check_strict(mechanism: Mechanism, df: pd.DataFrame) -> None:
    """Refuse, before a fit, what cannot be strict and was to be."""
    for step in getattr(mechanism, "mechanisms", (mechanism,)):
        lacks = step.why_local(step.bind(df)) if isinstance(step, Censored) else None
        if lacks is not None:
            raise InvalidInput(f"a strict release lacks {lacks}; --local makes a local one")


def _calibrated_on(
    reference: pd.DataFrame,
    given: Mapping[str, Any],
    mechanism: Mechanism,
    progress: FitProgress,
    fitting: Mapping[str, Any],
) -> Censored:
    """The strict mechanism, about a center frozen on the reference."""
    assert isinstance(mechanism, Censored)
    passed = ("seed", "engine", "settings", "on_not_converged")
    made = calibrate(
        mechanism.model,
        reference,
        epsilon=mechanism.epsilon,
        relation=mechanism.relation,
        holds_no_released_record=given["holds_no_released_record"],
        progress=progress,
        **{name: fitting[name] for name in passed},
    )
    return replace(mechanism, epsilon=None, calibration=made)


def _target(given: Mapping[str, Any], formulas: Sequence[str]) -> float | None:
    """Epsilon of the whole release, checked before anything is read."""
    target: float | None = given["epsilon"]
    if given["target_epsilon"] is not None:
        if target is not None:
            raise InvalidInput("--epsilon and --target-epsilon are the same: give one")
        target = given["target_epsilon"]
    refused = {
        "is for one formula: how several columns share it is not known; give each its own "
        "settings": len(formulas) > 1,
        "cannot be met by a calibration, which holds the cap: give --epsilon to pyhybrid "
        "calibrate": given["calibration"] is not None,
        "finds the scale: give no --scale": given["scale"] is not None,
    }
    for reason, holds in refused.items():
        if target is not None and holds:
            raise InvalidInput(f"--epsilon {reason}")
    return target


def _release_within(
    mechanism: Mechanism,
    df: pd.DataFrame,
    target: float | None,
    *,
    n_synthetic: int,
    n_draws_released: int | None,
    refits: int,
    **fitting: Any,
) -> Release:
    """A release, of at most `target` if there is one, from the fit that was found."""
    releasing: dict[str, Any] = {"n_synthetic": n_synthetic, "refits": refits}
    draws = n_draws_released or n_synthetic
    if isinstance(mechanism, (SequentialSynthesis, NoisyMarginals)):
        target = None  # it has it
    if target is not None and isinstance(mechanism, WITH_EPSILON):
        # A histogram is drawn once, whatever m is, if it is not told otherwise.
        at = 1 if isinstance(mechanism, PerturbedHistogram) else draws
        mechanism = with_epsilon(mechanism, target_epsilon=target, n_draws_released=at)
        target = None
    if target is None:
        return mechanism.release(df, n_draws_released=n_draws_released, **releasing, **fitting)
    found = meet_epsilon(
        mechanism,  # type: ignore[arg-type]
        df,
        target_epsilon=target,
        n_draws_released=draws,
        refits=refits,
        **fitting,
    )
    note(f"--epsilon: {len(found.tried)} settings tried")
    release = found.mechanism.release_from(found.session, n_draws_released=draws, **releasing)
    if release.charge.epsilon > target:
        raise BudgetExceeded(
            f"a release must cost at most --epsilon {target:g}: refits without single "
            f"records raised it to {release.charge.epsilon:g}; give a smaller one"
        )
    return release


def _check_columns(table: pd.DataFrame, mechanism: Mechanism, decisions: Decisions) -> None:
    """Columns that need a decision are named, and refused without one, before any fit."""
    replaced = mechanism.synthesizes
    if not set(replaced) <= set(table.columns):
        return  # what is wrong is said when the model is bound
    exposed = {**exposed_columns(table, replaced), **mechanism.undecided}
    exposed = {n: reason for n, reason in exposed.items() if n in table.columns}
    columns = [str(name) for name in table.columns]
    check_decided(exposed, decisions, columns, replaced)
    for name, reason in exposed.items():
        if name in decisions.keep:
            note(f"--keep {name}: it is published unchanged, although {reason}")
