"""`pyhybrid synthesize`: a release from a file into a folder.

Three ways: a whole table by noisy marginals (no --formula), columns by clipped scores (--formula),
and columns by another mechanism (--mechanism). For clipped scores what is public must be declared:
without --model the command shows what a column seems to hold, the command that declares it, and how
wide intervals will be.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from pyhybrid.cli.console import note, progress_bars, show
from pyhybrid.cli.in_parts import release_source, source_of
from pyhybrid.cli.ledger import open_ledger
from pyhybrid.cli.options import (
    CLIPPED,
    FIT,
    MODEL_NAMES,
    OF_RELEASE,
    PRIVACY,
    Data,
    Drop,
    HoldsNone,
    Ids,
    Keep,
    Named,
    Overwrite,
    Read,
    ReleaseFolder,
    build_mechanism,
    build_model,
    calibrated,
    converted,
    fit_options,
    mechanism_named,
    model_for,
    named,
    names_of,
    option,
    read_table,
)
from pyhybrid.cli.released import save_and_show
from pyhybrid.core.checks import check_count, check_output_folder, check_positive, number_of
from pyhybrid.core.errors import BudgetExceeded, InvalidInput, SamplingError
from pyhybrid.fitting.disclosive_columns import exposed_columns, repeated_identifiers
from pyhybrid.fitting.session import FitProgress
from pyhybrid.mechanisms import MODEL_FREE, ClippedScores, NoisyMarginals, meet_epsilon
from pyhybrid.mechanisms.mechanism import REFITS, Mechanism, check_unit_of_noise
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models.columns.kinds import Kind
from pyhybrid.models.columns.types_files import read_after, read_types
from pyhybrid.models.default_model import suggest_model
from pyhybrid.models.formula.terms import parse_formula, sides_of
from pyhybrid.privacy.conversions import STRICT, epsilon_of_mu, mu_of_epsilon
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.tables.describe import seen_kind, to_mend, undecided, write_draft
from pyhybrid.tables.domains import default_delta
from pyhybrid.tables.formats import format_of
from pyhybrid.tables.read import SourceTable, text_among_numbers
from pyhybrid.tables.relations import can_be_declared, relations_of
from pyhybrid.tables.roles import check_persons, kinds_of
from pyhybrid.tables.synthesis import synthesize_table

_TABLE = "Whole table"
_REPEATED = {"formula", "model", "mechanism", "drop", "keep", "id", "read"}
_MOST_RELATIONS = 5
_WIDE = 1.5  # times: coordinates that are named


def synthesize(
    data: Data,
    out: ReleaseFolder,
    formula: Annotated[
        list[str] | None,
        option(
            "As in R, e.g. 'visits ~ age + region'; several are synthesized in sequence, each "
            "given those before it. Without one the whole table is synthesized."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        option(
            f"{', '.join(MODEL_NAMES)}; with settings as NAME:key=value,..., e.g. "
            "beta:lower=0,upper=100, bernoulli:levels=no+yes, lognormal:zeros=true, any with "
            "missing=true, poisson:program=published (the Stan program that the papers print), "
            "stan:program=my.stan,predict=y_rep (your own; local). Once, or once per formula. "
            "[default: by clipped scores a draft, else by the column's values]"
        ),
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        option(
            "clipped-scores, unweighted, lipschitz, count, scalar, truncated, censored, "
            "perturbed_histogram or noisy_marginals; with settings as NAME:key=value,..., named as "
            "in Python, e.g. count:pattern=sex+region, lipschitz:reweighting=true, "
            "censored:calibration=FOLDER, noisy_marginals:select=private. Once, "
            "or once per formula. [default: clipped-scores, of a whole table noisy_marginals]"
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        option(
            "Epsilon of the whole release, all columns and sets together. It sets the mechanism's "
            "own epsilon, or determines scale, weight or cap. [default: 1 for clipped scores]",
            group=PRIVACY,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        option(
            "Probability by which exp(epsilon) may be exceeded, below 1 / n; 0 for pure epsilon of "
            "a whole table. [default: that of the ledger, or 1e-6, from a million records on below "
            "1 / 10 n]",
            group=PRIVACY,
        ),
    ] = None,
    unit: Annotated[
        str | None,
        option(
            "Column that identifies persons or other units: epsilon protects all rows of one; for "
            "a whole table with the most rows of one, a public number, as person:rows=4.",
            group=PRIVACY,
        ),
    ] = None,
    types: Annotated[
        Path | None,
        option(
            "JSON file of types by column. Without it and without --reference a draft is written, "
            'in which you confirm that they are public: "confirmed": true.',
            group=_TABLE,
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        option(
            "Public or historical records, not released: clipped scores start from them, noisy "
            "tables are used beside them.",
            group=PRIVACY,
        ),
    ] = None,
    holds_no_released_record: HoldsNone = False,
    ledger: Annotated[
        Path | None,
        option("Ledger to charge; it refuses a release beyond its budget.", group=PRIVACY),
    ] = None,
    n_synthetic: Annotated[int, option("m, the number of synthetic data sets.")] = 1,
    fit: Annotated[
        str | None,
        option(
            "Of mechanisms with chains, as key=value,...: engine (auto, cmdstan, embedded, rstan), "
            "seed, chains, warmup, draws, adapt_delta, on_not_converged (raise, warn), "
            "n_draws_released (1: all sets from one draw, at the cost of one), refits (0: weights "
            "taken as fixed, as published).",
            group=FIT,
        ),
    ] = None,
    drop: Drop = None,
    keep: Keep = None,
    id: Ids = None,
    read: Read = None,
    overwrite: Overwrite = False,
) -> None:
    """Route the request to one of the three ways, which saves the release and shows it."""
    options = {
        name: [] if name in _REPEATED and value is None else value
        for name, value in locals().items()
    }
    column, rows_per_unit = _unit_of(unit)
    request = Request(**{**options, "fit": fit_options(fit, OF_RELEASE), "unit": column,
                         "rows_per_unit": rows_per_unit})  # fmt: skip
    if epsilon is not None:
        check_positive(epsilon, "--epsilon")
    check_count(n_synthetic, "--n-synthetic")
    check_output_folder(out, overwrite=overwrite)
    table = source_of(data)
    if table is not None:
        release_source(request, table)
        return
    format_of(data)
    names = {mechanism_named(text).name for text in request.mechanism}
    if not request.formula and not request.model and names <= {"noisy_marginals"}:
        _release_table(request)
    elif request.formula and names <= {CLIPPED}:
        _release_by_scores(request)
    else:
        _release_by_mechanism(request)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of `synthesize`."""

    data: Path
    out: Path
    formula: list[str]
    model: list[str]
    mechanism: list[str]
    epsilon: float | None
    delta: float | None
    unit: str | None
    rows_per_unit: int | None
    types: Path | None
    reference: Path | None
    holds_no_released_record: bool
    ledger: Path | None
    n_synthetic: int
    fit: dict[str, Any]
    drop: list[str]
    keep: list[str]
    id: list[str]
    read: list[str]
    overwrite: bool

    def refuse(self, names: Collection[str], why: str) -> None:
        """Refuse options that are of no use here."""
        options = [
            _flag(name) for name in names if getattr(self, name) not in (None, [], {}, False)
        ]
        if options:
            raise InvalidInput(f"{why}: leave out {', '.join(options)}")

    def by_formula(self, name: str) -> list[str | None]:
        """Models or mechanisms, one for each formula."""
        texts: list[str] = getattr(self, name)
        n = len(self.formula)
        if len(texts) not in (0, 1, n):
            raise InvalidInput(
                f"--{name} must be given once, or once per --formula: found {len(texts)} for "
                f"{number_of(n, 'formula')}"
            )
        return [*texts] if len(texts) == n else [texts[0] if texts else None] * n

    def decided(self, df: pd.DataFrame) -> Decisions:
        """Decisions on columns, by their names."""
        return Decisions.of(*(names_of(names, df) for names in (self.drop, self.keep, self.id)))

    def read_reference(self) -> SourceTable | None:
        """The reference, of which it must be said that it holds no released record."""
        if self.reference is None:
            return None
        if not self.holds_no_released_record:
            raise InvalidInput(
                "a strict release needs you to confirm, if it is true, that the reference holds "
                "none of the records to be released: --holds-no-released-record"
            )
        return read_table(self.reference, read=self.read)

    def delta_for(self, n: int) -> float | None:
        """Delta as given, as the ledger that is charged has it, or the default for n records."""
        if self.delta is not None or self.ledger is None:
            return default_delta(n) if self.delta is None else self.delta or None
        return Ledger(self.ledger).delta

    def command(self, **changes: Sequence[object]) -> str:
        """The whole command, with changed options; without --fit and --overwrite."""
        options = {**vars(self), **changes}
        rows = options.pop("rows_per_unit")
        options["unit"] = f"{self.unit}:rows={rows}" if rows else self.unit
        options["out"] = options.pop("out")  # at the end
        del options["data"], options["fit"], options["overwrite"]
        words = ["pyhybrid", "synthesize", str(self.data)]
        for name, given in options.items():
            for value in given if isinstance(given, list) else [given]:
                if value is True:
                    words.append(_flag(name))
                elif value not in (None, False, "") and (name, value) != ("n_synthetic", 1):
                    words += [_flag(name), f"{value:g}" if isinstance(value, float) else str(value)]
        return shlex.join(words)


