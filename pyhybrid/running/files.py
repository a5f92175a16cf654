"""Files and folders that are on disk whole or not at all, and who can read them.

What is written stands aside under a name of its own until it is complete, and is then renamed into
place. Confidential files have mode 0600 and confidential folders 0700, from their first byte on;
what is to be given away has 0644 and 0755.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyhybrid.core.checks import check_output_folder
from pyhybrid.core.errors import InvalidInput, SaveFailed
from pyhybrid.running.private_folder import private_folder

__all__ = [
    "check_new_file",
    "file_aside",
    "folder_aside",
    "make_private",
    "whole_only",
    "write_files",
    "write_folder",
]

_FILE = {True: 0o600, False: 0o644}
_FOLDER = {True: 0o700, False: 0o755}


@contextlib.contextmanager
def file_aside(path: str | os.PathLike[str], *, private: bool) -> Iterator[Path]:
    """A new file to write, which takes the place of `path` once it is whole and on disk.

    Parameters
    ----------
    path : path
        Its folder is made if it is not there.
    private : bool
        Mode 0600 instead of 0644; until it is in place only its owner can read it.

    Raises
    ------
    SaveFailed
        On a disk error; `path` is as it was, and nothing is left behind.
    """
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
    """Write several files: all are complete before the first takes its place.

    Raises
    ------
    InvalidInput
        If one exists and `overwrite` is False, or is a folder.
    SaveFailed
        On a disk error.
    """
    with contextlib.ExitStack() as stack:
        for path, content in contents.items():
            aside = stack.enter_context(file_aside(path, private=private))
            try:
                aside.write_bytes(_bytes(content))
            except OSError as error:
                raise SaveFailed(f"{path} could not be written: {error.strerror}") from None
        for path in contents:
            check_new_file(path, overwrite=overwrite)


def check_new_file(path: str | os.PathLike[str], *, overwrite: bool, what: str = "") -> None:
    """Refuse an output file that exists, unless `overwrite`, and a folder in its place."""
    named = f"{what} {os.fspath(path)}".strip()
    if os.path.isdir(path):
        raise InvalidInput(f"{named} must be a file: it is a folder")
    if os.path.lexists(path) and not overwrite:
        raise InvalidInput(f"{named} must be a new file: it exists; give --overwrite or another")


@contextlib.contextmanager
def folder_aside(
    folder: str | os.PathLike[str], *, overwrite: bool, private: bool
) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `folder` if nothing is raised.

    Parameters
    ----------
    folder : path
        New or empty, unless `overwrite`.
    overwrite : bool
        Replace what is in `folder`.
    private : bool
        Mode 0700 instead of 0755; until it is in place only its owner can read it.

    Raises
    ------
    InvalidInput
        If the folder is not empty.
    SaveFailed
        On a disk error; nothing is left behind.
    """
    check_output_folder(folder, overwrite=overwrite)
    target = Path(folder).absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with private_folder(target.parent, f".{target.name}.partial-") as aside:
            yield aside
            if private:
                make_private(aside)
            _swap(aside, target, _FOLDER[private])
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


@contextlib.contextmanager
def whole_only(folder: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader raise into InvalidInput, without its values."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        lost = f"{error} is missing" if isinstance(error, KeyError) else "a file was changed"
        raise InvalidInput(f"{folder} must hold a {what}, whole and as saved: {lost}") from None


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _swap(aside: Path, target: Path, mode: int) -> None:
    """Put `aside` in the place of `target`; an older folder is moved away first, then removed."""
    aside.chmod(mode)
    if not target.exists():
        aside.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old-", dir=target.parent))
    kept = old / "release"
    try:
        target.rename(kept)
        aside.rename(target)
    except BaseException:  # Ctrl-C, too, must not cost the older folder
        if kept.exists() and not target.exists():
            kept.rename(target)
        raise
    finally:
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
