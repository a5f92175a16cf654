"""A survey of a few hundred rows with columns of every kind."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph

TYPES: dict[str, Any] = {
    "voted": ph.Nominal(levels=("no", "yes")),
    "region": ph.Nominal(levels=("east", "north", "west")),
    "visits": ph.Counts(lower=0, upper=40, spread=3),
    "wage": ph.Real(lower=0, upper=200, decimals=1),
    "income": ph.Real(lower=0, upper=400, decimals=1),
}


def survey_of(n: int, seed: int) -> pd.DataFrame:
    """wage <= income in every row; visits rise with age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    wage = rng.gamma(3, 10, n).clip(0, 150).round(1)
    return pd.DataFrame({
        "person": [f"p{k:04d}" for k in range(n)],
        "name": [f"name {k}" for k in rng.permutation(n)], "age": age,
        "sex": rng.choice(["f", "m"], n),
        "voted": np.where(rng.random(n) < age / 100, "yes", "no"),
        "region": rng.choice(["east", "north", "west"], n),
        "visits": rng.poisson(np.exp(age / 50)).clip(0, 40), "wage": wage,
        "income": (wage + rng.gamma(2, 15, n).clip(0, 200)).round(1),
    }, index=pd.Index(range(100, 100 + n)))  # fmt: skip


def in_files(table: pd.DataFrame, folder: Path, n: int) -> Path:
    """The folder, with n Parquet files of the table."""
    for place, part in enumerate(np.array_split(np.arange(len(table)), n)):
        table.iloc[part].to_parquet(folder / f"{place}.parquet")
    return folder


@pytest.fixture(scope="session")
def survey() -> pd.DataFrame:
    return survey_of(300, 1)


@pytest.fixture(scope="session")
def reference() -> pd.DataFrame:
    return survey_of(300, 2)
