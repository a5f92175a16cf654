"""The layout holds: imports go down only, the array core is pure, importing does no work."""

import ast
import graphlib
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pyhybrid as ph

ROOT = Path(ph.__file__).parent
ROOMS = (
    "core", "rbridge", "running", "privacy", "arrays", "measures", "primitives",
    "engines", "models", "sources", "fitting", "releases", "mechanisms",
    "tables", "masking", "studies", "reports", "validation", "cli",
)  # fmt: skip
"""From the ground up: each imports only those named before it; CONTRIBUTING.md says what for."""
MOST_LINES = {
    "core": 650, "rbridge": 650, "running": 450, "privacy": 3000, "sources": 850,
    "measures": 2900, "primitives": 1050, "engines": 1800, "models": 7050, "fitting": 1450,
    "releases": 2000, "mechanisms": 6950, "tables": 2350, "masking": 2600, "studies": 4050,
    "reports": 2550, "validation": 1500, "cli": 2400,
}  # fmt: skip
"""Of each room: lowered as it shrinks, never raised without another that falls by as much."""
ARRAYS = (
    "core/errors", "core/checks", "privacy", "arrays", "measures/combining", "measures/estimates",
    "primitives",
)  # fmt: skip
"""What a statistician checks with pencil and paper: numpy and scipy only."""
OWNERS = {
    "rpy2": "rbridge", "cmdstanpy": "engines/cmdstan", "stanli": "engines/embedded",
    "matplotlib": "reports", "typer": "cli", "rich": "cli", "ibis": "sources", "dask": "sources",
}  # fmt: skip
FILES = sorted(ROOT.rglob("*.py"))


def _name(path: Path) -> str:
    """Dotted name of a module; a package's __init__ has the package's."""
    parts = [part for part in path.relative_to(ROOT).with_suffix("").parts if part != "__init__"]
    return ".".join(["pyhybrid", *parts])


MODULES = {_name(path): path for path in FILES}


