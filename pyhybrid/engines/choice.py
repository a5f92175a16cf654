"""Which engine runs: by its name, or the first that can."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import cast

from pyhybrid.core.checks import check_choice
from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.engines.base import Engine

ENGINES: Mapping[str, str] = {
    "cmdstan": "pyhybrid.engines.cmdstan:CmdStanEngine",
    "embedded": "pyhybrid.engines.embedded:EmbeddedEngine",
    "rstan": "pyhybrid.engines.rstan:RStanEngine",
}
AUTOMATIC = ("cmdstan", "embedded")
"""Engines that engine="auto" chooses among, first one first."""


def engine_by_name(name: str) -> Engine:
    """Return the engine `name`, whether or not it can run here."""
    check_choice(name, "engine", ["auto", *ENGINES])
    module, cls = ENGINES[name].split(":")
    return cast(Engine, getattr(importlib.import_module(module), cls)())


def resolve_engine(engine: str | Engine = "auto") -> Engine:
    """The engine to use: ``"auto"`` takes cmdstan if an installation is found, else embedded.

    A choice is made once, from what is installed: an engine that then fails raises, nothing else is
    tried in its place. InvalidInput lists the known names, EngineUnavailable names every cause that
    keeps an engine from running, and its remedy.
    """
    if not isinstance(engine, str):
        return engine
    statuses = []
    for name in AUTOMATIC if engine == "auto" else (engine,):
        candidate = engine_by_name(name)
        status = candidate.status()
        if status.available:
            return candidate
        statuses.append(status)
    causes = "; ".join(f"{s.name}: {s.cause} (remedy: {s.remedy})" for s in statuses)
    raise EngineUnavailable(f"engine {engine!r} cannot run here: {causes}")
