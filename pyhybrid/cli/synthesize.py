"""`pyhybrid synthesize`: a release from a file into a folder.

Three ways: a whole table by noisy marginals (no --formula), columns by clipped scores (--formula),
and columns by another mechanism (--mechanism). For clipped scores what is public must be declared:
without --model the command shows what a column seems to hold, the command that declares it, and how
wide intervals will be.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pandas as pd
import typer

from pyhybrid.cli import options as opt
from pyhybrid.cli.console import note, progress_bars, show
from pyhybrid.cli.in_parts import release_source, source_of
from pyhybrid.cli.options import CLIPPED, Named, named, names_of, read_table
from pyhybrid.cli.released import open_ledger, save_and_show
from pyhybrid.core.checks import check_count, check_output_folder, check_positive, number_of
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.fitting.disclosive_columns import exposed_columns, repeated_identifiers
from pyhybrid.mechanisms import MODEL_FREE, Calibration, Censored, ClippedScores
from pyhybrid.mechanisms.mechanism import Mechanism, check_unit_of_noise
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.types_files import read_after, read_types
from pyhybrid.models.default_model import suggest_model
from pyhybrid.models.formula.terms import parse_formula, sides_of
from pyhybrid.privacy.conversions import STRICT, epsilon_of_mu, mu_of_epsilon
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.ledger import Ledger
from pyhybrid.tables.after import derived_of
from pyhybrid.tables.describe import no_records, seen_kind, to_mend, undecided, write_draft
from pyhybrid.tables.formats import format_of
from pyhybrid.tables.read import SourceTable
from pyhybrid.tables.synthesis import check_persons, kinds_of, synthesize_table

_UNSAID: tuple[Any, ...] = (None, [], {}, False)


def synthesize(
    data: Path,
    *,
    out: Path,
    formula: list[str] | None = None,
    model: list[str] | None = None,
    mechanism: list[str] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    unit: str | None = None,
    types: Path | None = None,
    reference: Path | None = None,
    holds_no_released_record: bool = False,
    ledger: Path | None = None,
    n_synthetic: int = 1,
    fit: str | None = None,
    drop: list[str] | None = None,
    keep: list[str] | None = None,
    id: list[str] | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Route the request to one of the three ways, which saves the release and shows it."""
    given = {**locals(), "fit": opt.fit_options(fit, {"refits": int, "n_draws_released": int})}
    repeated = ("formula", "model", "mechanism", "drop", "keep", "id", "read")
    request = Request(**{**given, **{name: given[name] or [] for name in repeated}})
    column, mark, rows = (unit or "").rpartition(":rows=")  # a name may hold a colon
    request.unit = column if mark else unit
    request.rows_per_unit = opt.converted(rows, int, "rows of --unit") if mark else None
    if epsilon is not None:
        check_positive(epsilon, "--epsilon")
    check_count(n_synthetic, "--n-synthetic")
    check_output_folder(out, overwrite=overwrite)
    table = source_of(data)
    if table is not None:
        release_source(request, table)
        return
    format_of(data)
    names = {named(text, opt.MECHANISM_NAMES).name for text in request.mechanism}
    if not request.formula and not request.model and names <= {"noisy_marginals"}:
        _release_table(request)
    elif request.formula and names <= {CLIPPED}:
        _release_by_scores(request)
    else:
        _release_by_mechanism(request)


