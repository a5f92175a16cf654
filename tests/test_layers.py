"""The layout holds: imports (by import-linter's contracts in pyproject.toml), and sizes."""

import ast
import re
from pathlib import Path

from importlinter.cli import lint_imports

import pyhybrid as ph

ROOT = Path(ph.__file__).parent
MOST_LINES = {
    "core": 740, "rbridge": 500, "running": 400, "privacy": 2650, "arrays": 50, "measures": 2450,
    "primitives": 850, "engines": 1550, "models": 6250, "sources": 1000, "fitting": 1350,
    "releases": 1600, "mechanisms": 5700, "tables": 2340, "masking": 2250, "studies": 3450,
    "reports": 2095, "validation": 1000, "cli": 2050,
}  # fmt: skip
"""Lines of each room, from the ground up. A cap is lowered as its room shrinks, never raised
without another that falls by as much."""
TREES = {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def _room(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


def test_imports_go_down_only_and_heavy_libraries_have_one_importer() -> None:
    assert lint_imports(str(ROOT.parent / "pyproject.toml"), no_cache=True) == 0


def test_every_room_is_a_layer_and_in_the_table_of_contributing() -> None:
    contracts = (ROOT.parent / "pyproject.toml").read_text().partition("\nlayers = [")[2]
    assert re.findall(r'"(\w+)"', contracts.partition("]")[0]) == [*MOST_LINES][::-1]
    table = (ROOT.parent / "CONTRIBUTING.md").read_text()
    assert re.findall(r"^\| `(\w+)`", table, re.M) == [*MOST_LINES]


def test_rooms_modules_and_functions_keep_to_their_size() -> None:
    """60 lines of code of a function at most; docstrings aside."""
    lines, rooms, long = {}, dict.fromkeys(MOST_LINES, 0), []
    for path, tree in TREES.items():
        lines[path] = len(path.read_text().splitlines())
        if _room(path) in rooms:
            rooms[_room(path)] += lines[path]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body and (node.end_lineno or 0) - body[0].lineno + 1 > 60:
                    long.append(f"{path}: {node.name}")
    assert {room: n for room, n in rooms.items() if n > MOST_LINES[room]} == {}
    assert {room: n for room, n in rooms.items() if n < MOST_LINES[room] - 100} == {}, "lower it"
    assert {path: n for path, n in lines.items() if n > 700} == {}
    assert long == []


def test_the_front_is_no_way_up() -> None:
    """It knows every room, so that it could hide an import of any: the pages that a release writes
    for its owner are all that a room below takes through it."""
    rooms, upward = [*MOST_LINES], set()
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                name = re.fullmatch(r"pyhybrid\.(\w+)\.(\w+)", ast.unparse(node))
                if name and rooms.index(name[1]) > rooms.index(_room(path)):
                    upward.add((name[2], _room(path)))
    assert upward == {("release_pages", "releases"), ("masked_pages", "masking")}
