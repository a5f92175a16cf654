"""Utility at equal strict epsilon: censoring from a center, and by size, on the RAND visits.

2,000 random records are the reference, the other 18,190 are released; several splits, as what a
release keeps depends on the reference. Means are those of the posterior that one draw is released
from, so that no luck of a draw is in them.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import pyhybrid as ph
from benchmarks.measure import line
from pyhybrid.fitting.session import PosteriorFit, open_session

_REFERENCE = 2000
_MODEL = ph.NegativeBinomial("mdvis ~ 1")
_OPTIONS = {"engine": "embedded", "seed": 1}


def run(splits: int = 6) -> None:
    """Print mean and dispersion by epsilon and split, beside the data's and the reference's."""
    visits = randhie.load_pandas().data[["mdvis"]].astype({"mdvis": "int64"})
    rows = []
    for split in range(1, splits + 1):
        order = np.random.default_rng(split).permutation(len(visits))
        reference = visits.iloc[order[:_REFERENCE]].reset_index(drop=True)
        new = visits.iloc[order[_REFERENCE:]].reset_index(drop=True)
        rows += _split(split, reference, new)
    table = pd.DataFrame(rows, columns=["split", "what", "mean", "r", "clipped"])
    data = table[table["what"] == "data"].set_index("split")
    table["error of the mean"] = [
        mean / data.loc[split, "mean"] - 1
        for split, mean in zip(table["split"], table["mean"], strict=True)
    ]
    print(table.to_string(index=False, float_format="{:.4f}".format))
    print("\nLargest and median error of the mean, percent")
    for what, part in table.groupby("what", sort=False):
        error = 100 * part["error of the mean"].abs()
        print(f"  {what:34s} {error.max():8.2f} {error.median():8.2f}")


def _split(split: int, reference: pd.DataFrame, new: pd.DataFrame) -> list[tuple[object, ...]]:
    session = open_session(_MODEL.bind(new), **_OPTIONS)  # type: ignore[arg-type]
    fit = session.unweighted()
    rows = [_row(split, "data", fit)]
    rows.append(_row(split, "reference alone", open_session(
        _MODEL.bind(reference), **_OPTIONS).unweighted()))  # type: ignore[arg-type]  # fmt: skip
    for relation in ("remove", "replace"):
        for epsilon in (4, 2, 1, 0.5, 0.25):
            started = time.perf_counter()
            frozen = ph.calibrate(_MODEL, reference, epsilon=epsilon, relation=relation, **_OPTIONS)
            made = ph.Censored(calibration=frozen, relation=relation).fit(session).fit
            rows.append(_row(split, f"centered, {relation}, {epsilon:g}", made))
            if split == 1:
                line(f"calibration and posterior at {epsilon:g}", time.perf_counter() - started)
    thinned = np.random.default_rng(split).binomial(reference["mdvis"], 0.8)
    drifted = reference.assign(mdvis=thinned)
    for epsilon in (4, 1):
        frozen = ph.calibrate(_MODEL, drifted, epsilon=epsilon, **_OPTIONS)
        made = ph.Censored(calibration=frozen).fit(session).fit
        rows.append(_row(split, f"reference 20 % lower, {epsilon}", made))
    for epsilon in (8, 4):
        size = ph.Censored(_MODEL, epsilon=epsilon, inner=ph.Unweighted(_MODEL), sampling="exact")
        rows.append(_row(split, f"clipped by size, remove, {epsilon}", size.fit(session).fit))
    return rows


def _row(split: int, what: str, fit: PosteriorFit) -> tuple[object, ...]:
    clipped = np.nan if fit.censored is None else float(fit.censored.mean())
    beta, phi = fit.draws.flat("beta"), fit.draws.flat("phi")
    return split, what, float(np.exp(beta).mean()), float(phi.mean()), clipped
