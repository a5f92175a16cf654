"""Whole tables: February CE, ten mixed columns, all synthesized; time and utility.

1,000 of the 4,999 rows are set aside: the reference of some routes, which is not covered by the
charge. The other 3,999 are released; each set is of another such split. Overlap: mean over the
coefficients of two regressions of the overlap of 95 % intervals, 0 where they are disjoint; pair
distance: mean total variation of all two-way tables; pMSE ratio by CART. One synthetic table for
each seed, means over these. A line is kept in results/tables.csv as soon as it is measured, and is
not measured again: delete the file, or lines of it, to do so.

    python -m benchmarks tables
"""

from __future__ import annotations

import datetime
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.tables.synthesis import declared_kinds, table_mechanism

__all__ = [
    "COLUMNS",
    "HOWS",
    "PUBLISHED",
    "TYPES",
    "consumers",
    "measured",
    "parts",
    "run",
    "sizes",
]

DATA = Path(__file__).parents[1] / ".." / "shared" / "data" / "ce_2015_february.csv"
TYPES: dict[str, Any] = {
    "SEX": ph.Nominal(levels=("F", "M")),
    "BLS_URBN": ph.Nominal(levels=(1, 2)),
    "CUTENURE": ph.Nominal(levels=(1, 2, 3, 4, 5, 6)),
    "EDUCA": ph.Ordered(levels=(1, 2, 3, 4, 5, 6, 7, 8)),
    "NO_EARNR": ph.Counts(lower=0, upper=10, typical=1, spread=1),
    "FAM_SIZE": ph.Counts(lower=1, upper=20, typical=2, spread=1),
    "AGE": ph.Counts(lower=14, upper=87, typical=50, spread=20),
    "FOODCQ": ph.SemiContinuous(lower=0, upper=10_000, typical=500, spread=300, decimals=0),
    "FINCBTAX": ph.SemiContinuous(
        lower=-500_000, upper=1_500_000, typical=40_000, spread=40_000, decimals=0
    ),
    "TOTEXPCQ": ph.Real(lower=-10_000, upper=100_000, typical=3000, spread=2000, decimals=0),
}
"""Declared from the survey's documentation, not from the records."""
COLUMNS = list(TYPES)
STORED = Path(__file__).parent / "results" / "tables.csv"
STORED_SIZES = Path(__file__).parent / "results" / "tables_sizes.csv"
_SIZES: dict[str, dict[str, Any]] = {
    "30 columns, one of 300 levels, 10^5 rows": {},
    "10 columns of counts and categories, 10^6 rows": {
        "n": 1_000_000, "n_columns": 10, "n_levels": 0, "counts": 4
    },
}  # fmt: skip
PUBLISHED = {
    "synthpop CART, no guarantee, all 4,999 rows": (0.78, 0.027, 0.85),
    "SmartNoise MST, epsilon 1, all 4,999 rows": (0.49, 0.18, 5.3),
    "SmartNoise MST, epsilon 4, all 4,999 rows": (0.32, 0.17, 5.3),
}
"""Found by others with measures of the same names on this file: overlap, pairs, pMSE ratio."""
_MODELS = {
    "ols": "FOODCQ ~ AGE + FAM_SIZE + I(FINCBTAX / 10000) + I(CUTENURE == 1) + I(CUTENURE == 4)",
    "poisson": "NO_EARNR ~ AGE + I(AGE ** 2 / 100) + FAM_SIZE + C(SEX) + EDUCA",
}
HOWS = ("nothing else", "reference as evidence")
PAIRS = "all pairs"
_SETS = 5
_NO_NOISE = 1e5  # epsilon: what bins and two-way tables alone lose


def consumers() -> pd.DataFrame:
    """Ten columns of the February file, amounts in whole dollars."""
    table: pd.DataFrame = pd.read_csv(DATA)[COLUMNS]
    whole = {name: table[name].round().astype(int) for name in ("FOODCQ", "TOTEXPCQ")}
    return table.assign(**whole)


