"""Files and folders that are on disk whole or not at all, who can read them, and their one lock.

What is written stands aside under a name of its own until it is complete, and is then renamed into
place. Confidential files have mode 0600 and confidential folders 0700, from their first byte on;
what is to be given away has 0644 and 0755.

The lock is of an open file or folder, held by one process, and gone with it, also by a kill. A
library of lock files (filelock) would leave a second file beside a ledger, to be copied or lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyhybrid.core.checks import check_output_folder
from pyhybrid.core.errors import InvalidInput, SaveFailed

_FILE = {True: 0o600, False: 0o644}
_FOLDER = {True: 0o700, False: 0o755}
_PREFIX = "pyhybrid-fit-"
_PAUSE = 0.05  # seconds between attempts to lock


@contextlib.contextmanager
def file_aside(path: str | os.PathLike[str], *, private: bool) -> Iterator[Path]:
    """A new file (0600 if `private`, else 0644) that takes the place of `path` once whole and on
    disk; on a disk error SaveFailed, `path` as it was, nothing left behind."""
    target, aside = Path(path).absolute(), None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        os.close(handle)
        aside = Path(name)
        yield aside
        with open(aside, "rb") as written:
            os.fsync(written.fileno())
        aside.chmod(_FILE[private])
        os.replace(aside, target)
    except OSError as error:
        if isinstance(error, SaveFailed):
            raise
        raise SaveFailed(f"{path} could not be written: {error.strerror or error}") from None
    finally:
        if aside is not None:
            aside.unlink(missing_ok=True)


def write_files(
    contents: Mapping[Path, str | bytes], *, private: bool, overwrite: bool = True
) -> None:
    """Write several files: all are complete before the first takes its place."""
    with contextlib.ExitStack() as stack:
        for path, content in contents.items():
            aside = stack.enter_context(file_aside(path, private=private))
            aside.write_bytes(_bytes(content))
        for path in contents:
            check_new_file(path, overwrite=overwrite)


def check_new_file(path: str | os.PathLike[str], *, overwrite: bool, what: str = "") -> None:
    """Refuse an output file that exists, unless `overwrite`, and a folder in its place."""
    named = f"{what} {os.fspath(path)}".strip()
    if os.path.isdir(path):
        raise InvalidInput(f"{named} must be a file: it is a folder")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return
    except OSError as error:  # a name too long, before hours of work
        raise SaveFailed(f"{named} cannot be written: {error}") from None
    if not overwrite:
        raise InvalidInput(
            f"{named} must be a new file: it exists; give overwrite=True, or another name"
        )


@contextlib.contextmanager
def folder_aside(
    folder: str | os.PathLike[str], *, overwrite: bool, private: bool
) -> Iterator[Path]:
    """A new folder (0700 if `private`, else 0755) that takes the place of `folder`, new or empty
    unless `overwrite`, if nothing is raised; else nothing is left. Until then its owner's alone."""
    check_output_folder(folder, overwrite=overwrite)
    target = Path(folder).absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with private_folder(target.parent, f".{target.name}.partial-") as aside:
            yield aside
            if private:
                make_private(aside)
            _swap(aside, target, _FOLDER[private], overwrite=overwrite)
    except OSError as error:
        raise SaveFailed(f"{folder} could not be saved: {error}") from None


def write_folder(
    folder: str | os.PathLike[str], contents: Mapping[str, str | bytes], *, overwrite: bool
) -> None:
    """Write files by name into a folder that only its owner can read; see `folder_aside`."""
    with folder_aside(folder, overwrite=overwrite, private=True) as aside:
        for name, content in contents.items():
            (aside / name).write_bytes(_bytes(content))


def make_private(folder: Path) -> None:
    """Let nobody but its owner read a folder and anything below it: 0700 and 0600."""
    folder.chmod(_FOLDER[True])
    for path in folder.rglob("*"):
        path.chmod(_FOLDER[True] if path.is_dir() else _FILE[True])


def put_in_place(aside: Path, target: Path) -> None:
    """Let everybody read a folder and all below its `public`, and rename it to a new `target`."""
    for path in (aside, aside / "public", *(aside / "public").rglob("*")):
        path.chmod(_FOLDER[False] if path.is_dir() else _FILE[False])
    aside.rename(target)


@contextlib.contextmanager
def whole_only(folder: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader raise into InvalidInput, without its values."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        lost = f"{error} is missing" if isinstance(error, KeyError) else "a file was changed"
        if isinstance(error, OSError) and error.filename:
            lost = f"{os.path.basename(error.filename)}: {error.strerror}"
        raise InvalidInput(f"{folder} must hold a {what}, whole and as saved: {lost}") from None


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _swap(aside: Path, target: Path, mode: int, *, overwrite: bool) -> None:
    """Put `aside` in the place of `target`; an older folder is moved away first, then removed."""
    check_output_folder(target, overwrite=overwrite)  # which another process may have made since
    if not overwrite and target.exists() and not target.is_symlink():
        target.rmdir()  # fails, as does renaming, where it is no longer empty
    aside.chmod(mode)
    with private_folder(target.parent, f".{target.name}.old-") as old:
        kept = old / "release"
        try:
            if target.exists():
                target.rename(kept)
            aside.rename(target)
        except BaseException:  # Ctrl-C, too, must not cost the older folder
            if kept.exists() and not target.exists():
                kept.rename(target)
            raise


@contextlib.contextmanager
def private_folder(parent: Path | None = None, prefix: str = _PREFIX) -> Iterator[Path]:
    """A new folder of mode 0700, removed on every exit path but a kill, and locked while in use, so
    that the next call of the same parent and prefix removes what a kill left behind."""
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
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
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
    """The user's cache of compiled programs, never data; PYHYBRID_CACHE overrides it."""
    import platformdirs

    override = os.environ.get("PYHYBRID_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("pyhybrid"))


def lock(descriptor: int, *, wait: float = 0.0) -> bool:
    """Lock the open file or folder; False if another process keeps it for longer than `wait` s, on
    a file system without locks, and for a folder on Windows."""
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
