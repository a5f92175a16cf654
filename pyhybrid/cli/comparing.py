"""`pyhybrid compare` and `pyhybrid curve`: several candidates, for the data owner's eyes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import progress_bars, show, table_of
from pyhybrid.cli.options import (
    build_mechanism,
    build_model,
    check_once,
    default_model,
    options,
    sampler_settings,
)
from pyhybrid.cli.tables import read_table
from pyhybrid.core.checks import check_count, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms import PseudoPosteriorMechanism
from pyhybrid.models import Model
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.running.files import write_folder
from pyhybrid.studies.comparing import comparison as comparing
from pyhybrid.studies.comparing import curve as curves

DEFAULT_SET = {
    "Unweighted": "unweighted",
    "LW": "lipschitz",
    "LW_final": "lipschitz:reweighting=true",
    "CW": "count",
    "CW_final": "count:reweighting=true",
}
"""The papers' candidates, under the papers' names [V25 sec. 2]."""


@options
def compare(
    data: Path,
    formula: str,
    out: Path,
    model: str | None = None,
    mechanism: list[str] | None = None,
    n_synthetic: int = 20,
    one_draw: bool = False,
    engine: str = "auto",
    seed: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    adapt_delta: float | None = None,
    on_not_converged: str = "raise",
    overwrite: bool = False,
) -> None:
    """Compare mechanisms on one data set: bounds, epsilons, weights, estimates. Confidential.

    Options:
    out: Folder for the comparison, new or empty; private.
    mechanism: NAME or NAME:key=value,..., such as lipschitz:scale=0.7, count:reweighting=true; all
        candidates, with commas between or repeated. [default: unweighted, lipschitz and count, and
        the last two re-weighted]
    n_synthetic: m, the number of sets of each mechanism.
    """
    candidates = build_mechanisms(mechanism or (), build_model(model, formula))
    check_output_folder(out, overwrite=overwrite)
    m = check_count(n_synthetic, "--n-synthetic")
    source = read_table(data)
    if model is None:
        chosen = default_model(formula, source.frame)
        candidates = build_mechanisms(mechanism or (), chosen)
    with progress_bars() as progress:
        found = comparing.compare(
            candidates,
            source.frame,
            n_synthetic=m,
            n_draws_released=1 if one_draw else m,
            seed=seed,
            engine=engine,
            settings=sampler_settings(chains, warmup, draws, adapt_delta),
            on_not_converged=on_not_converged,
            progress=progress,
        )
    from pyhybrid.reports.comparison import comparison_report
    from pyhybrid.reports.opening import facts_of_table

    facts = [*facts_of_table(data.name, *source.frame.shape), formula]
    with progress_bars() as progress:
        progress("files and the report", 0, 0)
        page = comparison_report(found, facts)
    contents = {
        "table.csv": found.table.to_csv(index=False),
        "estimates.csv": found.estimates.to_csv(index=False),
        "report.html": page,
    }
    write_folder(out, contents, overwrite=overwrite)
    show(
        _charges(found),
        _estimates(found),
        f"\n{found.fits_made} fits made",
        f"{out}/  CONFIDENTIAL, to keep: table.csv, estimates.csv, report.html",
        f"\n{comparing.NOT_COVERED}",
    )


def build_mechanisms(texts: Sequence[str], model: Model) -> dict[str, PseudoPosteriorMechanism]:
    """Candidates by the text that names them, several with commas between, none of them twice; the
    papers' set if there is none."""
    texts = [name for text in texts for name in re.split(r",(?=\w+(?:[:,]|$))", text)]
    check_once(texts, "--mechanism")
    named = {text: text for text in texts} or DEFAULT_SET
    return {name: build_mechanism(text, model) for name, text in named.items()}


def _charges(found: comparing.Comparison) -> Table:
    from pyhybrid.reports.comparison import charge_name, charges_title, in_lines
    from pyhybrid.reports.page import number_text

    header = ("", "epsilon", "counted by", "draws", "bound", "efficiency", "effective\nsize")
    rows = (
        [
            escape(in_lines(charge_name(found, row["mechanism"]))),
            epsilon_text(float(row["epsilon"])),
            str(row["accounting"]),
            str(found.releases[row["mechanism"]].charge.n_draws_released),
            number_text(row["lipschitz_bound"]),
            f"{row['efficiency']:.3f}",
            f"{row['effective_sample_size']:.0f}",
        ]
        for _, row in found.table.iterrows()
    )
    named = [f"{name}: {DEFAULT_SET[name]}" for name in found.releases if name in DEFAULT_SET]
    if named:
        named.append("reweighting raises weights that leave slack below the bound")
    title = f"{charges_title(found)} (confidential)"
    return table_of(title, header, rows, caption="; ".join(named) or None)


