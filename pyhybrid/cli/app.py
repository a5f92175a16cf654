"""The commands by name: each is a function of a module of this room, which is imported when it is
asked for."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

import pyhybrid
from pyhybrid.core.errors import InvalidInput, PyhybridError


class Command(NamedTuple):
    """The module of a command, its line in the list of all, and a call that is right."""

    module: str
    line: str
    example: str


COMMANDS = {
    "describe": Command(
        "describe", "Show what a table holds: kinds of columns, and what needs a decision.",
        "survey.csv",
    ),
    "synthesize": Command(
        "synthesize",
        "Release synthetic data: a whole table, or columns by formulas, the others unchanged.",
        "survey.csv --formula 'visits ~ age' --model negative_binomial --out out",
    ),
    "compare": Command(
        "comparing",
        "Compare mechanisms on one table: bounds, epsilons, weights, estimates. Confidential.",
        "survey.csv --formula 'visits ~ age' --out compared",
    ),
    "curve": Command(
        "comparing",
        "Draw the risk-utility curve of (scale, shift) and of scalar weights. Confidential.",
        "survey.csv --formula 'visits ~ age' --scales 1,0.6 --out curve",
    ),
    "calibrate": Command(
        "calibrate",
        "Freeze weights and cap on reference records, for strict releases of new ones.",
        "earlier.csv --formula 'visits ~ age' --epsilon 1 --out center",
    ),
    "mask": Command(
        "mask", "Mask quasi-identifiers by multiple imputation. NOT differentially private.",
        "survey.csv --key age:radius=2 --key sex --out masked",
    ),
    "utility": Command(
        "measures",
        "Measure the utility of synthetic data from anywhere: pMSE, ECDFs, models. Confidential.",
        "survey.csv out --columns visits,age",
    ),
    "risk": Command(
        "measures",
        "Measure the disclosure risk of synthetic data from anywhere, by matching. Confidential.",
        "survey.csv out --key age:radius=2 --key sex",
    ),
    "ledger": Command(
        "ledger", "Keep the privacy budget of a data set, and list the releases that used it.",
        "create budget.jsonl --budget 4 --kind strict --relation remove --delta 1e-6",
    ),
    "validate": Command(
        "validation", "Compare Python with R on this machine; exit code 1 on any disagreement.",
        "survey.csv --formula 'visits ~ age' --model poisson",
    ),
    "study": Command(
        "studies", "Run the papers' studies, and compare them with the published numbers.",
        "run A --out study-A",
    ),
    "report": Command(
        "report", "Show where the report of a release is, or make it from the confidential table.",
        "out --data survey.csv --overwrite",
    ),
    "open": Command("report", "Open the report of a release in a browser.", "out"),
    "notebook": Command(
        "studies", "Execute a notebook of the papers' studies, and write it as one HTML page.",
        "01_quick_start --out quick_start.html",
    ),
    "demo": Command(
        "demo",
        "Release real data (RAND outpatient visits): as in the papers, and strictly at epsilon 1.",
        "--out pyhybrid-demo",
    ),
    "doctor": Command(
        "validation", "Show which engines can run here, what is missing, and how to install it.",
        "--all",
    ),
}  # fmt: skip

SUBCOMMANDS = {
    "ledger create": COMMANDS["ledger"].example, "ledger show": "show budget.jsonl",
    "study list": "list", "study run": COMMANDS["study"].example,
    "study summary": "summary study-A", "study table": "table study-A --out study-A.md",
}  # fmt: skip
"""Calls of the subcommands, each of which runs after those before it."""


class _Commands(TyperGroup):
    """The commands, imported one by one; their list imports none."""

    listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        if self.listing:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name].line)
        return command_of(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False


@functools.cache
def command_of(name: str) -> Any:
    """The command of a name, its module imported: a function, or the group `commands`."""
    module = importlib.import_module(f"pyhybrid.cli.{COMMANDS[name].module}")
    function = getattr(module, name, None)
    group = typer.Typer(add_completion=False) if function else module.commands
    if function:
        group.command(name, help=COMMANDS[name].line)(function)
    command = typer.main.get_command(group)
    command.name, command.help = name, COMMANDS[name].line
    command.epilog = f"Example: pyhybrid {name} {COMMANDS[name].example}"
    for part_name, part in getattr(command, "commands", {}).items():
        part.epilog = f"Example: pyhybrid {name} {SUBCOMMANDS[f'{name} {part_name}']}"
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
        raise InvalidInput(
            _with_example(explain(), arguments, getattr(error, "ctx", None))
        ) from None
    if result == 130:  # typer's way to say that it caught Ctrl-C
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _with_example(message: str, arguments: Sequence[str], context: Any) -> str:
    """A usage error with a call of the same command that is right."""
    said = " ".join(message.split()).rstrip(".") or "a command must be given"
    name = next((word for word in arguments if word in COMMANDS), None)
    if name is None:
        from pyhybrid.core.checks import did_you_mean  # imports numpy, which help texts do not need

        meant = did_you_mean(next(iter(arguments), ""), COMMANDS)
        return f"{said}{meant}; pyhybrid --help lists the commands"
    path = context.command_path if context else f"pyhybrid {name}"
    call = SUBCOMMANDS.get(path.removeprefix("pyhybrid "), COMMANDS[name].example)
    return f"{said}; a right call: pyhybrid {name} {call} ({path} --help)"


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(f"pyhybrid {pyhybrid.__version__}")
        raise typer.Exit
