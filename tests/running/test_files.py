"""Files whole or not at all, one lock, one rule of who can read what, and no second of each."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

import pyhybrid
from pyhybrid.core.errors import SaveFailed
from pyhybrid.running import files
from pyhybrid.running.files import file_aside, folder_aside, lock, write_files
from tests.refusals import fails, no_space, refuses

ROOT = Path(pyhybrid.__file__).parent


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("private", "expected"), [(True, 0o600), (False, 0o644)])
def test_a_file_takes_its_place_when_it_is_whole(
    private: bool, expected: int, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "file.txt"
    with file_aside(target, private=private) as aside:
        aside.write_text("whole")
        assert not target.exists()
        assert mode(aside) == 0o600, "until it is in place only its owner can read it"
    assert (target.read_text(), mode(target)) == ("whole", expected)
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt(), ValueError()])
def test_what_stops_leaves_the_older_file(error: BaseException, tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")

    def write() -> None:
        with file_aside(target, private=True) as aside:
            aside.write_text("half")
            raise error

    fails(SaveFailed if isinstance(error, OSError) else type(error), "", write)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_several_files_are_all_written_or_none(tmp_path: Path, monkeypatch: Any) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    two.write_text("in the way")
    refuses("must be a new file", write_files, {one: "1", two: b"2"}, private=True, overwrite=False)
    assert {path.name for path in tmp_path.iterdir()} == {"two"}
    write_files({one: "1", two: b"2"}, private=True)
    assert (one.read_text(), two.read_text(), mode(two)) == ("1", "2", 0o600)
    said = "report .* must be a file: it is a folder"
    refuses(said, files.check_new_file, tmp_path, overwrite=True, what="report")
    monkeypatch.setattr(os, "fsync", no_space)
    fails(SaveFailed, "No space left", write_files, {one: "3", two: "4"}, private=True)
    assert (one.read_text(), two.read_text()) == ("1", "2")


def test_a_folder_is_private_to_its_last_file(tmp_path: Path) -> None:
    files.write_folder(tmp_path / "kept", {"a": "1", "b": b"2"}, overwrite=False)
    with folder_aside(tmp_path / "deep", overwrite=False, private=True) as aside:
        (aside / "inner").mkdir()
        (aside / "inner" / "file").write_text("1")
        assert mode(aside) == 0o700
    assert mode(tmp_path / "kept") == mode(tmp_path / "deep") == 0o700
    found = [*(tmp_path / "kept").iterdir(), *(tmp_path / "deep").rglob("*")]
    assert {mode(path) for path in found if path.is_file()} == {0o600}
    assert {mode(path) for path in found if path.is_dir()} == {0o700}
    (tmp_path / "deep/inner/file").chmod(0o644)
    files.make_private(tmp_path / "deep")
    assert mode(tmp_path / "deep/inner/file") == 0o600
    with folder_aside(tmp_path / "open", overwrite=False, private=False) as aside:
        (aside / "file").write_text("1")
        assert mode(aside) == 0o700
    assert mode(tmp_path / "open") == 0o755


def test_a_folder_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()

    def write() -> None:
        with folder_aside(tmp_path / "out", overwrite=False, private=False):
            (tmp_path / "out/file").write_text("another's")

    refuses("must be empty or new", write)
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")] == ["out", "out/file"]
    (tmp_path / ".out.old-x/release").mkdir(parents=True)  # of a run that was killed
    with folder_aside(tmp_path / "out", overwrite=True, private=False):
        pass
    assert [*tmp_path.rglob("*")] == [tmp_path / "out"]


def test_a_lock_is_held_once_and_goes_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    with path.open("r+b") as stream:
        with path.open("r+b") as other:
            assert lock(other.fileno())
            assert not lock(stream.fileno())
            assert not lock(stream.fileno(), wait=0.2)
        assert lock(stream.fileno()), "what was closed, as by a kill, holds nothing"
        files.unlock(stream.fileno())
        assert lock(stream.fileno())
