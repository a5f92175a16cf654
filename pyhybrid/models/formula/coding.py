"""From checked factors to columns: values of each factor, and what was taken from the data for it.

Arithmetic is in floating-point numbers, whatever the column's type: integers overflow or wrap
around and logicals do not add where they are not. Nothing of a formula is run as code. Functions
that R makes several columns of (scale, poly, bs, ns, cut) say first what they take from the data
(knots, centers, breaks), as a plain mapping that is kept with the model, and make their columns
from that; given constants take nothing from the data.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.terms import ARITHMETIC, COMPARISONS, ELEMENTWISE, Factor
from pyhybrid.models.formula.values import check_levels, kind_of, levels_of, numbers_of

State = dict[str, Any]
"""Values that factors took from the data, by their text: frozen with the model."""
Options = Mapping[str, Any]
"""Options of a function, as they are written in the formula."""


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


def code_factor(factor: Factor, df: pd.DataFrame, state: State) -> Coded:
    """Values of a factor for the rows of `df`; `state` is read where it knows the factor and added
    to where it does not. Values outside the factor's domain come back as NaN, or as code -1, which
    `pyhybrid.models.formula.design` refuses."""
    try:
        with np.errstate(all="ignore"):  # log(-1) and the like are found later, with their row
            return _coded(factor, factor.tree, df, state)
    except InvalidInput as error:
        raise InvalidInput(f"term {factor.text!r}: {error}") from None


def takes_all_records(factor: Factor) -> bool:
    """True if the factor's text says that it computes something from all records."""
    return any(
        _takes_from_data(ast.unparse(node.func), _options(node))
        for node in ast.walk(factor.tree)
        if isinstance(node, ast.Call)
    )


def _coded(factor: Factor, node: ast.expr, df: pd.DataFrame, state: State) -> Coded:
    if isinstance(node, ast.Name):
        bare = df[factor.columns[node.id]]
        if f"{factor.text}: levels" not in state and kind_of(bare) == "numbers":
            return Numbers(values=numbers_of(bare)[:, None])
        return _levels(factor, bare, {}, state)
    assert isinstance(node, ast.Call)
    name, inner, options = ast.unparse(node.func), node.args[0], _options(node)
    if name in ("factor", "C"):
        if isinstance(inner, ast.Name):
            column = df[factor.columns[inner.id]]
            return _levels(factor, column, options, state, used=name == "factor")
        computed = pd.Series(_arithmetic(factor, inner, df, state), name=factor.text)
        if isinstance(inner, ast.Compare):
            computed = computed.map({0.0: False, 1.0: True}).astype(object)
        return _levels(factor, computed, options, state)
    if name == "I" and isinstance(inner, ast.Name):
        return _coded(factor, inner, df, state)
    if name == "I" and isinstance(inner, ast.Compare):
        truth = _arithmetic(factor, inner, df, state)
        codes = np.where(np.isnan(truth), -1, np.nan_to_num(truth)).astype(np.intp)
        return Categories(codes=codes, levels=[False, True])
    if name not in _BASES:
        return Numbers(values=_arithmetic(factor, node, df, state)[:, None])
    values = _columns(factor, node, df, state)
    if name == "cut":
        breaks = state[_key(factor, node)]["breaks"]
        return Categories(codes=values[:, 0].astype(np.intp), levels=_labels(options, breaks))
    names = () if name == "scale" else tuple(str(k + 1) for k in range(values.shape[1]))
    return Numbers(values=values, names=names)


def _options(node: ast.Call) -> dict[str, Any]:
    return {str(option.arg): ast.literal_eval(option.value) for option in node.keywords}


def _key(factor: Factor, node: ast.expr) -> str:
    return f"{factor.text}: {ast.unparse(node)}"


