"""Coverage of noise-aware intervals from noisy marginals, form by form, with a known truth.

Tables of 1,000 records: a (3 levels), b (2 levels), y of mean 10 + 5 a + 8 b, gamma, in whole
numbers. Intervals of four quantities (the coefficients of y on a and b, the share of y above 40
where b is 1) from 20 sets, combined by the noise-aware rule; the control takes the rule for
partial synthesis, which knows nothing of the noise. "public" keeps a and b as they are, "whole"
synthesizes all three. Lines are kept in results/coverage.csv; delete to measure anew.

    python -m benchmarks coverage
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray

__all__ = ["FORMS", "covered", "run"]

STORED = Path(__file__).parent / "results" / "coverage.csv"
LEVELS = (0.90, 0.95)
_N, _TABLES, _SETS, _SHAPE = 1000, 60, 20, 3.0
_EPSILON = 0.3
_WIDE = (0, 5, 10, 15, 20, 30, 45, 70, 300)
_NARROW = (*range(0, 100, 2), 120, 150, 200, 300)
_FINE: dict[str, Any] = {"bins": _NARROW, "most_bins": 8}
FORMS: dict[str, dict[str, Any]] = {
    "plain": {"bins": _WIDE},
    "delta": {"bins": _WIDE, "delta": 1e-6},
    "most_bins": _FINE,
    "most_bins, delta": {**_FINE, "delta": 1e-6},
    "reference": {**_FINE, "reference": True},
}
_NAMES = ("intercept", "a", "b", "share")
_TRUTH = np.array([10.0, 5.0, 8.0])


def _table(rng: np.random.Generator, n: int = _N) -> pd.DataFrame:
    a = rng.integers(0, 3, n)
    b = (rng.random(n) < 0.3 + 0.15 * a).astype(np.int64)
    mean = np.column_stack([np.ones(n), a, b]) @ _TRUTH
    y = np.rint(rng.gamma(_SHAPE, mean / _SHAPE)).clip(0, 299)
    made: pd.DataFrame = pd.DataFrame({"a": a, "b": b, "y": y.astype(np.int64)})
    return made


@functools.lru_cache(maxsize=1)
def _share() -> float:
    """Of y above 40 where b is 1, of two million records."""
    whole = _table(np.random.default_rng(0), 2_000_000)
    return float((whole.loc[whole["b"] == 1, "y"] > 40).mean())


def _mechanism(form: str, where: str, epsilon: float, other: pd.DataFrame) -> ph.NoisyMarginals:
    options = dict(FORMS[form])
    y = ph.mechanisms.ColumnDomain(bins=options.pop("bins"), step=1)
    domain: dict[str, Any] = (
        {"y": y} if where == "public" else {"a": (0, 1, 2), "b": (0, 1), "y": y}
    )
    if options.pop("reference", False):
        options |= {"reference": other, "holds_no_released_record": True}
    given = ["a", "b"] if where == "public" else []
    return ph.NoisyMarginals(
        domain=domain, given=given, epsilon=epsilon, relation="remove", **options
    )


def _estimates(df: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Coefficients and share, and their variances (those of coefficients by the sandwich)."""
    y = df["y"].to_numpy(dtype=float)
    design = np.column_stack([np.ones(len(df)), df["a"], df["b"]]).astype(float)
    bread = np.linalg.inv(design.T @ design)
    found = bread @ design.T @ y
    rest = y - design @ found
    scores = design * rest[:, None]
    variance = np.diag(bread @ (scores.T @ scores) @ bread)
    own = y[df["b"].to_numpy() == 1] > 40
    p = own.mean()
    return np.append(found, p), np.append(variance, max(p * (1 - p), 1 / own.size) / own.size)


def covered(form: str, where: str, seed: int, *, epsilon: float = _EPSILON) -> FloatArray:
    """Whether intervals at each level hold the truth, and their widths, by the rule that knows of
    the noise and by one that does not, the control: shape (2 rules, 2, levels, 4)."""
    rng = np.random.default_rng(seed)
    df, other = _table(rng), _table(rng)
    mechanism = _mechanism(form, where, epsilon, other)
    sets = mechanism.release(df, n_synthetic=_SETS).synthetic
    pairs = [_estimates(each) for each in sets]
    found, truth = [], np.append(_TRUTH, _share())
    for rule in ("noise_aware", "partially_synthetic"):
        pooled = ph.measures.pool(pairs, rule=rule)
        ends = [pooled.interval(level) for level in LEVELS]
        holds = [(low <= truth) & (truth <= high) for low, high in ends]
        found.append([holds, [high - low for low, high in ends]])
    return np.array(found, dtype=float)


def run() -> None:
    """The table of the benchmark; lines that are stored are not measured anew."""
    known = pd.read_csv(STORED) if STORED.is_file() else pd.DataFrame()
    print(f"Coverage, epsilon {_EPSILON:g}, n = {_N:,}: share of intervals that hold the truth")
    print(
        f"{'':<34}{'tables':>7}{'CPU s':>7}{'90 %':>8}{'95 %':>8}{'error':>7}{'control, 95 %':>15}"
    )
    for where in ("whole", "public"):
        for form in FORMS:
            if where == "public" and "select" in FORMS[form]:
                continue  # two tables: nothing to choose among
            own = known.query("form == @form and predictors == @where") if len(known) else known
            if own.empty:
                own = pd.DataFrame([_line(form, where)])
                known = pd.concat([known, own], ignore_index=True)
                known.to_csv(STORED, index=False, float_format="%.4g")
            row = own.iloc[0]
            print(f"{form + ', ' + where:<34}{row['tables']:>7.0f}{row['cpu_seconds']:>7.2f}"
                  f"{row['at_90']:>8.3f}{row['at_95']:>8.3f}{row['error']:>7.3f}"
                  f"{row['control_at_95']:>15.3f}", flush=True)  # fmt: skip


def _line(form: str, where: str) -> dict[str, Any]:
    started = time.process_time()
    both = np.array([covered(form, where, seed) for seed in range(_TABLES)])
    seconds, found = (time.process_time() - started) / _TABLES, both[:, 0]
    of_table = found[:, 0, 1].mean(axis=1)  # the four quantities of a table are not independent
    return {
        "form": form, "predictors": where, "tables": _TABLES, "cpu_seconds": seconds,
        "at_90": found[:, 0, 0].mean(), "at_95": found[:, 0, 1].mean(),
        "error": of_table.std(ddof=1) / np.sqrt(_TABLES),
        **{f"{name}_at_95": found[:, 0, 1, place].mean() for place, name in enumerate(_NAMES)},
        "width_at_95": found[:, 1, 1, 0].mean(),
        "control_at_95": both[:, 1, 0, 1].mean(),
        "version": ph.__version__,
    }  # fmt: skip
