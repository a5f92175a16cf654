"""`pyhybrid synthesize` and `pyhybrid demo`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.checks import FloatArray, check_choice, check_count, check_output_folder
from pyhybrid.cli.calibrate import drift_table
from pyhybrid.cli.console import (
    level_table,
    note,
    progress_bars,
    release_table,
    show,
    steps_table,
    summary_table,
)
from pyhybrid.cli.tables import SourceTable, read_table
from pyhybrid.engines import SamplerSettings
from pyhybrid.errors import BudgetExceeded, InvalidInput
from pyhybrid.fitting.exposed import exposed_columns
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms import (
    LipschitzWeighted,
    PerturbedHistogram,
    PseudoPosteriorMechanism,
    Unweighted,
)
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models import Model, NegativeBinomial
from pyhybrid.privacy.epsilon import STRICT, epsilon_text
from pyhybrid.releases.decisions import Decisions, check_decided
from pyhybrid.releases.folder import FORMATS
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.record import ReleaseRecord
from pyhybrid.releases.release import Release

__all__ = ["demo", "synthesize"]

_USUAL_SAMPLING = {"engine": "auto", "settings": SamplerSettings(), "on_not_converged": "raise"}


def synthesize(
    data: Path,
    mechanism: PseudoPosteriorMechanism | PerturbedHistogram | SequentialSynthesis,
    *,
    out: Path,
    n_synthetic: int,
    one_draw: bool,
    leave_one_out: int,
    seed: int | None,
    engine: str,
    settings: SamplerSettings,
    on_not_converged: str,
    overwrite: bool,
    file_format: str | None,
    decisions: Decisions,
    ledger: Path | None = None,
    allow_unlike: bool = False,
) -> None:
    """Release synthetic data from a file into a folder; nothing is written on any error."""
    check_output_folder(out, overwrite=overwrite)
    m = check_count(n_synthetic, "--n-synthetic")
    if file_format is not None:
        check_choice(file_format, "--format", FORMATS)
    if allow_unlike and isinstance(mechanism, SequentialSynthesis):
        mechanism = replace(mechanism, allow_unlike=True)
    elif allow_unlike and ledger is None:
        raise InvalidInput("--allow-unlike goes with --ledger, or with several formulas")
    refits = _check_refits(leave_one_out, mechanism)
    book = _open_ledger(ledger, mechanism, allow_unlike=allow_unlike)
    source = read_table(data)
    form = file_format or source.file_format
    _check_columns(source.frame, mechanism, decisions)
    sampling = {"engine": engine, "settings": settings, "on_not_converged": on_not_converged}
    draws = 1 if one_draw else m
    if isinstance(mechanism, PerturbedHistogram):
        if sampling != _USUAL_SAMPLING:
            raise InvalidInput(
                f"{mechanism.name} fits no model: give no --engine, --chains, --warmup, --draws, "
                "--adapt-delta or --on-not-converged"
            )
        # --one-draw is its default, and its only way on the command line.
        release = mechanism.release(source.frame, n_synthetic=m, seed=seed)
        _save(release, None, source, out, overwrite, form, book, decisions)
        _show(source.frame, {release.charge.mechanism: release}, out)
        return
    with progress_bars() as progress:
        options: dict[str, Any] = {**sampling, "seed": seed, "progress": progress}
        baseline, session = None, None
        if isinstance(mechanism, SequentialSynthesis):
            release = mechanism.release(
                source.frame, n_synthetic=m, n_draws_released=draws, **options
            )
        else:
            session = open_session(mechanism.model.bind(source.frame), **options)
            release = mechanism.release_from(
                session, n_synthetic=m, n_draws_released=draws, leave_one_out=refits
            )
            baseline = _baseline(session, mechanism.model, release)
    _save(release, baseline, source, out, overwrite, form, book, decisions)
    if session is None:
        _show(source.frame, _by_column(release), out)
        return
    _show(source.frame, {release.charge.mechanism: release}, out)
    if release.reweighted is not None:
        show(steps_table(release.reweighted))
    calibration = getattr(mechanism, "calibration", None)
    if calibration is not None:
        show(drift_table(calibration, session.bound))


def _check_refits(
    k: int, mechanism: PseudoPosteriorMechanism | PerturbedHistogram | SequentialSynthesis
) -> int:
    """K of --leave-one-out, refused where no single model is fitted."""
    k = check_count(k, "--leave-one-out", at_least=0)
    if k and isinstance(mechanism, (PerturbedHistogram, SequentialSynthesis)):
        raise InvalidInput(
            "--leave-one-out refits one model: leave it out with several formulas, and with "
            "perturbed_histogram, which fits none"
        )
    return k


def demo(*, out: Path, engine: str, seed: int | None, overwrite: bool) -> None:
    """Outpatient visits of the RAND Health Insurance Experiment, Unweighted beside LW."""
    check_output_folder(out, overwrite=overwrite)
    visits = _rand_visits()
    model = NegativeBinomial("mdvis ~ 1")
    show(
        f"RAND Health Insurance Experiment: {len(visits)} person-years; 'mdvis', the number of "
        "outpatient visits, is sensitive and is synthesized by a negative binomial model.",
        "5,908 persons are in it for up to 5 years each, and the file does not say whose row is "
        "whose: the unit of privacy is a person-year, and a person of k years pays k times the "
        "epsilon. With a column that names persons, unit= (--unit) makes epsilon theirs.\n",
    )
    with progress_bars() as progress:
        session = open_session(model.bind(visits), seed=seed, engine=engine, progress=progress)
        releases = {
            mechanism.name: mechanism.release_from(session, n_synthetic=3, n_draws_released=3)
            for mechanism in (Unweighted(model), LipschitzWeighted(model))
        }
    release = releases["LipschitzWeighted"]
    source = SourceTable(frame=visits, text=None, file_format="csv")
    _save(release, releases["Unweighted"], source, out, overwrite, "csv")
    _show(visits, releases, out)


def _check_columns(
    table: pd.DataFrame,
    mechanism: PseudoPosteriorMechanism | PerturbedHistogram | SequentialSynthesis,
    decisions: Decisions,
) -> None:
    """Columns that need a decision are named, and refused without one, before any fit."""
    own = mechanism.synthesizes
    if not set(own) <= set(table.columns):
        return  # what is wrong is said when the model is bound
    exposed = exposed_columns(table, own)
    check_decided(exposed, decisions, [str(name) for name in table.columns], own)
    for name, reason in exposed.items():
        if name in decisions.keep:
            note(f"--keep {name}: it is published as it is, although {reason}")


def _baseline(session: FitSession, model: Model, release: Release) -> Release | None:
    """The unweighted release beside the one made, where its fit was needed anyway."""
    if release.charge.mechanism == "Unweighted" or session.n_fits < 2:
        return None
    charge = release.charge  # as many sets and draws, so that the epsilons can be compared
    return Unweighted(model).release_from(
        session, n_synthetic=charge.n_synthetic, n_draws_released=charge.n_draws_released
    )


def _open_ledger(
    path: Path | None,
    mechanism: PseudoPosteriorMechanism | PerturbedHistogram | SequentialSynthesis,
    *,
    allow_unlike: bool,
) -> Ledger | None:
    """The ledger, checked before any work is done for a release that it would refuse."""
    if path is None:
        return None
    ledger = Ledger(path, allow_unlike=allow_unlike)
    if ledger.left == 0:
        raise BudgetExceeded(
            f"ledger {path} must have budget left: all of {epsilon_text(ledger.budget)} is spent"
        )
    step = mechanism.mechanisms[0] if isinstance(mechanism, SequentialSynthesis) else mechanism
    relation = getattr(step, "relation", "replace")  # a perturbed histogram's
    if relation != ledger.relation and not allow_unlike:
        raise InvalidInput(
            f"charges in ledger {path} must be for {ledger.relation} one record: {step.name} would "
            f"be for {relation}; give --relation {ledger.relation}, or --allow-unlike"
        )
    asked = step.describe() if isinstance(step, PseudoPosteriorMechanism) else {}
    counted = asked.get("accounting") == "gaussian" and ledger.kind != STRICT
    if counted and asked["delta"] != ledger.delta:
        raise InvalidInput(
            f"charges in ledger {path} must be counted at its delta, {ledger.delta or 'none'}: "
            f"found {asked['delta']:g}; give --delta, or --accounting range"
        )
    return ledger


def _rand_visits() -> pd.DataFrame:
    from statsmodels.datasets import randhie

    frame: pd.DataFrame = randhie.load_pandas().data
    return frame


def _save(
    release: Release,
    baseline: Release | None,
    source: SourceTable,
    out: Path,
    overwrite: bool,
    file_format: str,
    ledger: Ledger | None = None,
    decisions: Decisions | None = None,
) -> None:
    from pyhybrid.reports.release import release_report

    reports = {"report.html": release_report(release, source.frame, baseline=baseline)}
    for place, part in enumerate(release.parts, start=1):
        step = _shown(release, part)
        reports[f"report_step_{place}.html"] = release_report(step, source.frame)
    said = decisions or Decisions()
    source.restore(release).save(
        out,
        drop=said.drop,
        keep=said.keep,
        ids=said.ids,
        overwrite=overwrite,
        file_format=file_format,
        attachments=reports,
        ledger=ledger,
    )


def _show(data: pd.DataFrame, releases: Mapping[str, Release], out: Path) -> None:
    last = list(releases.values())[-1]
    show(release_table(releases))
    for column in last.synthesized:
        sets = {
            name: [table[column] for table in release.synthetic]
            for name, release in releases.items()
            if column in release.synthesized and not release.parts
        }
        if pd.api.types.is_numeric_dtype(data[column].dtype):
            numbers = {name: [_floats(own) for own in each] for name, each in sets.items()}
            show(summary_table(column, _floats(data[column]), numbers))
        else:
            show(level_table(column, data[column], sets))
    show(
        f"\n{out}/public/        to give away: synthetic data and privacy_statement.md",
        f"{out}/confidential/  to keep: weights, bounds, seed and report.html",
        f"\n{_first_paragraph(last.statement)}",
    )


def _by_column(release: Release) -> dict[str, Release]:
    """The steps of a sequence, and the whole."""
    steps = {", ".join(part.synthesized): _shown(release, part) for part in release.parts}
    return {**steps, "all columns": release}


def _shown(release: Release, part: ReleaseRecord) -> Release:
    """A step beside the tables of the whole, for the owner to look at. It has no seal: it can
    neither be saved nor entered in a ledger."""
    own = {field.name: getattr(part, field.name) for field in fields(ReleaseRecord)}
    return Release(**own, synthetic=release.synthetic)


def _floats(column: pd.Series) -> FloatArray:
    return np.asarray(column, dtype=np.float64)


def _first_paragraph(statement: str) -> str:
    return statement.split("\n\n")[1].replace("**", "")
