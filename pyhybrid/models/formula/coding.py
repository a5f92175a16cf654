"""From checked factors to columns: values of each factor, and what was taken from the data for it.

Arithmetic is in floating-point numbers, whatever the column's type: integers overflow or wrap
around and logicals do not add where they are not. Nothing of a formula is run as code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.splines import basis, labels_of, learn, takes_from_data
from pyhybrid.models.formula.values import check_levels, kind_of, levels_of, numbers_of
from pyhybrid.models.formula.whitelist import Factor

__all__ = [
    "Categories",
    "Coded",
    "Numbers",
    "State",
    "code_factor",
    "levels_taken",
    "takes_all_records",
]

State = dict[str, Any]
"""What factors took from the data, by their text: frozen with the model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """A factor of numbers: shape (n, k), one column unless `names` says otherwise."""

    values: FloatArray
    names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Categories:
    """A factor of levels; `codes` (n,) are places in `levels`, -1 for values that are none."""

    codes: npt.NDArray[np.intp]
    levels: list[Any]
    contrasts: str = "contr.treatment"


Coded = Numbers | Categories
_ELEMENTWISE: Mapping[str, Callable[[FloatArray], Any]] = {
    "abs": np.abs, "cos": np.cos, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "sin": np.sin, "sqrt": np.sqrt,
}  # fmt: skip
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal,
}  # fmt: skip
_COMPUTED: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
    ast.Pow: np.power,
}  # fmt: skip
_BASES = ("scale", "poly", "ns", "bs", "cut")
_TREATMENT, _POLYNOMIAL = "contr.treatment", "contr.poly"


def code_factor(factor: Factor, df: pd.DataFrame, state: State) -> Coded:
    """Values of a factor for the rows of `df`.

    `state` is read where it knows the factor and added to where it does not. Values outside the
    factor's domain come back as NaN, or as code -1; `pyhybrid.models.formula.design` refuses them.

    Raises
    ------
    InvalidInput
        For columns of a type that the factor cannot take, and options that it cannot take.
    """
    try:
        with np.errstate(all="ignore"):  # log(-1) and the like are found later, with their row
            return _coded(factor, factor.tree, df, state)
    except InvalidInput as error:
        raise InvalidInput(f"term {factor.text!r}: {error}") from None


def takes_all_records(factor: Factor) -> bool:
    """Whether the factor's text says that it computes something from all records."""
    return any(
        takes_from_data(ast.unparse(node.func), _options(node))
        for node in ast.walk(factor.tree)
        if isinstance(node, ast.Call)
    )


def levels_taken(factor: Factor, df: pd.DataFrame, declared: Collection[str]) -> set[str]:
    """Columns from whose records the factor takes its levels, by its syntax tree.

    A column of `declared` is a category with declared levels: it has them by itself and in C(), but
    factor() leaves out those that no record has. Levels of anything that is computed are read,
    whatever it is computed from; those of logicals are false and true.
    """
    taken: set[str] = set()
    for node in ast.walk(factor.tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) in ("factor", "C")):
            continue
        inner, own = node.args[0], _columns(factor, node)
        if "levels" in _options(node):
            continue
        kept = isinstance(inner, ast.Name) and ast.unparse(node.func) == "C"
        taken |= {
            name
            for name in own
            if not (isinstance(inner, ast.Name) and _kind(df, name) == "logicals")
            and not (kept and name in declared)
        }
    bare = factor.tree
    while isinstance(bare, ast.Call) and ast.unparse(bare.func) == "I":
        bare = bare.args[0]
    if isinstance(bare, ast.Name):
        name = factor.columns[bare.id]
        if _kind(df, name) == "levels" and name not in declared:
            taken.add(name)
    return taken


def _columns(factor: Factor, node: ast.expr) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return {factor.columns[name] for name in names if name in factor.columns}


def _kind(df: pd.DataFrame, name: str) -> str:
    return kind_of(df[name], as_levels=True)


def _coded(factor: Factor, node: ast.expr, df: pd.DataFrame, state: State) -> Coded:
    if isinstance(node, ast.Name):
        return _column(factor, df[factor.columns[node.id]], state)
    assert isinstance(node, ast.Call)
    name, inner, options = ast.unparse(node.func), node.args[0], _options(node)
    is_column = isinstance(inner, ast.Name)
    if name in ("factor", "C"):
        if not is_column:
            own = pd.Series(_arithmetic(factor, inner, df, state), name=factor.text)
            if isinstance(inner, ast.Compare):
                own = own.map({0.0: False, 1.0: True}).astype(object)
            return _levels(factor, own, options, state)
        assert isinstance(inner, ast.Name)
        return _levels(factor, df[factor.columns[inner.id]], options, state, used=name == "factor")
    if name == "I" and is_column:
        return _coded(factor, inner, df, state)
    if name == "I" and isinstance(inner, ast.Compare):
        truth = _arithmetic(factor, inner, df, state)
        codes = np.where(np.isnan(truth), -1, np.nan_to_num(truth)).astype(np.intp)
        return Categories(codes=codes, levels=[False, True])
    if name not in _BASES:
        return Numbers(values=_arithmetic(factor, node, df, state)[:, None])
    values = _basis(factor, node, df, state)
    if name == "cut":
        breaks = state[_key(factor, node)]["breaks"]
        codes = values[:, 0].astype(np.intp)
        return Categories(codes=codes, levels=labels_of(options, breaks))
    names = () if name == "scale" else tuple(str(k + 1) for k in range(values.shape[1]))
    return Numbers(values=values, names=names)


