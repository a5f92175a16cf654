"""`pyhybrid calibrate`: freeze a reference for strict censored releases."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from pyhybrid.checks import check_output_folder
from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.tables import read_table
from pyhybrid.mechanisms import Censored
from pyhybrid.mechanisms.calibration import Calibration, calibrate
from pyhybrid.models import Model
from pyhybrid.models.base import BoundModel

__all__ = ["calibrate_from_file", "calibrated_mechanism", "drift_table"]


def calibrate_from_file(
    data: Path,
    model: Model,
    *,
    epsilon: float,
    relation: str,
    scale: float | None,
    shift: float | None,
    n_draws: int,
    center: bool | None,
    region: float,
    public: bool,
    seed: int | None,
    engine: str,
    out: Path,
    overwrite: bool,
) -> None:
    """Fit the reference records of a file and write the calibration's folder."""
    check_output_folder(out, overwrite=overwrite)
    source = read_table(data)
    with progress_bars() as progress:
        made = calibrate(
            model,
            source.frame,
            epsilon=epsilon,
            relation=relation,
            scale=scale,
            shift=shift,
            n_draws=n_draws,
            center=center,
            region=region,
            public=public,
            seed=seed,
            engine=engine,
            progress=progress,
        )
    made.save(out, overwrite=overwrite)
    how = "without a center"
    if made.center is not None:
        exact = made.center.excess is not None
        how = f"centered, releases sampled {'exactly' if exact else 'by chains'}"
    show(
        f"calibration of {len(source.frame)} reference records: cap {made.cap:g} nats, {how}, "
        f"{made.draws.n_draws} draws, {made.censored:.1%} of the reference meet the cap",
        f"{out}/ is confidential: it holds draws and extremes of the reference",
    )


def calibrated_mechanism(folder: Path, model: Model | None = None) -> Censored:
    """The censored mechanism of a calibration on disk; see `Calibration.load`."""
    made = Calibration.load(folder, model=model)
    return Censored(calibration=made, relation=made.relation)


def drift_table(calibration: Calibration, bound: BoundModel) -> Table:
    """How the new records differ from the reference (confidential)."""
    drift = calibration.drift(bound)
    table = Table(title="Drift from the reference (confidential)", title_justify="left")
    table.add_column("")
    table.add_column("share", justify="right")
    table.add_row("records outside the reference's range", f"{drift.share_outside:.2%}")
    table.add_row("records that meet the cap, reference", f"{drift.censored_then:.2%}")
    table.add_row("records that meet the cap, new data", f"{drift.censored_now:.2%}")
    return table