class Request(SimpleNamespace):
    """The options of `synthesize`, by their names."""

    def refuse(self, names: Collection[str], why: str) -> None:
        """Refuse options that are of no use here."""
        given = {name: getattr(self, name) for name in names}
        options = [_flag(name) for name, value in given.items() if value not in _UNSAID]
        if options:
            raise InvalidInput(f"{why}: leave out {', '.join(options)}")

    def steps(self) -> list[tuple[str, str, str | None, str | None]]:
        """Each formula with its outcome, its model and its mechanism."""
        n, columns = len(self.formula), [self.formula, [sides_of(f)[0] for f in self.formula]]
        for name in ("model", "mechanism"):
            texts = getattr(self, name)
            if len(texts) not in (0, 1, n):
                raise InvalidInput(
                    f"--{name} must be given once, or once per --formula: found {len(texts)} for "
                    f"{number_of(n, 'formula')}"
                )
            columns.append(texts if len(texts) == n else [texts[0] if texts else None] * n)
        return [*zip(*columns, strict=True)]

    def forms(self) -> dict[str, Form]:
        """Of each outcome whose model is declared."""
        models = {name: named(model).settings for _, name, model, _ in self.steps() if model}
        return {name: Form(levels=opt.converted(given.get("levels"), tuple, "levels"))
                for name, given in models.items()}  # fmt: skip

    def decided(self, columns: Iterable[Any]) -> Decisions:
        """Decisions on columns, by their names."""
        given = (self.drop, self.keep, self.id)
        return Decisions.of(*(names_of(names, columns) for names in given))

    def read_reference(self, declared: Mapping[str, Form] | None = None) -> SourceTable | None:
        """The reference, of which it must be said that it holds no released record."""
        if self.reference is None:
            return None
        if not self.holds_no_released_record:
            raise InvalidInput(
                "a strict release needs you to confirm, if it is true, that the reference holds "
                "none of the records to be released: --holds-no-released-record"
            )
        return read_table(self.reference, read=self.read, declared=declared)

    def delta_for(self, n: int) -> float | None:
        """Delta as given, as the ledger that is charged has it, or the default for n records: 1e-6,
        below 1 / 10 n in any case."""
        if self.delta is not None:
            return self.delta or None
        default = float(10.0 ** -max(6, 1 + math.ceil(math.log10(max(n, 1)))))
        return default if self.ledger is None else Ledger(self.ledger).delta


def _words(**added: Sequence[object]) -> str:
    """Options that are added to the command."""
    words = [[_flag(name), str(value)] for name, values in added.items() for value in values]
    return shlex.join(word for pair in words for word in pair)


def _listed(names: Iterable[str]) -> list[str]:
    """Names as an option takes them: with commas between, but for those that have one."""
    plain = ",".join(name for name in names if "," not in name)
    return [*filter(None, [plain]), *(name for name in names if "," in name)]


def _flag(name: str) -> str:
    return "rows= of --unit" if name == "rows_per_unit" else f"--{name.replace('_', '-')}"


# --- A whole table --------------------------------------------------------------------------------


def _release_table(request: Request) -> None:
    """A whole table by noisy marginals."""
    request.refuse(["fit"], "a whole table comes from noisy marginals, without chains")
    if request.epsilon is None:
        raise InvalidInput(
            "--epsilon must be given for a whole table, e.g. --epsilon 4; or --formula for one "
            "column, e.g. --formula 'visits ~ age + region'"
        )
    check_unit_of_noise(request.unit, request.rows_per_unit)
    settings: dict[str, Any] = named("".join(request.mechanism[:1])).settings
    unknown = settings.keys() - {"select", "relation"}
    if unknown:
        raise InvalidInput(
            f"noisy_marginals of a whole table takes select and relation: found {min(unknown)}"
        )
    types = {} if request.types is None else read_types(request.types)
    after = [] if request.types is None else read_after(request.types)
    cells, frame = kinds_of(types), None
    like = request.read_reference(cells)
    if like is not None:  # a column without a kind is refused where it is asked for
        seen = {
            str(k): seen_kind(column, like.codes.get(str(k))) for k, column in like.frame.items()
        }
        cells = {**{name: kind for name, kind in seen.items() if kind is not None}, **cells}
        frame = like.read_as(cells).frame
    source = read_table(request.data, unsaid=types, read=request.read, declared=cells)
    delta = request.delta_for(len(source.frame))
    relation = settings.get("relation", "remove")
    ledger = open_ledger(request.ledger, relation, delta, request.epsilon)
    source = source.read_as(cells)
    decided = _decided_of_table(request, source, frame, {*types, *derived_of(after)})
    with progress_bars() as progress:
        progress("noisy counts and their model", 0, 0)
        release = synthesize_table(
            source.frame, epsilon=request.epsilon, delta=delta, unit=request.unit,
            rows_per_unit=request.rows_per_unit, types=types, reference=frame,
            id=next(iter(decided.ids), None), drop=decided.drop, keep=decided.keep, after=after,
            holds_no_released_record=request.holds_no_released_record,
            n_synthetic=request.n_synthetic, progress=progress, **settings,
        )  # fmt: skip
    save_and_show(request, release, source, release.decisions, ledger)


