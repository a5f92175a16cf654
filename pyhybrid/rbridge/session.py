"""R: what there is of it, started in this process, called, and kept quiet.

A wrong R_HOME or an rpy2 that does not fit the R ends a process, not a function call; so R and rpy2
are tried in processes of their own first.

rpy2 takes over three things that are not R's to change here: the locale, the SIGINT handler and the
console. Each is put back, or taken in, at once.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import locale
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pyhybrid.core.errors import EngineUnavailable, InvalidInput, PyhybridError, SamplingError
from pyhybrid.rbridge.conversion import RError, from_r, to_r

_LOOK = """
version_of <- function(p) tryCatch(as.character(utils::packageVersion(p)), error = function(e) "")
boost <- c(system.file("include", package = "BH"), "/usr/include")
cat("R:", as.character(getRversion()), "\\n", sep = "")
for (p in c("matrixStats", "rstan")) cat(p, ":", version_of(p), "\\n", sep = "")
cat("boost:", any(nzchar(boost) & dir.exists(file.path(boost, "boost"))), "\\n", sep = "")
"""
_TRIAL = "import rpy2.rinterface as r; r.initr(interactive=False); print('started')"
Output = Callable[[str], None]
_ERRORS: dict[str, type[PyhybridError]] = {
    "pyhybrid_invalid_input": InvalidInput,
    "pyhybrid_engine_unavailable": EngineUnavailable,
    "pyhybrid_sampling_error": SamplingError,
}
"""Python's errors of the same meaning, by the class of R's condition."""


@dataclass(frozen=True, kw_only=True)
class RStatus:
    """Versions of R and rstan (empty where not found); why functions of the R package cannot be
    called, if they cannot (rstan, and headers of Boost for it, are matters of their own), and the
    command that mends it."""

    r_home: str = ""
    r_version: str = ""
    rstan_version: str = ""
    boost: bool = False
    cause: str = ""
    remedy: str = ""

    @property
    def available(self) -> bool:
        """True where nothing stands in the way."""
        return not self.cause

    def __str__(self) -> str:
        if not self.available:
            return f"{self.cause}; {self.remedy}"
        return f"R {self.r_version} at {self.r_home}, rstan {self.rstan_version or 'not found'}"


def r_status() -> RStatus:
    """Look for R, rpy2 and rstan; never raises and never starts R in this process."""
    return _look(os.environ.get("R_HOME"), os.environ.get("PATH"))


@cache
def _look(r_home: str | None, path: str | None) -> RStatus:
    """Kept for as long as R_HOME and PATH stay the same."""
    program = Path(r_home or "", "bin", "R.exe" if os.name == "nt" else "R")
    if r_home and not program.exists():
        cause = f"R_HOME must be the home of an R installation: no R is at {r_home}"
        return RStatus(cause=cause, remedy="unset R_HOME, or set it to what `R RHOME` prints")
    r = str(program) if r_home else shutil.which("R", path=path)
    if r is None:
        remedy = "install it from CRAN, or on Debian and Ubuntu: apt-get install r-base-core"
        return RStatus(cause="R must be installed: no R is on the path", remedy=remedy)
    home = r_home or _stdout([r, "RHOME"]).strip()
    script = _LOOK.strip().replace("\n", "; ")
    shown = _stdout([r, "--no-echo", "--no-restore", "--no-save", "-e", script])
    versions = dict(line.split(":", 1) for line in shown.splitlines() if ":" in line)
    if "R" not in versions:
        remedy = f"see what `{r} --version` says and install R anew"
        return RStatus(r_home=home, cause=f"R must start: {r} fails", remedy=remedy)
    cause, remedy = _why_not(versions, version_of("rpy2-rinterface") or version_of("rpy2"))
    return RStatus(
        r_home=home,
        r_version=versions["R"],
        rstan_version=versions.get("rstan", ""),
        boost=versions.get("boost") == "TRUE",
        cause=cause,
        remedy=remedy,
    )


def _stdout(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60.0, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _why_not(versions: dict[str, str], rinterface: str) -> tuple[str, str]:
    """The first thing that stands in the way, and its remedy; empty if nothing does."""
    if not rinterface:
        return "rpy2 must be installed: not found in this Python", "pip install 'pyhybrid[r]'"
    if _numbers(versions["R"]) < (4, 5) and _numbers(rinterface) > (3, 6, 5):
        return (
            f"R is too old for the installed rpy2: found R {versions['R']}, and rpy2-rinterface "
            f"{rinterface} needs R >= 4.5",
            "pip install 'rpy2-rinterface==3.6.5', or install R 4.5 or newer",
        )
    if not versions.get("matrixStats"):
        return (
            "the R package matrixStats must be installed: not found",
            "Rscript -e 'install.packages(\"matrixStats\")', "
            "or on Debian and Ubuntu: apt-get install r-cran-matrixstats",
        )
    if _stdout([sys.executable, "-c", _TRIAL]).strip() != "started":
        return (
            f"rpy2 {rinterface} must start R {versions['R']}: it fails in a trial process",
            "pip install --force-reinstall rpy2, and see `python -m rpy2.situation`",
        )
    return "", ""


def version_of(distribution: str) -> str:
    """Version of a distribution of this Python; empty where there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def start_r() -> Any:
    """Start R in this process unless it runs, and return rpy2's low-level interface;
    EngineUnavailable if R, rpy2 or what they need is missing, with the cause and the remedy."""
    status = r_status()
    if not status.available:
        raise EngineUnavailable(str(status))
    return _start()


