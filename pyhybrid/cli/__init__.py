"""The command line. `main` turns errors into one line on standard error and exit code 2."""

from __future__ import annotations

import functools
import io
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any, TextIO

__all__ = []


def main() -> None:
    """Entry point of the `pyhybrid` command."""
    from pyhybrid.core.errors import PyhybridError

    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escapes for letters that the locale lacks
            stream.reconfigure(errors="backslashreplace")
    _stop_on_signals()
    try:
        from pyhybrid.cli.app import run

        code = run(sys.argv[1:])
    except PyhybridError as error:
        print(f"pyhybrid: {_one_line(error)}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("pyhybrid: interrupted; nothing was left half written", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    sys.exit(code)


def _one_line(error: Exception) -> str:
    """Messages are one line; only a compiler's keeps its lines, with the caret in its place."""
    from pyhybrid.core.errors import SamplingError

    text = str(error)
    return text if isinstance(error, SamplingError) else " ".join(text.split())


_OPTIONS = (
    (r"ph\.Table\(\.\.\., types=\{\.\.\.\}\) or reference= \((.+?)\)", r"\1"),
    (r"take a model with prior='normal'", "give --model NAME:prior=normal"),
    (r"\bgive the model missing=True", "give --model NAME:missing=true"),
    (r"\bzeros=True\b", "zeros=true"),
    (r"holds_no_released_record=True of .*?\((--holds-no-released-record)\)", r"\1"),
    (r"\((?:drop|ids|keep)=, (--\w+ (?:'[^']*'|[^ ]+))\)", r"(\1)"),
    (r"; declare missing=True in .*", '. Set "missing": true for it in the --types file'),
    (r"declared: \w+\(.*, levels=\(\.\.\.\)\) with", "declared: give --model NAME:levels=A+B with"),
    (r"declared: \w+\(.*, decimals=0\) releases", "declared: --model NAME:decimals=0 releases"),
    (r"^unit and rows_per_unit must", "--unit and --rows-per-unit must"),
    (r"\brows_per_unit=(?=\d)", "--rows-per-unit "),
    (r"\ban epsilon of (?=\d)", "--epsilon "),
    (r"\(without weights it would", "(--mechanism unweighted would"),
    (r" \(astype\('category'\), logicals\)", ""),
    (r"\b\w+=True \((--[\w-]+)\)", r"\1"),
    (r"\btake the model (?=categorical)", "give --model "),
    (r"Give more warm-up and draws", "Give more --warmup and --draws"),
    (r"must exist, or be given budget, .*", "must exist: pyhybrid ledger create makes one"),
    (r"\ballow_unlike=True", "--allow-unlike"),
    (r"\bon_not_converged='warn'", "--on-not-converged warn"),
    (r"\b(types|reference|unit|support|rule)=(?=[ ,.;:)]|$)", r"--\1"),
    (r"^(drop|keep|sensitive|epsilon|types|delta|rows|relation|select|keys) must ", r"--\1 must "),
    (r"^ids must ", "--id must "),
)
"""What messages say in Python, as patterns, and in the command line."""


def in_options(text: str, models: Sequence[str] = ()) -> str:
    """A message with the options of the command line in place of Python's arguments. `models` are
    those of --model, as given or chosen, which a message that adds to one prints in full."""
    for pattern, option in _OPTIONS:
        text = re.sub(pattern, option, text)
    added = functools.partial(_models, text, models)
    return re.sub(r"--model NAME:([\w=+.]*\w)", added, text)


def with_option(text: str, added: str) -> str:
    """NAME:key=value,... with an option added, in the place of one of that key."""
    name, _, given = text.partition(":")
    key = added.partition("=")[0]
    kept = [own for own in given.split(",") if own and own.partition("=")[0] != key]
    return f"{name}:{','.join([*kept, added])}"


def _models(text: str, models: Sequence[str], found: re.Match[str]) -> str:
    """--model with the option that the message adds; once for each formula if there are several,
    and added where the message names a step of them, to its own."""
    step = re.search(r"\bstep (\d+)", text)
    texts = [
        own if step is not None and int(step[1]) != place else with_option(own, found[1])
        for place, own in enumerate(models, 1)
    ]
    return " ".join(f"--model {shlex.quote(own)}" for own in texts or [f"NAME:{found[1]}"])


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, (FutureWarning, DeprecationWarning, ImportWarning)):
        return
    print(f"pyhybrid: warning: {' '.join(in_options(str(message)).split())}", file=sys.stderr)


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
