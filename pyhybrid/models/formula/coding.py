"""Values of the factors of a formula, and what they take from the data.

Arithmetic is in floating-point numbers, whatever the column's type: integers overflow or wrap
around and logicals do not add where they are not. Nothing of a formula is run as code. What a
function takes from all records (levels, knots, centers, breaks) is kept with the model, and other
tables are coded by it; constants that are written out take nothing from the data.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.terms import (
    ARITHMETIC,
    COMPARISONS,
    ELEMENTWISE,
    Factor,
    function_of,
    options_of,
)
from pyhybrid.models.formula.values import check_levels, days_of, kind_of, levels_of, numbers_of

State = dict[str, Any]
"""What factors took from the data, by their text."""
Options = Mapping[str, Any]
Coded = FloatArray | pd.Categorical
"""Values of a factor: numbers (n,), columns of a basis (n, k), or levels."""


def code_factor(factor: Factor, df: pd.DataFrame, state: State) -> Coded:
    """Values of a factor for the rows of `df`; `state` is read where it knows the factor and added
    to where it does not. Values outside the factor's domain come back as NaN, or as code -1, which
    `pyhybrid.models.formula.design` refuses."""
    try:
        with np.errstate(all="ignore"):  # log(-1) and the like are found later, with their row
            return _Coder(factor=factor, df=df, state=state).coded(factor.tree)
    except InvalidInput as error:
        raise InvalidInput(f"term {factor.text!r}: {error}") from None


def categories(
    codes: npt.NDArray[Any], levels: Iterable[Any], *, ordered: bool = False
) -> pd.Categorical:
    """Levels by their codes (n,), -1 for none."""
    dtype: Any = pd.CategoricalDtype(list(levels), ordered=ordered)
    return pd.Categorical.from_codes(codes.astype(int), dtype=dtype)


def takes_all_records(factor: Factor) -> bool:
    """True if the factor's text says that it computes something from all records."""
    calls = (node for node in ast.walk(factor.tree) if isinstance(node, ast.Call))
    return any(_is_stateful(function_of(call), options_of(call)) for call in calls)


def _is_stateful(name: str, options: Options) -> bool:
    """The transforms that a strict release refuses, unless their constants are given."""
    if name == "scale":
        return any(options.get(option, True) is True for option in ("center", "scale"))
    if name == "poly":
        return not options.get("raw", False)
    knots = "knots" in options or _n_knots(name, options) == 0
    return name in ("bs", "ns") and not ("Boundary_knots" in options and knots)


@dataclass(frozen=True, kw_only=True)
class _Coder:
    """Evaluates the syntax tree of one factor on a table."""

    factor: Factor
    df: pd.DataFrame
    state: State

    def coded(self, node: ast.expr) -> Coded:
        if isinstance(node, ast.Name):
            column = self.df[node.id]
            if f"{self.factor.text}: levels" not in self.state and kind_of(column) == "numbers":
                return numbers_of(column)
            return self.levels(column)
        assert isinstance(node, ast.Call)
        name, inner, options = function_of(node), node.args[0], options_of(node)
        compared = isinstance(inner, ast.Compare)
        if name in ("factor", "C"):
            if isinstance(inner, ast.Name):
                return self.levels(self.df[inner.id], options, used=name == "factor")
            computed = pd.Series(self.numbers(inner), name=self.factor.text)
            if compared:
                computed = computed.map({0.0: False, 1.0: True}).astype(object)
            return self.levels(computed, options)
        if name == "I" and isinstance(inner, ast.Name):
            return self.coded(inner)
        if name == "I" and compared:
            return categories(np.nan_to_num(self.numbers(inner), nan=-1), [False, True])
        return self.basis(node) if name in _BASES else self.numbers(node)

    def basis(self, node: ast.Call) -> Coded:
        """Columns of scale, poly, ns, bs or cut, by what they took from the data before."""
        name, key = function_of(node), f"{self.factor.text}: {ast.unparse(node)}"
        values = self.numbers(node.args[0])
        if key not in self.state and not (values.size and np.isfinite(values).all()):
            return np.full(values.size, np.nan)  # refused later, with its row
        return _BASES[name](values, options_of(node), self.state.setdefault(key, {}))

    def levels(
        self, values: pd.Series, options: Options | None = None, *, used: bool = False
    ) -> pd.Categorical:
        """Each value as a level; `used` leaves out those that no record has, as R's factor does."""
        key = f"{self.factor.text}: levels"
        if key not in self.state:
            check_levels(values)
            levels = (options or {}).get("levels") or levels_of(values, used=used)
            self.state[key] = [*levels], bool(getattr(values.dtype, "ordered", False))
        levels, ordered = self.state[key]
        codes, entries = pd.factorize(values)
        known = pd.Index(levels, dtype=object).get_indexer(pd.Index(entries, dtype=object))
        return categories(np.append(known, -1)[codes], levels, ordered=ordered)

    def numbers(self, node: ast.expr) -> FloatArray:
        """Numbers (n,) of a column, of arithmetic on columns, or of a comparison (0 and 1)."""
        if isinstance(node, ast.Name):
            return numbers_of(self.df[node.id])
        if isinstance(node, ast.Constant):
            return np.full(len(self.df), float(node.value))  # type: ignore[arg-type]
        if isinstance(node, ast.UnaryOp):
            operand = self.numbers(node.operand)
            return -operand if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.BinOp):
            operands = self.numbers(node.left), self.numbers(node.right)
            return np.asarray(ARITHMETIC[type(node.op)](*operands))
        if isinstance(node, ast.Compare):
            return self.truth(node)
        assert isinstance(node, ast.Call)
        name = function_of(node)
        if name == "days":
            return days_of(self.df[ast.unparse(node.args[0])])
        if name in _BASES:
            return np.asarray(self.basis(node))
        values = self.numbers(node.args[0])
        if name in ELEMENTWISE:
            values = np.asarray(ELEMENTWISE[name](values))
        base = options_of(node).get("base")
        return values if base is None else values / np.log(base)

    def truth(self, node: ast.Compare) -> FloatArray:
        """1 where a comparison holds, 0 where it does not, NaN where it is not known."""
        compare, right = COMPARISONS[type(node.ops[0])], node.comparators[0]
        if isinstance(right, ast.Constant) and isinstance(right.value, str):
            assert isinstance(node.left, ast.Name)
            column = self.df[node.left.id]
            if kind_of(column, as_levels=True) == "numbers":
                raise InvalidInput(f"column {node.left.id!r} must hold text to be compared with it")
            objects = column.astype(object).to_numpy(dtype=object)
            return np.asarray(compare(objects, right.value), dtype=np.float64)
        a, b = self.numbers(node.left), self.numbers(right)
        return np.where(np.isnan(a) | np.isnan(b), np.nan, compare(a, b))


