"""`pyhybrid compare` and `pyhybrid curve`: several candidates, for the data owner's eyes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyhybrid.cli import options as opt
from pyhybrid.cli.console import frame_table, note, progress_bars, show
from pyhybrid.cli.options import CLIPPED, Named, build_mechanism, model_for, read_table
from pyhybrid.core.checks import check_count, check_output_folder, check_positive
from pyhybrid.models import Model
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.running.files import write_folder
from pyhybrid.studies.comparing import comparison as comparing
from pyhybrid.studies.comparing import curve as curves

DEFAULT_SET = {
    "Unweighted": "unweighted", "LW": "lipschitz", "LW_final": "lipschitz:reweighting=true",
    "CW": "count", "CW_final": "count:reweighting=true",
}  # fmt: skip
"""The papers' candidates, under the papers' names [V25 sec. 2]."""


def compare(
    data: Path,
    *,
    formula: str,
    out: Path,
    model: str | None = None,
    mechanism: list[str] | None = None,
    epsilon: float = 1.0,
    n_synthetic: int = 20,
    fit: str | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Fit every candidate to one table, and write tables and figures."""
    check_output_folder(out, overwrite=overwrite)
    check_count(n_synthetic, "--n-synthetic")
    how = opt.fit_options(fit, {"n_draws_released": int})
    df = read_table(data, read=read).frame
    chosen = model_for(model, formula, df)
    candidates = build_mechanisms(mechanism or (), chosen)
    if not mechanism:
        default = Named(CLIPPED, {"epsilon": check_positive(epsilon, "--epsilon")})
        candidates = {CLIPPED: build_mechanism(default, chosen), **candidates}
    with progress_bars() as progress:
        result = comparing.compare(
            candidates, df, n_synthetic=n_synthetic, progress=progress,
            **{"n_draws_released": n_synthetic, **how},
        )  # fmt: skip
    for name, why in result.refused.items():
        note(f"{name} is left out: {why}")
    for name, release in result.releases.items():
        if not release.charge.converged:
            note(f"{name} has NOT CONVERGED: its epsilon may be too small")
    from pyhybrid.reports.figures import figure_png, plot_bounds, plot_intervals

    kept = {name: r.confidential for name, r in result.releases.items() if r.fit is not None}
    contents: dict[str, str | bytes] = {
        "table.csv": result.table.to_csv(index=False),
        "estimates.csv": result.estimates.to_csv(index=False),
        "estimates.png": figure_png(plot_intervals(result.estimates, reference=comparing.DATA)),
    }
    if kept:
        overall = {name: own.lipschitz_bound for name, own in kept.items()}
        by_record = {name: own.lipschitz for name, own in kept.items()}
        contents["bounds.png"] = figure_png(plot_bounds(by_record, overall=overall))
    shown = result.table.assign(epsilon=result.table["epsilon"].map(epsilon_text))
    shown = shown[["mechanism", "epsilon", "accounting", "epsilon_published", "lipschitz_bound",
                   "efficiency"]].rename(columns={"epsilon_published": "2 Delta"})  # fmt: skip
    table = frame_table(f"{n_synthetic} synthetic sets each (confidential)", shown)
    estimates = frame_table(f"{result.outcome}: estimates (confidential)", result.estimates)
    write_folder(out, contents, overwrite=overwrite)
    show(table, estimates, _KEEP.format(out, ", ".join(contents), comparing.NOT_COVERED))


_KEEP = "{}/  CONFIDENTIAL, to keep: {}\n\n{}"


def build_mechanisms(texts: Sequence[str], model: Model) -> dict[str, Any]:
    """Candidates by the text that names them, each once; the papers' set if there is none."""
    opt.check_once(texts, "--mechanism")
    chosen = {text: text for text in texts} or DEFAULT_SET
    return {
        name: build_mechanism(opt.named(text, opt.OVER_A_MODEL), model)
        for name, text in chosen.items()
    }


def curve(
    data: Path,
    *,
    formula: str,
    out: Path,
    scales: str = "1,0.8,0.6,0.4",
    shifts: str = "0",
    model: str | None = None,
    n_synthetic: int = 20,
    fit: str | None = None,
    read: list[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Fit every pair of (scale, shift), and write a table and a figure."""
    grid = [[opt.converted(part, float, name) for part in text.split(",")]
            for name, text in (("--scales", scales), ("--shifts", shifts))]  # fmt: skip
    check_output_folder(out, overwrite=overwrite)
    check_count(n_synthetic, "--n-synthetic")
    how, df = opt.fit_options(fit), read_table(data, read=read).frame
    chosen = model_for(model, formula, df)
    with progress_bars() as progress:
        result = curves.risk_utility_curve(
            chosen, df, scales=grid[0], shifts=grid[1], n_synthetic=n_synthetic,
            progress=progress, **how,
        )  # fmt: skip
    from pyhybrid.cli.app import help_texts
    from pyhybrid.reports.figures import MEASURES, figure_png, plot_curve

    contents: dict[str, str | bytes] = {
        "table.csv": result.table.to_csv(index=False),
        "curve.png": figure_png(plot_curve(result.table)),
    }
    shown = result.table.assign(epsilon=result.table["epsilon"].map(epsilon_text))
    shown = shown[["mechanism", "scale", "shift", "epsilon", *MEASURES]]
    title = f"{result.outcome}: risk and utility (confidential)"
    write_folder(out, contents, overwrite=overwrite)
    kept = _KEEP.format(out, ", ".join(contents), curves.NOT_COVERED)
    show(frame_table(title, shown, caption=help_texts("curve")["epsilon"]), kept)
    unconverged = int((~result.table["converged"]).sum())
    if unconverged:
        note(f"{unconverged} fits have NOT CONVERGED: their epsilons may be too small")