def _columns(factor: Factor, node: ast.Call, df: pd.DataFrame, state: State) -> FloatArray:
    """Columns of scale, poly, ns, bs or cut, with what they took from the data before."""
    name, options, key = ast.unparse(node.func), _options(node), _key(factor, node)
    values = _arithmetic(factor, node.args[0], df, state)
    learn, columns = _BASES[name]
    if key not in state:
        if not values.size or not np.isfinite(values).all():  # refused later, with its row
            return np.full((values.size, 1), np.nan if name != "cut" else -1.0)
        state[key] = learn(values, options)
    return columns(values, options, state[key])


def _levels(
    factor: Factor, values: pd.Series, options: Options, state: State, *, used: bool = False
) -> Categories:
    """Codes and levels; `used` leaves out the levels that no record has, as R's factor does."""
    ordered = isinstance(values.dtype, pd.CategoricalDtype) and bool(values.dtype.ordered)
    key = f"{factor.text}: levels"
    if key not in state:
        kind_of(values, as_levels=True)
        check_levels(values)
        levels = options.get("levels", levels_of(values, used=used))
        contrasts = options.get("contr", "contr.poly" if ordered else "contr.treatment")
        state[key] = {"levels": list(levels), "contrasts": contrasts}
    levels = state[key]["levels"]
    objects = pd.Index(values.astype(object), dtype=object)
    codes = pd.Index(levels, dtype=object).get_indexer(objects)
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
        return np.asarray(ARITHMETIC[type(node.op)](of(node.left), of(node.right)))
    if isinstance(node, ast.Compare):
        return _compared(factor, node, df, of)
    assert isinstance(node, ast.Call)
    name = ast.unparse(node.func)
    if name in ("I", "offset"):
        return of(node.args[0])
    if name in _BASES:
        return _columns(factor, node, df, state)[:, 0]
    values = np.asarray(ELEMENTWISE[name](of(node.args[0])))
    base = _options(node).get("base")
    return values if base is None else values / np.log(base)


def _compared(
    factor: Factor, node: ast.Compare, df: pd.DataFrame, of: Callable[[ast.expr], FloatArray]
) -> FloatArray:
    compare, text = COMPARISONS[type(node.ops[0])], node.comparators[0]
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        assert isinstance(node.left, ast.Name)
        column = df[factor.columns[node.left.id]]
        if kind_of(column, as_levels=True) == "numbers":
            raise InvalidInput(f"column {str(column.name)!r} must hold text to be compared with it")
        objects = column.astype(object).to_numpy(dtype=object)
        return np.asarray(compare(objects, text.value), dtype=np.float64)
    left, right = of(node.left), of(text)
    return np.where(np.isnan(left) | np.isnan(right), np.nan, compare(left, right))


def _takes_from_data(name: str, given: Options) -> bool:
    """True if a function computes anything from all records, under the options given."""
    if name == "scale":
        return any(given.get(option, True) is True for option in ("center", "scale"))
    if name == "poly":
        return not given.get("raw", False)
    if name in ("bs", "ns"):
        return "Boundary_knots" not in given or ("knots" not in given and _n_knots(name, given) > 0)
    return name == "cut" and not isinstance(given.get("breaks"), list)


def _labels(given: Options, breaks: list[float]) -> list[str]:
    """Names of the intervals of `cut`, as R writes them: 3 digits, more where needed."""
    labels = given.get("labels")
    if isinstance(labels, list):
        if len(labels) != len(breaks) - 1:
            raise InvalidInput(f"labels of cut must be {len(breaks) - 1}, as intervals are")
        return [str(label) for label in labels]
    for digits in range(3, 18):
        text = [f"{value:.{digits}g}" for value in breaks]
        if len(set(text)) == len(text):
            break
    right, lowest = given.get("right", True), given.get("include_lowest", False)
    open_, close = ("(", "]") if right else ("[", ")")
    labels = [f"{open_}{a},{b}{close}" for a, b in pairwise(text)]
    if lowest and right:
        labels[0] = "[" + labels[0][1:]
    elif lowest:
        labels[-1] = labels[-1][:-1] + "]"
    return labels


