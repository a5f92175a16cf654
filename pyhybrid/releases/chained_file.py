"""An append-only file of JSON lines, each chained to the one before, under a lock.

A line is written whole and forced to disk before anything else happens, so that a crash can leave
no more than an incomplete last line, which the next reader finds. Each line holds the hash of the
one before: an edited, moved or missing line is found, too. Lines missing at the end are not; that
is what the hash of the last line is shown and stored elsewhere for. The chain has no key: it
shows accidents and careless edits, not a forger who rewrites the whole file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pyhybrid.core.errors import InvalidInput, SaveFailed
from pyhybrid.running.files import lock, unlock


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the file: its number from 0, its content, and the hash of both and of the past."""

    number: int
    content: Mapping[str, Any]
    previous: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class ChainedFile:
    """A file that this process has locked."""

    path: Path
    stream: BinaryIO

    def lines(self) -> list[Line]:
        """All lines, the chain checked; of a damaged file, which line, and what to do."""
        self.stream.seek(0)
        *whole, rest = self.stream.read().split(b"\n")
        if rest:
            raise InvalidInput(
                f"ledger {self.path} is damaged: its last line, {len(whole) + 1}, is incomplete. "
                "Restore the file from a backup; only if the program was stopped while it wrote "
                "that line was nothing released on it: keep a copy, then delete that line"
                + ("" if whole else " (with it the file)")
            )
        found: list[Line] = []
        for number, text in enumerate(whole):
            line = _line_of(text)
            before = found[-1].sha256 if found else ""
            if line is None or line.number != number or line.previous != before:
                raise InvalidInput(
                    f"ledger {self.path} is damaged: line {number + 1} was edited or does not "
                    "follow from the one before it. Restore the file from a backup; its content "
                    "cannot be recovered from what is left"
                )
            found.append(line)
        return found

    def append(self, content: Mapping[str, Any], *, after: list[Line]) -> Line:
        """Write one line, on disk on return; on a disk error the file is as it was."""
        number, previous = len(after), after[-1].sha256 if after else ""
        line = Line(
            number=number,
            content=content,
            previous=previous,
            sha256=_hash(number, previous, content),
        )
        size = self.stream.seek(0, os.SEEK_END)
        text = json.dumps(
            {"number": number, "previous": previous, "content": content, "sha256": line.sha256}
        )
        try:
            if self.stream.write(text.encode() + b"\n") <= len(text.encode()):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self.stream.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self.stream.truncate(size)
            raise SaveFailed(f"ledger {self.path} could not be written: {error}") from None
        return line


@contextlib.contextmanager
def locked_file(path: Path, *, create: bool, wait: float) -> Iterator[ChainedFile]:
    """Open and lock `path`, which is created if it may be; other processes wait for up to `wait`
    seconds, and then raise SaveFailed."""
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise InvalidInput(f"ledger {path} cannot be opened: {error.strerror}") from None
    with os.fdopen(descriptor, "r+b", buffering=0) as stream:
        if not lock(stream.fileno(), wait=wait):
            raise SaveFailed(
                f"ledger {path} is locked: another process has been using it for {wait:g} s; "
                "wait for it to end"
            )
        try:
            yield ChainedFile(path=path, stream=stream)
        finally:
            unlock(stream.fileno())


def _line_of(text: bytes) -> Line | None:
    """The line that `text` says, or None if it says none or its hash is wrong."""
    try:
        fields = json.loads(text)
        number, previous, content = fields["number"], fields["previous"], fields["content"]
        if fields["sha256"] != _hash(number, previous, content) or not isinstance(content, dict):
            return None
    except (ValueError, KeyError, TypeError):
        return None
    return Line(number=number, content=content, previous=previous, sha256=fields["sha256"])


def _hash(number: int, previous: str, content: Mapping[str, Any]) -> str:
    text = json.dumps([number, previous, content], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
