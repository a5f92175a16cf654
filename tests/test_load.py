"""A thousand releases in one process: memory flat, no file, descriptor or thread left behind."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import ConvergenceRule, SamplerSettings

RUNS, WARM = 1000, 200
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident() -> int:
    """Bytes that the process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def held() -> tuple[int, int]:
    """Open descriptors and living threads."""
    return len(os.listdir("/proc/self/fd")), threading.active_count()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_thousand_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits, bounds, synthesis, saving over the last one, loading; every one with its own data."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    options: dict[str, Any] = {
        "engine": "embedded",
        "settings": SamplerSettings(chains=2, warmup=20, draws=4),
        "rule": ConvergenceRule(rhat=float("inf"), ess_per_chain=0, divergent_share=1),
        "on_not_converged": "warn",
    }
    rng = np.random.default_rng(1)
    seen: dict[int, tuple[int, tuple[int, int]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for run in range(1, RUNS + 1):
            table = pd.DataFrame({"y": rng.poisson(4, 500), "x": rng.normal(size=500)})
            release = ph.Unweighted(ph.Poisson("y ~ 1")).release(table, **options)
            if run % 20 == 0:
                release.save(tmp_path / "out", overwrite=True)
                ph.Release.load(tmp_path / "out")
            if run in (WARM, RUNS):
                gc.collect()
                seen[run] = (resident(), held())
    (before, things_before), (after, things_after) = seen[WARM], seen[RUNS]
    # 800 tables, fits and releases are some 100 kB each: a leak of them would be 80 MB.
    assert after - before < 16 * 2**20, f"{(after - before) / 2**20:.1f} MB in {RUNS - WARM} runs"
    assert things_after == things_before
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "temporary"]