def _decided_of_table(
    request: Request, source: SourceTable, like: pd.DataFrame | None, types: Collection[str]
) -> Decisions:
    """Decisions on columns that are not synthesized; columns that need one and have none are
    refused, and without types or a reference a draft of types is written."""
    df = source.frame
    decided, columns = request.decided(df), [str(name) for name in df.columns]
    if len(decided.ids) > 1:
        raise InvalidInput(f"--id must name one column: found {', '.join(decided.ids)}")
    if request.unit is None:
        _note_persons(df.drop(columns=[*types], errors="ignore"), ":rows=ROWS")
    else:
        note(
            f"rows are drawn independently: what rows of one {request.unit} have in common is lost"
        )
    settled = {*decided.drop, *decided.keep, *decided.ids, *types, request.unit}
    left = df[[name for name in df.columns if name not in settled]]
    if like is None and not types:
        check_decided({}, decided, columns, ())
        _draft_types(request, left, source)
    both = [] if like is None else [name for name in left if name in like]
    risky = undecided(left.drop(columns=both))
    if like is not None:  # not for a record to refuse
        risky |= undecided(like[both])
    check_decided(risky, decided, columns, ())
    return decided


def _draft_types(request: Request, left: pd.DataFrame, source: SourceTable) -> NoReturn:
    """Write a draft of types of the columns that are `left` and not risky, and say what to do."""
    risky = undecided(left)
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
    if why := no_records(source.frame):
        note(why)
    write_draft(path, left.drop(columns=[*risky]), source.codes, source.zeros)
    again = _words(types=[path], drop=_listed(risky))
    raise InvalidInput(
        f"nothing was released yet. {path} was written: a draft of what each column can hold, as "
        "seen in the data. A strict release must not take that from the data: confirm or change "
        "it by what is public (what fewer than 10 records have is marked), set "
        '"confirmed": true, and list in "after" what must hold in each row (pyhybrid describe '
        f"names it). Then run this again with {again}"
    )


# --- Columns by clipped scores --------------------------------------------------------------------


def _release_by_scores(request: Request) -> None:
    """One or several formulas by clipped scores; typer.Exit with code 2 after a draft of models."""
    request.refuse(
        ["fit", "types", "rows_per_unit"],
        "a formula without --mechanism is released by clipped scores, without chains",
    )
    outcomes = [outcome for _, outcome, *_ in request.steps()]
    reference = request.read_reference()
    source = read_table(request.data, outcomes, request.read, request.forms())
    df, like = source.frame, None if reference is None else reference.frame
    for name in outcomes:
        if list(df.columns).count(name) != 1:
            known = ", ".join(map(str, df.columns[:20]))
            raise InvalidInput(
                f"outcome {name!r} must be a column of the data, once: found {known}"
            )
    models = _models(request, df if like is None else like)
    declared, public = bool(request.model) or like is not None, df.drop(columns=outcomes)
    steps = _steps(request, models, len(df))
    if like is not None:
        check_persons(df, like, request.unit)
        steps = [step.from_reference(like) for step in steps]
    decisions = request.decided(df)
    if declared:
        left = public.drop(columns=[*decisions.drop, *decisions.ids], errors="ignore")
        check_decided(exposed_columns(left, ()), decisions, map(str, df.columns), outcomes)
    if request.unit is None:
        _note_persons(public)
    for step in steps:  # those whose predictors are all public
        if not {*parse_formula(step.model.formula, df).predictors} & {*outcomes}:
            widths = step.predicted_widths(df)["width"]
            note(
                f"{step.outcome}: at epsilon {step.epsilon:.3g} intervals will be "
                f"{widths.median():.1f} times as wide as without privacy, at most "
                f"{widths.max():.1f} times"
            )
    if not declared:  # nothing is released: what columns tell of outcomes may be looked at, too
        _show_draft(request, models, df)
        raise typer.Exit(2)
    mechanism: Any = steps[0] if len(steps) == 1 else SequentialSynthesis(steps)
    ledger = open_ledger(request.ledger, steps[0].relation, steps[0].delta)
    with progress_bars() as progress:
        release = mechanism.release(df, n_synthetic=request.n_synthetic, progress=progress)
    save_and_show(request, release, source, decisions, ledger)


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
    for _, name, model, _ in request.steps():
        if model is None:
            opt.refuse_text(name, df)
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
    asked = zip(request.steps(), models, strict=True)
    return [
        opt.build_mechanism(
            Named(CLIPPED, {"epsilon": epsilon, **named(text or "").settings}),
            opt.build_model(model, formula), delta=delta, unit=request.unit,
        )
        for (formula, _, _, text), model in asked
    ]  # fmt: skip