def measured(data: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, float]:
    """Overlap, pair distance and pMSE ratio of one synthetic table."""
    overlaps: list[float] = []
    for model, formula in _MODELS.items():
        try:
            found = ph.measures.model_utility(
                data, [synthetic], formula, model=model, rule="single"
            )
            overlaps += list(found.table["interval_overlap"])
        except ph.InvalidInput:  # a level that the synthetic table has not: no interval at all
            overlaps += [0.0]
    pairs = ph.measures.table_utility(data, [synthetic])
    told = ph.measures.propensity_utility(data, [synthetic], classifier="cart", rng=1)
    return {
        "overlap": float(np.mean(np.clip(overlaps, 0, None))),
        "pair_distance": float(pairs.two_way["total_variation"].mean()),
        "pmse_ratio": told.ratio,
    }


def run() -> None:
    """The table of the benchmark; lines that are stored are not measured anew."""
    if not DATA.is_file():
        print(f"Whole tables: left out, the file {DATA.name} is not there")
        return
    known = pd.read_csv(STORED) if STORED.is_file() else pd.DataFrame()
    print(f"{'':<58}{'sets':>5}{'CPU s':>8}{'overlap':>10}{'pairs':>9}{'pMSE ratio':>12}")
    for name, n_sets, make in _routes():
        own = known[known["route"] == name] if len(known) else known
        if own.empty:
            own = pd.DataFrame([_line(name, n_sets, make)])
            known = pd.concat([known, own], ignore_index=True)
            known.to_csv(STORED, index=False, float_format="%.4g")
        row = own.iloc[0]
        print(f"{name:<58}{row['sets']:>5.0f}{row['cpu_seconds']:>8.1f}{row['overlap']:>10.2f}"
              f"{row['pair_distance']:>9.3f}{row['pmse_ratio']:>12.2f}", flush=True)  # fmt: skip
    for name, values in PUBLISHED.items():
        print(f"{name:<71}{values[0]:>10.2f}{values[1]:>9.3f}{values[2]:>12.2f}")
    _stored_sizes()


def _stored_sizes() -> None:
    """CPU seconds by size, kept as the lines are."""
    known = pd.read_csv(STORED_SIZES) if STORED_SIZES.is_file() else pd.DataFrame()
    print(f"{'sizes, noisy marginals, epsilon 4':<71}{'CPU s':>10}")
    for name, options in _SIZES.items():
        own = known[known["table"] == name] if len(known) else known
        if own.empty:
            seconds = sizes(**options)
            own = pd.DataFrame([{"table": name, "cpu_seconds": seconds, "version": ph.__version__}])
            known = pd.concat([known, own], ignore_index=True)
            known.to_csv(STORED_SIZES, index=False, float_format="%.4g")
        print(f"{name:<71}{own.iloc[0]['cpu_seconds']:>10.1f}", flush=True)


def _routes() -> Iterator[tuple[str, int, Callable[[int], pd.DataFrame]]]:
    """Name, number of sets and what makes one set of a split, of each line."""
    yield "the data drawn anew with replacement", _SETS, lambda k: _anew(parts(k)[1], k)
    yield "the reference alone, drawn with replacement", _SETS, _of_reference
    lines = [(1e-6, how) for how in _BY_HOW] + [(None, HOWS[0])]
    for (delta, how), epsilon in itertools.product(lines, (4.0, 2.0, 1.0)):
        name = f"marginals, {how}, epsilon {epsilon:g}"
        name += "" if delta is None else f", delta {delta:g}"
        yield name, _SETS, partial(_marginals, epsilon, how, delta)
    for how in (HOWS[0], PAIRS):
        yield f"marginals, {how}, no noise", _SETS, partial(_marginals, _NO_NOISE, how, None)


