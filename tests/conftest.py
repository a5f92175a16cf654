"""Fixtures that more than one test module uses, and skips that CI does not allow."""

from __future__ import annotations

import os
import warnings

import hypothesis
import numpy as np
import pandas as pd
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ announces its next version once a day: to one test
    import arviz  # noqa: F401

# No deadline per example: a loaded machine is not a failure.
hypothesis.settings.register_profile("pyhybrid", deadline=None)
hypothesis.settings.load_profile("pyhybrid")


def require(available: bool, reason: str) -> None:
    """Skip with `reason` unless `available`; under PYHYBRID_REQUIRE_ALL=1 fail instead."""
    if available:
        return
    if os.environ.get("PYHYBRID_REQUIRE_ALL") == "1":
        pytest.fail(f"PYHYBRID_REQUIRE_ALL=1 and {reason}")
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled programs of a test run are shared by it and never touch the user's cache."""
    root = tmp_path_factory.getbasetemp().parent / "pyhybrid-test-cache"
    monkeypatch.setenv("PYHYBRID_CACHE", str(root))


@pytest.fixture
def visits() -> pd.DataFrame:
    """400 overdispersed counts with predictors of several types and an index of labels."""
    rng = np.random.default_rng(11)
    n = 400
    age = rng.integers(18, 90, n)
    region = rng.choice(["north", "east", "west"], n)
    mu = np.exp(0.5 + 0.01 * age + 0.4 * (region == "west"))
    return pd.DataFrame(
        {
            "id": [f"p{i:03d}" for i in range(n)],
            "visits": rng.negative_binomial(2, 2 / (2 + mu)),
            "age": age,
            "region": pd.Categorical(region),
            "score": rng.normal(size=n).round(3),
            "note": rng.choice(["", "x"], n),
        },
        index=pd.Index([f"row {i}" for i in range(n)], name="label"),
    )
