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


def in_r(formula: str, df: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """R's design matrix, and its offset, shape (n,)."""
    design = call_r("read_design", formula=formula, data=df)
    return np.asarray(design["X"], dtype=float), np.asarray(design["offset"], dtype=float)


def _stored(values: np.ndarray) -> list[float]:
    return [float(f"{value:.12g}") for value in values]


def main() -> None:
    """Write the file."""
    df = table()
    lines = []
    for formula in FORMULAS:
        matrix, offset = in_r(formula, df)
        X = sorted_columns(matrix)
        columns, rank = [_stored(column) for column in X.T], int(np.linalg.matrix_rank(X))
        stored = {"formula": formula, "rank": rank, "columns": columns}
        if offset.any():
            stored["offset"] = _stored(offset)
        lines.append(json.dumps(stored))
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