def _learn_scale(x: FloatArray, given: Options) -> dict[str, Any]:
    center, scale = given.get("center", True), given.get("scale", True)
    middle = float(x.mean()) if center is True else float(center)  # FALSE is 0
    if scale is True:  # R: the deviation, or the root mean square where nothing is subtracted
        spread = float(np.sqrt(((x - middle) ** 2).sum() / max(x.size - 1, 1)))
    else:
        spread = 1.0 if scale is False else float(scale)
    if not spread > 0:
        raise InvalidInput("scale() must have a column that varies: it is constant")
    return {"center": middle, "scale": spread}


def _scale(x: FloatArray, given: Options, taken: Options) -> FloatArray:
    return np.asarray(((x - taken["center"]) / taken["scale"])[:, None])


def _degree(given: Options, default: int) -> int:
    degree = given.get("degree", default)
    if not isinstance(degree, int) or isinstance(degree, bool) or not 1 <= degree <= 20:
        raise InvalidInput(f"degree must be a whole number from 1 to 20: found {degree!r}")
    return degree


def _learn_poly(x: FloatArray, given: Options) -> dict[str, Any]:
    """Coefficients of the three-term recurrence of polynomials orthogonal on x, as R keeps them."""
    degree = _degree(given, 1)
    if given.get("raw", False):
        return {}
    if np.unique(x).size <= degree:
        raise InvalidInput(
            f"poly() of degree {degree} must have more than {degree} distinct values"
        )
    alpha, norms = [float(x.mean())], [float(x.size)]
    for k in range(1, degree + 1):
        last = _recurrence(x, alpha, norms)[-1]
        norms.append(float((last**2).sum()))
        if k < degree:
            alpha.append(float((x * last**2).sum() / norms[k]))
    return {"alpha": alpha, "norms": norms}


def _recurrence(x: FloatArray, alpha: list[float], norms: list[float]) -> list[FloatArray]:
    """Orthogonal polynomials at x, not yet of length 1, up to the degree that `alpha` has."""
    values = [np.ones_like(x), x - alpha[0]]
    for k in range(1, len(alpha)):
        values.append((x - alpha[k]) * values[k] - norms[k] / norms[k - 1] * values[k - 1])
    return values


def _poly(x: FloatArray, given: Options, taken: Options) -> FloatArray:
    if not taken:
        return np.column_stack([x**power for power in range(1, _degree(given, 1) + 1)])
    values = _recurrence(x, taken["alpha"], taken["norms"])[1:]
    return np.column_stack(
        [v / np.sqrt(s) for v, s in zip(values, taken["norms"][1:], strict=True)]
    )


def _n_knots(name: str, given: Options) -> int:
    """Interior knots that `df` asks for."""
    df = given.get("df")
    if df is None:
        return 0
    if not isinstance(df, int) or isinstance(df, bool) or not 1 <= df <= 200:
        raise InvalidInput(f"df of {name} must be a whole number from 1 to 200: found {df!r}")
    intercept = int(given.get("intercept", False))
    fixed = (1 if name == "ns" else _degree(given, 3)) + intercept
    if df < fixed:
        raise InvalidInput(f"df of {name} must be at least {fixed}: found {df}")
    return df - fixed


def _learn_spline(name: str, x: FloatArray, given: Options) -> dict[str, Any]:
    ends = given.get("Boundary_knots", [float(x.min()), float(x.max())])
    if not isinstance(ends, list) or len(ends) != 2 or not ends[0] < ends[1]:
        raise InvalidInput(f"Boundary.knots of {name} must be two numbers, the smaller one first")
    if "knots" in given:
        knots = given["knots"] if isinstance(given["knots"], list) else [given["knots"]]
    else:
        inside = x[(x >= ends[0]) & (x <= ends[1])]
        count = _n_knots(name, given)
        shares = np.arange(1, count + 1) / (count + 1)
        knots = [float(q) for q in np.quantile(inside, shares)] if inside.size else []
    knots = sorted(float(knot) for knot in knots)
    if any(not ends[0] < knot < ends[1] for knot in knots):
        raise InvalidInput(f"knots of {name} must lie between its boundary knots; give other ones")
    return {"knots": knots, "ends": [float(end) for end in ends]}


