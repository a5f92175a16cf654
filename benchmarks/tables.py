"""Whole tables: February CE, 4,999 rows, ten mixed columns, all synthesized; time and utility.

One synthetic table each. Overlap: mean over the coefficients of two regressions of the 95 %
intervals; pair distance: mean total variation of all two-way tables; pMSE ratio by CART. The Stan
route and marginals read nothing but declared types; CART has no guarantee. Further figures for the
same file, by measures of the same names: synthpop CART .78, .027, .85; SmartNoise MST .49, .18, 5.3
at epsilon 1 and .32, .17, 5.3 at 4.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings

__all__ = ["COLUMNS", "TYPES", "consumers", "measured", "run", "sizes"]

DATA = Path(__file__).parents[1] / ".." / "shared" / "data" / "ce_2015_february.csv"
TYPES: dict[str, Any] = {
    "SEX": ph.Nominal(levels=("F", "M")),
    "BLS_URBN": ph.Nominal(levels=(1, 2)),
    "CUTENURE": ph.Nominal(levels=(1, 2, 3, 4, 5, 6)),
    "EDUCA": ph.Ordered(levels=(1, 2, 3, 4, 5, 6, 7, 8)),
    "NO_EARNR": ph.Counts(lower=0, upper=10, center=1, unit=1),
    "FAM_SIZE": ph.Counts(lower=1, upper=20, center=2, unit=1),
    "AGE": ph.Counts(lower=14, upper=87, center=50, unit=20),
    "FOODCQ": ph.SemiContinuous(lower=0, upper=10_000, center=500, unit=300),
    "FINCBTAX": ph.SemiContinuous(lower=-500_000, upper=1_500_000, center=40_000, unit=40_000),
    "TOTEXPCQ": ph.Real(lower=-10_000, upper=100_000, center=3000, unit=2000),
}
"""Declared from the survey's documentation, not from the records."""
COLUMNS = list(TYPES)
_MODELS = {
    "ols": "FOODCQ ~ AGE + FAM_SIZE + I(FINCBTAX / 10000) + C(CUTENURE)",
    "poisson": "NO_EARNR ~ AGE + I(AGE ** 2 / 100) + FAM_SIZE + C(SEX) + EDUCA",
}
_SHORT = SamplerSettings(chains=2, warmup=200, draws=250)


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
            found = ph.model_utility(data, [synthetic], formula, model=model, rule="single")
            overlaps += list(found.table["overlap"])
        except ph.InvalidInput:  # a level that the synthetic table has not: no interval at all
            overlaps += [0.0]
    pairs = ph.table_utility(data, [synthetic])
    told = ph.propensity_utility(data, [synthetic], classifier="cart", rng=1)
    return {
        "overlap": float(np.mean(np.clip(overlaps, 0, None))),
        "pair distance": float(pairs.two_way["total_variation"].mean()),
        "pMSE ratio": told.ratio,
    }


def run() -> None:
    """The table of the benchmark."""
    if not DATA.is_file():
        print(f"Whole tables: left out, the file {DATA.name} is not there")
        return
    data = consumers()
    plan = ph.Table(data, sensitive=COLUMNS, types=TYPES).plan(split="need")
    print(f"{'':<34}{'CPU s':>8}{'overlap':>10}{'pairs':>9}{'pMSE ratio':>12}")
    for epsilon in (1.0, 4.0):
        for mechanism in ("censored", "marginals"):
            _line(f"{mechanism}, epsilon {epsilon:g}", data, _release(plan, epsilon, mechanism))
    cart = ph.CartSynthesis(keys=COLUMNS, n_synthetic=1, types={"SEX": "categorical"})
    _line("CART, no guarantee", data, lambda: cart.release(data).synthetic[0])


def _release(plan: Any, epsilon: float, mechanism: str) -> Callable[[], pd.DataFrame]:
    options: dict[str, Any] = {"epsilon": epsilon, "mechanism": mechanism}
    if mechanism == "censored":
        options |= {"engine": "embedded", "settings": _SHORT, "on_not_converged": "warn"}
    return lambda: ph.synthesize_table(plan, **options).synthetic[0]


def _line(label: str, data: pd.DataFrame, make: Callable[[], pd.DataFrame]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        synthetic = make()
        seconds = time.process_time() - started
        found = measured(data, synthetic)
    cells = (
        f"{found['overlap']:.2f}",
        f"{found['pair distance']:.3f}",
        f"{found['pMSE ratio']:.2f}",
    )
    print(f"{label:<34}{seconds:>8.1f}{cells[0]:>10}{cells[1]:>9}{cells[2]:>12}", flush=True)


def sizes(n: int = 100_000, n_columns: int = 30, n_levels: int = 300) -> float:
    """CPU seconds of a table of this size, one column of it with that many levels."""
    rng = np.random.default_rng(1)
    own: dict[str, Any] = {"code": rng.integers(0, n_levels, n)}
    types: dict[str, Any] = {"code": ph.Nominal(levels=tuple(range(n_levels)))}
    base = rng.integers(0, 3, n)
    for k in range(n_columns - 1):
        own[f"c{k}"] = np.where(rng.random(n) < 0.5, base, rng.integers(0, 3, n))
        types[f"c{k}"] = ph.Nominal(levels=(0, 1, 2))
    plan = ph.Table(pd.DataFrame(own), sensitive=list(own), types=types).plan(most_coefficients=6)
    started = time.process_time()
    ph.synthesize_table(
        plan, epsilon=4, engine="embedded", settings=_SHORT, on_not_converged="warn"
    )
    return time.process_time() - started


if __name__ == "__main__":
    run()
