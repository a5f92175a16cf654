"""`pyhybrid doctor`: what is installed, what is missing, and whether an engine can fit."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.core.errors import PyhybridError
from pyhybrid.engines import AUTOMATIC, ENGINES, Engine, SamplerSettings, engine_by_name
from pyhybrid.models import Poisson
from pyhybrid.rbridge import r_status

__all__ = ["Finding", "doctor", "examine_engine"]

_PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "formulaic",
    "stanli",
    "cmdstanpy",
    "arviz",
    "rpy2",
    "opendp",
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """State of one component (works, found, fails, missing): its version, or cause and remedy."""

    name: str
    state: str
    version: str = ""
    cause: str = ""
    remedy: str = ""


def doctor(
    every_engine: Annotated[
        bool, typer.Option("--all", help="Also try rstan, which compiles for about a minute.")
    ] = False,
) -> int:
    """Which engines can run here, what is missing, and how to install it."""
    engines = []
    with progress_bars() as progress:
        for name in ENGINES:
            if progress is not None:
                progress(f"trying {name}", 0, 1)
            try_it = every_engine or name in AUTOMATIC
            engines.append(examine_engine(engine_by_name(name), fit=try_it))
            if progress is not None:
                progress(f"trying {name}", 1, 1)
    parts = {
        "Engines": engines,
        "R": [_r()],
        "Packages": [_package(name) for name in ("pyhybrid", *_PACKAGES)],
    }
    show(_table(parts))
    show(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    _show_repairs([finding for findings in parts.values() for finding in findings])
    able = [finding.name for finding in engines if finding.state == "works"]
    automatic = [name for name in able if name in AUTOMATIC]
    if able:
        show(f"engine='auto' uses: {automatic[0]}" if automatic else f"can fit: {able[0]}")
        return 0
    show("No engine can fit.")
    return 1


def examine_engine(engine: Engine, *, fit: bool = True) -> Finding:
    """Ask an engine for its state and, if it says it can run, let it fit a small model."""
    status = engine.status()
    if not status.available:
        return Finding(name=engine.name, state="missing", cause=status.cause, remedy=status.remedy)
    if not fit:
        return Finding(
            name=engine.name,
            state="found",
            version=f"{status.version}, not tried (--all tries it)",
        )
    bound = Poisson("y ~ 1").bind(pd.DataFrame({"y": [0, 1, 1, 2, 3, 1]}))
    try:
        draws = engine.sample(
            bound.program,
            bound.stan_data(np.ones(bound.n)),
            seed=1,
            settings=SamplerSettings(chains=2, warmup=200, draws=100),
        )
    except PyhybridError as error:
        cause = f"{status.version} is there but fails: {error}"
        return Finding(name=engine.name, state="fails", cause=cause, remedy=status.remedy)
    seconds = draws.provenance.seconds
    version = f"{status.version}, small fit in {seconds:.2f} s"
    return Finding(name=engine.name, state="works", version=version)


def _r() -> Finding:
    found = r_status()
    version = f"R {found.r_version}, rstan {found.rstan_version or 'missing'}"
    if found.available:
        return Finding(name="R through rpy2", state="works", version=version)
    return Finding(name="R through rpy2", state="missing", cause=found.cause, remedy=found.remedy)


def _package(name: str) -> Finding:
    try:
        return Finding(name=name, state="works", version=metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(
            name=name, state="missing", cause="not installed", remedy=f"pip install {name}"
        )


def _table(parts: Mapping[str, Sequence[Finding]]) -> Table:
    table = Table(title="What is here", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("", "state", "version, or what is missing"):
        table.add_column(column)
    for place, (name, findings) in enumerate(parts.items()):
        if place:
            table.add_section()
        table.add_row(f"[bold]{name}[/bold]", "", "")
        for f in findings:
            # rich reads [r] in 'pyhybrid[r]' as markup unless it is escaped
            table.add_row(f"  {f.name}", f.state, escape(f.version or _without_remedy(f)))
    return table


def _without_remedy(finding: Finding) -> str:
    """The cause; some end in the remedy, which is said under "Fix"."""
    return finding.cause.removesuffix(finding.remedy).rstrip(" :;")


def _show_repairs(findings: Sequence[Finding]) -> None:
    """Each repair once, with all that it mends."""
    mends: dict[str, list[str]] = {}
    for finding in findings:
        if finding.remedy and finding.state != "works":
            mends.setdefault(finding.remedy, []).append(finding.name)
    if mends:
        show("\n[bold]Fix[/bold]")
    for remedy, names in mends.items():
        show(f"  {', '.join(names)}: {escape(remedy)}")
    if mends:
        show("")
