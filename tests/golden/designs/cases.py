"""The table and the formulas, for the stored matrices and for R itself."""

from pathlib import Path

import numpy as np
import pandas as pd

FORMULAS = Path(__file__).with_name("formulas.txt").read_text("utf-8").splitlines()


def table() -> pd.DataFrame:
    """Sixty records with columns of every type that predictors can have."""
    rng = np.random.default_rng(5)
    n = 60
    x = rng.integers(18, 80, n)
    x[:2] = 18, 79
    ordered = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    return pd.DataFrame({
        "y": rng.poisson(4, n), "x": x, "small": rng.integers(0, 100, n).astype(np.uint8),
        "z": rng.gamma(2, 1.5, n).round(3), "g": pd.Categorical(rng.choice(["a", "b", "c"], n)),
        "h": rng.choice(["p", "q"], n),
        "o": pd.Series(rng.choice(["low", "middle", "high"], n)).astype(ordered),
        "k": rng.integers(1, 5, n), "member": rng.random(n) < 0.4,
        "odd name": rng.integers(0, 9, n), "dotted.name": rng.integers(0, 9, n),
    })  # fmt: skip
