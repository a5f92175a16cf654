"""`pyhybrid calibrate`: freeze a reference for strict censored releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from pyhybrid.cli.console import note, progress_bars, show
from pyhybrid.cli.options import build_model, default_model, options, sampler_settings
from pyhybrid.cli.tables import SourceTable, read_table
from pyhybrid.core.checks import check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.censored import calibration
from pyhybrid.models import Model
from pyhybrid.models.columns.form import forms_of


@options
def calibrate(
    data: Path,
    formula: str,
    epsilon: float,
    out: Path,
    model: str | None = None,
    relation: str = "remove",
    scale: float | None = None,
    shift: float | None = None,
    n_draws: int = 1000,
    center: bool | None = None,
    region: float = 10.0,
    public: bool = False,
    holds_no_released_record: bool = False,
    engine: str = "auto",
    seed: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    adapt_delta: float | None = None,
    on_not_converged: str = "raise",
    overwrite: bool = False,
) -> None:
    """Freeze weights and cap on reference records, for strict releases of new ones.

    Options:
    data (argument): Reference records, .csv or .parquet.
    formula: As in R, e.g. 'salary ~ gender'.
    epsilon: Epsilon of one released draw; sets the cap.
    out: Folder for the calibration, new or empty; private.
    model: As in `pyhybrid synthesize`: NAME or NAME:key=value,... [default: by the reference's
        column]
    scale: c: scale of the weights.
    shift: g: shift of the weights.
    n_draws: Number of reference draws to keep.
    center: Clip how far a term moves from the reference; --no-center clips its size.
    region: Half-width of the region about the center, in the reference's deviations.
    public: The reference is public: the statement shows it.
    """
    check_output_folder(out, overwrite=overwrite)
    source = read_table(data)
    chosen, frame = _model_of(model, formula, source)
    given: dict[str, Any] = {"epsilon": epsilon, "relation": relation, "region": region,
                             "settings": sampler_settings(chains, warmup, draws, adapt_delta),
                             "on_not_converged": on_not_converged,
                             "seed": seed, "engine": engine}  # fmt: skip
    with progress_bars() as progress:
        made = calibration.calibrate(
            chosen,
            frame,
            scale=scale,
            shift=shift,
            n_draws=n_draws,
            center=center,
            public=public,
            holds_no_released_record=holds_no_released_record,
            progress=progress,
            **given,
        )
    made.save(out, overwrite=overwrite)
    _show_made(made, len(frame), out)
    if not holds_no_released_record:
        note(
            "no release from it is strict until you say, if it is true, that the reference holds "
            "none of the records to be released: --holds-no-released-record, here or of "
            "pyhybrid synthesize"
        )


def _show_made(made: calibration.Calibration, n: int, out: Path) -> None:
    how = "without a center"
    if made.center is not None:
        how = f"centered, releases sampled {'exactly' if made.center.sd else 'by chains'}"
    show(
        f"calibration of {n} reference records: cap {made.cap:g} nats, {how}, "
        f"{made.draws.n_draws} draws, {made.censored:.1%} of the reference meet the cap",
        f"{out}/ is confidential: it holds draws and extremes of the reference",
    )


def _model_of(named: str | None, formula: str, source: SourceTable) -> tuple[Model, pd.DataFrame]:
    """The model named, or chosen by the reference; and the records, read in its form."""
    if named is None:
        chosen = default_model(formula, source.frame, of_reference=True)
    else:
        chosen = build_model(named, formula)
    frame = source.read_as(forms_of(chosen, source.frame)).frame
    if named is not None:
        _check_declared(chosen, frame, named)
    return chosen, frame


def _check_declared(model: Model, reference: pd.DataFrame, named: str) -> None:
    """A calibration is for strict releases, whose decimals and levels no record may tell."""
    bound = model.bind(reference)
    if any(each.startswith("levels of") for each in bound.data_dependent):
        raise InvalidInput(
            "a calibration is for strict releases, and these need the levels of what is released, "
            f"declared: give levels=a+b+c in --model {named}, or no --model, which then has those "
            "of the reference"
        )
    if not (bound.decimals_given or bound.data_dependent):  # of which calibrate speaks
        joint = "," if ":" in named else ":"
        raise InvalidInput(
            "a calibration is for strict releases, and these need the decimals of what is "
            f"released, declared: give --model {named}{joint}decimals={bound.decimals or 0}, or "
            "the number that is right"
        )
