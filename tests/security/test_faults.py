"""Faults of the machine: each ends in a clear error or a correct result, nothing lost or left."""

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import EngineUnavailable, SaveFailed
from pyhybrid.engines.cmdstan import CmdStanEngine, compiled_program
from pyhybrid.mechanisms.censored.calibration import calibrate
from pyhybrid.tables.read import read_file
from tests.engines.test_cmdstan import PROGRAM, STORED, Fake
from tests.fits import fit_options
from tests.refusals import fails

ROOT = Path(__file__).parents[2]
OPTIONS = fit_options(chains=2, warmup=200, draws=100, on_not_converged="warn")
pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")


def counts(n: int = 40) -> pd.DataFrame:
    return pd.DataFrame({"y": np.random.default_rng(1).poisson(4, n)})


@pytest.fixture(scope="module")
def release() -> ph.Release:
    return ph.Unweighted(ph.Poisson("y ~ 1")).release(counts(), n_synthetic=2, refits=0, **OPTIONS)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB; where none may be mounted, a limit on the size of files."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)],
        capture_output=True, check=False,
    ).returncode == 0  # fmt: skip
    if mounted:
        yield place
        subprocess.run(["umount", str(place)], check=True)
        return
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, limits[1]))
    yield place
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.samples
def test_a_full_disk(release: ph.Release, full_disk: Path) -> None:
    big = ph.Unweighted(ph.Poisson("y ~ 1")).release(counts(60_000), refits=0, **OPTIONS)
    release.save(full_disk / "small", report=False)
    fails(SaveFailed, r"No space left|File too large", big.save, full_disk / "big", report=False)
    fails(SaveFailed, "", big.save, full_disk / "small", overwrite=True, report=False)
    assert [path.name for path in full_disk.iterdir()] == ["small"]
    assert ph.Release.load(full_disk / "small").identifier == release.identifier


@pytest.mark.samples
def test_a_full_disk_under_a_ledger_and_a_calibration(full_disk: Path, tmp_path: Path) -> None:
    ledger = ph.Ledger(full_disk / "l", budget=1e6, kind="strict", relation="replace")
    made = ph.PerturbedHistogram(column="y", lower=0, upper=50, n_bins=5, epsilon=1)
    entry = ledger.add(made.release(counts()))
    room = os.statvfs(full_disk)
    with contextlib.suppress(OSError):
        (full_disk / "filler").write_bytes(b"x" * (room.f_bavail * room.f_frsize))
    calibration = calibrate(
        ph.Poisson("y ~ 1"), counts(), epsilon=4, holds_no_released_record=True, **OPTIONS
    )
    if os.path.ismount(full_disk):
        fails(SaveFailed, "", calibration.save, full_disk / "calibration")
        assert {path.name for path in full_disk.iterdir()} == {"l", "filler"}
        failed = False
        for _ in range(20):  # a page may have room for a few lines
            try:
                entry = ledger.add(made.release(counts()))
            except SaveFailed:
                failed = True
                break
        assert failed
    assert ledger.entries[-1] == entry, "the file is as it was before the line that failed"


@pytest.mark.samples
@pytest.mark.parametrize("place", ["a folder of mine", "données/été", "日本 語", 'quote\'s "x"'])
def test_paths_with_spaces_and_letters(
    place: str, release: ph.Release, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / place
    release.save(home / "out", report=False)
    assert ph.Release.load(home / "out").identifier == release.identifier
    counts().to_csv(home / "data.csv", index=False)
    assert read_file(home / "data.csv").frame.equals(counts())
    ph.Ledger(home / "l", budget=1, kind="strict", relation="remove")
    monkeypatch.setenv("PYHYBRID_CACHE", str(home / "cache"))
    draws = CmdStanEngine().sample(PROGRAM, {"p": 2}, seed=1, settings=STORED)
    assert draws.n_draws == 40
    # Compiled, CmdStan runs below any path; it compiles where make can read the path.
    (home / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(home / "tmp"))
    assert CmdStanEngine().sample(PROGRAM, {"p": 2}, seed=1, settings=STORED).n_draws == 40
    other = replace(PROGRAM, text=f"{PROGRAM.text}// another")
    if " " in place:
        fails(EngineUnavailable, "set TMPDIR to another", compiled_program, other)
    assert list((home / "tmp").iterdir()) == []


def test_a_cache_that_cannot_be_written(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("a file where the folder should be")
    monkeypatch.setenv("PYHYBRID_CACHE", str(tmp_path / "file" / "cache"))
    fails(EngineUnavailable, "set PYHYBRID_CACHE to a folder of yours", compiled_program, PROGRAM)
    assert list(fake.temporary.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "other", "empty folder"])
def test_a_corrupt_cache_entry_is_built_anew(damage: str, fake: Fake) -> None:
    executable = compiled_program(PROGRAM)
    whole = executable.read_bytes()
    if damage == "cut":
        executable.write_bytes(whole[:10])
    elif damage == "other":
        executable.write_bytes(b"#!/bin/sh\nexit 3\n")
    else:
        shutil.rmtree(executable.parent)
        executable.parent.mkdir()
    assert compiled_program(PROGRAM).read_bytes() == whole
    assert fake.builds == 2
    assert [path.name for path in executable.parent.parent.iterdir()] == [executable.parent.name]


@pytest.mark.long
def test_two_processes_that_compile_one_program(fake: Fake, tmp_path: Path) -> None:
    makefile = fake.root / "makefile"
    makefile.write_text(makefile.read_text().replace("@echo build", "@sleep 1; echo build"))
    script = (
        "from tests.engines.test_cmdstan import PROGRAM\n"
        "from pyhybrid.engines.cmdstan import compiled_program\n"
        "import hashlib\n"
        "print(hashlib.sha256(compiled_program(PROGRAM).read_bytes()).hexdigest())\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(fake.temporary)})
        for _ in range(2)
    ]  # fmt: skip
    told = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(told) == 1
    assert len(list((tmp_path / "cache" / "cmdstan").iterdir())) == 1
    assert list(fake.temporary.iterdir()) == []


@pytest.mark.samples
def test_without_a_home_and_without_a_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("there is no network")

    (tmp_path / "home").write_text("no folder")
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("PYHYBRID_CACHE")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    release = ph.LipschitzWeighted(ph.Poisson("y ~ 1")).release(counts(), refits=0, **OPTIONS)
    release.save(tmp_path / "out", report=False)
    assert ph.Release.load(tmp_path / "out").charge == release.charge


ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "LANG": "C"}


@pytest.mark.long
def test_a_locale_without_letters(tmp_path: Path) -> None:
    table = pd.DataFrame({"visites_é": counts()["y"], "région": np.tile(["Zürich", "日本"], 20)})
    table.to_csv(tmp_path / "data.csv", index=False)
    script = """
        import sys
        from pyhybrid import cli
        assert sys.stdout.encoding != "utf-8", sys.stdout.encoding
        sys.argv = ["pyhybrid", "synthesize", "data.csv", "--formula", "`visites_\\u00e9` ~ 1",
                    "--out", "out", "--fit", "engine=embedded,on_not_converged=warn",
                    "--model", "negative_binomial", "--mechanism", "unweighted"]
        cli.main()
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), **ASCII}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "visites_\\xe9" in done.stdout
    saved = pd.read_csv(tmp_path / "out/public/synthetic_1.csv", encoding="utf-8")
    assert saved["région"].tolist() == table["région"].tolist()
    assert "visites_é" in (tmp_path / "out/public/privacy_statement.md").read_text("utf-8")
    assert json.loads((tmp_path / "out/confidential/run.json").read_text())["synthesized"]
