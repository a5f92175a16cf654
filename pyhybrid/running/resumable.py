"""Finished parts of a long computation in a private file, so that a rerun skips them.

One JSON object per line: a header with the fingerprint of all settings and the root of the random
streams, then one line per part. Each line is on disk before the next part counts as finished; a
last line that an interruption has torn is dropped. The file is confidential.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pyhybrid.core.errors import InvalidInput, SaveFailed
from pyhybrid.core.randomness import streams
from pyhybrid.running.files import lock

_FORMAT = 1


@dataclass(kw_only=True)
class FinishedParts:
    """Finished parts by key, plain JSON values, and the entropy, root of the random streams of all:
    the seed given, or the one the file was begun with. Confidential."""

    entropy: int
    parts: dict[str, Any] = field(default_factory=dict)
    _file: BinaryIO | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<FinishedParts: {len(self.parts)}>"

    def add(self, key: str, part: Any) -> None:
        """Note a finished part, on disk first."""
        if self._file is not None:
            _append(self._file, {"key": key, "part": part})
        self.parts[key] = part


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Hash of settings made of plain JSON types."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def open_parts(
    path: str | os.PathLike[str] | None, *, settings: str, seed: int | None
) -> Iterator[FinishedParts]:
    """Open or begin the file (0600) at `path`, or one that does not outlive the block; one begun
    with other `settings`, the `fingerprint` of all that parts depend on but the seed, is
    refused."""
    if path is None:
        yield FinishedParts(entropy=streams(seed).entropy)
        return
    try:
        handle = os.open(Path(path), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SaveFailed(f"results file {path} cannot be opened: {error}") from None
    with os.fdopen(handle, "r+b") as file:
        os.chmod(path, 0o600)
        if not lock(file.fileno()):
            raise InvalidInput(f"results file {path} must not be in use: another run has it")
        yield _read(file, path, settings, seed)


def _read(file: BinaryIO, path: Any, settings: str, seed: int | None) -> FinishedParts:
    content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    try:
        rows = [json.loads(line) for line in whole.splitlines()]
        header, parts = (rows[0], rows[1:]) if rows else (None, [])
        found = {row["key"]: row["part"] for row in parts}
        if header is not None and dict(header)["format"] == _FORMAT:
            entropy, begun_with = int(header["entropy"]), header["settings"]
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"results file {path} must be one of finished points: it is not; give another file"
        ) from None
    if header is not None and header["format"] != _FORMAT:
        raise InvalidInput(
            f"results file {path} must be of format {_FORMAT}: found {header['format']!r}; "
            "give another file, or the version of pyhybrid that wrote it"
        )
    if header is None and content and not content.startswith(b'{"format"'[: len(content)]):
        raise InvalidInput(f"results file {path} must be new or of finished points: it is neither")
    file.seek(len(whole))
    file.truncate()
    if header is None:
        entropy = streams(seed).entropy
        _append(file, {"format": _FORMAT, "settings": settings, "entropy": str(entropy)})
        return FinishedParts(entropy=entropy, _file=file)
    if begun_with != settings or seed not in (None, entropy):
        what = "settings or data" if begun_with != settings else "seed"
        raise InvalidInput(
            f"results file {path} was begun with other {what}: give the same, another file, or "
            "remove it"
        )
    return FinishedParts(entropy=entropy, parts=found, _file=file)


def _append(file: BinaryIO, row: Mapping[str, Any]) -> None:
    try:
        file.write(json.dumps(row).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise SaveFailed(f"a finished point could not be noted: {error}") from None
