"""The layout holds: imports go down only, the array core is pure, importing does no work."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pyhybrid as ph

ROOT = Path(ph.__file__).parent
MOST_LINES = {
    "core": 650, "rbridge": 550, "running": 450, "privacy": 2700, "arrays": 100, "measures": 2600,
    "primitives": 900, "engines": 1650, "models": 6450, "sources": 1000, "fitting": 1400,
    "releases": 1650, "mechanisms": 5950, "tables": 2350, "masking": 2350, "studies": 3950,
    "reports": 2100, "validation": 1150, "cli": 2150,
}  # fmt: skip
"""Rooms from the ground up: each imports only those named before it; CONTRIBUTING.md says what for.
A cap is lowered as its room shrinks, never raised without another that falls by as much."""
ROOMS = [*MOST_LINES]
ARRAYS = (
    "core.errors", "core.checks", "privacy", "arrays", "measures.combining", "measures.estimates",
    "primitives",
)  # fmt: skip
"""What a statistician checks with pencil and paper: numpy and scipy only."""
OWNERS = {
    "rpy2": "rbridge", "cmdstanpy": "engines.cmdstan", "stanli": "engines.embedded",
    "matplotlib": "reports", "typer": "cli", "rich": "cli", "ibis": "sources", "dask": "sources",
}  # fmt: skip


def _name(path: Path) -> str:
    """Dotted name of a module; a package's __init__ has the package's."""
    parts = [part for part in path.relative_to(ROOT).with_suffix("").parts if part != "__init__"]
    return ".".join(["pyhybrid", *parts])


TEXTS = {_name(path): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(text) for name, text in TEXTS.items()}


def _imports(tree: ast.Module) -> set[str]:
    """All that a file imports anywhere: in functions and for type checking, too."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in TEXTS else node.module for name in names}
    return found


IMPORTS = {name: _imports(tree) for name, tree in TREES.items()}


def _room(module: str) -> str:
    return module.split(".")[1]


def _upward(room: str, imports: set[str]) -> set[str]:
    rooms = {_room(name) for name in imports if name.startswith("pyhybrid.")}
    return {other for other in rooms if ROOMS.index(other) > ROOMS.index(room)}


def _circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of a circle of imports, or none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_imports_go_down_only_and_in_no_circle() -> None:
    """Within a room and under TYPE_CHECKING, too."""
    below = {name: found for name, found in IMPORTS.items() if _room(f"{name}.") in ROOMS}
    upward = {name: _upward(_room(name), found) for name, found in below.items()}
    assert {name: rooms for name, rooms in upward.items() if rooms} == {}
    graph = {name: (found & set(TEXTS)) - {name, "pyhybrid"} for name, found in IMPORTS.items()}
    assert _circle(graph) == []


@pytest.mark.parametrize("source", [
    "from pyhybrid.models import Poisson", "def f():\n    import pyhybrid.cli.app",
    "if TYPE_CHECKING:\n    from pyhybrid.releases.folder import save_release",
])  # fmt: skip
def test_the_checks_see_an_import_that_goes_up_and_a_circle(source: str) -> None:
    (module,) = imports = _imports(ast.parse(source))
    assert _upward("privacy", imports) == {_room(module)}
    assert _circle({"pyhybrid.privacy": imports, module: set()}) == []
    assert len(_circle({"pyhybrid.privacy": imports, module: {"pyhybrid.privacy"}})) == 3


def test_every_room_is_there_and_in_the_table_of_contributing() -> None:
    assert set(ROOMS) == {_room(name) for name in TEXTS if "." in name} - {"__main__"}
    table = (ROOT.parent / "CONTRIBUTING.md").read_text()
    assert re.findall(r"^\| `(\w+)`", table, re.M) == ROOMS


def test_rooms_modules_and_functions_keep_to_their_size() -> None:
    """60 lines of code of a function at most; docstrings aside."""
    lines, rooms, long = {}, dict.fromkeys(MOST_LINES, 0), []
    for name, tree in TREES.items():
        lines[name] = len(TEXTS[name].splitlines())
        if _room(f"{name}.") in rooms:
            rooms[_room(name)] += lines[name]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body and (node.end_lineno or 0) - body[0].lineno + 1 > 60:
                    long.append(f"{name}.{node.name}")
    assert {room: n for room, n in rooms.items() if n > MOST_LINES[room]} == {}
    assert {room: n for room, n in rooms.items() if n < MOST_LINES[room] - 100} == {}, "lower it"
    assert {name: n for name, n in lines.items() if n > 700} == {}
    assert long == []


def test_the_front_is_no_way_up() -> None:
    """It knows every room, so that it could hide an import of any: the pages that a release writes
    for its owner are all that a room below takes through it."""
    attributes = {
        (ast.unparse(node), _room(name))
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
    }
    taken = [(*text.split("."), room) for text, room in attributes if text.count(".") == 2]
    upward = {
        (name, room) for front, above, name, room in taken
        if front == "pyhybrid" and ROOMS.index(above) > ROOMS.index(room)
    }  # fmt: skip
    assert upward == {("release_pages", "releases"), ("masked_pages", "masking")}


def test_heavy_libraries_have_one_importer_and_the_array_core_none() -> None:
    core = tuple(f"pyhybrid.{room}" for room in ARRAYS)
    allowed = {"numpy", "scipy", "pyhybrid", *sys.stdlib_module_names}
    for name, found in IMPORTS.items():
        used = {other.split(".")[0] for other in found}
        owners = {library: OWNERS[library] for library in used & set(OWNERS)}
        assert all(name.startswith(f"pyhybrid.{owner}") for owner in owners.values()), name
        if name.startswith(core):
            assert used <= allowed | ({"opendp"} if "primitives" in name else set()), name


SLOW = ("scipy.optimize", "scipy.stats", "sklearn", "statsmodels", "matplotlib", "arviz", "stanli")


def _run(code: str, others: tuple[str, ...], where: Path) -> Any:
    """What a process says that runs `code`; last, which of `others` it imported."""
    code += f"\nimport sys; print([name for name in sys.modules if name.startswith({others})])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=where
    )
    assert done.stdout.splitlines()[-1] == "[]"
    return done


def test_importing_imports_nothing_unasked() -> None:
    _run("import pyhybrid", ("numpy", "pandas", "scipy", "stanli", "arviz"), ROOT)
    _run("import pyhybrid.releases.release", ("pyhybrid.reports",), ROOT)


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
    assert "a column of the data" in done.stderr or "--help" in done.stdout
    assert command != "--help" or "doctor" in done.stdout
