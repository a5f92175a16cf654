"""The commands by name: each is a function of a module of this room, which is imported when it is
asked for. What `--help` says of them is in `help.txt`."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import pyhybrid
from pyhybrid.core.errors import InvalidInput, PyhybridError

COMMANDS = {
    "describe": "describe", "synthesize": "synthesize", "compare": "comparing",
    "curve": "comparing", "calibrate": "calibrate", "mask": "mask", "utility": "measures",
    "risk": "measures", "ledger": "released", "validate": "validation", "study": "studies",
    "report": "released", "open": "released", "notebook": "studies", "demo": "studies",
    "doctor": "validation",
}  # fmt: skip
"""The module of each command."""
PARTS = {"ledger": ("create", "show"), "study": ("list", "run", "table")}
"""Subcommands, whose calls in `help.txt` run one after the other."""
_ROW = re.compile(r"^(\w+): ?(.*(?:\n[ ]{4,}.*)*)", re.MULTILINE)


@functools.cache
def help_texts(name: str) -> dict[str, str]:
    """Texts of `help.txt` on a command: `line` in the list, `example`, arguments and options."""
    text = files("pyhybrid.cli").joinpath("help.txt").read_text(encoding="utf-8")
    body = text.partition(f"\n=== {name}\n")[2].partition("\n=== ")[0]
    return {key: " ".join(said.split()) for key, said in _ROW.findall(body)}


class _Commands(TyperGroup):
    """The commands, of which one that is called is imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        line = help_texts(cmd_name).get("line")
        return TyperCommand(cmd_name, help=line) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, command_of(str(name)), rest


@functools.cache
def command_of(name: str) -> Any:
    """The command of a name, its module imported: a function, or a group of several."""
    module = importlib.import_module(f"pyhybrid.cli.{COMMANDS[name]}")
    group = typer.Typer(add_completion=False, no_args_is_help=True, help=help_texts(name)["line"])
    for part in PARTS.get(name, ("",)):
        full = f"{name} {part}".strip()
        texts = {**help_texts("all"), **help_texts(full)}
        function = _with_help(getattr(module, full.replace(" ", "_")), texts)
        example = f"Example: pyhybrid {full} {texts['example']}"
        group.command(part or name, help=texts["line"], epilog=example)(function)
    return typer.main.get_command(group)


def _with_help(function: Any, texts: dict[str, str]) -> Any:
    """The function with its texts: keyword arguments are options, those before them arguments."""
    signature, parameters = inspect.signature(function, eval_str=True), []
    for name, parameter in signature.parameters.items():
        panel, text = re.fullmatch(r"(?:\((\w+)\) )?(.*)", texts[name]).groups()  # type: ignore[union-attr]
        text = text.replace("[default", "\\[default")
        default = ... if parameter.default is parameter.empty else parameter.default
        about: Any = typer.Argument(default, help=text)
        if parameter.kind is parameter.KEYWORD_ONLY:
            flag = f"--{name.replace('_', '-')}"
            names = [] if parameter.annotation == bool | None else [flag]
            about = typer.Option(default, *names, help=text, rich_help_panel=panel)
        parameters.append(parameter.replace(default=about))
    function.__signature__ = signature.replace(parameters=parameters)
    return function


app = typer.Typer(
    cls=_Commands, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
    help="Synthetic microdata from Bayesian models with a formal privacy guarantee.",
)  # fmt: skip


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Usage errors are one line and exit code 2."""
    command = typer.main.get_command(app)
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
        raise InvalidInput(_with_example(explain(), context)) from None
    if result == 130:  # typer's way to say that it caught Ctrl-C
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _with_example(message: str, context: Any) -> str:
    """A usage error with a call of the same command that is right."""
    said = " ".join(message.split()).rstrip(".") or "a command must be given"
    name = context.command_path.partition(" ")[2] if context else ""
    if not name:
        return f"{said}; pyhybrid --help lists the commands"
    example = help_texts(name).get("example", "--help")
    return f"{said}; a right call: pyhybrid {name} {example} (pyhybrid {name} --help)"


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(f"pyhybrid {pyhybrid.__version__}")
        raise typer.Exit