def _check_varies(name: str, varies: bool) -> None:
    if not varies:
        raise InvalidInput(f"{name}() must have a column that varies: it is constant")


def _scale(x: FloatArray, options: Options, state: State) -> FloatArray:
    from formulaic.transforms import scale

    scaled = np.asarray(scale(x, **options, _state=state))
    _check_varies("scale", state["scale"] is None or state["scale"] > 0)
    return scaled


def _poly(x: FloatArray, options: Options, state: State) -> FloatArray:
    from formulaic.transforms import poly

    degree, raw = options.get("degree", 1), options.get("raw", False)
    if not (raw or state) and np.unique(x).size <= degree:
        raise InvalidInput(
            f"poly() of degree {degree} must have more than {degree} distinct values"
        )
    return np.asarray(poly(x, **options, _state=state))


def _n_knots(name: str, options: Options) -> int:
    """Interior knots that `df` asks for."""
    if "df" not in options:
        return 0
    degree = 1 if name == "ns" else options.get("degree", 3)
    fixed = degree + int(options.get("intercept", False))
    if options["df"] < fixed:
        raise InvalidInput(f"df of {name} must be at least {fixed}: found {options['df']}")
    return int(options["df"] - fixed)


def _take_knots(name: str, x: FloatArray, options: Options, state: State) -> None:
    """Interior knots and ends of a spline: those given, or quantiles and the range of x."""
    low, high = options.get("Boundary_knots", (float(x.min()), float(x.max())))
    _check_varies(name, low < high)
    knots = options.get("knots", [])
    if "knots" not in options:
        inside = x[(x >= low) & (x <= high)]
        shares = np.linspace(0, 1, _n_knots(name, options) + 2)[1:-1]
        knots = np.quantile(inside, shares) if inside.size else []
    knots = sorted(float(knot) for knot in np.atleast_1d(knots))
    if any(not low < knot < high for knot in knots):
        raise InvalidInput(f"knots of {name} must lie between its boundary knots; give other ones")
    state |= {"knots": knots, "ends": [float(low), float(high)]}


def _splines(x: FloatArray, degree: int, state: State, derivative: int = 0) -> FloatArray:
    """All B-splines of the knots at x, continued as polynomials beyond the ends; (n, k)."""
    from scipy.interpolate import BSpline

    low, high = state["ends"]
    knots = np.concatenate([[low] * (degree + 1), state["knots"], [high] * (degree + 1)])
    every = BSpline(knots, np.eye(knots.size - degree - 1), degree, extrapolate=True)
    return np.asarray(every(x, nu=derivative))


def _bs(x: FloatArray, options: Options, state: State) -> FloatArray:
    if not state:
        _take_knots("bs", x, options, state)
    columns = _splines(x, options.get("degree", 3), state)
    return columns if options.get("intercept", False) else columns[:, 1:]


def _ns(x: FloatArray, options: Options, state: State) -> FloatArray:
    """Natural cubic splines: straight beyond the ends, where second derivatives are 0."""
    if not state:
        _take_knots("ns", x, options, state)
    low, high = state["ends"]
    drop = 0 if options.get("intercept", False) else 1
    inside = np.clip(x, low, high)
    slopes = _splines(inside, 3, state, 1)
    straight = _splines(inside, 3, state) + (x - inside)[:, None] * slopes
    bent = _splines(np.array([low, high]), 3, state, 2)[:, drop:]
    turned, _ = np.linalg.qr(bent.T, mode="complete")
    # Sums by record, which do not depend on how many records there are.
    return np.asarray(np.einsum("nj,jk->nk", straight[:, drop:], turned[:, 2:]))


def _cut(x: FloatArray, options: Options, state: State) -> pd.Categorical:
    """The interval between breaks that each value lies in, as R's cut names them; -1 for none."""
    edges = sorted(float(edge) for edge in options.get("breaks", []))
    if not edges:
        raise InvalidInput("cut() must have breaks")
    names = [f"({a:.15g},{b:.15g}]" for a, b in pairwise(edges)]
    return pd.cut(x, edges, labels=names, ordered=False)


_BASES: Mapping[str, Callable[[FloatArray, Options, State], Coded]] = {
    "scale": _scale, "poly": _poly, "ns": _ns, "bs": _bs, "cut": _cut,
}  # fmt: skip
"""Functions of numbers x (n,) that read all of them unless `state` has what they took before."""
