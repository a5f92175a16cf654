"""`pyhybrid calibrate`: freeze a reference for strict censored releases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyhybrid.cli.console import note, progress_bars, show
from pyhybrid.cli.options import build_model
from pyhybrid.cli.parameters import Engine, HoldsNoReleasedRecord, ModelInShort, Overwrite, Seed
from pyhybrid.cli.tables import read_table
from pyhybrid.core.checks import check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.mechanisms.censored.calibration import calibrate as frozen
from pyhybrid.mechanisms.censored.private_calibration import calibrate_privately
from pyhybrid.models import default_name
from pyhybrid.privacy.conversions import epsilon_text

__all__ = ["calibrate"]


def calibrate(
    data: Annotated[Path, typer.Argument(help="Reference records, .csv or .parquet.")],
    formula: Annotated[str, typer.Option(help="As in R, e.g. 'salary ~ gender'.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon of one released draw; sets the cap.")],
    out: Annotated[Path, typer.Option(help="Folder for the calibration, new or empty; private.")],
    model: ModelInShort = "beta",
    relation: Annotated[
        str, typer.Option(help="Neighbors: remove or replace a record.")
    ] = "remove",
    scale: Annotated[float | None, typer.Option(help="c: scale of the weights.")] = None,
    shift: Annotated[float | None, typer.Option(help="g: shift of the weights.")] = None,
    n_draws: Annotated[int, typer.Option(help="Number of reference draws to keep.")] = 1000,
    center: Annotated[
        bool | None,
        typer.Option(
            help="Clip how far a term moves from the reference; --no-center clips its size."
        ),
    ] = None,
    region: Annotated[
        float,
        typer.Option(
            help="Half-width of the region about the center, in the reference's deviations."
        ),
    ] = 10.0,
    public: Annotated[
        bool, typer.Option("--public", help="The reference is public: the statement shows it.")
    ] = False,
    holds_no_released_record: HoldsNoReleasedRecord = False,
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="DATA are the records to be released: buy the center from them. --epsilon is then "
            "that of the center and one released draw together.",
        ),
    ] = False,
    public_predictors: Annotated[
        bool,
        typer.Option(
            "--public-predictors", help="With --private: the predictors of the records are public."
        ),
    ] = False,
    histogram: Annotated[
        tuple[float, float, int] | None,
        typer.Option(help="With --private, no predictors: public ends and number of bins."),
    ] = None,
    engine: Engine = "auto",
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """Freeze weights and cap on reference records, for strict releases of new ones."""
    check_output_folder(out, overwrite=overwrite)
    source = read_table(data)
    if private:
        if (scale, shift, center, public or holds_no_released_record) != (None, None, None, False):
            raise InvalidInput(
                "--private takes no --scale, --shift, --center, --public or "
                "--holds-no-released-record"
            )
        with progress_bars() as progress:
            bought = calibrate_privately(
                build_model(model or default_name(formula, source.frame), formula),
                source.frame,
                epsilon=epsilon,
                relation=relation,
                predictors="public" if public_predictors else None,
                histogram=histogram,
                region=region,
                seed=seed,
                engine=engine,
                progress=progress,
            )
        _save_bought(bought, epsilon, out, overwrite)
        return
    if public_predictors or histogram is not None:
        raise InvalidInput("--public-predictors and --histogram go with --private")
    with progress_bars() as progress:
        made = frozen(
            build_model(model or default_name(formula, source.frame), formula),
            source.frame,
            epsilon=epsilon,
            relation=relation,
            scale=scale,
            shift=shift,
            n_draws=n_draws,
            center=center,
            region=region,
            public=public,
            holds_no_released_record=holds_no_released_record,
            seed=seed,
            engine=engine,
            progress=progress,
        )
    made.save(out, overwrite=overwrite)
    how = "without a center"
    if made.center is not None:
        how = f"centered, releases sampled {'exactly' if made.center.sd else 'by chains'}"
    show(
        f"calibration of {len(source.frame)} reference records: cap {made.cap:g} nats, {how}, "
        f"{made.draws.n_draws} draws, {made.censored:.1%} of the reference meet the cap",
        f"{out}/ is confidential: it holds draws and extremes of the reference",
    )
    if not holds_no_released_record:
        note(
            "no release from it is strict until you say, if it is true, that the reference holds "
            "none of the records to be released: --holds-no-released-record, here or of "
            "pyhybrid synthesize"
        )


def _save_bought(made: Calibration, epsilon: float, out: Path, overwrite: bool) -> None:
    """Write a private calibration and say what it cost."""
    assert made.bought is not None
    made.save(out, overwrite=overwrite)
    show(
        f"center bought at epsilon {epsilon_text(made.bought.epsilon)} of {epsilon_text(epsilon)} "
        f"({made.bought.kind}): cap {made.cap:g} nats",
        f"{out}/ is confidential; each release from it states all of epsilon",
    )