def _flag(name: str) -> str:
    return "rows= of --unit" if name == "rows_per_unit" else f"--{name.replace('_', '-')}"


def _unit_of(text: str | None) -> tuple[str | None, int | None]:
    """Column and rows of ``COLUMN:rows=NUMBER``; a name may hold a colon."""
    column, mark, rows = (text or "").rpartition(":rows=")
    if not mark:
        return text, None
    return column, converted(rows, int, "rows of --unit")


# --- A whole table --------------------------------------------------------------------------------


def _release_table(request: Request) -> None:
    """A whole table by noisy marginals."""
    request.refuse(["fit"], "a whole table comes from noisy marginals, without chains")
    if request.epsilon is None:
        words = shlex.join(["pyhybrid", "synthesize", str(request.data)])
        out = shlex.join(["--out", str(request.out)])
        raise InvalidInput(
            f"--epsilon must be given for a whole table: {words} --epsilon 4 {out}; or --formula "
            f"for one column: {words} --formula 'visits ~ age + region' {out}"
        )
    check_unit_of_noise(request.unit, request.rows_per_unit)
    settings: dict[str, Any] = named("".join(request.mechanism[:1])).settings
    unknown = settings.keys() - {"select", "relation"}
    if unknown:
        raise InvalidInput(
            f"noisy_marginals of a whole table takes select and relation: found {min(unknown)}"
        )
    like = request.read_reference()
    types = {} if request.types is None else read_types(request.types)
    after = [] if request.types is None else read_after(request.types)
    source = read_table(request.data, unsaid=types, read=request.read)
    delta = request.delta_for(len(source.frame))
    if delta is None and request.delta is None:
        note(
            "the ledger has no delta: the release has pure epsilon and Laplace noise; with a delta "
            "it would have Gaussian noise, which is smaller for many columns"
        )
    ledger = open_ledger(
        request.ledger, NoisyMarginals.__name__, settings.get("relation", "remove"), delta,
        request.epsilon,
    )  # fmt: skip
    declared, seen = kinds_of(types), dict[str, Kind]()
    codes = {} if like is None else like.codes
    for name, column in () if like is None else like.frame.items():
        kind = seen_kind(column, codes.get(str(name)))  # None is refused where it is asked for
        if kind is not None:
            seen[str(name)] = kind
    cells = {**seen, **declared}
    source, frame = source.read_as(cells), None if like is None else like.read_as(cells).frame
    decided = _decided_of_table(request, source, frame, types)
    with progress_bars() as progress:
        progress("noisy counts and their model", 0, 0)
        release = synthesize_table(
            source.frame, epsilon=request.epsilon, delta=delta, unit=request.unit,
            rows_per_unit=request.rows_per_unit, types=types, reference=frame,
            id=next(iter(decided.ids), None), drop=decided.drop, keep=decided.keep, after=after,
            holds_no_released_record=request.holds_no_released_record,
            n_synthetic=request.n_synthetic, progress=progress, **settings,
        )  # fmt: skip
    save_and_show(
        release, source, release.decisions, request.out, overwrite=request.overwrite, ledger=ledger
    )


