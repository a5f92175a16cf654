"""Masking: speed, and study I (coefficients and risk against comparators) at the paper's size."""

from __future__ import annotations

import tempfile
import time

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks.measure import line
from pyhybrid.studies import STUDIES, run_study


def mixed_keys(n: int) -> pd.DataFrame:
    """Six keys of mixed type, an outcome."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=n)
    age = 45 + 12 * (0.3 * y + rng.normal(size=n))
    weight = 70 + 8 * (0.2 * y + 0.3 * (age - 45) / 12 + rng.normal(size=n))
    pull = np.outer(y, [0, 0.2, 0.4, -0.3, 0.1, 0.3])
    return pd.DataFrame(
        {
            "age": age.round(),
            "weight": weight.round(1),
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
            "education": np.digitize(0.5 * y + rng.normal(size=n), [-1, -0.2, 0.5, 1.3]) + 1,
            "region": np.array(list("abcdef"))[np.argmax(rng.gumbel(size=(n, 6)) + pull, axis=1)],
            "status": np.array(list("pqrs"))[
                np.argmax(rng.gumbel(size=(n, 4)) + pull[:, :4], axis=1)
            ],
            "y": y,
        }
    )


def speed(sizes: tuple[int, ...] = (2500, 5000, 10_000)) -> None:
    """Release of five sets of six mixed keys; cost against n."""
    keys = ["age", "weight", "sex", "education", "region", "status"]
    for n in sizes:
        data = mixed_keys(n)
        masks = ph.masking.masks_by_type(data, keys)
        started, worked = time.perf_counter(), time.process_time()
        release = ph.masking.MaskedImputation(keys=keys, masks=masks, n_synthetic=5).release(
            data, seed=1
        )
        seconds = time.perf_counter() - started
        fit = release.diagnostics
        assert fit is not None
        worked = time.process_time() - worked
        chains = f"R-hat {fit.max_rhat:.4f}, ESS {fit.min_ess_bulk:.0f}, attempts {fit.attempts}"
        note = f"{worked:.1f} s of CPU, {chains}"
        line(f"n = {n:>6,}, six mixed keys, m = 5", seconds, note)


def run() -> None:
    """Speed, then study I."""
    print("masking: release of six mixed keys, fit included")
    speed()
    study = STUDIES["I"]
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        found = run_study(study, out=folder, size="paper", engine="embedded", workers=2).summary
        line(f"study I, {study.paper.replicates} databases", time.perf_counter() - started)
    wide = found.pivot_table(index="synthesizer", columns="quantity", values="mean", sort=False)
    print(wide.round(4).to_string())
    for claim in study.claims:
        print(f"  {claim.text}: {claim.check(found)}")


if __name__ == "__main__":
    run()
