"""`pyhybrid doctor`: what is installed, what is missing, and whether an engine can fit."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import metadata

import numpy as np
import pandas as pd
from rich.table import Table

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.engines import ENGINES, Engine, SamplerSettings, engine_by_name
from pyhybrid.errors import PyhybridError
from pyhybrid.models import Poisson

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
    """State of one component: its version if it works, else the cause and the remedy."""

    name: str
    works: bool
    version: str = ""
    cause: str = ""
    remedy: str = ""


def doctor() -> int:
    """Print the findings; returns 0 if at least one engine can fit, else 1."""
    engines = []
    with progress_bars() as progress:
        for name in ENGINES:
            if progress is not None:
                progress(f"trying {name}", 0, 1)
            engines.append(examine_engine(engine_by_name(name)))
            if progress is not None:
                progress(f"trying {name}", 1, 1)
    show(_table("Engines (each fits a small model)", engines))
    show(_table("Packages", [_package(name) for name in ("pyhybrid", *_PACKAGES)]))
    show(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")
    able = [finding.name for finding in engines if finding.works]
    if able:
        show(f"engine='auto' would use: {able[0]}")
        return 0
    show("No engine can fit: see the remedies above.")
    return 1


def examine_engine(engine: Engine) -> Finding:
    """Ask an engine for its state and, if it says it can run, let it fit a small model."""
    status = engine.status()
    if not status.available:
        return Finding(name=engine.name, works=False, cause=status.cause, remedy=status.remedy)
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
        return Finding(name=engine.name, works=False, cause=cause, remedy=status.remedy)
    seconds = draws.provenance.seconds
    return Finding(name=engine.name, works=True, version=f"{status.version} ({seconds:.2f} s)")


def _package(name: str) -> Finding:
    try:
        return Finding(name=name, works=True, version=metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name=name, works=False, cause="not installed", remedy=f"pip install {name}")


def _table(title: str, findings: list[Finding]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("", "state", "version, or what is missing", "command that mends it"):
        table.add_column(column, overflow="fold")
    for f in findings:
        state = "works" if f.works else "missing"
        table.add_row(f.name, state, f.version if f.works else f.cause, f.remedy)
    return table
