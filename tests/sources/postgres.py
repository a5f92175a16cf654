"""A PostgreSQL server of a test: the distribution's, on a private socket, by another user if root.

python -m tests.sources.postgres PORT FOLDER
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

_NOBODY = ("postgres", "nobody")
_QUIET = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "logging_collector=off"]


def programs() -> Path | None:
    """Folder of initdb and postgres, of the newest version that is installed."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return installed[-1].parent if installed else None


def _user() -> str | None:
    """The server refuses root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in _NOBODY if name in known), None)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """URL of a running server's database, which is gone afterwards; its only user is "owner"."""
    where = programs()
    assert where is not None
    folder, user = Path(tempfile.mkdtemp(prefix="pg-")), _user()
    if user is not None:
        shutil.chown(folder, user)
    as_user = {} if user is None else {"user": user}
    data = folder / "data"
    options = {"cwd": folder, "stdout": subprocess.DEVNULL, **as_user}
    try:
        subprocess.run(
            [where / "initdb", "-D", data, "-U", "owner", "-A", "trust", "-E", "UTF8",
             "--locale=C.UTF-8", "--no-sync"],
            check=True, **options,
        )  # fmt: skip
        with (folder / "log").open("wb") as log:
            running = subprocess.Popen(
                [where / "postgres", "-D", data, "-k", folder, *_QUIET],
                stderr=log, cwd=folder, stdout=log, **as_user,
            )  # fmt: skip
            try:
                url = f"postgres://owner@/postgres?host={folder}"
                _wait(url)
                yield url
            finally:
                running.terminate()
                running.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(url: str) -> None:
    for _ in range(600):
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise RuntimeError("PostgreSQL did not start")