def _options(node: ast.Call) -> dict[str, Any]:
    return {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}


def _key(factor: Factor, node: ast.expr) -> str:
    return f"{factor.text}: {ast.unparse(node)}"


def _basis(factor: Factor, node: ast.Call, df: pd.DataFrame, state: State) -> FloatArray:
    """Columns of scale, poly, ns, bs or cut, with what they took from the data before."""
    name, options, key = ast.unparse(node.func), _options(node), _key(factor, node)
    values = _arithmetic(factor, node.args[0], df, state)
    if key not in state:
        there = values[np.isfinite(values)]
        if there.size < values.size or not there.size:  # refused later, with its row
            return (
                np.full((values.size, 1), np.nan) if name != "cut" else -np.ones((values.size, 1))
            )
        state[key] = learn(name, values, options)
    return basis(name, values, options, state[key])


def _column(factor: Factor, values: pd.Series, state: State) -> Coded:
    """A bare column: numbers as they are, anything else as levels."""
    if f"{factor.text}: levels" not in state and kind_of(values) == "numbers":
        return Numbers(values=numbers_of(values)[:, None])
    return _levels(factor, values, {}, state)


def _levels(
    factor: Factor, values: pd.Series, options: dict[str, Any], state: State, *, used: bool = False
) -> Categories:
    """Codes and levels; `used` leaves out the levels that no record has, as R's factor does."""
    ordered = isinstance(values.dtype, pd.CategoricalDtype) and bool(values.dtype.ordered)
    key = f"{factor.text}: levels"
    if key not in state:
        kind_of(values, as_levels=True)
        check_levels(values)
        levels = options.get("levels", levels_of(values, used=used))
        contrasts = options.get("contr", _POLYNOMIAL if ordered else _TREATMENT)
        state[key] = {"levels": list(levels), "contrasts": contrasts}
    levels = state[key]["levels"]
    own = values.astype(object)
    codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(own, dtype=object))
    return Categories(codes=codes, levels=levels, contrasts=state[key]["contrasts"])


def _arithmetic(factor: Factor, node: ast.expr, df: pd.DataFrame, state: State) -> FloatArray:
    """Numbers (n,) of a column, of arithmetic on columns, or of a comparison (0 and 1)."""

    def of(part: ast.expr) -> FloatArray:
        return _arithmetic(factor, part, df, state)

    if isinstance(node, ast.Name):
        return numbers_of(df[factor.columns[node.id]])
    if isinstance(node, ast.Constant):
        return np.full(len(df), float(ast.literal_eval(node)))
    if isinstance(node, ast.UnaryOp):
        return -of(node.operand) if isinstance(node.op, ast.USub) else of(node.operand)
    if isinstance(node, ast.BinOp):
        return np.asarray(_COMPUTED[type(node.op)](of(node.left), of(node.right)))
    if isinstance(node, ast.Compare):
        return _compared(factor, node, df, of)
    assert isinstance(node, ast.Call)
    name = ast.unparse(node.func)
    if name in ("I", "offset"):
        return of(node.args[0])
    if name in _BASES:
        return _basis(factor, node, df, state)[:, 0]
    values = np.asarray(_ELEMENTWISE[name](of(node.args[0])))
    base = _options(node).get("base")
    return values if base is None else values / np.log(base)


def _compared(
    factor: Factor, node: ast.Compare, df: pd.DataFrame, of: Callable[[ast.expr], FloatArray]
) -> FloatArray:
    right, compare = node.comparators[0], _COMPARED[type(node.ops[0])]
    if isinstance(right, ast.Constant) and isinstance(right.value, str):
        assert isinstance(node.left, ast.Name)
        column = df[factor.columns[node.left.id]]
        if kind_of(column, as_levels=True) == "numbers":
            raise InvalidInput(f"column {str(column.name)!r} must hold text to be compared with it")
        own = column.astype(object).to_numpy(dtype=object)
        return np.asarray(compare(own, right.value), dtype=np.float64)
    left, other = of(node.left), of(right)
    truth = compare(left, other).astype(np.float64)
    truth[np.isnan(left) | np.isnan(other)] = np.nan
    return np.asarray(truth)
