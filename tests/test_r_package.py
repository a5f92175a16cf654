"""The R package: R CMD check on the built tarball, which runs testthat on the shared cases."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import require

pytestmark = pytest.mark.needs_r
ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("matrixStats", "testthat", "jsonlite", "knitr", "rmarkdown")


def _run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    # NOT_CRAN: what samples by rstan runs, too, where it is installed.
    environment = {**os.environ, "_R_CHECK_FORCE_SUGGESTS_": "false", "NOT_CRAN": "true",
                   "LC_ALL": "C.UTF-8"}  # fmt: skip
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=1800
    )


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package built from a copy of what git tracks, as a user's clone would have it."""
    require(shutil.which("R") is not None, "R was not found")
    wanted = ", ".join(f"'{name}'" for name in PACKAGES)
    probe = f"quit(status = !all(c({wanted}) %in% rownames(installed.packages())))"
    have = _run("Rscript", "--vanilla", "-e", probe, cwd=ROOT)
    require(have.returncode == 0, f"R packages are missing, one of {wanted}")
    folder = tmp_path_factory.mktemp("R")
    built = _run("R", "CMD", "build", str(ROOT), cwd=folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return next(folder.glob("pyhybrid_*.tar.gz"))


def test_r_cmd_check_finds_nothing_and_the_stan_programs_are_there(tarball: Path) -> None:
    """Vignettes were executed before (vignettes/make.R): R only sets them."""
    checked = _run(
        "R", "CMD", "check", "--no-manual", "--ignore-vignettes", tarball.name, cwd=tarball.parent
    )
    folder = tarball.parent / "pyhybrid.Rcheck"
    log = folder / "00check.log"
    text = log.read_text() if log.exists() else checked.stdout + checked.stderr
    assert checked.returncode == 0, text
    assert "Status: OK" in text, text
    tests = "".join(p.read_text() for p in (folder / "tests").glob("testthat.Rout*"))
    assert "FAIL 0" in tests
    assert int(tests.rsplit("PASS ", 1)[1].split()[0].rstrip("]")) > 500

    def programs(of: Path) -> set[str]:
        return {str(path.relative_to(of)) for path in of.rglob("*.stan")}

    assert programs(folder / "pyhybrid" / "stan") == programs(ROOT / "stan")
