"""`pyhybrid compare`: several mechanisms on one data set, for the data owner's eyes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.options import build_mechanism, build_model, sampler_settings
from pyhybrid.cli.parameters import (
    AdaptDelta,
    Chains,
    Data,
    Draws,
    Engine,
    Formula,
    OneDraw,
    OnNotConverged,
    OptionalModel,
    Overwrite,
    Seed,
    Warmup,
    Workers,
)
from pyhybrid.cli.tables import read_table
from pyhybrid.core.checks import check_count, check_output_folder
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms import PseudoPosteriorMechanism
from pyhybrid.models import Model, default_name
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.running.files import write_folder
from pyhybrid.studies.comparing.comparison import DATA, NOT_COVERED, Comparison
from pyhybrid.studies.comparing.comparison import compare as compare_mechanisms

__all__ = ["DEFAULT_SET", "build_mechanisms", "compare"]

DEFAULT_SET = {
    "Unweighted": "unweighted",
    "LW": "lipschitz",
    "LW_final": "lipschitz:reweighting=true",
    "CW": "count",
    "CW_final": "count:reweighting=true",
}
"""The papers' candidates, under the papers' names [V25 sec. 2]."""


def compare(
    data: Data,
    formula: Formula,
    out: Annotated[Path, typer.Option(help="Folder for the comparison, new or empty; private.")],
    model: OptionalModel = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME or NAME:key=value,..., such as lipschitz:scale=0.7, count:reweighting=true; "
            "as often as there are candidates. \\[default: unweighted, lipschitz and count, and "
            "the last two re-weighted]"
        ),
    ] = None,
    n_synthetic: Annotated[int, typer.Option(help="m, the number of sets of each mechanism.")] = 20,
    one_draw: OneDraw = False,
    workers: Workers = 1,
    engine: Engine = "auto",
    seed: Seed = None,
    chains: Chains = None,
    warmup: Warmup = None,
    draws: Draws = None,
    adapt_delta: AdaptDelta = None,
    on_not_converged: OnNotConverged = "raise",
    overwrite: Overwrite = False,
) -> None:
    """Several mechanisms on one data set: bounds, epsilons, weights, estimates. Confidential."""
    candidates = build_mechanisms(mechanism or (), build_model(model, formula))
    check_output_folder(out, overwrite=overwrite)
    m = check_count(n_synthetic, "--n-synthetic")
    check_count(workers, "--workers")
    source = read_table(data)
    if model is None:
        named = build_model(default_name(formula, source.frame), formula)
        candidates = build_mechanisms(mechanism or (), named)
    with progress_bars() as progress:
        found = compare_mechanisms(
            candidates,
            source.frame,
            n_synthetic=m,
            n_draws_released=1 if one_draw else m,
            seed=seed,
            engine=engine,
            settings=sampler_settings(chains, warmup, draws, adapt_delta),
            on_not_converged=on_not_converged,
            progress=progress,
            workers=workers,
        )
    _save(found, out, overwrite)
    _show(found, out)


def build_mechanisms(texts: Sequence[str], model: Model) -> dict[str, PseudoPosteriorMechanism]:
    """Candidates by the text that names them; the papers' set if there is none.

    Raises
    ------
    InvalidInput
        For a text given twice, and as `pyhybrid.cli.options.build_mechanism`.
    """
    twice = [text for text in texts if list(texts).count(text) > 1]
    if twice:
        raise InvalidInput(f"each --mechanism must be given once: {twice[0]!r} is there twice")
    named = {text: text for text in texts} or DEFAULT_SET
    return {name: build_mechanism(text, model) for name, text in named.items()}


def _save(found: Comparison, out: Path, overwrite: bool) -> None:
    from pyhybrid.reports.comparison import comparison_report

    contents = {
        "table.csv": found.table.to_csv(index=False),
        "estimates.csv": found.estimates.to_csv(index=False),
        "report.html": comparison_report(found),
    }
    write_folder(out, contents, overwrite=overwrite)


def _show(found: Comparison, out: Path) -> None:
    show(_charges(found), _estimates(found))
    show(
        f"\n{found.fits_made} fits made, {found.fits_saved} saved by sharing them; re-weighting "
        f"saved {found.table['refits_saved'].sum()} refits by importance estimates",
        f"{out}/  CONFIDENTIAL, to keep: table.csv, estimates.csv, report.html",
        f"\n{NOT_COVERED}",
    )


def _charges(found: Comparison) -> Table:
    from pyhybrid.reports.comparison import charge_name, charges_title
    from pyhybrid.reports.numbers import number_text

    title = f"{charges_title(found)} (confidential)"
    table = _table(title, "bound", "epsilon", "efficiency", "effective\nsize", "refits", "saved")
    for _, row in found.table.iterrows():
        table.add_row(
            escape(charge_name(found, row["mechanism"])),
            number_text(row["lipschitz_bound"]),
            epsilon_text(float(row["epsilon"])),
            f"{row['efficiency']:.3f}",
            f"{row['effective_sample_size']:.1f}",
            str(row["refits"]),
            str(row["refits_saved"]),
        )
    return table


def _estimates(found: Comparison) -> Table:
    from pyhybrid.reports.comparison import in_lines, statistic_names
    from pyhybrid.reports.numbers import interval_text

    title = f"{escape(found.outcome)}: estimates and 95 % intervals (confidential)"
    names = statistic_names(found)
    table = _table(title, *map(escape, names.values()))
    cells = found.estimates.set_index(["source", "statistic"])
    for source in (DATA, *found.releases):
        rows = (cells.loc[(source, statistic)] for statistic in names)
        shown = [escape(interval_text(row, gap="\n")) for row in rows]
        table.add_row(escape(in_lines(source)), *shown)
    return table


def _table(title: str, *columns: str) -> Table:
    """A table whose first column is never cut."""
    table = Table(title=title, title_justify="left")
    table.add_column("", overflow="fold", min_width=8)
    for name in columns:
        table.add_column(name, justify="right")
    return table