def _decided_of_table(
    request: Request, source: SourceTable, like: pd.DataFrame | None, types: Collection[str]
) -> Decisions:
    """Decisions on columns that are not synthesized; columns that need one and have none are
    refused, and without types or a reference a draft of types is written."""
    df = source.frame
    decided, columns = request.decided(df), [str(name) for name in df.columns]
    if len(decided.ids) > 1:
        raise InvalidInput(f"--id must name one column: found {', '.join(decided.ids)}")
    if request.unit is not None:
        note(
            f"rows are drawn independently: what rows of one {request.unit} have in common is lost"
        )
    else:
        _note_persons(df, ":rows=ROWS")
    settled = {*decided.drop, *decided.keep, *decided.ids, *types, request.unit}
    left = df[[name for name in df.columns if name not in settled]]  # not for a record to refuse
    other = left[:0] if like is None else like
    both = [name for name in left if like is not None and name in like]
    risky = {**undecided(left.drop(columns=both)), **undecided(other[both])}
    if types or like is not None:
        check_decided(risky, decided, columns, ())
        return decided
    check_decided({}, decided, columns, ())
    mend = [f"{name!r}: {why}" for name in left if (why := to_mend(left[name]))]
    if mend:
        raise InvalidInput(
            f"columns must be mended, read (--read) or left out (--drop): {'; '.join(mend)}"
        )
    if not len(left.columns) > len(risky):
        reasons = "; ".join(f"{name!r}: {why}" for name, why in risky.items())
        raise InvalidInput(f"no column is left that can be synthesized: {reasons}")
    path = request.out.parent / f"{request.data.stem}.types.json"
    if path.exists() and not request.overwrite:
        raise InvalidInput(
            f"a draft of types is there, {path}: confirm or change it, then give --types {path}; "
            "--overwrite writes a new one"
        )
    for relation in relations_of(left)[:_MOST_RELATIONS]:
        kept = f'will if it stands in the list "after" of {path}'
        kept = (
            kept if can_be_declared(relation) else "will not: leave out a column that others give"
        )
        note(f"all records keep {relation}: synthetic rows {kept} (pyhybrid describe shows all)")
    write_draft(path, left.drop(columns=[*risky]), source.codes)
    command = request.command(types=[path], drop=[*request.drop, ",".join(risky)])
    raise InvalidInput(
        f"nothing was released yet. {path} was written: a draft of what each column can hold, as "
        "seen in the data. A strict release must not take that from the data: confirm or change "
        "levels, lower, upper, codes, decimals and missing by what is public (what fewer than 10 "
        'records have is marked), set "confirmed": true, and list in "after" what must hold in '
        "each row. "
        f"Then run: {command}"
    )


