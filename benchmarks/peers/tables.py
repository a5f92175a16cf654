"""The two tables: coarse, publicly coded columns that every program takes.

Of each, one random part is released, one is held out (attribute risk), and one is the earlier
survey that our strict mechanism is calibrated on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

__all__ = ["LARGEST", "NOMINAL", "Case", "cases"]

LARGEST = 30
"""Of both outcomes: they are cut there."""
NOMINAL = ("tenure",)
"""Predictors whose codes have no order, by the codebook."""

_CE = Path(__file__).resolve().parents[3] / "shared" / "data" / "ce_2015_february.csv"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table in three parts, its sensitive column and the analyst's model."""

    name: str
    outcome: str
    predictors: tuple[str, ...]
    released: pd.DataFrame
    held_out: pd.DataFrame
    reference: pd.DataFrame

    @property
    def codes(self) -> dict[str, tuple[int, ...]]:
        """What each predictor can be, by the codebook: all codes of the three parts together."""
        whole = pd.concat([self.released, self.held_out, self.reference])
        return {name: tuple(sorted(set(whole[name].tolist()))) for name in self.predictors}

    @property
    def formula(self) -> str:
        """The outcome on the predictors."""
        return f"{self.outcome} ~ {' + '.join(self.predictors)}"


def cases() -> dict[str, Case]:
    """RAND visits, and incomes of the February CE file where it lies beside the project."""
    found = {"rand": _rand()}
    if _CE.exists():
        found["ce"] = _ce()
    return found


def _rand() -> Case:
    raw = randhie.load_pandas().data
    table: pd.DataFrame = pd.DataFrame({
        "visits": raw["mdvis"].clip(upper=LARGEST).astype(int),
        "coinsurance": pd.factorize(raw["lncoins"], sort=True)[0],
        "deductible": raw["idp"].astype(int),
        "limits": (raw["physlm"] > 0).astype(int),
        "health": (raw["hlthg"] + 2 * raw["hlthf"] + 3 * raw["hlthp"]).astype(int),
        "disease": np.minimum(raw["disea"] // 5, 6).astype(int),
    })  # fmt: skip
    return _case("rand", table, 10_000, 2000)


def _ce() -> Case:
    raw = pd.read_csv(_CE)
    raw = raw[raw["FINCBTAX"] > 0]
    table: pd.DataFrame = pd.DataFrame({
        "income": np.minimum(raw["FINCBTAX"] // 10_000, LARGEST).astype(int),
        "education": pd.to_numeric(raw["EDUCA"]).astype(int),
        "tenure": pd.to_numeric(raw["CUTENURE"]).astype(int),
        "members": pd.to_numeric(raw["FAM_SIZE"]).clip(upper=6).astype(int),
        "earners": pd.to_numeric(raw["NO_EARNR"]).clip(upper=3).astype(int),
        "sex": pd.factorize(raw["SEX"], sort=True)[0],
    })  # fmt: skip
    return _case("ce", table, 2400, 1000)


def _case(name: str, table: pd.DataFrame, n: int, n_reference: int) -> Case:
    mixed = table.sample(frac=1, random_state=1).reset_index(drop=True)
    first, last = n, n + n_reference
    return Case(
        name=name,
        outcome=table.columns[0],
        predictors=tuple(table.columns[1:]),
        released=mixed[:first],
        reference=mixed[first:last],
        held_out=mixed[last:],
    )
