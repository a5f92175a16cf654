"""The walks of CONTRIBUTING.md are what a release does: its calls are recorded and compared."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph

pytestmark = pytest.mark.long  # each call is told to Python
ROOT = Path(ph.__file__).parent
SECTION = (
    (ROOT.parent / "CONTRIBUTING.md").read_text().split("**Three walks**")[1].split("\n\n**")[0]
)
WALKS = {
    re.sub(r"\s+", " ", each.split("*")[1]): re.findall(r"`([\w/]+\.py:\w+)`", each)
    for each in SECTION.split("\n- ")[1:]
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """All calls of functions of the package, in their order, of one release by its command."""
    from pyhybrid.cli.app import run

    folder = tmp_path_factory.mktemp("walk")
    rng = np.random.default_rng(1)
    pd.DataFrame({"y": rng.poisson(4, 40)}).to_csv(folder / "data.csv", index=False)
    found: list[str] = []

    def record(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            found.append(f"{Path(code.co_filename).relative_to(ROOT).as_posix()}:{code.co_name}")

    sys.setprofile(record)
    try:
        code = run(
            ["synthesize", str(folder / "data.csv"), "--out", str(folder / "out"), "--formula",
             "y ~ 1", "--model", "poisson", "--mechanism", "lipschitz", "--engine", "embedded",
             "--leave-one-out", "0", "--seed", "1"]
        )  # fmt: skip
    finally:
        sys.setprofile(None)
    assert code == 0
    return found


def _first_missing(walk: list[str], calls: list[str]) -> str | None:
    """The first step of a walk that is not called after the step before it."""
    left: Iterator[str] = iter(calls)
    return next((step for step in walk if step not in left), None)


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_is_what_a_release_calls_in_this_order(name: str, calls: list[str]) -> None:
    assert len(WALKS[name]) >= 6
    assert _first_missing(WALKS[name], calls) is None


def test_there_are_three_and_a_wrong_turn_is_seen(calls: list[str]) -> None:
    assert len(WALKS) == 3
    for walk in WALKS.values():
        assert _first_missing([*walk[:2], "cli/tables.py:no_such_function", *walk[2:]], calls)
        assert _first_missing(walk[::-1] * 3, calls), "three fits the other way round"
