"""Private places on disk: temporary folders for confidential data, and the user's cache folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["cache_folder", "private_folder"]


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a new folder of mode 0700 that is removed on every exit path, Ctrl-C included."""
    folder = Path(tempfile.mkdtemp(prefix="pyhybrid-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cache_folder() -> Path:
    """The user's cache folder for compiled programs; PYHYBRID_CACHE overrides it.

    Holds executables only, never data.
    """
    import platformdirs

    override = os.environ.get("PYHYBRID_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("pyhybrid"))