# --- Columns by clipped scores --------------------------------------------------------------------


def _release_by_scores(request: Request) -> None:
    """One or several formulas by clipped scores; typer.Exit with code 2 after a draft of models."""
    request.refuse(
        ["fit", "types", "rows_per_unit"],
        "a formula without --mechanism is released by clipped scores, without chains",
    )
    outcomes = [sides_of(formula)[0] for formula in request.formula]
    reference = request.read_reference()
    source = read_table(request.data, unsaid=outcomes, read=request.read)
    df, like = source.frame, None if reference is None else reference.frame
    for name in outcomes:
        if list(df.columns).count(name) != 1:
            known = ", ".join(map(str, df.columns[:20]))
            raise InvalidInput(
                f"outcome {name!r} must be a column of the data, once: found {known}"
            )
    models, public = _models(request, df if like is None else like), df.drop(columns=outcomes)
    declared = bool(request.model) or like is not None
    steps = _steps(request, models, len(df))
    if like is not None:
        check_persons(df, like, request.unit)
        steps = [step.from_reference(like) for step in steps]
    decisions = request.decided(df)
    if declared:
        _check_predictors(df, steps, {*decisions.drop, *decisions.ids})
        check_decided(exposed_columns(public, ()), decisions, map(str, df.columns), outcomes)
    if request.unit is None:
        _note_persons(public)
    for step in steps:  # those whose predictors are all public
        if not {*parse_formula(step.model.formula, df).predictors} & {*outcomes}:
            _note_widths(step, df)
    if not declared:
        _show_draft(request, models, df)
        raise typer.Exit(2)
    mechanism: Any = steps[0] if len(steps) == 1 else SequentialSynthesis(steps)
    ledger = open_ledger(request.ledger, mechanism.name, steps[0].relation, steps[0].delta)
    with progress_bars() as progress:
        release = mechanism.release(df, n_synthetic=request.n_synthetic, progress=progress)
    save_and_show(
        release, source, decisions, request.out, overwrite=request.overwrite, ledger=ledger
    )


