"""What is given away: sdist and wheel, the same bytes each time, which work anywhere."""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from datetime import date, datetime, timezone
from pathlib import Path

import pytest
import yaml

import pyhybrid
from tests.conftest import require
from tests.docs.snippets import python_snippets

ROOT = Path(__file__).resolve().parent.parent
EPOCH = 1_700_000_000


def _run(
    *command: str | Path, cwd: Path, epoch: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Without PYTHONPATH, so that only what is installed is found."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    if epoch is not None:
        environment["SOURCE_DATE_EPOCH"] = str(epoch)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def _build(source: Path, out: Path, *, epoch: int = EPOCH) -> dict[str, Path]:
    _run(sys.executable, "-m", "hatchling", "build", "-d", out, cwd=source, epoch=epoch)
    return {"sdist": next(out.glob("*.tar.gz")), "wheel": next(out.glob("*.whl"))}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """sdist and wheel from the repository."""
    return _build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def unpacked(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built["sdist"]) as archive:
        for member in archive.getmembers():
            inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
            assert inside, member.name
            archive.extract(member, folder)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def python(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment: the wheel, and the libraries of the running one."""
    folder = tmp_path_factory.mktemp("installed") / "env"
    _run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    _run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index",
        "--no-deps", built["wheel"], cwd=folder.parent,
    )  # fmt: skip
    # Only this folder: a line of a .pth adds no .pth files of the folder that it names.
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(_run(python, "-c", code, cwd=folder.parent).stdout.strip())
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_the_same_bytes_from_the_repository_and_from_the_sdist(
    kind: str, built: dict[str, Path], unpacked: Path, tmp_path: Path
) -> None:
    """Another folder, other times of files: the same archives, so the sdist lacks nothing."""
    pages = [*(unpacked / "docs" / "notebooks").glob("*.html")]
    assert len(pages) == len([*(ROOT / "notebooks").glob("*.ipynb")]), "the site links to them"
    again = _build(unpacked, tmp_path)
    assert built[kind].name == again[kind].name
    assert filecmp.cmp(built[kind], again[kind], shallow=False)


def test_times_in_the_wheel_are_those_of_the_epoch(built: dict[str, Path], tmp_path: Path) -> None:
    when = datetime.fromtimestamp(EPOCH, timezone.utc)
    with zipfile.ZipFile(built["wheel"]) as archive:
        times = {entry.date_time[:5] for entry in archive.infolist()}
    assert times == {(when.year, when.month, when.day, when.hour, when.minute)}
    later = _build(ROOT, tmp_path, epoch=EPOCH + 86_400)
    assert not filecmp.cmp(later["wheel"], built["wheel"], shallow=False)


def test_the_wheel_holds_programs_template_notebooks_and_r(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["wheel"]) as archive:
        names = set(archive.namelist())
    kept = {".ipynb", ".stan", ".R", ".html", ".jinja", ".txt", ".json", ".typed"}
    for room, least in {"stan": 9, "R": 9, "notebooks": 7, "pyhybrid": 11}.items():
        files = {p.relative_to(ROOT) for p in (ROOT / room).rglob("*") if p.suffix in kept}
        assert len(files) >= least, room
        inside = ROOT / "pyhybrid" if room == "pyhybrid" else ROOT
        assert {f"pyhybrid/{(ROOT / p).relative_to(inside).as_posix()}" for p in files} <= names
    assert not [n for n in names if n.startswith(("tests/", "docs/", "benchmarks/"))]


def test_only_the_installed_package_is_found(python: Path, tmp_path: Path) -> None:
    """Guards the tests below: nothing that they run may come from the repository."""
    code = "import pyhybrid, sys; print(pyhybrid.__file__); print(*sys.path, sep='\\n')"
    found, *path = _run(python, "-c", code, cwd=tmp_path).stdout.splitlines()
    assert Path(found).resolve().is_relative_to(python.parent.parent.resolve())
    assert str(ROOT) not in path


@pytest.mark.long
def test_the_demo_runs_from_the_wheel(python: Path, tmp_path: Path) -> None:
    command = python.with_name("pyhybrid")
    done = _run(command, "demo", "--out", "demo", "--fit", "engine=embedded", cwd=tmp_path)
    said = ("This is strict", "This is local", "20,190", "2 Delta", "epsilon = 1 at delta")
    assert [part for part in said if part not in done.stdout] == []
    for folder, kind in (("demo", "strict"), ("demo-local", "asymptotic local")):
        charge = json.loads((tmp_path / folder / "public" / "charge.json").read_text())
        assert (charge["kind"], charge["epsilon"] == 1) == (kind, kind == "strict")
        assert (tmp_path / folder / "confidential" / "report.html").stat().st_size > 10_000
        assert len(list((tmp_path / folder / "public").glob("synthetic_*"))) == 3


@pytest.mark.long
def test_snippets_and_commands_run_from_the_wheel(
    python: Path, unpacked: Path, tmp_path: Path
) -> None:
    """README's release, from the sdist's text; notebooks are listed; the programs are its own."""
    snippets = python_snippets(unpacked / "README.md")
    code = "\n".join(["import pyhybrid", *snippets, "print(strict.charge.epsilon)"])
    assert float(_run(python, "-c", code, cwd=tmp_path).stdout.splitlines()[-1]) > 0
    assert (tmp_path / "out" / "public" / "privacy_statement.md").is_file()
    listed = _run(python, "-m", "pyhybrid", "notebook", cwd=tmp_path).stdout
    assert "07_moving_from_r" in listed


@pytest.mark.needs_r
def test_functions_in_r_are_those_of_the_wheel(python: Path, tmp_path: Path) -> None:
    require(shutil.which("R") is not None, "R was not found")
    done = _run(python, "-c", _IN_R, cwd=tmp_path).stdout
    folder, value = done.splitlines()[-2:]
    assert Path(folder).resolve().is_relative_to(python.parent.parent.resolve())
    assert float(value) == pytest.approx(3.0)


_IN_R = """
import numpy as np, pathlib
from pyhybrid.rbridge import session
print(pathlib.Path(session._sources()[0]).parent)
found = session.call_r("lipschitz_bounds", log_lik=np.array([[-1.0, -3.0], [-2.0, -0.5]]))
print(found["overall"])
"""


@pytest.mark.needs_r
def test_r_installs_from_the_sdist(unpacked: Path, tmp_path: Path) -> None:
    require(shutil.which("R") is not None, "R was not found")
    copy = tmp_path / "source"
    shutil.copytree(unpacked, copy)
    library = tmp_path / "library"
    library.mkdir()
    _run("R", "CMD", "INSTALL", "--no-docs", "--no-byte-compile", f"--library={library}", copy,
         cwd=tmp_path)  # fmt: skip
    programs = {p.relative_to(ROOT / "stan") for p in (ROOT / "stan").rglob("*.stan")}
    installed = library / "pyhybrid" / "stan"
    assert {p.relative_to(installed) for p in installed.rglob("*.stan")} == programs


def test_versions_agree(built: dict[str, Path]) -> None:
    """Python, R, the citation, the newest part of NEWS.md and the names of the archives."""
    description = re.search(r"^Version: (.*)$", (ROOT / "DESCRIPTION").read_text(), re.M)
    news = re.search(r"^# pyhybrid (\S+)", (ROOT / "NEWS.md").read_text(), re.M)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {description[1], news[1], str(citation["version"])} == {pyhybrid.__version__}
    assert built["sdist"].name == f"pyhybrid-{pyhybrid.__version__}.tar.gz"
    assert built["wheel"].name.startswith(f"pyhybrid-{pyhybrid.__version__}-")


def test_the_citation_is_of_the_format_and_names_who_pyproject_names() -> None:
    """Required fields of the Citation File Format 1.2.0; of the papers, too."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert isinstance(citation["date-released"], date)
    named = re.search(r'^authors = \[\{ name = "(.*)" \}\]$', (ROOT / "pyproject.toml").read_text(),
                      re.M)  # fmt: skip
    assert [author["name"] for author in citation["authors"]] == [named[1]]
    sources = (ROOT / "docs" / "pages" / "sources.md").read_text()
    for paper in citation["references"]:
        assert {"type", "title", "authors", "year"} <= set(paper)
        assert paper["title"] in " ".join(sources.split())


@pytest.mark.parametrize(
    "file", ["docs/pages/sources.md", "CITATION.cff", "DESCRIPTION", "inst/CITATION"]
)
def test_every_paper_is_named_wherever_papers_are(file: str) -> None:
    """[S22], [H22], [V25], [C25], [J22] and [JC], by what finds them."""
    text = " ".join((ROOT / file).read_text().split())
    for found_by in ("21-0936", "smab013", "2006.01230", "ss.202022.0162", "2021.1909597"):
        assert found_by in text, found_by
    assert "short course" in text.lower()
