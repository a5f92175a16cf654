"""Whether R can be used here, found out without starting it in this process.

A wrong R_HOME or an rpy2 that does not fit the R ends a process, not a function call; so R and rpy2
are tried in processes of their own.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["RStatus", "r_status"]

_TIMEOUT = 60.0
_R_4_5 = (4, 5)
_LAST_FOR_OLDER_R = (3, 6, 5)
_PACKAGES = ("matrixStats", "rstan", "StanHeaders", "BH")
_LOOK = """
version_of <- function(p) tryCatch(as.character(utils::packageVersion(p)), error = function(e) "")
boost <- c(system.file("include", package = "BH"), "/usr/include")
cat("R:", as.character(getRversion()), "\\n", sep = "")
for (p in c({packages})) cat(p, ":", version_of(p), "\\n", sep = "")
cat("boost:", any(nzchar(boost) & dir.exists(file.path(boost, "boost"))), "\\n", sep = "")
"""


@dataclass(frozen=True, kw_only=True)
class RStatus:
    """What was found of R and rpy2.

    Attributes
    ----------
    available : bool
        True if functions of the R package can be called; rstan is a matter of its own.
    r_home, r_version, rpy2_version, rstan_version : str
        Empty where not found.
    boost : bool
        True if headers of Boost are there for rstan to compile with.
    cause, remedy : str
        Why R cannot be used, and the command that mends it; empty if it can.
    """

    available: bool
    r_home: str = ""
    r_version: str = ""
    rpy2_version: str = ""
    rstan_version: str = ""
    boost: bool = False
    cause: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        if not self.available:
            return f"{self.cause}; {self.remedy}"
        rstan = self.rstan_version or "not found"
        return f"R {self.r_version} at {self.r_home}, rpy2 {self.rpy2_version}, rstan {rstan}"


def r_status() -> RStatus:
    """Look for R, rpy2 and rstan; never raises and never starts R in this process."""
    return _look(os.environ.get("R_HOME"), os.environ.get("PATH"))


@cache
def _look(r_home: str | None, path: str | None) -> RStatus:
    """Kept for as long as R_HOME and PATH stay the same."""
    if r_home and not _program(r_home).exists():
        return RStatus(
            available=False,
            cause=f"R_HOME must be the home of an R installation: no R is at {r_home}",
            remedy="unset R_HOME, or set it to what `R RHOME` prints",
        )
    r = str(_program(r_home)) if r_home else shutil.which("R", path=path)
    if r is None:
        return RStatus(
            available=False,
            cause="R must be installed: no R is on the path",
            remedy="install it from CRAN, or on Debian and Ubuntu: apt-get install r-base-core",
        )
    home = r_home or _output([r, "RHOME"]).strip()
    found = dict(
        line.split(":", 1) for line in _output(_look_command(r)).splitlines() if ":" in line
    )
    if "R" not in found:
        return RStatus(
            available=False,
            r_home=home,
            cause=f"R must start: {r} fails",
            remedy=f"see what `{r} --version` says and install R anew",
        )
    return _with_rpy2(home, found)


def _program(r_home: str) -> Path:
    return Path(r_home) / "bin" / ("R.exe" if os.name == "nt" else "R")


def _look_command(r: str) -> list[str]:
    packages = ", ".join(f'"{name}"' for name in _PACKAGES)
    script = _LOOK.replace("{packages}", packages).strip().replace("\n", "; ")
    return [r, "--no-echo", "--no-restore", "--no-save", "-e", script]


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _with_rpy2(home: str, found: dict[str, str]) -> RStatus:
    rpy2 = _version("rpy2") or _version("rpy2-rinterface")
    cause, remedy = _why_not(found, _version("rpy2-rinterface") or rpy2)
    return RStatus(
        available=not cause,
        r_home=home,
        r_version=found["R"],
        rpy2_version=rpy2,
        rstan_version=found.get("rstan", ""),
        boost=found.get("boost") == "TRUE",
        cause=cause,
        remedy=remedy,
    )


def _why_not(found: dict[str, str], rinterface: str) -> tuple[str, str]:
    """The first thing that stands in the way, and its remedy; empty if nothing does."""
    if not rinterface:
        return "rpy2 must be installed: not found in this Python", "pip install 'pyhybrid[r]'"
    if _numbers(found["R"]) < _R_4_5 and _numbers(rinterface) > _LAST_FOR_OLDER_R:
        return (
            f"R is too old for the installed rpy2: found R {found['R']}, and rpy2-rinterface "
            f"{rinterface} needs R >= 4.5",
            "pip install 'rpy2-rinterface==3.6.5', or install R 4.5 or newer",
        )
    if not found.get("matrixStats"):
        return (
            "the R package matrixStats must be installed: not found",
            "Rscript -e 'install.packages(\"matrixStats\")', "
            "or on Debian and Ubuntu: apt-get install r-cran-matrixstats",
        )
    if _output([sys.executable, "-c", _TRIAL]).strip() != "started":
        return (
            f"rpy2 {rinterface} must start R {found['R']}: it fails in a trial process",
            "pip install --force-reinstall rpy2, and see `python -m rpy2.situation`",
        )
    return "", ""


_TRIAL = "import rpy2.rinterface as r; r.initr(interactive=False); print('started')"


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
