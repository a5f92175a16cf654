"""The one lock: of an open file or folder, held by one process, gone with the process that held it.

The operating system keeps it, so that a process that is killed leaves no lock behind. A library of
lock files (filelock) does not fit: it empties the file it locks, while the ledger and the results
file are locked themselves, and beside a ledger it would leave a second file to be copied, lost or
removed.
"""

from __future__ import annotations

import os
import sys
import time

__all__ = ["lock", "unlock"]

_PAUSE = 0.05  # seconds between attempts


def lock(descriptor: int, *, wait: float = 0.0) -> bool:
    """Lock the open file or folder; False if another process keeps it for longer than `wait` s.

    A file system without locks, and a folder on Windows, count as locked by another.
    """
    deadline = time.monotonic() + wait
    while not _lock(descriptor):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE)
    return True


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 62  # Windows locks forbid reading: lock a byte that is not there

    def _lock(descriptor: int) -> bool:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Let others have the lock; closing the descriptor does so, too."""
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Let others have the lock; closing the descriptor does so, too."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
