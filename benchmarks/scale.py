"""Seconds and memory of strict releases by number of records, from Parquet files.

Each line runs in a process of its own, whose largest memory is the operating system's number.
`python -m benchmarks.scale 1000000 10000000` takes these numbers of records; two Dask workers are
set beside one process at the first of them. Stored in benchmarks/results/scale.csv.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.running.tasks import in_threads
from pyhybrid.tables.in_parts import _ROWS

SIZES = (1_000_000, 10_000_000)
_PART = 250_000  # of a file, and of a task of Dask
RESULTS = Path(__file__).parent / "results" / "scale.csv"
FORMULA = "visits ~ x1 + x2 + I((age - 45) / 10) + area + kind + owner + month"
DOMAIN = {
    "x1": ColumnDomain(bins=tuple(np.linspace(-6, 6, 61)), clamp=True),
    "x2": ColumnDomain(bins=tuple(np.linspace(-6, 6, 61)), clamp=True),
    "age": ColumnDomain(bins=tuple(range(18, 92, 2))),
    "income": ColumnDomain(levels=(0,), bins=(1, *range(2_000, 202_000, 2_000)), step=10),
    "hours": ColumnDomain(bins=tuple(range(0, 81, 4))),
    "visits": ColumnDomain(bins=(0, 1, 2, 3, 4, 5, 7, 10, 15, 200)),
    "area": ColumnDomain(levels=tuple("abcdef")),
    "kind": ColumnDomain(levels=("k1", "k2", "k3")),
    "owner": ColumnDomain(levels=(False, True)),
    "month": ColumnDomain(levels=tuple(f"m{k:02d}" for k in range(1, 13))),
}


def _records(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, x = rng.integers(18, 91, n), rng.normal(size=(n, 2))
    income = np.where(rng.random(n) < 0.2, 0, rng.integers(1, 20_000, n) * 10)
    return pd.DataFrame(
        {
            "x1": x[:, 0],
            "x2": x[:, 1] + 0.5 * x[:, 0],
            "age": age,
            "income": income,
            "hours": rng.integers(0, 81, n),
            "visits": rng.poisson(np.exp(0.3 * x[:, 0] + 0.01 * (age - 45))).clip(0, 200),
            "area": rng.choice(list("abcdef"), n),
            "kind": rng.choice(["k1", "k2", "k3"], n),
            "owner": rng.random(n) < 0.4,
            "month": rng.choice([f"m{k:02d}" for k in range(1, 13)], n),
        }
    )


def _write(folder: Path, n: int) -> None:
    folder.mkdir()
    for number, first in enumerate(range(0, n, _PART)):
        table = _records(min(_PART, n - first), number)
        table.to_parquet(folder / f"{number:04d}.parquet", index=False)


def _mechanism(what: str) -> Any:
    if what == "marginals":
        return ph.NoisyMarginals(
            domain=DOMAIN, epsilon=1, delta=1e-10, most_bins="auto", relation="remove"
        )
    return ph.ClippedScores(ph.Poisson(FORMULA, prior="normal"), epsilon=1, delta=1e-10)


def _timed(what: str, folder: str, workers: int, answers: Any) -> None:
    """Seconds of the estimate, and of the rows drawn from it, and the largest memory, GB."""
    mechanism, started = _mechanism(what), time.perf_counter()
    if workers > 1:
        import dask.dataframe as dd
        from dask.distributed import Client, LocalCluster

        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster):
            started = time.perf_counter()
            mechanism.estimate(ph.open_source(dd.read_parquet(folder)), 1)
            estimated, drawn = time.perf_counter() - started, float("nan")
    else:
        source = ph.open_source(folder)
        estimate = mechanism.estimate(source, 1)
        estimated = time.perf_counter() - started
        started, columns = time.perf_counter(), [*estimate.record.predictors]

        def draw(numbered: tuple[int, pd.DataFrame]) -> int:  # as a release in parts does
            number, public = numbered
            return len(estimate.rows(public, 1, streams(1).child(f"{number}")))

        assert sum(in_threads(draw, enumerate(_public(source, columns)))) == source.count()
        drawn = time.perf_counter() - started
    answers.put((estimated, drawn, _most_memory()))


def _most_memory() -> float:
    """Largest memory of this process, GB; of `getrusage` it would be that of its parent, too."""
    status = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    return int(status.split()[0]) / 2**20


def _public(source: Any, columns: list[str]) -> Any:
    if columns:
        return source.batches(columns)
    return (pd.DataFrame(index=range(_ROWS)) for _ in range(-(-source.count() // _ROWS)))


def page_rows() -> list[str]:
    """Rows of the table of sizes in docs/pages/benchmarks/tables.md."""

    def shown(value: float) -> str:
        return "" if pd.isna(value) else f"{value:.{0 if value >= 10 else 1}f}"

    return [
        f"| {row.mechanism} | {row.records:,} | "
        f"{'one process' if row.processes == 1 else f'{row.processes} Dask workers'} | "
        f"{shown(row.estimate_s)} | {shown(row.rows_s)} | {row.memory_gb:.1f} |"
        for row in pd.read_csv(RESULTS).itertuples()
    ]


def run(sizes: tuple[int, ...] = SIZES) -> None:
    """Print and store one line for each mechanism and number of records."""
    context, lines = multiprocessing.get_context("spawn"), []
    with tempfile.TemporaryDirectory() as name:
        for n in sizes:
            folder = Path(name) / str(n)
            _write(folder, n)
            for what in ("marginals", "scores"):
                for workers in (1, 2) if n == sizes[0] else (1,):
                    answers = context.Queue()
                    task = (what, str(folder), workers, answers)
                    process = context.Process(target=_timed, args=task)
                    process.start()
                    estimated, drawn, memory = answers.get(timeout=7200)
                    process.join()
                    lines.append((what, n, workers, estimated, drawn, memory))
                    print(
                        f"{what:10s} {n:12,d} records, {workers} process: estimate "
                        f"{estimated:.1f} s, rows {drawn:.1f} s, {memory:.2f} GB",
                        flush=True,
                    )
            for part in folder.iterdir():
                part.unlink()
    names = ["mechanism", "records", "processes", "estimate_s", "rows_s", "memory_gb"]
    pd.DataFrame(lines, columns=names).round(2).to_csv(RESULTS, index=False)


if __name__ == "__main__":
    run(tuple(int(size) for size in sys.argv[1:]) or SIZES)