def _note_persons(df: pd.DataFrame, more: str = "") -> None:
    """Name the columns by which a person may have several rows, and what protects persons; with
    the `more` that --unit needs."""
    for name in repeated_identifiers(df):
        note(
            f"{name} looks like an identifier of persons, with several rows each: epsilon protects "
            f"one row, not all rows of a person. --unit {shlex.quote(name)}{more} protects "
            "persons. Rows are drawn independently: what a person's rows have in common is lost"
        )


def _models(request: Request, df: pd.DataFrame) -> list[str]:
    """The models declared, or those that the outcomes seem to ask for."""
    drafts = []
    for formula, model in zip(request.formula, request.by_formula("model"), strict=True):
        name = sides_of(formula)[0]
        if model is None and text_among_numbers(df[name]):
            raise InvalidInput(
                f"outcome {name!r} must be numbers: some cells are text; mend these, or declare "
                "--model: such cells then count as absent, or are levels of a categorical"
            )
        drafts.append(model or str(suggest_model(df[name])))
        if model is None and request.reference is not None:
            note(f"model of {name} by the reference: {drafts[-1]}")
    return drafts


def _steps(request: Request, models: Sequence[str], n: int) -> list[ClippedScores]:
    """A mechanism for each formula; several share mu alike."""
    delta = request.delta_for(n)
    if delta is None:
        raise InvalidInput(
            "clipped scores are counted at a delta above 0, and a ledger must have one, too: make "
            "it with pyhybrid ledger create --delta 1e-6"
        )
    epsilon = request.epsilon or 1.0
    if len(models) > 1:
        epsilon = epsilon_of_mu(mu_of_epsilon(epsilon, delta) / math.sqrt(len(models)), delta)
    asked = zip(request.formula, models, request.by_formula("mechanism"), strict=True)
    return [
        build_mechanism(
            Named(CLIPPED, {"epsilon": epsilon, **named(text or "").settings}),
            build_model(model, formula), delta=delta, unit=request.unit,
        )
        for formula, model, text in asked
    ]  # fmt: skip


def _check_predictors(df: pd.DataFrame, steps: Sequence[ClippedScores], hidden: set[str]) -> None:
    """Refuse predictors that are not published as they are. No outcome is looked at."""
    for step in steps:
        read = parse_formula(step.model.formula, df).predictors
        for name in (*read, *(c for names in step.reads().values() for c in names)):
            if name in hidden and name != step.unit:
                raise InvalidInput(
                    f"{name!r} is read by the formula and must be published as it is: synthetic "
                    "values are drawn given it, which no epsilon covers; leave it out of the "
                    "formula, or publish it"
                )


