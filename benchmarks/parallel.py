"""(s) Columns and databases on two processes and on a Dask cluster of two, against one process.

A sequence of four columns of 2,000 records of the survey of `benchmarks.regressions`, two of counts
and two of shares, and 24 databases of study A. Every process is held on one core, as on a machine
of its own; each form starts its processes before the clock does. What comes out must be the
same, cell by cell, and so must the sequence's charge. CPU seconds are those of the process and its
workers; "longest" adds to those of the process the largest of a worker's: what wall seconds are
where nothing else runs. Results are written to benchmarks/results/parallel.csv.

    python -m benchmarks.parallel [repeats]
"""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.regressions import RIGHT, survey
from pyhybrid.engines import SamplerSettings
from pyhybrid.studies import STUDIES, run_study

RESULTS = Path(__file__).parent / "results" / "parallel.csv"
FORMS = ("one process", "two processes", "Dask, two workers")
_SETTINGS = SamplerSettings(chains=4, warmup=500, draws=500)
_N = 2000


def run(repeats: int = 3) -> None:
    """A line for each job and form: medians over the repeats, which take turns."""
    print("(s) columns and databases, wall and CPU seconds")
    whole, found = os.sched_getaffinity(0), []
    try:
        _on_core(0)
        for job in JOBS:
            for _ in range(repeats):
                first = None
                for form in FORMS:
                    with _executor(form) as pool:
                        seconds, made = _timed(job, pool)
                    found.append({"job": job, "form": form, **seconds})
                    first = made if first is None else first
                    _check_same(first, made)
    finally:
        os.sched_setaffinity(0, whole)
    _keep(pd.DataFrame(found), repeats)


def _on_core(core: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def _pinned(core: int) -> tuple[int, int]:
    """Hold this worker on a core; which process it is."""
    os.sched_setaffinity(0, {core})
    time.sleep(1)  # so that each worker gets one of these
    return os.getpid(), core


def _cpu(_: int) -> tuple[int, float]:
    """This worker's process and CPU seconds so far."""
    time.sleep(0.5)
    return os.getpid(), time.process_time()


@contextmanager
def _executor(form: str) -> Iterator[Executor | None]:
    """The executor of a form, with its workers started, each on a core of its own."""
    if form == FORMS[0]:
        yield None
    elif form == FORMS[1]:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            wait([pool.submit(_pinned, core) for core in (0, 1)])
            yield pool
    else:
        from distributed import Client, LocalCluster

        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
            workers = list(client.scheduler_info()["workers"])
            for core, worker in enumerate(workers):
                client.submit(_pinned, core, workers=[worker]).result()
            yield client.get_executor()


def _timed(job: str, pool: Executor | None) -> tuple[dict[str, float], list[pd.DataFrame]]:
    """Wall and CPU seconds of a job, and what came out."""
    before, own, started = _workers(pool), time.process_time(), time.perf_counter()
    made = JOBS[job](pool)
    seconds = time.perf_counter() - started
    own = time.process_time() - own
    spent = [after - before[worker] for worker, after in _workers(pool).items()]
    return {
        "seconds": seconds,
        "cpu_seconds": own + sum(spent),
        "longest": own + max(spent, default=0.0),
    }, made


def _columns(pool: Executor | None) -> list[pd.DataFrame]:
    """Synthetic sets, and the charge."""
    table = survey(_N).assign(visits2=survey(_N, 2)["visits"], share2=survey(_N, 2)["share"])
    models = [ph.NegativeBinomial(f"{name} ~ {RIGHT}") for name in ("visits", "visits2")]
    models += [ph.BetaRegression(f"{name} ~ {RIGHT}", decimals=3) for name in ("share", "share2")]
    sequence = ph.SequentialSynthesis([ph.LipschitzWeighted(model) for model in models])
    release = sequence.release(
        table, n_synthetic=2, seed=1, engine="embedded", settings=_SETTINGS, executor=pool
    )
    return [*release.synthetic, pd.DataFrame([{"charge": str(release.charge)}])]


def _databases(pool: Executor | None) -> list[pd.DataFrame]:
    """Rows of a study."""
    with tempfile.TemporaryDirectory() as folder:
        found = run_study(
            STUDIES["A"], out=folder, replicates=6, seed=1, engine="embedded", executor=pool
        )
    return [found.rows]


JOBS: dict[str, Callable[[Executor | None], list[pd.DataFrame]]] = {
    "four columns": _columns,
    "24 databases": _databases,
}


def _workers(pool: Executor | None) -> dict[int, float]:
    """CPU seconds so far of each worker."""
    return {} if pool is None else dict(pool.map(_cpu, range(4)))


def _check_same(one: list[pd.DataFrame], other: list[pd.DataFrame]) -> None:
    for a, b in zip(one, other, strict=True):
        pd.testing.assert_frame_equal(a, b, check_exact=True)


def _keep(found: pd.DataFrame, repeats: int) -> None:
    """Print, and store."""
    middle = found.groupby(["job", "form"], sort=False).median()
    alone = middle.xs(FORMS[0], level="form").reindex(middle.index, level="job")
    middle["ratio"] = alone["seconds"] / middle["seconds"]
    middle["idle"] = alone["longest"] / middle["longest"]
    print(middle.round(2).to_string(), flush=True)
    middle.round(2).reset_index().assign(
        repeats=repeats, load=np.round(os.getloadavg()[0], 1), version=ph.__version__,
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    ).to_csv(RESULTS, index=False)  # fmt: skip


def page_rows() -> list[str]:
    """The stored results as rows of the table in docs/pages/benchmarks.md."""
    stored = pd.read_csv(RESULTS)
    return [
        f"| {row.job} | {row.form} | {row.seconds:.0f} | {row.ratio:.2f} | {row.cpu_seconds:.0f} | "
        f"{row.longest:.0f} | {row.idle:.2f} |"
        for row in stored.itertuples()
    ]


if __name__ == "__main__":
    run(*(int(word) for word in sys.argv[1:]))
