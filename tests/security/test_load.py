"""Hundreds of releases in one process: memory flat, no file, descriptor or thread left behind."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

RUNS, WARM = 160, 60
# In a process of its own: what other tests leave in this one is theirs.
PROCESS = f"""
    import gc, json, os, tempfile, threading, warnings
    from pathlib import Path
    import numpy as np, pandas as pd
    import pyhybrid as ph
    from pyhybrid.engines import ConvergenceRule, SamplerSettings

    warnings.simplefilter("ignore", UserWarning)
    options = {{
        "engine": "embedded",
        "settings": SamplerSettings(chains=2, warmup=20, draws=4),
        "rule": ConvergenceRule(rhat=float("inf"), ess_per_chain=0, divergent_share=1),
        "on_not_converged": "warn",
    }}
    rng = np.random.default_rng(1)
    for run in range(1, {RUNS} + 1):
        table = pd.DataFrame({{"y": rng.poisson(4, 500), "x": rng.normal(size=500)}})
        release = ph.Unweighted(ph.Poisson("y ~ 1")).release(table, refits=2, **options)
        if run % 20 == 0:
            release.save("out", overwrite=True, report=False)
            ph.Release.load("out")
        if run in ({WARM}, {RUNS}):
            gc.collect()
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            held = len(os.listdir("/proc/self/fd")), threading.active_count()
            print(json.dumps([pages * os.sysconf("SC_PAGE_SIZE"), *held]), flush=True)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_hundreds_of_releases(tmp_path: Path) -> None:
    """Fits, bounds, synthesis, saving over the last one, loading; every one with its own data."""
    (tmp_path / "temporary").mkdir()
    words = [sys.executable, "-c", textwrap.dedent(PROCESS)]
    places = {"TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": str(Path(__file__).parents[2])}
    env = {**os.environ, **places}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    (before, *held_before), (after, *held_after) = map(json.loads, done.stdout.splitlines())
    # A table, its fit and its release are some 50 kB: a leak of 100 of them was 5 MB.
    assert after - before < 3 * 2**20, f"{(after - before) / 2**20:.1f} MB in {RUNS - WARM} runs"
    assert held_after == held_before  # descriptors and threads
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "temporary"]
