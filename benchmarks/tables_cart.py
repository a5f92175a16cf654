"""What the pMSE ratio by CART sees in whole tables from noisy marginals, without any noise.

The data of `benchmarks.tables`, changed in one respect at a time: numbers drawn anew within bins,
all together or one column alone; then tables of the model itself, as they are, and with the numbers
of both tables as numbers of merged bins, so that only dependence between cells is left to see.
Means over splits; lines are kept in results/tables_cart.csv.

    python -m benchmarks tables_cart
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

import pyhybrid as ph
from benchmarks import tables
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.marginals.measurement import Measured
from pyhybrid.mechanisms.marginals.noisy_marginals import within
from pyhybrid.tables.synthesis import marginals_by_plan

__all__ = ["run"]

STORED = Path(__file__).parent / "results" / "tables_cart.csv"
_SPLITS, _NO_NOISE = 4, 1e5
_NUMBERS = ("AGE", "FOODCQ", "FINCBTAX", "TOTEXPCQ")
Both = tuple[pd.DataFrame, pd.DataFrame]


class _Split:
    """One split's data, its bins without noise, and a table of the model."""

    def __init__(self, split: int) -> None:
        self.rng, self.split = np.random.default_rng(split), split
        plan, _ = tables._plan(split, chosen=False)
        self.data: pd.DataFrame = plan.table.df
        mechanism = marginals_by_plan(plan, _NO_NOISE, "remove")
        self.domain: Mapping[str, ColumnDomain] = mechanism.domain
        self.found: Measured = mechanism._measuring(self.data).of(self.data)

    def anew(self, columns: tuple[str, ...], *, narrow: bool) -> Both:
        """Numbers of some columns drawn anew within their narrow or merged bins."""
        made = self.data.copy()
        for name in columns:
            own, few = self.domain[name], self.found.domain[name]
            if narrow:
                cells = own.places(self.data[name])
            else:
                cells = within(own, few, few.places(self.data[name]), self.found.modes[name],
                               self.rng)  # fmt: skip
            made[name] = own.values(cells, self.rng, self.data[name])
        return self.data, made

    def but_heaps(self, name: str, n: int) -> Both:
        """Anew within merged bins, but for the n values that most records hold."""
        data, made = self.anew((name,), narrow=False)
        heaps = data[name].value_counts().index[:n]
        made[name] = made[name].where(~data[name].isin(heaps), data[name])
        return data, made

    def modeled(self, how: str) -> pd.DataFrame:
        return tables._marginals(_NO_NOISE, how, None, self.split)

    def binned(self, made: pd.DataFrame) -> Both:
        """Both tables with numbers as numbers of their merged bins."""
        found = []
        for frame in (self.data, made):
            own = frame.copy()
            for name in self.found.modes:
                own[name] = self.found.domain[name].places(frame[name])
            found.append(own)
        return found[0], found[1]


def _lines() -> dict[str, Callable[[_Split], Both]]:
    found: dict[str, Callable[[_Split], Both]] = {
        "the data drawn anew with replacement": lambda s: (
            s.data, s.data.sample(frac=1, replace=True, random_state=s.split)
        ),
        "numbers anew within narrow bins": lambda s: s.anew(_NUMBERS, narrow=True),
        "numbers anew within 12 merged bins": lambda s: s.anew(_NUMBERS, narrow=False),
    }  # fmt: skip
    for name in _NUMBERS:
        found[f"{name} alone anew within 12 merged bins"] = lambda s, n=name: s.anew(
            (n,), narrow=False
        )
    for n in (20, 60):
        found[f"FOODCQ alone anew, but for its {n} most frequent values"] = lambda s, n=n: (
            s.but_heaps("FOODCQ", n)
        )
    for how in (tables.HOWS[0], tables.PAIRS):
        found[f"model without noise, {how}"] = lambda s, h=how: (s.data, s.modeled(h))
        found[f"model without noise, {how}, numbers as bins"] = lambda s, h=how: s.binned(
            s.modeled(h)
        )
    return found


def run() -> None:
    """The table; lines that are stored are not measured anew."""
    if not tables.DATA.is_file():
        print(f"pMSE by CART: left out, the file {tables.DATA.name} is not there")
        return
    known = pd.read_csv(STORED) if STORED.is_file() else pd.DataFrame()
    splits: list[_Split] = []
    for name, make in _lines().items():
        own = known[known["line"] == name] if len(known) else known
        if own.empty:
            splits = splits or [_Split(split) for split in range(1, _SPLITS + 1)]
            ratios = [_ratio(*make(split)) for split in splits]
            own = pd.DataFrame([{"line": name, "splits": _SPLITS, "pmse_ratio": np.mean(ratios),
                                 "error": np.std(ratios, ddof=1) / np.sqrt(_SPLITS),
                                 "version": ph.__version__}])  # fmt: skip
            known = pd.concat([known, own], ignore_index=True)
            known.to_csv(STORED, index=False, float_format="%.4g")
        row = own.iloc[0]
        print(f"{name:<56}{row['pmse_ratio']:>8.2f}{row['error']:>8.2f}", flush=True)


def _ratio(data: pd.DataFrame, made: pd.DataFrame) -> float:
    return float(ph.measures.propensity_utility(data, [made], classifier="cart", rng=1).ratio)
