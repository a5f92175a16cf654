"""Tables of every sort that pandas can hold, most of them unfit for a model.

Hypothesis chooses kinds, sizes, names and what is broken; numpy fills the cells from a seed that
it chose. A failing table so shrinks to the fewest columns and the plainest kinds.
"""

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

Fill = Callable[[np.random.Generator, int], Any]
_EDGES = [0.0, -0.0, 1.0, 1e300, -1e300, 5e-324, 2.0**31, 2.0**53, 2.0**63, 1e-12, 0.5]


def _objects(*values: Any) -> Fill:
    def fill(rng: np.random.Generator, n: int) -> Any:
        cells = np.empty(n, dtype=object)
        for place in range(n):
            cells[place] = values[int(rng.integers(len(values)))]
        return cells

    return fill


def _category(levels: list[Any], ordered: bool) -> Fill:
    def fill(rng: np.random.Generator, n: int) -> Any:
        codes = rng.integers(0, max(1, len(levels) - 1), n)  # the last level is never used
        return pd.Categorical.from_codes(codes, categories=levels, ordered=ordered)

    return fill


OUTCOMES: dict[str, Fill] = {
    "counts": lambda rng, n: rng.poisson(4, n),
    "zeros and ones": lambda rng, n: rng.integers(0, 2, n),
    "skewed counts": lambda rng, n: rng.negative_binomial(1, 0.01, n),
    "int8": lambda rng, n: rng.integers(100, 128, n).astype(np.int8),
    "uint8": lambda rng, n: rng.integers(0, 256, n).astype(np.uint8),
    "nullable counts": lambda rng, n: pd.array(rng.poisson(4, n), dtype="Int64"),
    "whole floats": lambda rng, n: rng.poisson(4, n).astype(float),
    "float32": lambda rng, n: rng.random(n).astype(np.float32),
    "unit interval": lambda rng, n: rng.beta(0.5, 3, n),
    "unit interval with its ends": lambda rng, n: rng.integers(0, 5, n) / 4,
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: np.exp(rng.normal(8, 2, n)).round(2),
}
OTHERS: dict[str, Fill] = {
    "constant": lambda rng, n: np.full(n, 3),
    "negative": lambda rng, n: rng.integers(-5, 5, n),
    "2^31": lambda rng, n: rng.integers(2**31 - 2, 2**31 + 1, n),
    "2^31 - 1": lambda rng, n: rng.integers(2**31 - 3, 2**31, n),
    "2^53": lambda rng, n: 2**53 + rng.integers(-2, 3, n),
    "2^64": lambda rng, n: np.uint64(2**64 - 1) - rng.integers(0, 5, n).astype(np.uint64),
    "int64 ends": lambda rng, n: rng.choice([-(2**63), 2**63 - 1], n),
    "1e300": lambda rng, n: rng.normal(size=n) * 1e300,
    "1e308": lambda rng, n: rng.choice([-1.7e308, 1.7e308, 1e308], n),
    "denormal": lambda rng, n: rng.integers(0, 9, n) * 5e-324,
    "edges": lambda rng, n: rng.choice(_EDGES, n),
    "infinite": lambda rng, n: rng.choice([np.inf, -np.inf, 1.0], n),
    "with NaN": lambda rng, n: rng.choice([np.nan, 1.0, 2.0], n),
    "all NaN": lambda rng, n: np.full(n, np.nan),
    "nullable with NA": lambda rng, n: pd.array(
        [None if u < 0.3 else int(9 * u) for u in rng.random(n)], dtype="Int64"
    ),
    "Float64 with NA": lambda rng, n: pd.array(
        [None if u < 0.3 else u for u in rng.random(n)], dtype="Float64"
    ),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "nullable bool": lambda rng, n: pd.array(
        [None if u < 0.2 else bool(u < 0.6) for u in rng.random(n)], dtype="boolean"
    ),
    "complex": lambda rng, n: rng.normal(size=n) + 1j,
    "text": _objects("a", "b", "c"),
    "odd text": _objects(
        "", " ", "NA", "nan", "é", "a,b", 'q"', "line\nbreak", "007", "\x00", "😀"
    ),
    "string dtype": lambda rng, n: pd.array(rng.choice(["a", "b"], n), dtype="string"),
    "mixed objects": _objects(1, "a", None, 2.5, True),
    "None": _objects(None),
    "bytes": _objects(b"a", b"b"),
    "lists": _objects([1], [2, 3]),
    "tuples": _objects((1,), (2, 3)),
    "Decimal": _objects(decimal.Decimal("1.5"), decimal.Decimal("2")),
    "huge Python integers": _objects(10**30, 10**400, 1),
    "dates": _objects(datetime.date(2020, 1, 1), datetime.date(1, 1, 1)),
    "datetime64": lambda rng, n: pd.to_datetime(rng.integers(0, 10**18, n)),
    "datetime with zone": lambda rng, n: pd.to_datetime(
        rng.integers(0, 10**18, n), utc=True
    ).tz_convert("Europe/London"),
    "timedelta": lambda rng, n: pd.to_timedelta(rng.integers(0, 10**15, n)),
    "period": lambda rng, n: pd.PeriodIndex.from_ordinals(rng.integers(0, 99, n), freq="M"),
    "interval": lambda rng, n: pd.IntervalIndex.from_arrays(rng.integers(0, 5, n), np.full(n, 9)),
    "sparse": lambda rng, n: pd.arrays.SparseArray(rng.integers(0, 2, n)),
    "category": _category(["a", "b", "c"], False),
    "ordered category": _category(["low", "mid", "high", "none"], True),
    "category of numbers": _category([1, 2.5, 7], False),
    "category of one": _category(["a"], False),
    "as many levels as rows": lambda rng, n: pd.Categorical([f"l{i}" for i in range(n)]),
    "arrow integers": lambda rng, n: pd.array(rng.poisson(3, n), dtype="int64[pyarrow]"),
    "arrow text": lambda rng, n: pd.array(rng.choice(["a", "b"], n), dtype="string[pyarrow]"),
}
KINDS = {**OUTCOMES, **OTHERS}
_NAMES: list[Any] = [
    "y", "x", "g", "z w", "", "1", "é", "y~", "`", "x:g", "a,b", "__x__", "weights", "lambda",
    "Intercept", 0, None, ("a", 1), 2.5, True,
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a table is made; its representation is what hypothesis prints of a failure."""

    n: int
    kinds: tuple[str, ...]
    names: tuple[Any, ...]
    index: str
    poison: tuple[tuple[int, int, Any], ...]
    seed: int

    def table(self) -> pd.DataFrame:
        """The table; the same one every time."""
        rng = np.random.default_rng(self.seed)
        columns = [pd.Series(KINDS[kind](rng, self.n)) for kind in self.kinds]
        for row, place, value in self.poison:
            if self.n and columns:
                column = columns[place % len(columns)].astype(object)
                column.iloc[row % self.n] = value
                columns[place % len(columns)] = column
        table = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(self.n))
        table.columns = pd.Index(list(self.names), dtype=object, tupleize_cols=False)
        table.index = _index(self.index, self.n)
        return table


def _index(kind: str, n: int) -> pd.Index:
    numbers = np.arange(n)
    kinds: dict[str, Callable[[], pd.Index]] = {
        "range": lambda: pd.RangeIndex(n),
        "labels": lambda: pd.Index([f"row {i}" for i in numbers], name="label"),
        "all alike": lambda: pd.Index(np.zeros(n, dtype=int)),
        "dates": lambda: pd.date_range("2020-01-01", periods=n, name="day"),
        "two levels": lambda: pd.MultiIndex.from_arrays([numbers // 2, numbers % 2]),
        "missing": lambda: pd.Index(np.full(n, np.nan)),
        "named as a column": lambda: pd.Index(numbers[::-1], name="y"),
    }
    return kinds[kind]()


OFTEN = st.sampled_from([True] * 5 + [False])
"""Choices of what is as it should be."""
INDEXES = ("range", "labels", "all alike", "dates", "two levels", "missing", "named as a column")
_POISON = [None, float("nan"), float("inf"), "x", -1, 1e300, True, b"", ()]


@st.composite
def recipes(
    draw: Any, *, sizes: tuple[int, ...] = (12, 20, 3, 2, 24), plain: bool = False
) -> Recipe:
    """Tables; with `plain` only names that a formula and a file can hold, and no poison."""
    usual = plain or draw(OFTEN)
    n = draw(st.sampled_from(sizes) if usual else st.integers(0, 24))
    n_columns = draw(st.sampled_from([3, 2, 4, 1, 5]) if usual else st.integers(0, 5))
    outcome = st.sampled_from(sorted(OUTCOMES)) if usual else st.sampled_from(sorted(KINDS))
    kinds = tuple(
        draw(outcome if place == 0 else st.sampled_from(sorted(KINDS)))
        for place in range(n_columns)
    )
    names: list[Any] = ["y", "x", "g", "z w", "h"][:n_columns]
    if not (plain or draw(OFTEN)):
        names = [draw(st.sampled_from(_NAMES)) for _ in names]
    poison: tuple[Any, ...] = ()
    if not (plain or draw(OFTEN)):
        spots = st.tuples(st.integers(0, 23), st.integers(0, 4), st.sampled_from(_POISON))
        poison = tuple(draw(st.lists(spots, max_size=2)))
    index = "range" if plain else draw(st.sampled_from(INDEXES))
    seed = draw(st.integers(0, 2**16))
    return Recipe(n=n, kinds=kinds, names=tuple(names), index=index, poison=poison, seed=seed)


_TERMS = [
    "1", "0", "-1", "x", "g", "x + g", "x*g", "x:g", "C(g)", "C(x)", "log(x)", "I(x**2)", "x**2",
    "poly(x, 2)", "bs(x, df=4)", "cr(x, df=3)", "scale(x)", "center(x)", "`z w`", ".", ". - x", "y",
    "y.x", "x | g", "nothing", "x +", "+", "(x", "x)", "", "C(g, contr.sum)", "np.log(x)", "{x}",
    "{x / g}", "x ~ g", "(x + g)**2", "x %in% g", "'x'", "1 + x + 1", "lag(x)", "x.sum()", "x[0]",
    "exp(1000*x)", "x/0", "1e400", "C(x, levels=[1])", "hashed(g, levels=2)", "Intercept",
]  # fmt: skip


def formulas(*outcomes: str) -> st.SearchStrategy[str]:
    """Wilkinson formulas, right ones and wrong ones."""
    left = st.sampled_from([*(outcomes or ("y",)), "`y`", "z w", "log(y)", "", "y + x"])
    usual = st.sampled_from(
        ["y ~ 1", "y ~ x", "y ~ 0 + x", "y ~ x + g", "y ~ x*g", "y ~ g", "y ~ C(g)"]
    )
    built = st.builds("{} ~ {}".format, left, st.sampled_from(_TERMS))
    noise = st.text(alphabet="yxg01~+-*/:()[]{}`'\"|.,% \n\té\\", max_size=14)
    odd = st.one_of(built, noise, st.builds("y ~ {}".format, noise))
    return OFTEN.flatmap(lambda plain: usual if plain else odd)