def _note_widths(step: ClippedScores, df: pd.DataFrame) -> None:
    """How much wider intervals will be, known before anything is spent."""
    widths = step.predicted_widths(df).set_index("coordinate")["width"]
    typical = float(widths.median())
    wide = [f"{k} {width:.1f} times" for k, width in widths.items() if width > _WIDE * typical]
    note(
        f"{step.outcome}: at epsilon {step.epsilon:.3g} intervals will be {typical:.1f} times as "
        f"wide as without privacy{'; ' if wide else ''}{', '.join(wide[:5])}"
    )


def _show_draft(request: Request, models: Sequence[str], df: pd.DataFrame) -> None:
    """What the outcomes seem to hold, and the command that declares it, with columns that need a
    decision left out."""
    outcomes = [sides_of(formula)[0] for formula in request.formula]
    for name, model in zip(outcomes, models, strict=True):
        holds = suggest_model(df[name]).holds
        show(f"{name} seems to hold {holds}: --model {shlex.quote(model)}")
    read = {name for text in request.formula for name in parse_formula(text, df).predictors}
    decided = request.decided(df)
    settled = {*read, *decided.drop, *decided.keep, *decided.ids, request.unit}
    exposed = exposed_columns(df.drop(columns=outcomes), ())
    undecided_ones = [name for name in exposed if name not in settled]
    if undecided_ones:
        show(
            f"{', '.join(undecided_ones)}: not safe to publish as is, and left out below; --keep "
            "publishes them, --id replaces identifiers by numbers"
        )
    command = request.command(model=list(models), drop=[*request.drop, ",".join(undecided_ones)])
    show(
        "\nWhat is declared is public and must not be read from these records: check it, change it "
        f"where it tells of one, and run\n\n{command}"
    )


# --- Columns by a mechanism that is named ---------------------------------------------------------


def _release_by_mechanism(request: Request) -> None:
    """Columns by another mechanism, or by a calibration."""
    request.refuse(
        ["types", "rows_per_unit", "reference"],
        "--mechanism with --formula takes neither types nor a reference; declare what the outcome "
        "can hold by --model, e.g. --model ordinal:levels=low+middle+high",
    )
    source = read_table(request.data, read=request.read)
    held = calibrated(
        "".join(request.mechanism[:1]), holds_no_released_record=request.holds_no_released_record
    )
    if held is not None:
        request.refuse(
            ["formula", "model", "epsilon", "delta", "unit"],
            "a calibration holds model, weights and cap",
        )
    mechanism = held or _mechanism_of(request, source.frame)
    ledger = open_ledger(
        request.ledger, mechanism.name, mechanism.relation, mechanism.delta_of_charge
    )
    decisions = request.decided(source.frame)
    source = source.read_as(mechanism.forms(source.frame))
    df = source.frame
    _check_columns(df, mechanism, decisions)
    if request.unit is None:
        _note_persons(df)
    lacks = None if held is None else held.why_local(held.bind(df))
    if lacks is not None:
        raise InvalidInput(f"a strict release lacks {lacks}")
    with progress_bars() as progress:
        release = _release_within(mechanism, df, request, progress)
    if held is not None and release.charge.kind != STRICT:
        raise SamplingError(
            "nothing is released: some chains ended in other modes, so that the charge would be "
            "local, not strict; give more draws (--fit draws=4000)"
        )
    save_and_show(
        release, source, decisions, request.out, overwrite=request.overwrite, ledger=ledger
    )


_TARGETS = {
    "lipschitz": "scale", "count": "scale", "scalar": "target_epsilon", "truncated": "epsilon",
    "censored": "epsilon", "perturbed_histogram": "epsilon", "noisy_marginals": "epsilon",
}  # fmt: skip
"""The setting that --epsilon determines, by mechanism."""


