"""`python -m benchmarks.trajectories [--seeds N] [--kernels A,B] TEST ...`: under other chains.

A last digit in the linear algebra sends a chain elsewhere, so that a test that rests on one
trajectory holds on one processor only. Each TEST (anything that pytest takes) is run N times with
another seed handed to the embedded engine at every fit, all other random numbers as they are, and
under each of the kernels that OpenBLAS would choose on another processor. A table says how often
each test failed. Seed 0 is the test as it is.

A kernel runs on a processor that lacks its instructions until the first of them: SkylakeX needs
AVX-512. Each run is a fork of one process per kernel, so that libraries are loaded once; processes
that a test starts keep the seeds as they are.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ("Haswell", "Zen", "Nehalem", "Prescott")
_SEED_STEP = 7919


def failures(tests: list[str], seed: int) -> list[str]:
    """Names of the tests that failed in a fork; the run itself where nothing was collected."""
    with tempfile.NamedTemporaryFile("r") as said:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = _run(tests, seed, said.name)
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        named = re.findall(r"^(?:FAILED|ERROR) (\S+)", said.read(), re.MULTILINE)
    return named or ([] if code == 0 else [f"the run itself ({code})"])


def _run(tests: list[str], seed: int, said: str) -> int:
    import pytest
    import stanli

    sample = stanli.Model.sample

    def elsewhere(self: Any, *args: Any, seed: int = 1, **options: Any) -> Any:
        return sample(self, *args, seed=(seed + shift) % (2**31 - 1), **options)

    shift = _SEED_STEP * seed
    if seed:
        stanli.Model.sample = elsewhere
    with open(said, "w") as file, contextlib.redirect_stdout(file):
        return int(pytest.main(["--tb=line", "-rfE", *tests]))


def one_kernel(kernel: str, seeds: range, tests: list[str]) -> Counter[str]:
    """Failures by test of all seeds under the kernel that this process has loaded."""
    import arviz  # noqa: F401
    import numpy as np
    import pandas as pd
    import stanli  # noqa: F401

    import pyhybrid as ph

    ph.Poisson("y ~ x").bind(pd.DataFrame({"y": [0, 1, 2], "x": np.arange(3.0)}))
    found: Counter[str] = Counter()
    for seed in seeds:
        for name in failures(tests, seed):
            print(f"{kernel}, seed {seed}: {name}", file=sys.stderr, flush=True)
            found[name] += 1
    return found


def main(arguments: list[str]) -> int:
    """Run, print the table, return 1 if a test failed under any seed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trajectories")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of fits, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kernels", default=",".join(KERNELS), help="of OpenBLAS")
    parser.add_argument("--loaded", default="", help=argparse.SUPPRESS)
    parser.add_argument("tests", nargs="+")
    chosen = parser.parse_args(arguments)
    if chosen.loaded:
        seeds = range(chosen.first, chosen.first + chosen.seeds)
        for name, times in one_kernel(chosen.loaded, seeds, chosen.tests).items():
            print(times, name)
        return 0
    kernels = chosen.kernels.split(",")
    table: dict[str, Counter[str]] = {}
    for kernel in kernels:  # OpenBLAS reads its variable when it is loaded
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.trajectories", "--loaded", kernel, *arguments],
            cwd=ROOT, env=os.environ | {"OPENBLAS_CORETYPE": kernel}, stdout=subprocess.PIPE,
            text=True, check=True,
        )  # fmt: skip
        lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
        table[kernel] = Counter({name: int(times) for times, name in lines})
    print(f"| failures of {chosen.seeds} seeds | {' | '.join(kernels)} |")
    for name in sorted(set().union(*table.values())) or [f"none of {' '.join(chosen.tests)}"]:
        print(f"| {name} | {' | '.join(str(table[kernel][name]) for kernel in kernels)} |")
    return int(any(table.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
