"""Files of a later format are refused by name, and left as they are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyhybrid as ph
from pyhybrid.masking import MaskedRelease
from tests.fuzzing.files import stored
from tests.refusals import refuses

LATER: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "release": ("confidential/run.json", ph.Release.load),
    "masked release": ("confidential/run.json", MaskedRelease.load),
    "calibration": ("calibration.json", ph.mechanisms.Calibration.load),
    "study": ("study.json", ph.studies.load_study),
}


@pytest.mark.parametrize("kind", LATER)
def test_a_later_format_is_refused_with_the_reason_and_left_alone(
    kind: str, tmp_path: Path
) -> None:
    file, read = LATER[kind]
    for name, content in stored(kind).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    later = json.dumps({**json.loads((tmp_path / file).read_text()), "format": 99})
    (tmp_path / file).write_text(later)
    refuses(r"(?s)format.*99", read, tmp_path)
    assert (tmp_path / file).read_text() == later


def test_a_later_ledger_is_refused(tmp_path: Path) -> None:
    content = {"budget": 500, "kind": "strict", "relation": "remove", "format": 99}
    (tmp_path / "ledger").write_text(json.dumps(content) + "\n")
    refuses("must be a ledger of format 2", ph.Ledger, tmp_path / "ledger")