def _splines(x: FloatArray, degree: int, taken: Options, derivative: int = 0) -> FloatArray:
    """All B-splines of the knots at x, continued as polynomials beyond the ends; (n, k)."""
    from scipy.interpolate import BSpline

    low, high = taken["ends"]
    knots = np.concatenate([[low] * (degree + 1), taken["knots"], [high] * (degree + 1)])
    every = BSpline(knots, np.eye(knots.size - degree - 1), degree, extrapolate=True)
    return np.asarray(every(x, nu=derivative))


def _bs(x: FloatArray, given: Options, taken: Options) -> FloatArray:
    columns = _splines(x, _degree(given, 3), taken)
    return columns if given.get("intercept", False) else columns[:, 1:]


def _ns(x: FloatArray, given: Options, taken: Options) -> FloatArray:
    """Natural cubic splines: straight beyond the ends, where second derivatives are 0."""
    low, high = taken["ends"]
    drop = 0 if given.get("intercept", False) else 1
    inside = np.clip(x, low, high)
    slopes = _splines(inside, 3, taken, 1)
    straight = _splines(inside, 3, taken) + (x - inside)[:, None] * slopes
    bent = _splines(np.array([low, high]), 3, taken, 2)[:, drop:]
    turned, _ = np.linalg.qr(bent.T, mode="complete")
    # Sums by record, which do not depend on how many records there are.
    return np.asarray(np.einsum("nj,jk->nk", straight[:, drop:], turned[:, 2:]))


def _learn_cut(x: FloatArray, given: Options) -> dict[str, Any]:
    breaks = given.get("breaks")
    if isinstance(breaks, list):
        edges = sorted(float(edge) for edge in breaks)
        if len(edges) < 2 or len(set(edges)) < len(edges):
            raise InvalidInput("breaks of cut must be two or more different numbers")
        return {"breaks": edges}
    if not isinstance(breaks, int) or isinstance(breaks, bool) or not 2 <= breaks <= 200:
        raise InvalidInput(
            "breaks of cut must be c(...) of numbers, or how many intervals, 2 to 200"
        )
    low, high = float(x.min()), float(x.max())
    edges = [float(edge) for edge in np.linspace(low, high, breaks + 1)]
    edges[0], edges[-1] = low - (high - low) / 1000, high + (high - low) / 1000
    return {"breaks": edges}


def _cut(x: FloatArray, given: Options, taken: Options) -> FloatArray:
    """Place of the interval that each value lies in; -1 for none; shape (n, 1)."""
    edges, right = np.asarray(taken["breaks"]), given.get("right", True)
    place = np.searchsorted(edges, x, side="left" if right else "right") - 1
    if given.get("include_lowest", False):
        place = np.where(x == edges[0 if right else -1], 0 if right else edges.size - 2, place)
    there = (place >= 0) & (place < edges.size - 1) & ~np.isnan(x)
    return np.where(there, place, -1.0)[:, None]


_BASES: Mapping[str, tuple[Callable[..., dict[str, Any]], Callable[..., FloatArray]]] = {
    "scale": (_learn_scale, _scale),
    "poly": (_learn_poly, _poly),
    "ns": (partial(_learn_spline, "ns"), _ns),
    "bs": (partial(_learn_spline, "bs"), _bs),
    "cut": (_learn_cut, _cut),
}
"""Functions of values x (n,), finite, and the options given, for what is taken from the data; and
of values, which are not checked, options and what was taken, for the columns (n, k)."""
