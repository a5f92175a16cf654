"""What may come of a call: a valid result, or an error of `pyhybrid.core.errors`; nothing else."""

import contextlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyhybrid.core.errors import PyhybridError


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder in memory where there is one: ten thousand releases wear out a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def attempted(call: Callable[[], Any]) -> Any:
    """The result of `call`, or the typed error that it raised; warnings are let pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except PyhybridError as error:
            message = str(error)
            assert message
            assert "Traceback" not in message
            return error


def nothing_partial(folder: Path) -> None:
    """No folder or file that was begun and not finished."""
    left = [
        path.name for path in folder.rglob("*") if ".partial-" in path.name or ".old-" in path.name
    ]
    assert left == []
