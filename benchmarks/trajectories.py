"""`python -m benchmarks.trajectories [--seeds N] [--kernels A,B] [TEST ...]`: under other chains.

A last digit in the linear algebra sends a chain elsewhere, so that a test that rests on one
trajectory holds on one processor only. Every test that samples (marker `samples`, R left out), or
each TEST (anything that pytest takes), is run N times with another seed handed to the embedded
engine at every fit, all other random numbers as they are, and with the kernels that OpenBLAS would
choose on other processors in turn, two at a time. A table says how often each test failed. Seed 0
is the test as it is.

A kernel runs on a processor that lacks its instructions until the first of them: SkylakeX needs
AVX-512. Each run is a fork of one process per kernel, so that libraries are loaded once; processes
that a test starts get the same seeds by a `sitecustomize`.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ("Haswell", "Zen", "Nehalem", "Prescott")
ALL = ("-m", "samples and not needs_r")
_SEED_STEP = 7919
_AT_ONCE = 2


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

    with tempfile.TemporaryDirectory() as folder:
        if seed:
            shift_seeds(_SEED_STEP * seed)
            (Path(folder) / "sitecustomize.py").write_text(
                "from benchmarks.trajectories import shift_seeds\n"
                f"shift_seeds({_SEED_STEP * seed})\n"
            )
            paths = [folder, str(ROOT), os.environ.get("PYTHONPATH", "")]
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        with open(said, "w") as file, contextlib.redirect_stdout(file):
            return int(pytest.main(["--tb=line", "-rfE", *tests]))


def shift_seeds(shift: int) -> None:
    """Hand every fit of the embedded engine in this process its seed plus `shift`."""
    import stanli

    sample = stanli.Model.sample

    def elsewhere(self: Any, *args: Any, seed: int = 1, **options: Any) -> Any:
        return sample(self, *args, seed=(seed + shift) % (2**31 - 1), **options)

    stanli.Model.sample = elsewhere


def one_kernel(kernel: str, seeds: list[int], tests: list[str]) -> Counter[str]:
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


def in_own_process(kernel: str, seeds: list[int], tests: list[str]) -> Counter[str]:
    """`one_kernel` where the kernel is loaded: OpenBLAS reads its variable when it is."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.trajectories", "--loaded", kernel,
         "--of-kernel", ",".join(map(str, seeds)), *tests],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
        env=os.environ | {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return Counter({name: int(times) for times, name in lines})


def main(arguments: list[str]) -> int:
    """Run, print the table, return 1 if a test failed under any seed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trajectories")
    parser.add_argument("--seeds", type=int, default=12, help="seeds of fits, from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kernels", default=",".join(KERNELS), help="of OpenBLAS, in turn")
    parser.add_argument("--loaded", default="", help=argparse.SUPPRESS)
    parser.add_argument("--of-kernel", default="", help=argparse.SUPPRESS)
    parser.add_argument("tests", nargs="*")
    chosen = parser.parse_args(arguments)
    if chosen.loaded:
        of_kernel = [int(seed) for seed in chosen.of_kernel.split(",")]
        for name, times in one_kernel(chosen.loaded, of_kernel, chosen.tests or [*ALL]).items():
            print(times, name)
        return 0
    kernels = chosen.kernels.split(",")
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    shares = {name: list(seeds[place :: len(kernels)]) for place, name in enumerate(kernels)}
    shares = {name: share for name, share in shares.items() if share}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        table = list(
            pool.map(in_own_process, shares, shares.values(), [chosen.tests] * len(shares))
        )
    headings = [f"{kernel}, of {len(share)}" for kernel, share in shares.items()]
    print(f"| failures | {' | '.join(headings)} |")
    for name in sorted(set().union(*table)) or ["none"]:
        print(f"| {name} | {' | '.join(str(found[name]) for found in table)} |")
    return int(any(table))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
