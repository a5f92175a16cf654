"""Files written by an earlier version are read; those of a later format are refused by name.

tests/stored/format_1 was written once by tests/stored/make_stored.py and is never written anew.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking import MaskedRelease
from pyhybrid.releases.chained_file import _hash
from pyhybrid.running.resumable import open_parts
from tests.refusals import refuses
from tests.stored.make_stored import people

STORED = Path(__file__).parents[1] / "stored" / "format_1"
TEXT = str(pd.Series(["a"]).dtype)  # "object" before pandas 3, which stored these files
RELEASES = ["release", "censored", "sequential", "histogram"]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORED, tmp_path / "stored"))


@pytest.mark.parametrize("name", RELEASES)
def test_stored_releases_are_read_and_kept(name: str, stored: Path) -> None:
    release, table = ph.Release.load(stored / name), people()
    for synthetic in release.synthetic:
        kept = [c for c in table.columns if c not in release.synthesized and c != "note"]
        pd.testing.assert_frame_equal(synthetic[kept], table[kept])
        assert synthetic.dtypes.equals(table.dtypes)
        assert synthetic["note"].fillna("").tolist() == table["note"].tolist()
    public = json.loads((stored / name / "public/charge.json").read_text())
    assert json.loads(json.dumps(release.charge.public())) == public
    charge = release.charge
    for fact in (f"epsilon = {charge.epsilon:g}**", f"**{charge.kind}**", charge.mechanism):
        assert fact in release.statement  # its words may be better ones by now
        assert fact in (stored / name / "public/privacy_statement.md").read_text()
    release.save(stored / "again")
    for path in (stored / name / "public").iterdir():
        if path.name == "privacy_statement.md":
            continue
        expected = path.read_bytes().replace(b'"str"', f'"{TEXT}"'.encode())
        assert (stored / "again/public" / path.name).read_bytes() == expected
    assert ph.Release.load(stored / "again").identifier == release.identifier


def test_stored_numbers_are_what_they_were(stored: Path) -> None:
    release = ph.Release.load(stored / "release")
    assert release.charge.kind == "asymptotic local"
    assert release.charge.n_synthetic == 2
    assert release.confidential.entropy == 1
    assert release.confidential.alpha.shape == (20,)
    assert release.confidential.lipschitz.max() == release.charge.bound
    epsilon = ph.arrays.epsilon_of_bound(release.charge.bound, n_draws_released=2)
    assert epsilon == release.charge.epsilon
    censored = ph.Release.load(stored / "censored")
    assert (censored.charge.kind, censored.charge.epsilon) == ("strict", 4.0)
    assert censored.confidential.censored is not None
    parts = ph.Release.load(stored / "sequential").parts
    assert [part.synthesized for part in parts] == [("visits",), ("age",)]


def test_the_stored_ledger_is_read_and_goes_on(stored: Path) -> None:
    ledger = ph.Ledger(stored / "survey.ledger", allow_unlike=True)
    first, second = ledger.entries
    release = ph.Release.load(stored / "release")
    assert (ledger.budget, first.epsilon, second.epsilon) == (500, release.charge.epsilon, 0.5)
    if TEXT == "str":
        assert ledger.add(release).number == first.number  # known, and charged once
    else:  # digests of version 0.2 name dtypes: another pandas reads others
        refuses("must be as it was when entry 1", ledger.add, release)
    run = json.loads((stored / "release/confidential/run.json").read_text())
    assert run["ledger"] == {"entry": first.number, "sha256": first.sha256}
    # Of an earlier version: strict though its chains had not converged, and of data not noted.
    with pytest.raises(InvalidInput, match="strict charge must be of chains that have converged"):
        ledger.add(ph.Release.load(stored / "censored"))
    with pytest.raises(InvalidInput, match="which did not note it; release anew"):
        ledger.add(ph.Release.load(stored / "sequential"))


def test_the_stored_calibration_is_read(stored: Path) -> None:
    calibration = ph.mechanisms.Calibration.load(stored / "calibration")
    assert calibration.reference is None
    assert calibration.shared_with(calibration.model.bind(people())) is None
    assert not ph.Censored(calibration=calibration).is_strict(calibration.model.bind(people()))
    assert (calibration.cap, calibration.draws.n_draws) == (2.0, 20)
    bound = calibration.model.bind(people())
    if bound.program.sha256 != calibration.program_sha256:  # a later Stan program
        refuses("has another hash; calibrate again", calibration.weights, bound)
        return
    alpha = calibration.weights(bound)
    assert ((alpha >= 0) & (alpha <= 1)).all()
    assert alpha.max() == 1


def test_the_stored_points_and_study_are_read(stored: Path) -> None:
    header = json.loads((stored / "points.jsonl").read_text().splitlines()[0])
    with open_parts(stored / "points.jsonl", settings=header["settings"], seed=None) as parts:
        (point,) = [value for key, value in parts.parts.items() if "1.0" in key]
    assert [row["mechanism"] for row in point] == ["LW", "SW"]
    result = ph.studies.load_study(stored / "study")
    assert result.rows["replicate"].nunique() == 3
    values = result.rows.pivot(index="replicate", columns="quantity", values="value")
    np.testing.assert_allclose(values["square"], values["mean"] ** 2)


def test_the_stored_masked_release_is_read(stored: Path) -> None:
    release = MaskedRelease.load(stored / "masked")
    assert len(release.synthetic) == 2
    pd.testing.assert_series_equal(release.synthetic[0]["visits"], people()["visits"])
    assert not release.statement.differentially_private


def later(path: Path) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": 2}))


def later_line(path: Path) -> None:
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), "format": 2}), *rest]) + "\n")


def later_ledger(path: Path) -> None:
    content = {"budget": 500, "kind": "strict", "relation": "remove", "format": 2}
    line = {"number": 0, "previous": "", "content": content, "sha256": _hash(0, "", content)}
    path.write_text(json.dumps(line) + "\n")


LATER: dict[str, tuple[str, Callable[[Path], None], Callable[[Path], Any]]] = {
    "release": ("release/confidential/run.json", later, lambda p: ph.Release.load(p / "release")),
    "masked": ("masked/confidential/run.json", later, lambda p: MaskedRelease.load(p / "masked")),
    "calibration": (
        "calibration/calibration.json", later,
        lambda p: ph.mechanisms.Calibration.load(p / "calibration"),
    ),
    "study": ("study/study.json", later, lambda p: ph.studies.load_study(p / "study")),
    "points": (
        "points.jsonl", later_line,
        lambda p: open_parts(p / "points.jsonl", settings="", seed=None).__enter__(),
    ),
    "ledger": ("survey.ledger", later_ledger, lambda p: ph.Ledger(p / "survey.ledger")),
}  # fmt: skip


@pytest.mark.parametrize("name", LATER)
def test_a_later_format_is_refused_with_the_reason_and_left_alone(name: str, stored: Path) -> None:
    file, change, read = LATER[name]
    change(stored / file)
    before = (stored / file).read_bytes()
    refuses(r"(?s)format.*2", read, stored)
    assert (stored / file).read_bytes() == before


def test_stored_files_are_never_written_anew() -> None:
    """Whoever changes a format adds a folder; this one keeps its bytes."""
    digest = hashlib.sha256()
    for path in sorted(p for p in STORED.rglob("*") if p.is_file() and p.name != ".lock"):
        digest.update(path.relative_to(STORED).as_posix().encode() + path.read_bytes())
    assert digest.hexdigest() == "197c31fbcc3f3aa5054aa29951239c04eafdc920aa3f73df04c4c24366e2cdf6"


def test_every_test_that_the_security_page_names_exists() -> None:
    root = Path(__file__).parents[2]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (root / "SECURITY.md").read_text())
    assert len(named) > 20
    missing = [
        name for file, name in named if f"def {name}(" not in (root / file).read_text("utf-8")
    ]
    assert missing == []
    rows = [row for row in (root / "SECURITY.md").read_text().splitlines() if row.startswith("| ")]
    assert [row for row in rows if "::" not in row and "held by" not in row] == []
