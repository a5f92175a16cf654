"""The command line: `main` with options of every sort, in this process."""

import contextlib
import functools
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import typer
from hypothesis import strategies as st

import pyhybrid.engines
from pyhybrid.cli import main
from tests.fuzzing.files import csv_bytes
from tests.fuzzing.outcomes import nothing_partial, scratch_folder
from tests.fuzzing.tables import OFTEN, Recipe, formulas, recipes

_TEXT = st.one_of(
    st.sampled_from([
        "", "-1", "0", "nan", "inf", "1e400", "a=b", ":", ",", "x" * 300, "é", "--", "/",
        "../..", "y", "1,2", "true",
    ]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5),
)  # fmt: skip
_NUMBER = ["1", "0.5", "2", "1.0"]
_FORMULA = ["y ~ 1", "y ~ x", "y ~ x + g"]
_MECHANISM = [
    "unweighted", "lipschitz", "lipschitz:scale=0.7", "count", "count:radius=0.2,kind=absolute",
    "count:pattern=g", "scalar:target_epsilon=5", "truncated:epsilon=6", "censored:epsilon=4",
    "censored:epsilon=4,inner=unweighted",
    "perturbed_histogram:lower=0,upper=100,n_bins=5,epsilon=1", "lipschitz:reweighting=true",
    "lipschitz:scale", "count:pattern", "scalar", "lipschitz:scale=x", "truncated:inner=count",
    "censored:calibration=1", "given", "lipschitz:scale=0.7,scale=0.5",
]  # fmt: skip
_MODEL = [
    "negative_binomial", "poisson", "bernoulli", "bernoulli:levels=0+1", "bernoulli:levels=0",
    "beta_binomial", "beta_binomial:upper=300", "categorical", "categorical:levels=0+1+2",
    "ordinal", "ordinal:levels=0+1+2", "beta", "beta:lower=0,upper=100", "normal", "mixture",
    "mixture:n_components=2,transform=asinh", "beta:lower=x", "normal:transform=log",
    "beta_regression:upper=300", "mixture:n_components=0.5", "normal:unit=1e-300",
]  # fmt: skip
_SAMPLER = {
    "--chains": ["2", "1"], "--warmup": ["1"], "--draws": ["8", "3"], "--engine": ["embedded"],
    "--seed": ["1", "-1"], "--on-not-converged": ["warn", "raise", "ask"],
}  # fmt: skip
_OUT = {"--out": ["OUT", "OUT", "OUT/deep/er", "DATA", "FULL", ""]}
COMMANDS: dict[str, tuple[list[str], dict[str, list[str]]]] = {
    "synthesize": (
        ["DATA"],
        {
            **_OUT, "--formula": _FORMULA, "--model": _MODEL, "--mechanism": _MECHANISM, **_SAMPLER,
            "--scale": _NUMBER, "--shift": ["0", "-0.2"], "--transform": ["linear", "softmax"],
            "--threshold": _NUMBER, "--draw-quantile": ["0.9"], "--relation": ["remove", "replace"],
            "--safety-factor": ["1.05"], "--k": ["0.9"], "--n-synthetic": ["2", "0"],
            "--format": ["csv", "parquet"], "--ledger": ["LEDGER", "DATA"],
            "--calibration": ["DATA", "FULL"], "--reweight": [], "--single-step": [],
            "--one-draw": [], "--overwrite": [], "--allow-unlike": [],
        },
    ),
    "calibrate": (
        ["DATA"],
        {
            **_OUT, "--formula": _FORMULA, "--model": _MODEL, "--epsilon": ["4"],
            "--engine": ["embedded"], "--scale": _NUMBER, "--shift": ["0"], "--n-draws": ["5"],
            "--center": [], "--no-center": [], "--region": _NUMBER, "--public": [],
            "--relation": ["remove"], "--overwrite": [],
        },
    ),
    "utility": (
        ["DATA", "DATA"],
        {
            "--columns": ["y", "y,x", ""], "--categorical": ["y", "x"], "--formula": _FORMULA,
            "--model": ["ols", "poisson"], "--rule": ["single"], "--permutations": ["2", "1"],
            "--weights": ["x", "weights=y", "g", "weights=", ""], "--interactions": [],
            "--json": ["-", "OUT.json"], "--versus": ["DATA", "FULL"],
        },
    ),
    "risk": (
        ["DATA", "DATA"],
        {
            "--key": ["y", "y:radius=1", "x:radius=0.1,kind=relative", "g", "y:radius=", "y:q=1"],
            "--sensitive": ["y", "x:radius=1"], "--holdout": ["DATA"], "--rows-correspond": [],
            "--no-rows-correspond": [], "--json": ["-", "OUT.json"],
        },
    ),
    "mask": (
        ["DATA"],
        {
            **_OUT, "--key": ["y", "y,x", "", "y:radius=1"], "--copies": ["3"],
            "--variance": _NUMBER, "--separation": ["6"], "--association": ["sequential", "copula"],
            "--predictors": ["x", "g"], "--types": ["y=ordered", "y=text", "y"],
            "--n-synthetic": ["1"], "--formula": _FORMULA, "--model": ["ols", "probit"],
            "--k0": ["1"], "--on-not-converged": ["warn"],
            "--format": ["csv"], "--seed": ["1"], "--overwrite": [],
        },
    ),
    "ledger create": (
        ["NEW"],
        {
            "--budget": ["9", "0"], "--kind": ["strict", "asymptotic local"],
            "--relation": ["replace"],
        },
    ),
    "ledger show": (["LEDGER"], {"--json": ["-", "OUT.json"]}),
    "study list": ([], {}),
    "study summary": (["DATA"], {}),
    "study table": (["DATA"], {"--out": ["OUT"]}),
    "compare": (
        ["DATA"],
        {
            **_OUT, "--formula": ["y", "y ~ q"], "--mechanism": _MECHANISM, "--model": _MODEL,
            "--n-synthetic": ["0"], "--workers": ["0"],
        },
    ),
    "curve": (
        ["DATA"],
        {
            **_OUT, "--formula": ["y", "y ~ q"], "--scales": ["1,0.5", "x", ""], "--shifts": ["0"],
            "--model": _MODEL, "--workers": ["0"],
        },
    ),
}  # fmt: skip
_ALWAYS = {
    "synthesize": [
        "--out", "OUT", "--engine", "embedded", "--chains", "2", "--warmup", "1", "--draws", "8",
        "--on-not-converged", "warn",
    ],
    "calibrate": ["--out", "OUT", "--engine", "embedded", "--epsilon", "4"],
    "mask": ["--out", "OUT", "--key", "y", "--on-not-converged", "warn", "--n-synthetic", "1"],
    "compare": ["--out", "OUT", "--engine", "embedded"],
    "curve": ["--out", "OUT", "--engine", "embedded"],
    "risk": ["--key", "y"],
    "ledger create": ["--budget", "9", "--kind", "strict", "--relation", "replace"],
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Call:
    """Arguments, with DATA, OUT, ... standing for paths; and what the data file holds."""

    arguments: tuple[str, ...]
    data: Recipe | bytes


@st.composite
def calls(draw: Any, *commands: str) -> Call:
    """Calls of the commands named, or of any."""
    command = draw(st.sampled_from(sorted(commands or COMMANDS)))
    positional, options = COMMANDS[command]
    calm = draw(OFTEN)
    arguments = [*command.split(), *positional, *(_ALWAYS.get(command, []) if calm else [])]
    if calm and command in ("synthesize", "calibrate"):
        arguments += ["--formula", draw(st.one_of(st.sampled_from(_FORMULA), formulas()))]
    for name in draw(
        st.lists(st.sampled_from(sorted(options)), unique=True, max_size=3)
        if options
        else st.just([])
    ):
        arguments.append(name)
        if options[name]:
            right = st.sampled_from(options[name])
            arguments.append(draw(right if draw(OFTEN) else _TEXT))
    if not calm:
        place = draw(st.integers(0, len(arguments)))
        arguments[place:place] = [draw(_TEXT)]
    data = draw(recipes(plain=True, sizes=(20, 12, 3)) if draw(OFTEN) else csv_bytes())
    return Call(arguments=tuple(arguments), data=data)


def check_call(call: Call) -> bool:
    """Exit code 0, 1 or 2; a message where it is not 0; the output folder whole or not there."""
    with scratch_folder() as folder, _stand_in_engine():
        places = _places(call, folder)
        before = sorted(path for path in folder.rglob("*"))
        code, error = _run([_placed(argument, places) for argument in call.arguments])
        nothing_partial(folder)
        assert code in (0, 1, 2), f"exit code {code}"
        assert "Traceback" not in error
        if code == 2:
            assert error.strip()
            new = (path for path in folder.rglob("*") if path not in before and path.is_file())
            made = [path for path in new if path.name != "ledger"]
            assert made == []
    return code == 0


def _placed(argument: str, places: dict[str, str]) -> str:
    head, _, rest = argument.partition("/")
    return places[head] + ("/" + rest if rest else "") if head in places else argument


def _places(call: Call, folder: Path) -> dict[str, str]:
    data = folder / "data.csv"
    if isinstance(call.data, bytes):
        data.write_bytes(call.data)
    else:
        with contextlib.suppress(Exception):
            call.data.table().to_csv(data, index=False)
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("mine")
    from pyhybrid.releases.ledger import Ledger

    Ledger(folder / "ledger", budget=100, kind="asymptotic local", relation="remove")
    return {
        "DATA": str(data), "OUT": str(folder / "out"), "OUT.json": str(folder / "out.json"),
        "FULL": str(folder / "full"), "LEDGER": str(folder / "ledger"),
        "NEW": str(folder / "new ledger"),
    }  # fmt: skip


@contextlib.contextmanager
def _stand_in_engine() -> Iterator[None]:
    stand_in = {"embedded": "tests.fuzzing.engine:RandomDraws"}
    known = {**pyhybrid.engines.ENGINES, **stand_in, "cmdstan": stand_in["embedded"]}
    # Reports draw figures, and typer builds its parsers anew at each call: half a second of each.
    report = mock.patch("pyhybrid.reports.release.release_report", return_value="<html></html>")
    parser = mock.patch("typer.main.get_command", _parser)
    with mock.patch.object(pyhybrid.engines, "ENGINES", known), report, parser:
        yield


_build_parser = typer.main.get_command


@functools.cache
def _parser(app: typer.Typer) -> Any:
    return _build_parser(app)


def _run(arguments: list[str]) -> tuple[Any, str]:
    """Exit code and standard error of `pyhybrid ARGUMENTS`, run where a stray path does no harm."""
    error = io.StringIO()
    handlers = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}
    shown, home = warnings.showwarning, os.getcwd()
    with scratch_folder() as elsewhere:
        os.chdir(elsewhere)
        try:
            with (
                mock.patch.object(sys, "argv", ["pyhybrid", *arguments]),
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(error),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                main()
        except SystemExit as ended:
            return ended.code, error.getvalue()
        finally:
            os.chdir(home)
            warnings.showwarning = shown
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return None, error.getvalue()
