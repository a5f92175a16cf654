"""`pyhybrid calibrate`: freeze a reference for strict censored releases."""

from __future__ import annotations

from pathlib import Path

from pyhybrid.cli import options as opt
from pyhybrid.cli.console import note, progress_bars, show
from pyhybrid.core.checks import check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.censored import calibration
from pyhybrid.models.columns.form import forms_of


def calibrate(
    data: Path,
    *,
    formula: str,
    epsilon: float,
    out: Path,
    model: str | None = None,
    relation: str = "remove",
    scale: float | None = None,
    shift: float | None = None,
    center: bool | None = None,
    public: bool = False,
    holds_no_released_record: bool = False,
    fit: str | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Freeze weights, cap and center, and save them."""
    check_output_folder(out, overwrite=overwrite)
    how, source = opt.fit_options(fit), opt.read_table(data, read=read)
    chosen = opt.model_for(model, formula, source.frame, of_reference=True)
    reference = source.read_as(forms_of(chosen, source.frame)).frame
    bound = chosen.bind(reference)
    if not (bound.decimals_given or bound.data_dependent):  # of which calibrate speaks
        raise InvalidInput("a strict release needs declared decimals: --model NAME:decimals=0")
    with progress_bars() as progress:
        frozen = calibration.calibrate(
            chosen, reference, epsilon=epsilon, relation=relation, scale=scale, shift=shift,
            center=center, public=public,
            holds_no_released_record=holds_no_released_record, progress=progress, **how,
        )  # fmt: skip
    frozen.save(out, overwrite=overwrite)
    where = "without a center"
    if frozen.center is not None:
        where = f"centered, releases sampled {'exactly' if frozen.center.sd else 'by chains'}"
    show(
        f"calibration of {len(reference)} reference records: cap {frozen.cap:g} nats, {where}, "
        f"{frozen.draws.n_draws} draws, {frozen.censored:.1%} of the reference meet the cap",
        f"{out}/ is confidential: it holds draws and extremes of the reference",
    )
    if not holds_no_released_record:
        note(
            "no release from it is strict until you say, if it is true, that the reference holds "
            "none of the records to be released: --holds-no-released-record, here or of "
            "pyhybrid synthesize"
        )
