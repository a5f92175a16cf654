"""The R session inside this process: starting it, calling it, keeping it quiet.

rpy2 takes over three things that are not R's to change here: the locale, the SIGINT handler and the
console. Each is put back, or taken in, at once.
"""

from __future__ import annotations

import contextlib
import locale
import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.rbridge.errors import exception_of
from pyhybrid.rbridge.from_r import from_r
from pyhybrid.rbridge.status import r_status
from pyhybrid.rbridge.to_r import to_r

__all__ = ["call_r", "collect", "start_r"]

Output = Callable[[str], None]

# Runs a call where neither its arguments nor its value can stay behind.
_CALLER = """
function(f, args) {
  warned <- character()
  outcome <- withCallingHandlers(
    tryCatch(
      list(value = do.call(f, args, quote = TRUE)),
      error = function(problem) list(problem = conditionMessage(problem), class = class(problem)),
      interrupt = function(stopped) list(problem = "interrupted", class = "interrupt")
    ),
    warning = function(w) {
      warned <<- c(warned, conditionMessage(w))
      invokeRestart("muffleWarning")
    }
  )
  list(outcome = outcome, warned = warned)
}
"""
_LOADER = """
function(files) {
  home <- new.env(parent = globalenv())
  home$stan_folder <- file.path(dirname(dirname(files[1])), "stan")
  for (file in files) sys.source(file, envir = home, keep.source = FALSE)
  home
}
"""


def start_r() -> Any:
    """Start R in this process unless it runs, and return rpy2's low-level interface.

    Raises
    ------
    EngineUnavailable
        If R, rpy2 or what they need is missing; names the cause and the remedy.
    """
    status = r_status()
    if not status.available:
        raise EngineUnavailable(str(status))
    with _quiet_import(), _own_library_path():
        import rpy2.rinterface as ri
        from rpy2.rinterface_lib import embedded
    if not embedded.isinitialized():
        with _own_locale(), _own_library_path(), _own_interrupts(), _console(None):
            ri.initr(interactive=False)
    return ri


def call_r(function: str, /, *, output: Output | None = None, **arguments: Any) -> Any:
    """Call a function of the R package and return its value, as `from_r` gives it.

    Parameters
    ----------
    function : str
        Name of a function of the R package pyhybrid.
    output : callable, optional
        Receives what R prints, piece by piece; dropped if omitted.
    **arguments
        Its arguments, as `to_r` takes them.

    Raises
    ------
    InvalidInput, EngineUnavailable, SamplingError
        For R's conditions of the same meaning.
    RError
        For any other error in R; has R's message.
    EngineUnavailable
        If R cannot be started.

    Warns
    -----
    UserWarning
        For every warning in R.
    """
    start_r()
    from rpy2.rinterface_lib import openrlib

    with openrlib.rlock, _console(output) as interrupted:
        target = _function(function)
        outcome, warned = _caller()(target, to_r(arguments))
        names = list(outcome.do_slot("names"))
        text, problem = [str(item) for item in warned], None
        if "value" in names:
            value = from_r(outcome[0])
        else:
            problem = [str(item) for item in outcome[1]], str(outcome[0][0])
        del outcome, warned
    for message in text:
        warnings.warn(f"R: {message.strip()}", UserWarning, stacklevel=2)
    if interrupted or (problem and "interrupt" in problem[0]):
        raise KeyboardInterrupt
    if problem:
        raise exception_of(*problem)
    return value


def _function(name: str) -> Any:
    try:
        return _package()[name]
    except KeyError:
        raise EngineUnavailable(
            f"the R package pyhybrid must have a function {name!r}: not found; install the R "
            "package of the same version"
        ) from None


@cache
def _package() -> Any:
    """The environment of the R package: the sources beside this package, or the installed one."""
    import rpy2.rinterface as ri

    sources = _sources()
    if sources:
        return ri.evalr(_LOADER.strip())(ri.StrSexpVector(sources))
    try:
        return ri.evalr('asNamespace("pyhybrid")')
    except Exception as error:
        raise EngineUnavailable(
            f"the R package pyhybrid must be installed ({str(error).strip()}): "
            "run R CMD INSTALL on a checkout of pyhybrid"
        ) from None


def _sources() -> list[str]:
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "R", package.parent / "R"):
        if (folder / "bounds.R").is_file():
            return sorted(str(file) for file in folder.glob("*.R"))
    return []


@cache
def _caller() -> Any:
    import rpy2.rinterface as ri

    return ri.evalr(_CALLER.strip())


def collect() -> None:
    """Free what calls left in R's memory."""
    start_r().baseenv["gc"]()


@contextlib.contextmanager
def _console(output: Output | None) -> Iterator[list[KeyboardInterrupt]]:
    """Send R's console to `output`, answer its questions with nothing, hold back Ctrl-C.

    A Ctrl-C that arrives while R prints is handed to R, which ends the call; it is then yielded.
    """
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
    for name, function in quiet.items():
        setattr(callbacks, name, function)
    try:
        yield interrupted
    finally:
        for name, function in before.items():
            setattr(callbacks, name, function)


@contextlib.contextmanager
def _own_locale() -> Iterator[None]:
    before = locale.setlocale(locale.LC_ALL)
    try:
        yield
    finally:
        locale.setlocale(locale.LC_ALL, before)


@contextlib.contextmanager
def _own_library_path() -> Iterator[None]:
    """R's library path is for R: a child process of Python that inherits it may load another
    libpython, and R's own children set it for themselves."""
    before = os.environ.get("LD_LIBRARY_PATH")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("LD_LIBRARY_PATH", None)
        else:
            os.environ["LD_LIBRARY_PATH"] = before


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="(?s)R is not initialized by the main thread")
            yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """rpy2 announces on the console which of its two interfaces it takes."""
    logger = logging.getLogger("rpy2")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
