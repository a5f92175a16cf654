"""A worker of a cluster that is killed in the middle of a pass: the same sums, or no release."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import SourceFailed
from pyhybrid.releases.ledger import Ledger
from pyhybrid.sources.cluster import DaskFrame
from tests.refusals import fails

N = 4_000


@dataclass(frozen=True)
class _Killed:
    """`of_batch`, on a worker that dies at its first `deaths` batches."""

    of_batch: Callable[[pd.DataFrame], Any]
    marks: Path
    deaths: int

    def __call__(self, batch: pd.DataFrame) -> Any:
        died = len(list(self.marks.iterdir()))
        if died < self.deaths:
            (self.marks / f"{died}-{os.getpid()}").touch()
            os._exit(1)
        return self.of_batch(batch)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("deaths", [1, 1000])
def test_a_killed_worker_changes_no_sum_or_ends_the_release(
    deaths: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, N)
    table = pd.DataFrame({"age": age, "visits": rng.poisson(np.exp(0.01 * age))})
    mechanism = ph.ClippedScores(ph.Poisson("visits ~ I((age - 45) / 10)", prior="normal"))
    ledger = Ledger(tmp_path / "l.ledger", budget=9, kind="strict", relation="remove", delta=1e-6)
    expected = _sums(table)
    marks, out, plain = tmp_path / "marks", tmp_path / "out", DaskFrame.sums
    marks.mkdir()

    def sums(self: DaskFrame, of_batch: Callable[[pd.DataFrame], Any], columns: list[str]) -> Any:
        dies = "visits" in columns  # in a pass over confidential values
        return plain(self, _Killed(of_batch, marks, deaths) if dies else of_batch, columns)

    monkeypatch.setattr(DaskFrame, "sums", sums)
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 2}),
        LocalCluster(**options) as cluster,
        Client(cluster),
    ):
        frame = dd.from_pandas(table, npartitions=4)
        if deaths == 1:
            np.testing.assert_array_equal(
                ph.open_source(frame).sums(_sums, ["age", "visits"]), expected
            )
            for mark in marks.iterdir():
                mark.unlink()
            charge = ph.release_in_parts(mechanism, frame, out, ledger=ledger)
            assert charge.epsilon == 1
            assert len(ledger.entries) == 1
        else:
            release = partial(ph.release_in_parts, mechanism, frame, out, ledger=ledger)
            fails(SourceFailed, "KilledWorker", release)
            assert not ledger.entries
            assert not out.exists()
            assert not (tmp_path / ".out.parts").exists()
    assert any(marks.iterdir())


def _sums(batch: pd.DataFrame) -> Any:
    return batch[["age", "visits"]].to_numpy(np.int64).sum(axis=0)
