"""Columns by formula, strictly: clipped scores, the default of `pyhybrid synthesize --formula`.

What is public must be declared. Without --model the command shows what a column seems to hold, the
command that declares it, and how wide intervals will be.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any

import pandas as pd
import typer

from pyhybrid.cli.console import note, progress_bars, show
from pyhybrid.cli.ledger import open_ledger
from pyhybrid.cli.options import build_model, named, names_of, read_table, values_of
from pyhybrid.cli.request import Prepared, Request
from pyhybrid.core.checks import check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import exposed_columns, repeated_identifiers
from pyhybrid.mechanisms.clipped_scores import ClippedScores
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models.default_model import suggest_model
from pyhybrid.models.formula.terms import parse_formula, sides_of
from pyhybrid.privacy.conversions import epsilon_of_mu, mu_of_epsilon
from pyhybrid.releases.column_decisions import check_decided
from pyhybrid.releases.ledger import Ledger
from pyhybrid.tables.domains import default_delta
from pyhybrid.tables.read import text_among_numbers

NAMES = {"clipped-scores", "clipped_scores"}
_WIDE = 1.5  # times: coordinates that are named


def release_by_scores(request: Request) -> Prepared:
    """The release of one or several formulas by clipped scores.

    Raises
    ------
    typer.Exit
        With code 2 after a draft of --model.
    """
    request.refuse(
        ["fit", "types", "rows_per_unit"],
        "a formula without --mechanism is released by clipped scores, without chains",
    )
    request.check_confirmed()
    check_output_folder(request.out, overwrite=request.overwrite)
    outcomes = [sides_of(formula)[0] for formula in request.formula]
    source = read_table(request.data, unsaid=outcomes)
    df = source.frame
    like = None if request.reference is None else read_table(request.reference).frame
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
        steps = [step.from_reference(like) for step in steps]
    decisions = request.decided(df)
    if declared:
        _check_predictors(df, steps, {*decisions.drop, *decisions.ids})
        check_decided(exposed_columns(public, ()), decisions, map(str, df.columns), outcomes)
    if request.unit is None:
        note_persons(public)
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
    return Prepared(release=release, source=source, decisions=decisions, ledger=ledger)


def note_persons(df: pd.DataFrame, more: str = "") -> None:
    """Name the columns by which a person may have several rows, and what protects persons; with
    the `more` that --unit needs."""
    for name in repeated_identifiers(df):
        note(
            f"{name} looks like an identifier of persons, with several rows each: epsilon protects "
            f"one row, not all rows of a person. --unit {shlex.quote(name)}{more} protects persons"
        )


def _models(request: Request, df: pd.DataFrame) -> list[str]:
    """The models declared, or those that the outcomes seem to ask for."""
    models = [request.of_formula("model", k) for k in range(len(request.formula))]
    drafts = []
    for formula, model in zip(request.formula, models, strict=True):
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
    delta = request.delta or (
        default_delta(n) if request.ledger is None else Ledger(request.ledger).delta
    )
    if delta is None:
        raise InvalidInput(
            "clipped scores are counted at a delta, and the ledger has none: make one with "
            "pyhybrid ledger create --delta 1e-6"
        )
    epsilon, several = request.epsilon or 1.0, len(models)
    if several > 1:
        epsilon = epsilon_of_mu(mu_of_epsilon(epsilon, delta) / math.sqrt(several), delta)
    steps = []
    for k, (formula, model) in enumerate(zip(request.formula, models, strict=True)):
        given = named(request.of_formula("mechanism", k) or "")[1]
        taken = {"model", "start", "unit", "delta"}  # of options of their own
        settings = values_of("--mechanism clipped-scores", ClippedScores, given, taken)
        settings = {"epsilon": epsilon, "delta": delta, "unit": request.unit, **settings}
        steps.append(_declared(build_model(model, formula), settings))
    return steps


def _declared(model: Any, settings: dict[str, Any]) -> ClippedScores:
    """The mechanism; what must be declared is named as --model takes it."""
    try:
        return ClippedScores(model, **settings)
    except InvalidInput as error:
        if "must be declared" not in str(error):
            raise
        how = "levels=A+B" if "levels" in str(error) else "decimals=0"
        raise InvalidInput(f"{error}; here --model NAME:{how}") from None


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
    widths = step.predicted_widths(df)
    typical = float(widths["width"].median())
    wide = [
        f"{name} {width:.1f} times"
        for name, width in zip(widths["coordinate"], widths["width"].to_numpy(float), strict=True)
        if width > _WIDE * typical
    ]
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
    roles = (request.drop, request.keep, request.id)
    decided = {name for names in roles for name in names_of(names, df)}
    exposed = exposed_columns(df.drop(columns=outcomes), ())
    open_ones = [name for name in exposed if name not in {*read, *decided, request.unit}]
    if open_ones:
        show(
            f"{', '.join(open_ones)}: not safe to publish as is, and left out below; --keep "
            "publishes them, --id replaces identifiers by numbers"
        )
    command = request.command(model=models, drop=[*request.drop, ",".join(open_ones)])
    show(
        "\nWhat is declared is public and must not be read from these records: check it, change it "
        f"where it tells of one, and run\n\n{command}"
    )
