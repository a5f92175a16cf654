"""Whether the lower bounds in pyproject.toml are true: an environment with those versions.

    python .ci/lowest.py FOLDER [TEST ...]

makes a virtual environment in FOLDER, installs this package with every direct dependency at its
declared lower bound (what those need is the newest that they allow), and runs TESTS there. What
only R needs, or reads databases, is left out.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("dp", "report")
TOOLS = ("hypothesis>=6", "pytest>=8", "pyyaml>=6")
QUICK = (
    "tests/test_checks.py", "tests/cli", "tests/engines",
    "tests/measures", "tests/privacy", "tests/primitives", "tests/releases", "tests/tables",
    "tests/reports/test_release.py", "tests/models/test_formulas.py", "tests/masking",
)  # fmt: skip
# What an old version announces of a new one of its own libraries is no failure here.
QUIET = [f"-Wignore::{name}Warning" for name in ("Deprecation", "PendingDeprecation", "Future")]
_BOUND = re.compile(r'"([A-Za-z0-9_.-]+)>=([0-9.]+)[^"]*"')


def lower_bounds(pyproject: str) -> dict[str, str]:
    """Name and lower bound of each dependency of the package and of `EXTRAS`."""
    wanted = "|".join(("dependencies", *EXTRAS))
    lists = re.findall(rf"^(?:{wanted}) = \[(.*?)\]$", pyproject, re.MULTILINE | re.DOTALL)
    return dict(_BOUND.findall("\n".join(lists)))


def main(folder: Path, tests: list[str]) -> int:
    """Make the environment, show what is in it, run the tests; the tests' exit code."""
    bounds = lower_bounds((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in bounds.items()))
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "env"], check=True)
    python = folder.resolve() / "env" / "bin" / "python"
    here = f"{ROOT}[{','.join(EXTRAS)}]"
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", constraints]
    subprocess.run([*install, "--editable", here, *TOOLS], check=True)
    for name, version in bounds.items():
        print(f"{name} {version}", flush=True)
    paths = (ROOT / "tests").rglob("test_*.py")
    left_out = [f"--ignore={path}" for path in paths if "import duckdb" in path.read_text("utf-8")]
    command = [python, "-m", "pytest", *QUIET, *left_out, *(tests or QUICK)]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
