"""The command line. `main` turns errors into one line on standard error and exit code 2."""

from __future__ import annotations

import io
import signal
import sys
import warnings
from types import FrameType
from typing import Any

__all__ = []


def main() -> None:
    """Entry point of the `pyhybrid` command."""
    from pyhybrid.core.errors import PyhybridError, SamplingError

    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escapes for letters that the locale lacks
            stream.reconfigure(errors="backslashreplace")
    _stop_on_signals()
    try:
        from pyhybrid.cli.app import run

        code = run(sys.argv[1:])
    except PyhybridError as error:
        # one line; only a compiler's keeps its lines, with the caret in its place
        said = str(error) if isinstance(error, SamplingError) else " ".join(str(error).split())
        print(f"pyhybrid: {said}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("pyhybrid: interrupted; nothing was left half written", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    sys.exit(code)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if not issubclass(category, (FutureWarning, DeprecationWarning, ImportWarning)):
        print(f"pyhybrid: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _stop_on_signals() -> None:
    """Treat SIGTERM, and a terminal that is closed, as Ctrl-C, which engines know how to stop for,
    so that folders are removed."""

    def handler(_signum: int, _frame: FrameType | None) -> Any:
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):  # under nohup
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, handler)
    hangup = getattr(signal, "SIGHUP", None)  # not on Windows; ignored under nohup
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        signal.signal(hangup, handler)
