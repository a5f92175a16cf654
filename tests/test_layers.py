"""The layout holds: imports go down only, the array core is pure, importing does no work."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pyhybrid as ph

ROOT = Path(ph.__file__).parent
LAYERS = {
    0: {
        "errors", "randomness", "validation",
    },
    1: {
        "accounting", "auditing", "combining", "contingency", "disclosure", "histogram", "overlap",
        "primitives", "propensity", "risk", "utility", "weights",
    },
    2: {
        "engines", "models", "rbridge",
    },
    3: {
        "calibration", "calibration_files", "comparison", "curve", "curve_points",
        "fitting", "ledger", "ledger_file", "measures", "mechanisms", "modes", "release",
        "resumable", "reweighting", "sequential", "solve", "statement", "storage", "stored_parts",
        "synthesis", "tasks",
    },
    4: {
        "audits", "masking", "studies",
    },
    5: {
        "__main__", "agreement", "cli", "comparison_report", "curve_report", "notebook_pages", "mask_report",
        "measures_report", "page", "plots", "plots_curve", "plots_masking", "plots_measures",
        "plots_style", "release_measures", "report", "reweighting_report",
    },
}  # fmt: skip
LEVEL = {module: level for level, modules in LAYERS.items() for module in modules}
OWNERS = {
    "rpy2": "rbridge",
    "cmdstanpy": "engines/cmdstan",
    "stanli": "engines/embedded",
    "matplotlib": "plots",
    "typer": "cli",
    "rich": "cli",
}
FILES = sorted(ROOT.rglob("*.py"))


def _imports(source: str) -> list[str]:
    """Modules that a file imports anywhere, except those for type checking only."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


def _upward(home: str, source: str) -> list[str]:
    level = LEVEL[home]
    targets = [name.split(".")[1] for name in _imports(source) if name.startswith("pyhybrid.")]
    return [target for target in targets if LEVEL[target] > level]


def _home(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down_only(path: Path) -> None:
    if path == ROOT / "__init__.py":
        return
    assert _upward(_home(path), path.read_text()) == []


def test_every_module_of_the_layers_is_there() -> None:
    assert set(LEVEL) == {_home(path) for path in FILES} - {"__init__"}


def test_the_check_sees_an_import_that_goes_up() -> None:
    assert _upward("risk", "from pyhybrid.models import Poisson") == ["models"]
    assert _upward("risk", "def f():\n    import pyhybrid.cli.app") == ["cli"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_heavy_library_has_one_importer(path: Path) -> None:
    place = path.relative_to(ROOT).with_suffix("").as_posix()
    for name in _imports(path.read_text()):
        owner = OWNERS.get(name.split(".")[0])
        assert owner is None or place.startswith(owner), f"{place} imports {name}"


def test_the_array_core_needs_numpy_and_scipy_only() -> None:
    allowed = {"numpy", "scipy", "pyhybrid", *sys.stdlib_module_names}
    allowed_here = {"primitives": {"opendp"}}
    for module in LAYERS[0] | LAYERS[1]:
        for path in [*ROOT.glob(f"{module}.py"), *ROOT.glob(f"{module}/*.py")]:
            used = {name.split(".")[0] for name in _imports(path.read_text())}
            assert used <= allowed | allowed_here.get(module, set()), module


def test_importing_pyhybrid_imports_nothing_else() -> None:
    code = (
        "import sys, pyhybrid; "
        "print([m for m in ('numpy', 'pandas', 'scipy', 'stanli', 'arviz') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_resolves() -> None:
    for name in ph.__all__:
        assert getattr(ph, name) is not None
    assert set(ph.__all__) <= set(dir(ph))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ph.nothing  # noqa: B018


def test_modules_keep_to_their_size() -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in FILES}
    assert {path.name: n for path, n in sizes.items() if n > 400} == {}


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


def test_versions_agree() -> None:
    pyproject = (ROOT.parent / "pyproject.toml").read_text()
    description = (ROOT.parent / "DESCRIPTION").read_text()
    assert f'version = "{ph.__version__}"' in pyproject
    assert f"Version: {ph.__version__}\n" in description
