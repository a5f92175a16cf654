"""`python -m benchmarks [NAME ...]`: run all benchmarks, or those named."""

from __future__ import annotations

import sys

from benchmarks import (
    cases,
    coverage,
    gauntlet,
    guarantees,
    regressions,
    scale,
    sequences,
    tables,
    weights,
)  # fmt: skip

BENCHMARKS = {
    "coverage": coverage.run,
    "gauntlet": gauntlet.run,
    "guarantees": guarantees.run,
    "regressions": regressions.run,
    "scale": scale.run,
    "sequences": sequences.run,
    "tables": tables.run,
    "weights": weights.run,
}


def main(names: list[str]) -> int:
    """Run benchmarks by name; all without names. The gauntlet takes options, cases a folder."""
    if names[:1] == ["cases"]:
        cases.run(*names[1:2])
        return 0
    if names[:1] == ["gauntlet"]:
        return gauntlet.main(names[1:])
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"benchmarks are {', '.join(BENCHMARKS)}: found {unknown[0]}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
