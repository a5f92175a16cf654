"""The commands by name: each is a module of this room, which declares its options and does its
work, and is imported when it is asked for."""

from __future__ import annotations

import ast
import functools
import importlib
import itertools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import pyhybrid
from pyhybrid.core.errors import InvalidInput, PyhybridError

COMMANDS = {
    "describe": "survey.csv",
    "synthesize": "survey.csv --formula 'visits ~ age' --model negative_binomial --out out",
    "compare": "survey.csv --formula 'visits ~ age' --out compared",
    "curve": "survey.csv --formula 'visits ~ age' --scales 1,0.6 --out curve",
    "calibrate": "earlier.csv --formula 'visits ~ age' --epsilon 1 --out center",
    "mask": "survey.csv --key age:radius=2 --key sex --out masked",
    "utility": "survey.csv out --columns visits,age",
    "risk": "survey.csv out --key age:radius=2 --key sex",
    "ledger": "create budget.jsonl --budget 4 --kind strict --relation remove",
    "validate": "survey.csv --formula 'visits ~ age' --model poisson",
    "study": "run A --out study-A",
    "report": "out --data survey.csv --overwrite",
    "open": "out",
    "notebook": "01_quick_start --out quick_start.html",
    "demo": "--out pyhybrid-demo",
    "doctor": "--all",
}
"""The commands, each with a call that is right: a function of that name, or `commands`, of the
module of that name or of `_MODULES`."""

SUBCOMMANDS = {
    "ledger create": COMMANDS["ledger"], "ledger show": "show budget.jsonl",
    "study list": "list", "study run": COMMANDS["study"], "study summary": "summary study-A",
    "study table": "table study-A --out study-A.md",
}  # fmt: skip
"""Calls of the subcommands, each of which runs after those before it."""

_MODULES = {
    **dict.fromkeys(("compare", "curve"), "comparing"),
    **dict.fromkeys(("utility", "risk"), "measures"),
    **dict.fromkeys(("validate", "doctor"), "validation"),
    **dict.fromkeys(("study", "notebook"), "studies"),
    "open": "report",
}


_RENAMED = {
    ("mask", "--keys"): "--key", ("mask", "--radius"): "--key COLUMN:radius=NUMBER",
    ("mask", "--family"): "--model",
}  # fmt: skip
"""Options of version 0.2 that have the name of other commands' now."""


class _Commands(TyperGroup):
    """The commands, imported one by one; their list shows first lines and imports none."""

    listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        return _listed(cmd_name) if self.listing else _command(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False


def _listed(name: str) -> TyperCommand:
    """A command as the list of all shows it, by the text of its module."""
    path = Path(__file__).with_name(f"{_MODULES.get(name, name)}.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for part in tree.body:
        if isinstance(part, ast.FunctionDef) and part.name == name:
            return TyperCommand(name, help=(ast.get_docstring(part) or "").split("\n\n")[0])
    calls = (part.value for part in tree.body if isinstance(part, ast.Assign))
    group = next(call for call in calls if isinstance(call, ast.Call))
    text = next(given.value for given in group.keywords if given.arg == "help")
    return TyperCommand(name, help=ast.literal_eval(text))


@functools.cache
def _command(name: str) -> Any:
    module = importlib.import_module(f"pyhybrid.cli.{_MODULES.get(name, name)}")
    function = getattr(module, name, None)
    group = typer.Typer(add_completion=False) if function else module.commands
    if function:
        group.command(name)(function)
    command = typer.main.get_command(group)
    command.name = name
    command.epilog = f"Example: pyhybrid {name} {COMMANDS[name]}"
    for own, part in getattr(command, "commands", {}).items():
        part.epilog = f"Example: pyhybrid {name} {SUBCOMMANDS[f'{name} {own}']}"
    return command


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Synthetic microdata from Bayesian models with a formal privacy guarantee.",
)


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Usage errors are one line and exit code 2."""
    command = typer.main.get_command(app)
    if "--help" in arguments:
        from pyhybrid.cli.console import names_in_full  # imports rich, which commands need later

        names_in_full()
    try:
        result = command.main(args=list(arguments), prog_name="pyhybrid", standalone_mode=False)
    except OSError as error:
        if isinstance(error, PyhybridError) or error.filename is None:
            raise error from None
        raise InvalidInput(f"{error.filename}: {error.strerror}") from None
    except Exception as error:
        # typer's usage errors; their class has moved between its versions, this method has not.
        explain = getattr(error, "format_message", None)
        if explain is None:
            raise
        context = getattr(error, "ctx", None)
        print(f"pyhybrid: {_with_example(explain(), arguments, context)}", file=sys.stderr)
        return 2
    if result == 130:  # typer's way to say that it caught Ctrl-C
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _with_example(message: str, arguments: Sequence[str], context: Any) -> str:
    """A usage error in one line, with a call of the same command that is right."""
    said = " ".join(message.split()).rstrip(".") or "a command must be given"
    name = next((each for each in arguments if each in COMMANDS), None)
    if name is None:
        from pyhybrid.core.checks import did_you_mean  # imports numpy, which help texts do not need

        meant = did_you_mean(next(iter(arguments), ""), COMMANDS)
        return f"{said}{meant}; pyhybrid --help lists the commands"
    given = list(dict.fromkeys(each.partition("=")[0] for each in arguments))
    old = [own for own in given if (name, own) in _RENAMED]
    if said.startswith("No such option") and old:
        said = f"{old[0]} is {_RENAMED[name, old[0]]} now"
    path = context.command_path if context else f"pyhybrid {name}"
    call = SUBCOMMANDS.get(path.removeprefix("pyhybrid "), COMMANDS[name])
    helped = f"({path} --help)"
    if said.startswith("Missing option") and context:
        # Their own call, made whole by all that it lacks of the right one.
        words = shlex.split(call)
        needed = [each.opts[0] for each in context.command.params if each.required]
        lacks = [each for each in needed if each.startswith("--") and each not in given]
        examples = [words[words.index(each) + 1] if each in words else "..." for each in lacks]
        added = itertools.chain.from_iterable(zip(lacks, examples, strict=True))
        whole = shlex.join(["pyhybrid", *arguments, *added])
        return f"{', '.join(lacks)} must be given, e.g. {whole} {helped}"
    return f"{said}; a right call: pyhybrid {name} {call} {helped}"


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(f"pyhybrid {pyhybrid.__version__}")
        raise typer.Exit