def _estimates(found: comparing.Comparison) -> Table:
    from pyhybrid.reports.comparison import in_lines, statistic_names
    from pyhybrid.reports.page import interval_text

    names = statistic_names(found)
    cells = found.estimates.set_index(["source", "statistic"])
    rows = (
        [in_lines(source), *(interval_text(cells.loc[(source, n)], gap="\n") for n in names)]
        for source in (comparing.DATA, *found.releases)
    )
    title = f"{escape(found.outcome)}: estimates and 95 % intervals (confidential)"
    return table_of(title, ["", *map(escape, names.values())], (map(escape, row) for row in rows))


@options
def curve(
    data: Path,
    formula: str,
    out: Path,
    scales: str = "1,0.8,0.6,0.4",
    shifts: str = "0",
    model: str | None = None,
    n_synthetic: int = 20,
    engine: str = "auto",
    seed: int | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    adapt_delta: float | None = None,
    on_not_converged: str = "raise",
    overwrite: bool = False,
) -> None:
    """Draw the risk-utility curve of (scale, shift) and of scalar weights. Confidential.

    Options:
    out: Folder for the curve, new or empty; private.
    scales: Values of c, separated by commas.
    shifts: Values of g, separated by commas; all pairs are fitted.
    n_synthetic: m, the number of sets at each point.
    """
    chosen = build_model(model, formula)
    grid = _numbers(scales, "--scales"), _numbers(shifts, "--shifts")
    check_output_folder(out, overwrite=overwrite)
    m = check_count(n_synthetic, "--n-synthetic")
    source = read_table(data)
    if model is None:
        chosen = default_model(formula, source.frame)
    chosen.bind(source.frame)  # bad data leave no file behind
    with progress_bars() as progress:
        found = curves.risk_utility_curve(
            chosen,
            source.frame,
            scales=grid[0],
            shifts=grid[1],
            n_synthetic=m,
            seed=seed,
            engine=engine,
            settings=sampler_settings(chains, warmup, draws, adapt_delta),
            on_not_converged=on_not_converged,
            progress=progress,
        )
    from pyhybrid.reports.comparison import curve_report
    from pyhybrid.reports.figures import figure_png, plot_curve
    from pyhybrid.reports.opening import facts_of_table

    facts = [*facts_of_table(data.name, *source.frame.shape), formula]
    with progress_bars() as progress:
        progress("files and the report", 0, 0)
        contents: dict[str, str | bytes] = {
            "table.csv": found.table.to_csv(index=False),
            "curve.png": figure_png(plot_curve(found.table)),
            "report.html": curve_report(found, facts),
        }
    write_folder(out, contents, overwrite=overwrite)
    show(
        _curve_table(found),
        f"\n{(len(found.table) - 1) // 2} points, {found.n_synthetic} sets each",
        f"{out}/  CONFIDENTIAL, to keep: table.csv, curve.png, report.html",
        f"\n{curves.NOT_COVERED}",
    )


def _numbers(text: str, option: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"{option} must be numbers with commas between: found {text!r}"
        ) from None


def _curve_table(found: curves.RiskUtilityCurve) -> Table:
    from pyhybrid.reports.comparison import EPSILON_OF_CURVE
    from pyhybrid.reports.figures import MEASURES
    from pyhybrid.reports.page import number_text

    rows = (
        [
            str(row["mechanism"]),
            "" if row["mechanism"] == "Unweighted" else f"{row['scale']:g}, {row['shift']:g}",
            epsilon_text(float(row["epsilon"])),
            *(number_text(row[name]) for name in MEASURES),
        ]
        for _, row in found.table.iterrows()
    )
    header = "", "scale, shift", "epsilon", "max-ECDF", "avg-ECDF", "mean", "90th"
    last = (
        "LW: Lipschitz weights; SW: one scalar weight for all records. The last two columns: "
        "absolute errors of mean and 90th percentile."
    )
    caption = f"{EPSILON_OF_CURVE} {last}"
    title = f"{escape(found.outcome)}: risk and utility (confidential)"
    return table_of(title, header, rows, caption=caption, simple=True)