def _show_draft(request: Request, models: Sequence[str], df: pd.DataFrame) -> None:
    """What the outcomes seem to hold, and the command that declares it, with columns that need a
    decision left out, not predictors if others will do."""
    decided = request.decided(df)
    settled = {*decided.drop, *decided.keep, *decided.ids, request.unit}
    outcomes = []
    for (formula, outcome, *_), model in zip(request.steps(), models, strict=True):
        holds = suggest_model(df[outcome]).holds
        show(f"{outcome} seems to hold {holds}: --model {shlex.quote(model)}")
        settled |= {*parse_formula(formula, df).predictors}
        outcomes.append(outcome)
    names = sorted(map(str, df), key=lambda name: name not in settled)
    left_out = [name for name in exposed_columns(df[names], outcomes) if name not in settled]
    if why := no_records(df):
        note(why)
    if left_out:
        show(
            f"{', '.join(left_out)}: not safe to publish as is, and left out below; --keep "
            "publishes them, --id replaces identifiers by numbers"
        )
    show(
        "\nWhat is declared is public and must not be read from these records: check it, change it "
        "where it tells of one, and run this again with\n\n"
        f"{_words(model=models, drop=_listed(left_out))}"
    )


# --- Columns by a mechanism that is named ---------------------------------------------------------


def _release_by_mechanism(request: Request) -> None:
    """Columns by another mechanism, or by a calibration."""
    request.refuse(
        ["types", "rows_per_unit", "reference"],
        "--mechanism with --formula takes neither types nor a reference; declare what the outcome "
        "can hold by --model, e.g. --model ordinal:levels=low+middle+high",
    )
    request.refuse(["epsilon"], "a mechanism has an epsilon of its own, e.g. censored:epsilon=1")
    source = read_table(request.data, read=request.read, declared=request.forms())
    held = _calibrated(request)
    mechanism: Any = held or _mechanism_of(request, source.frame)
    ledger = open_ledger(request.ledger, mechanism.relation, mechanism.delta_of_charge)
    decisions = request.decided(source.frame)
    source = source.read_as(mechanism.forms(source.frame))
    df, replaced = source.frame, mechanism.synthesizes
    if {*replaced} <= {*df.columns}:  # else binding the model says what is wrong
        known, of = (df, replaced) if held is None else (df.drop(columns=[*replaced]), ())
        reasons = {**exposed_columns(known, of), **mechanism.undecided}
        exposed = {name: reason for name, reason in reasons.items() if name in df.columns}
        check_decided(exposed, decisions, map(str, df.columns), replaced)
    if request.unit is None:
        _note_persons(df.drop(columns=[*replaced], errors="ignore"))
    lacks = None if held is None else held.why_local(held.bind(df))
    if lacks is not None:
        raise InvalidInput(f"a strict release lacks {lacks}")
    with progress_bars() as progress:
        release = mechanism.release(
            df, n_synthetic=request.n_synthetic, progress=progress, **request.fit
        )
    if held is not None and release.charge.kind != STRICT:
        raise SamplingError(
            "nothing is released: some chains ended in other modes, so that the charge would be "
            "local, not strict; give more draws (--fit draws=4000)"
        )
    save_and_show(request, release, source, decisions, ledger)


def _calibrated(request: Request) -> Censored | None:
    """The mechanism of ``censored:calibration=FOLDER``; None for any other text."""
    name, given = named("".join(request.mechanism[:1]))
    if name != "censored" or "calibration" not in given:
        return None
    folder, what = given.pop("calibration"), "a calibration holds model, weights and cap"
    if given:
        raise InvalidInput(f"{what}: give no {min(given)}")
    held = Calibration.load(folder)
    if request.holds_no_released_record:
        held = replace(held, holds_no_released_record=True)
    request.refuse(["formula", "model", "delta", "unit"], what)
    return Censored(calibration=held, relation=held.relation)


def _mechanism_of(request: Request, df: pd.DataFrame) -> Mechanism:
    """The mechanism of the formula, or a sequence of those of several."""
    if request.holds_no_released_record:
        raise InvalidInput(
            "--holds-no-released-record goes with --reference, or --mechanism "
            "censored:calibration=FOLDER"
        )
    if not request.formula:
        raise InvalidInput("--formula must be given, e.g. --formula 'visits ~ age + region'")
    steps = []
    for formula, _, model, text in request.steps():
        wanted, over = named(text or CLIPPED), cast(Any, formula)
        if wanted.name not in MODEL_FREE:
            over = opt.model_for(model, formula, df, mechanism=wanted.name)
        elif model is not None:
            raise InvalidInput(f"--mechanism {wanted.name} fits no model: give no --model")
        steps.append(opt.build_mechanism(wanted, over, unit=request.unit, delta=request.delta))
    return steps[0] if len(steps) == 1 else SequentialSynthesis(steps)
