"""`python -m benchmarks.trajectories [--seeds N] [--kernels A,B] TEST ...`: tests under other chains.

A last digit in the linear algebra sends a chain elsewhere, so that a test that rests on one
trajectory holds on one processor only. Each TEST (anything that pytest takes) is run N times with
another seed handed to the embedded engine at every fit, and all other random numbers as they are,
and under each of the kernels that OpenBLAS would choose on another processor. A table says how
often each test failed. Seed 0 is the test as it is.

A process of Python 3.11 on one core runs a kernel that its processor lacks until the first
instruction that it lacks: SkylakeX needs AVX-512.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ("Haswell", "Zen", "Nehalem", "Prescott")
# Read by every Python that a test starts; stanli itself is imported no earlier than without it.
_SITE = '''
import importlib.util, os, sys

class OtherSeeds:
    def find_spec(self, name, path=None, target=None):
        if name != "stanli":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            sample, shift = module.Model.sample, int(os.environ["OTHER_SEED"])

            def sample_elsewhere(self, *args, seed=1, **options):
                return sample(self, *args, seed=(seed + 7919 * shift) % (2**31 - 1), **options)

            module.Model.sample = sample_elsewhere

        spec.loader.exec_module = exec_module
        return spec

if os.environ.get("OTHER_SEED", "0") != "0":
    sys.meta_path.insert(0, OtherSeeds())
'''


def failures(tests: list[str], seed: int, kernel: str, site: str) -> list[str]:
    """Names of the tests that failed; the whole run where nothing was collected."""
    path = os.pathsep.join([site, str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    own = {"PYTHONPATH": path, "OTHER_SEED": str(seed)}
    own |= {"OPENBLAS_CORETYPE": kernel} if kernel else {}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--tb=line", "-rfE", *tests],
        cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False,
    )  # fmt: skip
    named = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return named or ([] if done.returncode == 0 else [f"the run itself ({done.returncode})"])


def main(arguments: list[str]) -> int:
    """Run, print the table, return 1 if a test failed under any seed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trajectories")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of fits, 0 to N - 1")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kernels", default=",".join(KERNELS), help="of OpenBLAS; '' is its own")
    parser.add_argument("tests", nargs="+")
    chosen = parser.parse_args(arguments)
    found: Counter[tuple[str, str]] = Counter()
    kernels = chosen.kernels.split(",")
    with tempfile.TemporaryDirectory() as site:
        (Path(site) / "sitecustomize.py").write_text(_SITE)
        for kernel in kernels:
            for seed in range(chosen.first, chosen.first + chosen.seeds):
                for name in failures(chosen.tests, seed, kernel, site):
                    print(f"{kernel or 'own'}, seed {seed}: {name}", flush=True)
                    found[name, kernel] += 1
    print(f"| failures of {chosen.seeds} seeds | {' | '.join(k or 'own' for k in kernels)} |")
    for name in sorted({name for name, _ in found}) or ["none"]:
        print(f"| {name} | {' | '.join(str(found[name, kernel]) for kernel in kernels)} |")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