def _mechanism_of(request: Request, df: pd.DataFrame) -> Mechanism:
    """The mechanism of the formula, or a sequence of those of several."""
    if request.holds_no_released_record:
        raise InvalidInput(
            "--holds-no-released-record goes with --reference, or --mechanism "
            "censored:calibration=FOLDER"
        )
    if not request.formula:
        raise InvalidInput("--formula must be given, e.g. --formula 'visits ~ age + region'")
    asked = zip(
        request.formula, request.by_formula("model"), request.by_formula("mechanism"), strict=True
    )
    parts: list[tuple[Named, Any]] = []
    for formula, model, text in asked:
        wanted = _with_epsilon(named(text or CLIPPED), request)
        if wanted.name in MODEL_FREE and model is not None:
            raise InvalidInput(f"--mechanism {wanted.name} fits no model: give no --model")
        of_formula = formula if wanted.name in MODEL_FREE else None
        parts.append((wanted, of_formula or model_for(model, wanted.name, formula, df)))

    def built(delta: float | None) -> Mechanism:
        steps = [build_mechanism(*part, unit=request.unit, delta=delta) for part in parts]
        return steps[0] if len(steps) == 1 else SequentialSynthesis(steps)

    mechanism = built(request.delta)
    delta = mechanism.delta_of_charge
    if request.delta is None and request.ledger is None and delta and delta * len(df) >= 1:
        mechanism = built(default_delta(len(df)))
    return mechanism


def _with_epsilon(wanted: Named, request: Request) -> Named:
    """The mechanism with a first value of the setting that --epsilon determines."""
    name, settings = wanted
    if request.epsilon is None:
        return wanted
    if len(request.formula) > 1:
        raise InvalidInput(
            "--epsilon of mechanisms with chains is for one formula: how several columns share it "
            "is not known; give each its own settings"
        )
    target = _TARGETS.get(name)
    if target is None:
        raise InvalidInput(
            f"--epsilon must be for a mechanism with a setting that lowers epsilon: {name} has "
            f"none; take {', '.join(_TARGETS)}"
        )
    if target in settings:
        raise InvalidInput(f"--epsilon determines {target}: leave it out of --mechanism")
    return wanted if target == "scale" else Named(name, {**settings, target: request.epsilon})


def _release_within(
    mechanism: Any, df: pd.DataFrame, request: Request, progress: FitProgress
) -> Release:
    """A release, of at most --epsilon if that is given, from the fit that was found."""
    fit = {**request.fit, "progress": progress}
    target = request.epsilon
    drawn = fit.pop("n_draws_released", None)
    if target is None:
        given = mechanism
    else:
        given = mechanism.at_epsilon(target, drawn, request.n_synthetic)
    if target is None or given is not None:
        return given.release(  # type: ignore[no-any-return]
            df, n_synthetic=request.n_synthetic, n_draws_released=drawn, **fit
        )
    draws = drawn or request.n_synthetic
    refits = fit.pop("refits", REFITS)
    solution = meet_epsilon(
        mechanism, df, target_epsilon=target, n_draws_released=draws, refits=refits, **fit
    )
    note(f"--epsilon: {len(solution.tried)} settings tried")
    release = solution.mechanism.release_from(
        solution.session, n_synthetic=request.n_synthetic, n_draws_released=draws, refits=refits
    )
    if release.charge.epsilon > target:
        raise BudgetExceeded(
            f"a release must cost at most --epsilon {target:g}: refits without single "
            f"records raised it to {release.charge.epsilon:g}; give a smaller one"
        )
    return release


def _check_columns(df: pd.DataFrame, mechanism: Mechanism, decisions: Decisions) -> None:
    """Columns that need a decision are named, and refused without one, before any fit."""
    replaced = mechanism.synthesizes
    if not set(replaced) <= set(df.columns):
        return  # what is wrong is said when the model is bound
    exposed = {**exposed_columns(df, replaced), **mechanism.undecided}
    exposed = {name: reason for name, reason in exposed.items() if name in df.columns}
    check_decided(exposed, decisions, map(str, df.columns), replaced)
    for name, reason in exposed.items():
        if name in decisions.keep:
            note(f"--keep {name}: it is published unchanged, although {reason}")
