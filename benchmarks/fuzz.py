"""`python -m benchmarks.fuzz --examples N [NAME ...]`: the long run of the fuzz tests.

Every case must end in a valid result or an error of `pyhybrid.core.errors`. Without names all entry
points of `tests.fuzzing.entry_points` are attacked; failures are printed as hypothesis shrinks
them, and become named cases in `tests/fuzzing/test_found.py`. `--coverage` hands the bytes of the
file readers and the text of formulas to Atheris, which looks for inputs that reach new branches of
pyhybrid (pip install atheris).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings

if TYPE_CHECKING:
    from tests.fuzzing.entry_points import EntryPoint


def attack(entry: EntryPoint, *, examples: int, root: int | None = None) -> Counter[str]:
    """Check so many cases; raises what a case raised, with the case shrunk."""
    found: Counter[str] = Counter()

    def check(case: Any) -> None:
        found["valid" if entry.check(case) else "typed error"] += 1

    quiet = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    whole = quiet(given(entry.cases)(check))
    (whole if root is None else seed(root)(whole))()
    return found


def attack_by_coverage(name: str, *, examples: int) -> int:
    """Atheris on bytes or text, from well-formed inputs; its exit code, 0 if nothing was found."""
    with tempfile.TemporaryDirectory() as corpus:
        child = os.fork()  # the fuzzer ends its process
        if child == 0:
            import atheris  # before pyhybrid is imported anywhere

            with atheris.instrument_imports(include=["pyhybrid", "formulaic"]):
                from tests.fuzzing.by_coverage import TARGETS
            target, inputs = TARGETS[name]
            for place, content in enumerate(inputs):
                (Path(corpus) / str(place)).write_bytes(content)
            options = [f"-runs={examples}", "-max_len=4096", "-print_final_stats=1"]
            atheris.Setup([sys.argv[0], *options, corpus], target)
            atheris.Fuzz()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(arguments: list[str]) -> int:
    """Attack the entry points named, or all; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz")
    parser.add_argument("names", nargs="*", help="entry points; all if omitted")
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--coverage", metavar="TARGET", help="csv, parquet or formula")
    given_options = parser.parse_args(arguments)
    if given_options.coverage:
        return attack_by_coverage(given_options.coverage, examples=given_options.examples)
    from tests.fuzzing.entry_points import ENTRY_POINTS

    failed = 0
    print(f"{'entry point':24}{'cases':>8}{'valid':>8}{'typed errors':>14}{'CPU s':>8}")
    for name in given_options.names or ENTRY_POINTS:
        started = time.process_time()
        try:
            found = attack(
                ENTRY_POINTS[name], examples=given_options.examples, root=given_options.seed
            )
        except Exception as error:
            failed += 1
            print(f"{name:24}FAILED: {type(error).__name__}: {error}", flush=True)
            print("\n".join(getattr(error, "__notes__", [])), flush=True)
            continue
        spent = time.process_time() - started
        print(
            f"{name:24}{found.total():8}{found['valid']:8}{found['typed error']:14}{spent:8.0f}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