@cache
def _imports(source: str) -> set[str]:
    """All that a file imports anywhere: in functions and for type checking, too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in whole}
    return found


def _room(module: str) -> str:
    return module.split(".")[1]


def _upward(room: str, source: str) -> set[str]:
    own = {_room(name) for name in _imports(source) if name.startswith("pyhybrid.")}
    return {other for other in own if ROOMS.index(other) > ROOMS.index(room)}


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle of imports, or none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def _graph() -> dict[str, set[str]]:
    own = {name: _imports(path.read_text()) for name, path in MODULES.items()}
    return {name: (found & set(MODULES)) - {name, "pyhybrid"} for name, found in own.items()}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down_only(path: Path) -> None:
    if path.parent == ROOT and path.stem.startswith("__"):
        return
    assert _upward(_room(_name(path)), path.read_text()) == set()


def test_there_is_no_circle_of_imports_anywhere() -> None:
    """Within a room and under TYPE_CHECKING, too."""
    assert _circle(_graph()) == []


def test_the_check_sees_a_circle() -> None:
    lazily = "def save():\n    from pyhybrid.releases.folder import save_release"
    for_types = "if TYPE_CHECKING:\n    from pyhybrid.releases.folder import save_release"
    for source in (lazily, for_types):
        graph = {"pyhybrid.privacy.bounds": _imports(source), "pyhybrid.releases.folder": set()}
        assert _circle(graph) == []
        graph["pyhybrid.releases.folder"].add("pyhybrid.privacy.bounds")
        assert len(_circle(graph)) == 3


def test_every_room_is_there_and_in_the_table_of_contributing() -> None:
    assert set(ROOMS) == {_room(name) for name in MODULES if "." in name} - {"__main__"}
    table = (ROOT.parent / "CONTRIBUTING.md").read_text()
    rows = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert rows == [*ROOMS]


def test_no_room_outgrows_its_cap() -> None:
    lines = dict.fromkeys(MOST_LINES, 0)
    for name, path in MODULES.items():
        if _room(f"{name}.") in lines:
            lines[_room(name)] += len(path.read_text().splitlines())
    assert {room: n for room, n in lines.items() if n > MOST_LINES[room]} == {}
    assert {room: n for room, n in lines.items() if n < MOST_LINES[room] - 100} == {}, "lower it"


def test_the_front_is_no_way_up() -> None:
    """It knows every room, so that it could hide an import of any: the pages that a release writes
    for its owner, and its figure, are all that a room below takes through it."""
    taken = {
        (node.value.attr, node.attr, _room(name))
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and isinstance(node.value.value, ast.Name)
        and node.value.value.id == "pyhybrid"
    }
    upward = {(name, room) for above, name, room in taken if ROOMS.index(above) > ROOMS.index(room)}
    assert upward == {
        ("release_pages", "releases"), ("plot_release", "releases"), ("masked_pages", "masking"),
    }  # fmt: skip


def test_the_check_sees_an_import_that_goes_up() -> None:
    assert _upward("privacy", "from pyhybrid.models import Poisson") == {"models"}
    assert _upward("privacy", "def f():\n    import pyhybrid.cli.app") == {"cli"}
    assert _upward("privacy", "if TYPE_CHECKING:\n    import pyhybrid.cli.app") == {"cli"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_heavy_library_has_one_importer(path: Path) -> None:
    place = path.relative_to(ROOT).with_suffix("").as_posix()
    for name in _imports(path.read_text()):
        owner = OWNERS.get(name.split(".")[0])
        assert owner is None or place.startswith(owner), f"{place} imports {name}"


def test_the_array_core_needs_numpy_and_scipy_only() -> None:
    allowed = {"numpy", "scipy", "pyhybrid", *sys.stdlib_module_names}
    allowed_here = {"primitives": {"opendp"}}
    for room in ARRAYS:
        for path in [*ROOT.glob(f"{room}.py"), *ROOT.glob(f"{room}/*.py")]:
            used = {name.split(".")[0] for name in _imports(path.read_text())}
            assert used <= allowed | allowed_here.get(room, set()), path


@pytest.mark.parametrize(("module", "others"), [
    ("pyhybrid", ("numpy", "pandas", "scipy", "stanli", "arviz")),
    ("pyhybrid.releases.release", ("pyhybrid.reports",)),
])  # fmt: skip
def test_importing_imports_nothing_unasked(module: str, others: tuple[str, ...]) -> None:
    assert _run(f"import {module}", others).stdout.strip() == "[]"


def _run(code: str, others: tuple[str, ...], where: Path = ROOT) -> Any:
    """What a process says that runs `code`; last, which of `others` it imported."""
    code += f"\nimport sys; print([name for name in sys.modules if name.startswith({others})])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=where
    )


SLOW = ("scipy.optimize", "scipy.stats", "sklearn", "statsmodels", "matplotlib", "arviz", "stanli")


@pytest.mark.parametrize(("command", "slow"), [
    ("--help", ("numpy", "pyhybrid.cli.validation")),
    ("synthesize survey.csv --formula nope~x --out out", SLOW),
    pytest.param("utility --help", SLOW, marks=pytest.mark.long),
    pytest.param("validate survey.csv --formula nope~x", SLOW, marks=pytest.mark.long),
])  # fmt: skip
def test_help_and_refusals_wait_for_no_library_that_they_do_not_use(
    command: str, slow: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "survey.csv").write_text("x,y\n1,2\n2,3\n")
    code = (
        f"import runpy, sys; sys.argv = ['pyhybrid', *{command.split()}]\n"
        "try: runpy.run_module('pyhybrid', run_name='__main__')\nexcept SystemExit: pass"
    )
    done = _run(code, slow, tmp_path)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "a column of the data" in done.stderr or "--help" in done.stdout
    assert command != "--help" or "doctor" in done.stdout


def test_modules_keep_to_their_size() -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in FILES}
    assert {path.name: n for path, n in sizes.items() if n > 700} == {}


def test_functions_keep_to_their_size() -> None:
    """60 lines of code at most; docstrings and the option lists of the command line aside."""
    long = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body and (node.end_lineno or 0) - body[0].lineno + 1 > 60:
                    long.append(f"{path.name}:{node.name}")
    assert long == []
