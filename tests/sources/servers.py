"""A PostgreSQL server on a private socket, for the tests, where the distribution has one."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def has_postgres() -> bool:
    """True where a server can be started."""
    return bool(_PLACES) or shutil.which("initdb") is not None


def _program(name: str) -> str:
    return str(_PLACES[-1] / name) if _PLACES else str(shutil.which(name))


def _as_other() -> list[str]:
    """The server refuses to run as root."""
    return ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Connection string of an empty database."""
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        if _as_other():
            shutil.chown(folder, "postgres")
        data, user = folder / "data", "postgres"
        quiet: dict[str, Any] = {"check": True, "capture_output": True}
        subprocess.run(
            [*_as_other(), _program("initdb"), "-D", str(data), "-U", user, "-A", "trust"], **quiet
        )
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        log = str(folder / "log")
        control = [*_as_other(), _program("pg_ctl"), "-D", str(data), "-w", "-l", log]
        subprocess.run([*control, "-o", options, "start"], **quiet)
        try:
            yield f"postgres://{user}@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
