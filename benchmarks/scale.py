"""(s) Tables of 10^5 to 10^8 rows that stay where they are: counting, drawing, writing.

Ten columns simulated by DuckDB into Parquet files of 10^6 rows (none is shipped), released by the
command line's own path. Each point runs in a process of its own, with its children; CPU seconds,
wall seconds and the largest resident memory of one process.

    python -m benchmarks scale                                # 10^5, 10^6, 10^7
    PYHYBRID_SCALE=100000000 python -m benchmarks scale       # that size alone
    PYHYBRID_SCALE_OF=formula python -m benchmarks scale      # a regression on distinct rows alone
    PYHYBRID_SCALE_OF=budget python -m benchmarks scale       # with weights by budget
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

from benchmarks.measure import line

SIZES = (10**5, 10**6, 10**7)
_FILE = 10**6
_ROWS = """
SELECT greatest(0, least(99, round(40 + 20 * z1)))::TINYINT AS age,
  ['north', 'south', 'east', 'west', 'center'][1 + floor(5 * u1)::INT] AS region,
  ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'][1 + floor(8 * u2 * u1)::INT] AS occupation,
  u3 < 0.2 + 0.5 * u1 AS owner,
  1 + floor(6 * u4 * u4)::TINYINT AS household,
  CASE WHEN u5 < 0.2 THEN 0 ELSE round(least(500000, exp(9.5 + z1 / 2 + z2)), 2) END AS income,
  CASE WHEN u3 < 0.05 THEN NULL ELSE round(least(5000, 300 * exp(z2)), 2) END AS rent,
  least(60, floor(-4 * ln(u2 + 1e-9)))::TINYINT AS visits,
  ['none', 'school', 'college', 'university'][1 + floor(4 * sqrt(u1 * u3))::INT] AS education,
  round(least(80, greatest(0, 35 + 10 * z2)), 1) AS hours
FROM (SELECT random() AS u1, random() AS u2, random() AS u3, random() AS u4, random() AS u5,
  sqrt(-2 * ln(random() + 1e-12)) * cos(6.2831853 * random()) AS z1,
  sqrt(-2 * ln(random() + 1e-12)) * cos(6.2831853 * random()) AS z2 FROM range({0}))
"""
_ROWS_OF_FORMULA = """
SELECT least(40, floor(-(1 + age / 30.0) * ln(u1 + 1e-9)))::SMALLINT AS visits, age, sex, region
FROM (SELECT random() AS u1, (20 + floor(random() * 60))::TINYINT AS age, random() < 0.5 AS sex,
  ['north', 'south', 'east', 'west'][1 + floor(4 * random())::INT] AS region FROM range({0}))
"""
TYPES = {
    "age": {"kind": "Counts", "lower": 0, "upper": 99},
    "region": {"kind": "Nominal", "levels": ["north", "south", "east", "west", "center"]},
    "occupation": {"kind": "Nominal", "levels": list("abcdefgh")},
    "owner": {"kind": "Nominal", "levels": [False, True]},
    "household": {"kind": "Counts", "lower": 1, "upper": 6},
    "income": {"kind": "SemiContinuous", "lower": 0, "upper": 500_000, "center": 15_000,
               "unit": 10_000, "decimals": 2},
    "rent": {"kind": "Amounts", "lower": 0, "upper": 5000, "center": 300, "unit": 200,
             "decimals": 2, "missing": True},
    "visits": {"kind": "Counts", "lower": 0, "upper": 60},
    "education": {"kind": "Ordered", "levels": ["none", "school", "college", "university"]},
    "hours": {"kind": "Real", "lower": 0, "upper": 80, "center": 35, "unit": 10, "decimals": 1},
}  # fmt: skip
_CODE = """
import resource, sys, time
import pyhybrid as ph
from benchmarks.scale import TYPES, spent
from pyhybrid.tables.domains import default_delta
if __name__ == "__main__":
    folder, workers, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    started, times = time.perf_counter(), []
    def progress(what, done, of):
        if what == "parts" and not times:
            times.append((time.perf_counter() - started, spent()))
    where = {"out": folder + "/out", "workers": workers, "overwrite": True, "progress": progress}
    if sys.argv[4] == "table":
        ph.sources.synthesize_source(
            folder + "/rows", types=TYPES, epsilon=1.0, delta=default_delta(n), **where
        )
    else:
        model = ph.Poisson("visits ~ age + sex + region")
        of = ph.Unweighted if sys.argv[4] == "formula" else ph.BudgetWeighted
        ph.sources.synthesize_by_formula(folder + "/rows", of(model, delta=1e-10), **where)
    (wall, cpu), end = times[0], time.perf_counter() - started
    peak = max(resource.getrusage(who).ru_maxrss
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print("SCALE", cpu, wall, spent(), end, peak)
"""


def spent() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def simulated(folder: Path, n: int, asked: str = _ROWS) -> None:
    """Parquet files of n rows."""
    folder.mkdir(parents=True)
    with duckdb.connect() as connection:
        for place in range(-(-n // _FILE)):
            rows = asked.format(min(_FILE, n - place * _FILE))
            connection.execute(f"COPY ({rows}) TO '{folder}/{place:04d}.parquet'")


def point(n: int, of: str) -> tuple[float, ...]:
    """CPU and wall seconds until the first part is there, both in all, and peak memory (MB)."""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        rows, workers = (_ROWS, 2) if of == "table" else (_ROWS_OF_FORMULA, 1)
        simulated(Path(name, "rows"), n, rows)
        script = Path(name, "point.py")
        script.write_text(_CODE)
        done = subprocess.run(
            [sys.executable, str(script), name, str(workers), str(n), of], capture_output=True,
            text=True, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()},
        )  # fmt: skip
        told = [own for own in done.stdout.splitlines() if own.startswith("SCALE")]
        if not told:
            raise RuntimeError(f"ended with {done.returncode}: {done.stderr[-2000:]}")
        return tuple(float(own) for own in told[0].split()[1:])


def run() -> None:
    """Print a line for each size."""
    print("(s) A table that stays where it is: 10 columns, epsilon 1, two workers; or a formula")
    asked, of = os.environ.get("PYHYBRID_SCALE"), os.environ.get("PYHYBRID_SCALE_OF")
    for what in ("table", "formula", "budget") if of is None else (of,):
        for n in SIZES if asked is None else (int(asked),):
            cpu, wall, all_cpu, all_wall, peak = point(n, what)
            line(f"n = {n:,}: {what}", all_wall,
                 f"{all_cpu:,.0f} CPU s in all; {cpu:,.0f} CPU s and {wall:,.0f} s until the first "
                 f"part; {peak:,.0f} MB at most in one process")  # fmt: skip
