"""The public names: few at the top, typed, the others in rooms that the old names lead to."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyhybrid as ph
from tests.refusals import fails

ROOT = Path(ph.__file__).parent


def test_the_top_is_held_in_the_head_and_every_name_is_there() -> None:
    assert len(ph.__all__) <= 60
    for name in ph.__all__:
        assert getattr(ph, name) is not None
    assert set(ph.__all__) <= set(dir(ph))
    fails(AttributeError, "no attribute 'nothing'", getattr, ph, "nothing")
    for room in ph.ROOMS:
        module = importlib.import_module(f"pyhybrid.{room}")
        assert module is getattr(ph, room)
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_a_name_that_moved_says_where() -> None:
    for name, room in {
        "pool": "measures", "delta_of_mu": "arrays", "SamplerSettings": "engines",
        "LedgerEntry": "releases", "dp_kmeans": "primitives", "release_pages": "reports",
    }.items():  # fmt: skip
        fails(AttributeError, rf": it is ph\.{room}\.{name}$", getattr, ph, name)
        assert getattr(getattr(ph, room), name) is not None
    fails(AttributeError, "did you mean 'Poisson'", getattr, ph, "Poison")


@pytest.mark.long
def test_a_type_checker_knows_every_name_and_finds_wrong_arguments(tmp_path: Path) -> None:
    """mypy strict on a user's script: every name would be Any without the stub."""
    wrong = {
        "ph.Poisson(3)": 'incompatible type "int"',
        'ph.LipschitzWeighted(ph.Poisson("y ~ 1"), scal=1.0)': '"scal"',
        "ph.measures.pmse()": "Missing positional argument", "ph.Poison": "has no attribute",
        "count: int = ph.epsilon_of_mu(1.0, 1e-6)": "Incompatible types",
    }  # fmt: skip
    script = tmp_path / "script.py"
    good = "import pandas as pd\nimport pyhybrid as ph\n" + "\n".join(GOOD)
    script.write_text(good + "\n" + "\n".join(wrong) + "\n")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir",
         str(ROOT.parent / ".mypy_cache"), str(script)],
        capture_output=True, text=True, check=False, cwd=ROOT.parent,
    )  # fmt: skip
    told = {
        int(line): message
        for line, message in re.findall(r"script\.py:(\d+): error: (.*)", found.stdout)
    }
    first = good.count("\n") + 2
    assert set(told) == set(range(first, first + len(wrong))), found.stdout
    for place, words in enumerate(wrong.values()):
        assert words in told[first + place]


GOOD = (
    'table = pd.DataFrame({"y": [0, 1, 2]})',
    'mechanism = ph.LipschitzWeighted(ph.Poisson("y ~ 1"), scale=1.0)',
    "release = mechanism.release(table, n_synthetic=3, seed=1)",
    "sets: list[pd.DataFrame] = list(release.synthetic)", "epsilon: float = release.charge.epsilon",
)  # fmt: skip
