"""Columns by formula, strictly: clipped scores, the default of `pyhybrid synthesize --formula`.

What is public must be declared. Without --model the command shows what a column seems to hold and
the whole command that declares it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import typer

from pyhybrid.cli.console import note, progress_bars, show
from pyhybrid.cli.ledger import open_ledger
from pyhybrid.cli.options import build_model, named, names_of, others_given, values_of
from pyhybrid.cli.tables import SourceTable, read_table, text_among_numbers
from pyhybrid.core.checks import check_choice, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import exposed_columns, repeated_identifiers
from pyhybrid.mechanisms.clipped_scores import ClippedScores
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models.formula.terms import parse_formula, sides_of
from pyhybrid.models.suggest import SuggestedModel, suggest_model
from pyhybrid.privacy.conversions import RELATIONS, epsilon_of_mu, mu_of_epsilon
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.tables.domains import default_delta

NAMES = ("clipped-scores", "clipped_scores")
_TAKEN = (
    "data", "out", "formula", "model", "mechanism", "epsilon", "delta", "relation", "unit",
    "reference", "holds_no_released_record", "n_synthetic", "drop", "keep", "identifier", "ledger",
    "allow_unlike", "file_format", "overwrite", "dry_run", "strict",
)  # fmt: skip
_WIDE = 1.5  # times: coordinates that are named


def takes_scores(given: Mapping[str, Any]) -> bool:
    """True if formulas are to be released by clipped scores: asked for, or nothing else is."""
    asked = given["mechanism"] or []
    if not asked:
        return given["calibration"] is None and not given["local"]
    return all(named(text)[0] in NAMES for text in asked)


def release_strictly(
    context: typer.Context, fitting: Mapping[str, Any]
) -> tuple[Release, SourceTable, Decisions, Ledger | None]:
    """The release of one or several formulas by clipped scores, and what saving it needs.

    Raises
    ------
    typer.Exit
        With code 2 after a draft of --model, with 0 after a dry run.
    """
    given: Mapping[str, Any] = context.params
    others = others_given(context, _TAKEN)
    if others:
        raise InvalidInput(
            "a formula without --mechanism is released by clipped scores, without chains: leave "
            f"out {', '.join(others)}, or give --mechanism, e.g. --mechanism lipschitz"
        )
    formulas = given["formula"] or []
    if not formulas:
        raise InvalidInput("--formula must be given, e.g. --formula 'visits ~ age + region'")
    relation = check_choice(given["relation"] or "remove", "relation", RELATIONS)
    check_output_folder(given["out"], overwrite=given["overwrite"])
    outcomes = [sides_of(formula)[0] for formula in formulas]
    source = read_table(given["data"], unsaid=outcomes)
    df, like = source.frame, None
    if given["reference"] is not None:
        like = read_table(given["reference"]).frame
        if not given["holds_no_released_record"]:
            raise InvalidInput(
                "a strict release needs you to confirm, if it is true, that the reference holds "
                "none of the records to be released: --holds-no-released-record"
            )
    _check_names(df, outcomes)
    models = _models(context, df if like is None else like, of_reference=like is not None)
    decisions = Decisions.of(*(names_of(given[k], df) for k in ("drop", "keep", "identifier")))
    steps = _steps(given, formulas, models, relation, len(df))
    if like is not None:
        steps = [step.from_reference(like) for step in steps]
    _check_published(df, steps, outcomes, decisions)
    if given["unit"] is None:
        for name in repeated_identifiers(df.drop(columns=outcomes)):
            note(
                f"{name} looks like an identifier of persons, with several rows each: epsilon "
                f"protects one row. --unit {shlex.quote(name)} protects persons"
            )
    for step in steps:  # those whose predictors are all public
        if not {*parse_formula(step.model.formula, df).predictors} & {*outcomes}:
            _show_widths(step, df)
    if given["dry_run"]:
        raise typer.Exit(0)
    mechanism: Any = steps[0] if len(steps) == 1 else SequentialSynthesis(steps)
    book = open_ledger(given, mechanism.name, relation, steps[0].delta, None)
    with progress_bars() as progress:
        release = mechanism.release(df, n_synthetic=fitting["n_synthetic"], progress=progress)
    return release, source, decisions, book


def _steps(
    given: Mapping[str, Any],
    formulas: Sequence[str],
    models: Sequence[str],
    relation: str,
    n: int,
) -> list[ClippedScores]:
    """A mechanism for each formula; several share mu alike."""
    settings = [_settings(given, place) for place in range(len(formulas))]
    delta = given["delta"] or (
        Ledger(given["ledger"]).delta if given["ledger"] is not None else default_delta(n)
    )
    if delta is None:
        raise InvalidInput(
            "clipped scores are counted at a delta, and the ledger has none: make one with "
            "pyhybrid ledger create --delta 1e-6"
        )
    whole = 1.0 if given["epsilon"] is None else given["epsilon"]
    share = epsilon_of_mu(mu_of_epsilon(whole, delta) / math.sqrt(len(formulas)), delta)
    return [
        _declared(
            build_model(model, formula), relation=relation, delta=delta, unit=given["unit"],
            **{"epsilon": whole if len(formulas) == 1 else share, **own},
        )
        for model, formula, own in zip(models, formulas, settings, strict=True)
    ]  # fmt: skip


def _declared(model: Any, **settings: Any) -> ClippedScores:
    """The mechanism; what must be declared is named as --model takes it."""
    try:
        return ClippedScores(model, **settings)
    except InvalidInput as error:
        if "must be declared" not in str(error):
            raise
        how = "levels=A+B" if "levels" in str(error) else "decimals=0"
        raise InvalidInput(f"{error}; here --model NAME:{how}") from None


def _check_names(df: pd.DataFrame, outcomes: Sequence[str]) -> None:
    for name in outcomes:
        if list(df.columns).count(name) != 1:
            known = ", ".join(str(column) for column in df.columns[:20])
            raise InvalidInput(
                f"outcome {name!r} must be a column of the data, once: found {known}"
            )


def _settings(given: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Settings of ``--mechanism clipped-scores:weights=w`` for one of several formulas."""
    texts = given["mechanism"] or []
    if not texts:
        return {}
    own = named(texts[place if len(texts) > 1 else 0])[1]
    return values_of("--mechanism clipped-scores", ClippedScores, own, {"model", "start"})


