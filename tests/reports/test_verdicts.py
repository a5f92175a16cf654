"""Which column a worst value is of."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from pyhybrid.reports.verdicts import _which


@pytest.mark.parametrize("worst", [0, 1, 2])
def test_the_column_and_the_pair_of_a_worst_value_are_named(worst: int) -> None:
    """Wherever in its table the largest value stands."""
    sizes = [9.0 if place == worst else 1.0 for place in range(3)]
    names = ["wage", "age", "sex"]
    found: Any = SimpleNamespace(
        columns=SimpleNamespace(distances=pd.DataFrame({"column": names, "max_ecdf": sizes})),
        one_and_two_way=SimpleNamespace(
            one_way=pd.DataFrame({"column": names[::-1], "ratio": sizes}),
            two_way=pd.DataFrame({"first": names, "second": names[::-1], "ratio": sizes}),
        ),
    )
    assert _which(found, "max_ecdf, worst column") == f" ({names[worst]})"
    assert _which(found, "table_ratio, worst column") == f" ({names[::-1][worst]})"
    pair = f" ({names[worst]} and {names[::-1][worst]})"
    assert _which(found, "table_ratio, worst pair") == pair
    assert _which(found, "interval_overlap, visits ~ age") == ""