@cache
def _start() -> Any:
    with _put_back():
        import rpy2.rinterface as ri
        from rpy2.rinterface_lib import embedded

        if not embedded.isinitialized():
            with _console(None):
                ri.initr(interactive=False)
    return ri


def call_r(function: str, /, *, output: Output | None = None, **arguments: Any) -> Any:
    """Call a function of the R package and return its value, as `from_r` gives it.

    `arguments` are as `to_r` takes them; `output` receives what R prints, piece by piece. Warnings
    of R are Python's, after "R: ".

    Raises
    ------
    InvalidInput, EngineUnavailable, SamplingError
        For R's conditions of the same meaning, and where R cannot be started.
    RError
        For any other error in R; has R's message.
    """
    start_r()
    from rpy2.rinterface_lib import openrlib

    with openrlib.rlock, _console(output) as interrupted:
        if function not in _package():
            raise EngineUnavailable(
                f"the R package pyhybrid must have a function {function!r}: not found; install the "
                "R package of the same version"
            )
        outcome, warned = _functions()[0](_package()[function], to_r(arguments))
        warned = [str(message) for message in warned]
        failed = "problem" in list(outcome.do_slot("names"))
        value, classes = from_r(outcome[0]), list(outcome[1]) if failed else []
        del outcome
    for message in warned:
        warnings.warn(f"R: {message.strip()}", UserWarning, stacklevel=2)
    if interrupted or "interrupt" in classes:
        raise KeyboardInterrupt
    if failed:
        known = (_ERRORS[name] for name in classes if name in _ERRORS)
        raise next(known, RError)(str(value).strip())
    return value


@cache
def _functions() -> Any:
    """The caller and the loader of calls.R."""
    return start_r().evalr((Path(__file__).parent / "calls.R").read_text(encoding="utf-8"))


@cache
def _package() -> Any:
    """The environment of the R package: the sources beside this package, or the installed one."""
    ri = start_r()
    if sources := _sources():
        return _functions()[1](ri.StrSexpVector(sources))
    try:
        return ri.evalr('asNamespace("pyhybrid")')
    except Exception as error:
        raise EngineUnavailable(
            f"the R package pyhybrid must be installed ({str(error).strip()}): "
            "run R CMD INSTALL on a checkout of pyhybrid"
        ) from None


def r_code() -> str:
    """Whose functions of R are called: those that come with this package, or an installed one's."""
    return "those that come with this package" if _sources() else "the installed R package"


def _sources() -> list[str]:
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "R", package.parent / "R"):
        if (folder / "bounds.R").is_file():
            return sorted(str(file) for file in folder.glob("*.R"))
    return []


def collect() -> None:
    """Free what calls left in R's memory."""
    start_r().baseenv["gc"]()


@contextlib.contextmanager
def _console(output: Output | None) -> Iterator[list[KeyboardInterrupt]]:
    """Send R's console to `output`, answer its questions with nothing, hold back Ctrl-C: R is
    handed one that arrives while it prints, which ends the call; it is then yielded."""
    from rpy2.rinterface_lib import callbacks, openrlib

    interrupted: list[KeyboardInterrupt] = []

    def write(text: str) -> None:
        try:
            if output is not None:
                output(text)
        except KeyboardInterrupt as stop:
            interrupted.append(stop)
            openrlib.rlib.R_interrupts_pending = 1

    quiet = {
        "consolewrite_print": write,
        "consolewrite_warnerror": write,
        "showmessage": write,
        "consoleread": lambda prompt: "",
    }
    before = {name: getattr(callbacks, name) for name in quiet}
    vars(callbacks).update(quiet)
    try:
        yield interrupted
    finally:
        vars(callbacks).update(before)


@contextlib.contextmanager
def _put_back() -> Iterator[None]:
    """Locale, SIGINT handler and library path as they were, and no word of rpy2 on the console.

    R's library path is for R: a child process of Python that inherits it may load another
    libpython, and R's own children set it for themselves.
    """
    logger, where = logging.getLogger("rpy2"), "LD_LIBRARY_PATH"
    level, language = logger.level, locale.setlocale(locale.LC_ALL)
    path, handler = os.environ.get(where), signal.getsignal(signal.SIGINT)
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s)R is not initialized by the main thread")
            yield
    finally:
        logger.setLevel(level)
        locale.setlocale(locale.LC_ALL, language)
        os.environ.pop(where, None)
        if path is not None:
            os.environ[where] = path
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)
