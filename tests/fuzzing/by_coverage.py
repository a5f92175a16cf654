"""Targets of the coverage-guided fuzzer: bytes in, nothing out but for a crash."""

from collections.abc import Callable, Sequence

import formulaic.parser  # noqa: F401  (instrumented with what imports it)
import numpy as np
import pandas as pd

from pyhybrid.models.formula.design import read_design
from tests.fuzzing.files import _parquet_seeds, check_table_file
from tests.fuzzing.outcomes import attempted

_TABLE = pd.DataFrame({
    "y": [0, 3, 1, 2, 5, 1, 4, 2],
    "x": np.linspace(0.5, 4, 8),
    "g": ["a", "b", "a", "b", "a", "b", "c", "c"],
    "z w": pd.Categorical(["u", "v"] * 4, ordered=True),
})  # fmt: skip


def _csv(content: bytes) -> None:
    check_table_file(("csv", content))


def _parquet(content: bytes) -> None:
    check_table_file(("parquet", content))


def _formula(content: bytes) -> None:
    attempted(lambda: read_design("y ~ " + content.decode(errors="replace"), _TABLE))


TARGETS: dict[str, tuple[Callable[[bytes], None], Sequence[bytes]]] = {
    "csv": (_csv, [b"y,x\n1,a\n2,\n", b'y\n"1\n"\n', b"\xef\xbb\xbfy\n007\n"]),
    "parquet": (_parquet, _parquet_seeds()),
    "formula": (_formula, [b"x + g", b"C(g) * x", b"bs(x, df=4)", b"`z w`", b"poly(x, 2) - 1"]),
}
"""By name: the target, and well-formed inputs that it must take."""
