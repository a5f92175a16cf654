"""Versions and hashes of what took part in a comparison."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib import metadata

import numpy as np

import pyhybrid
from pyhybrid.engines import Draws, StanProgram, engine_by_name
from pyhybrid.rbridge import call_r

__all__ = ["program_hashes", "versions"]

_PYTHON = ("numpy", "scipy", "pandas", "formulaic", "arviz", "rpy2", "stanli")
_R = ("rstan", "StanHeaders", "matrixStats")


def versions() -> dict[str, str]:
    """Version of Python, R, CmdStan and their packages; "not found" for what is missing."""
    found = {"platform": platform.platform(), "Python": platform.python_version()}
    found["pyhybrid"] = pyhybrid.__version__
    found.update((name, _version(name)) for name in _PYTHON)
    cmdstan = engine_by_name("cmdstan").status()
    found["CmdStan"] = cmdstan.version if cmdstan.available else "not found"
    in_r = call_r("versions", packages=np.array(_R, dtype=object))
    found["R"] = f"{in_r['R']} ({in_r['platform']})"
    found.update((name, str(in_r[name]) or "not found") for name in _R)
    return found


def program_hashes(program: StanProgram, fits: Iterable[Draws]) -> dict[str, str]:
    """SHA-256 of the program, and of the text that an old rstan was given in its place."""
    found = {f"stan/{program.name}.stan": program.sha256}
    notes = [note for draws in fits for note in draws.provenance.notes]
    if any("rewritten for rstan" in note for note in notes):
        text = str(call_r("for_old_rstan", text=program.text.rstrip("\n")))
        name = f"stan/{program.name}.stan as rewritten for rstan"
        found[name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not found"
