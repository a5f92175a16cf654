"""Persons in households, and a release of them."""

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph


@pytest.fixture(scope="session")
def persons() -> pd.DataFrame:
    """Persons in 120 households, one head in each, whose incomes add up."""
    rng = np.random.default_rng(5)
    size = rng.integers(1, 5, 120)
    household = np.repeat(np.arange(120), size)
    n = household.size
    head = np.r_[True, np.diff(household) > 0].astype(int)
    age = np.where(head == 1, rng.integers(20, 80, n), rng.integers(0, 80, n))
    income = np.exp(3 + 0.5 * head + rng.normal(0, 0.4, 120)[household] + rng.normal(0, 0.3, n))
    table = pd.DataFrame({
        "household": household, "w": rng.uniform(1, 4, 120).round(2)[household],
        "region": rng.choice(["north", "south"], 120)[household], "age": age, "head": head,
        "owner": rng.integers(0, 2, 120)[household], "visits": rng.poisson(2 + head),
        "income": income.round(2),
    })  # fmt: skip
    return table.assign(together=table.groupby("household")["income"].transform("sum"))


@pytest.fixture(scope="session")
def release(persons: pd.DataFrame) -> ph.Release:
    """Two sets, of a sequence of four columns."""
    design = ph.measures.SurveyDesign(weights="w", unit="household", population=900)
    steps = [
        ph.Unweighted(ph.Bernoulli("head ~ age", prior="normal"), design=design),
        ph.Unweighted(ph.Bernoulli("owner ~ 1", prior="normal"), design=design),
        ph.Unweighted(ph.Poisson("visits ~ head", prior="normal"), design=design),
        ph.Unweighted(ph.LogNormal("income ~ head", decimals=2, prior="normal"), design=design),
    ]
    return ph.SequentialSynthesis(steps).release(persons, n_synthetic=2, seed=3, engine="embedded")
