"""Print the processor and the libraries that decide the last digits of a fit."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import numpy  # noqa: F401  (loads its BLAS)
import scipy.linalg  # noqa: F401
import threadpoolctl

PACKAGES = ("numpy", "scipy", "pandas", "formulaic", "stanli", "cmdstanpy", "arviz", "rpy2",
            "rpy2-rinterface", "opendp", "pytest", "pytest-xdist")  # fmt: skip
IN_R = (
    "cat(R.version.string, '\\nrstan', "
    "if (requireNamespace('rstan', quietly = TRUE)) as.character(packageVersion('rstan')) "
    "else 'missing', '\\nBLAS of R', extSoftVersion()[['BLAS']], '\\n')"
)


def processor() -> str:
    """The model's name, where the system tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def version(package: str) -> str:
    """Of an installed package, or that it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


print(f"processor {processor()}, {os.cpu_count()} cores, {platform.platform()}")
print(f"Python {platform.python_version()}:", ", ".join(f"{p} {version(p)}" for p in PACKAGES))
for library in threadpoolctl.threadpool_info():
    if library["user_api"] == "blas":
        print("BLAS", library["internal_api"], library["version"], "kernels for",
              library.get("architecture"), "in", Path(library["filepath"]).parent.name)  # fmt: skip
print("OPENBLAS_CORETYPE", os.environ.get("OPENBLAS_CORETYPE", "not set"))
if shutil.which("Rscript"):
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", IN_R], capture_output=True, text=True, check=False
    )
    print(done.stdout.rstrip() or "Rscript fails")
else:
    print("R missing")
