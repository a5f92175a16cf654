"""Synthetic microdata from Bayesian models with a formal privacy guarantee.

The names of this module are the public interface, typed in `__init__.pyi`; what is used more rarely
is in its rooms: `arrays`, `measures`, `masking`, `primitives`, `studies` and others. Importing it
does no work: each name is loaded from its module when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

import lazy_loader

__version__ = "0.4.0"

_load, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
ROOMS = (
    "arrays", "engines", "masking", "measures", "mechanisms", "models", "primitives", "releases",
    "reports", "studies", "tables", "validation",
)  # fmt: skip
"""Rooms with public names of their own."""
__all__ = sorted(set(_names) - set(ROOMS))


def __getattr__(name: str) -> Any:
    if name in _names:
        return _load(name)
    raise AttributeError(f"module 'pyhybrid' has no attribute {name!r}{_instead(name)}")


def _instead(name: str) -> str:
    """The end of the message on a name that is not here: where it is, or what was meant."""
    if name.startswith("_"):
        return ""
    from pyhybrid.core.checks import did_you_mean

    for room in ROOMS:
        if name in importlib.import_module(f"pyhybrid.{room}").__all__:
            return f": it is ph.{room}.{name}"
    if name.lower() in ("release", "synthesize", "synthesise", "fit"):
        return "; a mechanism releases: ph.LipschitzWeighted(ph.Poisson('y ~ x')).release(df)"
    return did_you_mean(name, __all__)