def parts(split: int = 1) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The reference, and the records to be released."""
    data = consumers()
    reference = data.sample(1000, random_state=split)
    return reference.reset_index(drop=True), data.drop(reference.index).reset_index(drop=True)


def _anew(table: pd.DataFrame, seed: int, n: int | None = None) -> pd.DataFrame:
    return table.sample(n or len(table), replace=True, random_state=seed)


def _of_reference(split: int) -> pd.DataFrame:
    reference, released = parts(split)
    return _anew(reference, split, len(released))


def _marginals(epsilon: float, how: str, delta: float | None, split: int) -> pd.DataFrame:
    reference, released = parts(split)
    options: dict[str, Any] = {"delta": delta, "select": "all" if how == PAIRS else None}
    if how == HOWS[1]:
        options |= {"reference": reference, "public": True, "holds_no_released_record": True}
    kinds = declared_kinds(COLUMNS, TYPES, None)
    mechanism = table_mechanism(kinds, {}, epsilon=epsilon, **options)
    return mechanism.release(released).synthetic[0]


def _seconds() -> float:
    """CPU time of this process and of its workers that have ended."""
    return sum(os.times()[:4])


def _line(name: str, n_sets: int, make: Callable[[int], pd.DataFrame]) -> dict[str, Any]:
    found, seconds, wall = [], 0.0, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for split in range(1, n_sets + 1):
            started, at = _seconds(), time.perf_counter()
            synthetic = make(split).reset_index(drop=True)
            seconds += _seconds() - started
            wall += time.perf_counter() - at
            found.append(measured(parts(split)[1], synthetic))
    means = pd.DataFrame(found).mean().to_dict()
    spread = float(pd.DataFrame(found)["overlap"].std() / np.sqrt(n_sets)) if n_sets > 1 else np.nan
    today = datetime.date.today().isoformat()
    return {
        "route": name, "sets": n_sets, "cpu_seconds": seconds / n_sets, **means,
        "overlap_error": spread, "wall_seconds": wall / n_sets,
        "version": ph.__version__, "date": today,
    }  # fmt: skip


_SHOWN = {
    "the data drawn anew with replacement": "–",
    "the reference alone, drawn with replacement": "0",
}
_BY_HOW = {
    HOWS[1]: "noisy marginals, the reference as evidence",
    HOWS[0]: "noisy marginals, nothing else",
}


def page_rows() -> list[str]:
    """Stored and published lines as rows of the table in docs/pages/benchmarks.md."""
    stored = pd.read_csv(STORED).set_index("route")
    rows = [_row(name, name, price, stored) for name, price in _SHOWN.items()]
    for how, label in _BY_HOW.items():
        for epsilon, delta in itertools.product((4, 2, 1), ("", ", delta 1e-06")):
            name = f"marginals, {how}, epsilon {epsilon}{delta}"
            if name in stored.index:
                rows.append(_row(name, label, f"{epsilon}{delta.replace('e-06', 'e-6')}", stored))
    for how in (HOWS[0], PAIRS):
        label = _BY_HOW.get(how, "noisy marginals, all 45 pairs of columns") + ", no noise"
        rows.append(_row(f"marginals, {how}, no noise", label, "–", stored))
    for name, (overlap, pairs, ratio) in PUBLISHED.items():
        program, _, told = name.removesuffix(", all 4,999 rows").partition(", ")
        price = told.removeprefix("epsilon ") if told.startswith("epsilon") else "–"
        label = f"{program}, no guarantee" if price == "–" else program
        rows.append(f"| {label} (published) | {price} | – | {overlap} | {pairs} | {ratio} |")
    return rows


def _row(name: str, label: str, price: str, stored: pd.DataFrame) -> str:
    own = stored.loc[name]
    seconds = "–" if name in _SHOWN else f"{own['cpu_seconds']:.0f}"
    return (
        f"| {label} | {price} | {seconds} | {own['overlap']:.2f} | {own['pair_distance']:.3f} | "
        f"{own['pmse_ratio']:.2f} |"
    )


def sizes(n: int = 100_000, n_columns: int = 30, n_levels: int = 300, counts: int = 0) -> float:
    """CPU seconds of a table of this size by noisy marginals.

    One column has `n_levels` levels (none for 0), so many `counts`, the others have three levels.
    """
    rng = np.random.default_rng(1)
    base = rng.integers(0, 3, n)
    own: dict[str, Any] = {}
    types: dict[str, Any] = {}
    if n_levels:
        own["code"] = rng.integers(0, n_levels, n)
        types["code"] = ph.Nominal(levels=tuple(range(n_levels)))
    for k in range(counts):
        own[f"n{k}"] = rng.poisson(np.exp(0.3 * base))
        types[f"n{k}"] = ph.Counts(lower=0, upper=60, typical=2, spread=2)
    for k in range(n_columns - len(own)):
        own[f"c{k}"] = np.where(rng.random(n) < 0.5, base, rng.integers(0, 3, n))
        types[f"c{k}"] = ph.Nominal(levels=(0, 1, 2))
    started = time.process_time()
    mechanism = table_mechanism(declared_kinds(list(own), types, None), {}, epsilon=4)
    mechanism.release(pd.DataFrame(own))
    return time.process_time() - started


if __name__ == "__main__":
    run()
