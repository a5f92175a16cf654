"""Private places on disk: temporary folders for confidential data, and the user's cache folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pyhybrid.running.locks import lock

__all__ = ["cache_folder", "private_folder"]

_PREFIX = "pyhybrid-fit-"


@contextlib.contextmanager
def private_folder(parent: Path | None = None, prefix: str = _PREFIX) -> Iterator[Path]:
    """Yield a new folder of mode 0700 that is removed on every exit path, Ctrl-C included.

    A process that is killed outright cannot remove anything. The folder is locked while it is in
    use, so that the next call with the same parent and prefix knows what was left behind and
    removes it.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    _remove_what_was_left(place, prefix)
    # Under its own name only once it is locked: nobody may take it for one that was left behind.
    folder = Path(tempfile.mkdtemp(prefix=".pyhybrid-new-", dir=place))
    try:
        with _locked(folder):
            name = place / f"{prefix}{folder.name.rpartition('-')[2]}"
            os.rename(folder, name)
            folder = name
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_what_was_left(parent: Path, prefix: str) -> None:
    """Remove this user's folders that no living process has locked."""
    if not hasattr(os, "getuid"):  # no such locks on Windows
        return
    for folder in [path for path in parent.iterdir() if path.name.startswith(prefix)]:
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                with _locked(folder) as ours:
                    if ours:
                        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock; yields False if another process has it."""
    if not hasattr(os, "O_DIRECTORY"):  # folders cannot be locked on Windows
        yield True
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield lock(descriptor)
    finally:
        os.close(descriptor)


def cache_folder() -> Path:
    """The user's cache folder for compiled programs; PYHYBRID_CACHE overrides it.

    Holds executables only, never data.
    """
    import platformdirs

    override = os.environ.get("PYHYBRID_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("pyhybrid"))
