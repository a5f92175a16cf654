"""Store R's design matrices: ``python -m tests.golden.designs.make_designs``, with R and rpy2.

``matrices.json`` holds, for each formula of `cases`, what R's ``model.matrix`` makes of the table:
the rank, and the columns in an order of their own (`sorted_columns`), to 12 digits; and what its
``model.offset`` makes of it, where that is not 0.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.rbridge import call_r
from tests.golden.designs.cases import FORMULAS, table

STORED = Path(__file__).with_name("matrices.json")


def sorted_columns(X: Any) -> np.ndarray:
    """Columns in an order that does not depend on how they came: that is no part of a model."""
    X = np.atleast_2d(np.asarray(X, dtype=float))
    return X[:, np.lexsort(np.round(X, 9) + 0.0)]


def in_r(formula: str, df: pd.DataFrame) -> np.ndarray:
    """R's design matrix."""
    return np.asarray(call_r("read_design", formula=formula, data=df)["X"], dtype=float)


def offset_in_r(formula: str, df: pd.DataFrame) -> np.ndarray:
    """R's offset, shape (n,)."""
    return np.asarray(call_r("read_design", formula=formula, data=df)["offset"], dtype=float)


def main() -> None:
    """Write the file."""
    df = table()
    lines = []
    for formula in FORMULAS:
        X = sorted_columns(in_r(formula, df))
        columns = [[float(f"{value:.12g}") for value in column] for column in X.T]
        rank = int(np.linalg.matrix_rank(X))
        stored = {"formula": formula, "rank": rank, "columns": columns}
        offset = offset_in_r(formula, df)
        if offset.any():
            stored["offset"] = [float(f"{value:.12g}") for value in offset]
        lines.append(json.dumps(stored))
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