def _models(context: typer.Context, df: pd.DataFrame, *, of_reference: bool) -> list[str]:
    """The models declared, or those that a reference seems to ask for; without either the draft is
    shown, and nothing is released."""
    given, formulas = context.params, context.params["formula"]
    models: list[str] = list(given["model"] or [])
    if models:
        if len(models) not in (1, len(formulas)):
            raise InvalidInput("--model must be given once, or once per --formula")
        return models * (len(formulas) if len(models) == 1 else 1)
    for formula in formulas:
        outcome = sides_of(formula)[0]
        if text_among_numbers(df[outcome]):
            raise InvalidInput(
                f"outcome {outcome!r} must be numbers: some cells are text; mend these, or declare "
                "--model: such cells then count as absent, or are levels of a categorical"
            )
    drafts = [suggest_model(df[sides_of(formula)[0]]) for formula in formulas]
    if of_reference:
        for formula, draft in zip(formulas, drafts, strict=True):
            note(f"model of {sides_of(formula)[0]} by the reference: {draft}")
        return [str(draft) for draft in drafts]
    for formula, draft in zip(formulas, drafts, strict=True):
        show(
            f"{sides_of(formula)[0]} seems to hold {draft.holds}: --model {shlex.quote(str(draft))}"
        )
    undecided = _undecided(given, formulas, df)
    if undecided:
        show(
            f"{', '.join(undecided)}: not safe to publish as is, and left out below; --keep "
            "publishes them, --id replaces identifiers by numbers"
        )
    show(
        "\nWhat is declared is public and must not be read from these records: check it, change it "
        f"where it tells of one, and run\n\n{_whole_command(given, drafts, undecided)}"
    )
    raise typer.Exit(2)


def _undecided(given: Mapping[str, Any], formulas: Sequence[str], df: pd.DataFrame) -> list[str]:
    """Columns beside those of the formulas that must not be published without a decision."""
    outcomes = [sides_of(formula)[0] for formula in formulas]
    read = {name for formula in formulas for name in parse_formula(formula, df).predictors}
    decided = {name for k in ("drop", "keep", "identifier") for name in names_of(given[k], df)}
    exposed = exposed_columns(df.drop(columns=outcomes), ())
    return [str(name) for name in exposed if name not in {*read, *decided, given["unit"]}]


def _whole_command(
    given: Mapping[str, Any], drafts: Sequence[SuggestedModel], undecided: Sequence[str]
) -> str:
    """The command as it was given, with the models that it lacks and columns left out."""
    words = ["pyhybrid", "synthesize", str(given["data"])]
    for formula, draft in zip(given["formula"], drafts, strict=True):
        words += ["--formula", formula, "--model", str(draft)]
    for name in ("epsilon", "delta", "relation", "unit", "ledger"):
        if given[name] is not None:
            words += [f"--{name}", str(given[name])]
    if given["n_synthetic"] != 1:
        words += ["--n-synthetic", str(given["n_synthetic"])]
    for name, option in (("drop", "--drop"), ("keep", "--keep"), ("identifier", "--id")):
        for text in given[name] or ():
            words += [option, text]
    if undecided:
        words += ["--drop", ",".join(undecided)]
    return shlex.join([*words, "--out", str(given["out"])])


def _check_published(
    df: pd.DataFrame, steps: Sequence[ClippedScores], outcomes: Sequence[str], decisions: Decisions
) -> None:
    """Predictors must be published as they are; other columns need their decisions. Nothing of the
    outcomes is looked at."""
    public = df.drop(columns=list(outcomes))
    hidden = {*decisions.drop, *decisions.ids}
    for step in steps:
        read = parse_formula(step.model.formula, df).predictors
        for name in (*read, *(c for names in step.reads().values() for c in names)):
            if name in hidden and name != step.unit:
                raise InvalidInput(
                    f"{name!r} is read by the formula and must be published as it is: synthetic "
                    "values are drawn given it, which no epsilon covers; leave it out of the "
                    "formula, or publish it"
                )
    exposed = exposed_columns(public, ())
    check_decided(exposed, decisions, [str(name) for name in df.columns], list(outcomes))


def _show_widths(step: ClippedScores, df: pd.DataFrame) -> None:
    """How much wider intervals will be, known before anything is spent."""
    widths = step.predicted_widths(df)
    typical = float(widths["width"].median())
    named_ones = [
        f"{name} {width:.1f} times"
        for name, width in zip(widths["coordinate"], widths["width"].to_numpy(float), strict=True)
        if width > _WIDE * typical
    ]
    more = f"; {', '.join(named_ones[:5])}" if named_ones else ""
    note(
        f"{step.outcome}: at epsilon {step.epsilon:.3g} intervals will be {typical:.1f} times as "
        f"wide as without privacy{more}"
    )
