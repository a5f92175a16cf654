"""Where the peers run: an environment for each, made in one folder outside the project.

They are theirs, not ours: nothing of ours depends on a peer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["peer_python", "r_library"]

PACKAGES = {
    "smartnoise": ("smartnoise-synth",),
    "dpmm": ("dpmm",),
    "sdv": ("sdv",),
    "synthpop": ("synthpop-py",),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.6"),
}
FOLDER = Path(os.environ.get("PYHYBRID_PEERS", Path(tempfile.gettempdir(), "pyhybrid-peers")))


def peer_python(peer: str) -> Path:
    """Python of a peer's environment, installed if it is not there yet."""
    kind = peer.partition("-")[0]
    python = FOLDER / kind / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER / kind)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES[kind]]
        subprocess.run(install, check=True)
    return python


def r_library() -> Path:
    """R library with synthpop, installed if it is not there yet."""
    library = FOLDER / "R"
    if not (library / "synthpop").exists():
        library.mkdir(parents=True, exist_ok=True)
        call = f'install.packages("synthpop", lib = "{library}")'
        subprocess.run(["Rscript", "-e", call], check=True)
    return library
