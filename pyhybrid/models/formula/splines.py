"""Columns that R makes of one number: scale, poly, bs, ns, cut.

Each has a function that says what it takes from the data (knots, centers, breaks), as a plain
mapping that is kept with the model, and one that makes its columns from that. Given constants take
nothing from the data; see `takes_from_data`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput

__all__ = ["basis", "learn", "takes_from_data"]

Taken = Mapping[str, Any]


def takes_from_data(name: str, given: Mapping[str, Any]) -> bool:
    """Whether a function computes anything from all records, under the options given."""
    if name == "scale":
        return any(given.get(option, True) is True for option in ("center", "scale"))
    if name == "poly":
        return not given.get("raw", False)
    if name in ("bs", "ns"):
        return "Boundary_knots" not in given or ("knots" not in given and n_knots(name, given) > 0)
    return name == "cut" and not isinstance(given.get("breaks"), list)


def learn(name: str, x: FloatArray, given: Mapping[str, Any]) -> dict[str, Any]:
    """What `name` takes from the values x (n,), finite, under the options given."""
    if name == "scale":
        return _learn_scale(x, given)
    if name == "poly":
        return _learn_poly(x, _degree(given, 1)) if not given.get("raw", False) else {}
    if name == "cut":
        return {"breaks": _breaks(x, given)}
    return _learn_spline(name, x, given)


def basis(name: str, x: FloatArray, given: Mapping[str, Any], taken: Taken) -> FloatArray:
    """Columns of the values x (n,): shape (n, k). Values are not checked."""
    if name == "scale":
        return np.asarray(((x - taken["center"]) / taken["scale"])[:, None])
    if name == "poly":
        return _poly(x, _degree(given, 1), taken)
    if name == "cut":
        return _interval(x, given, taken["breaks"])[:, None].astype(np.float64)
    return _bs(x, given, taken) if name == "bs" else _ns(x, given, taken)


def labels_of(given: Mapping[str, Any], breaks: list[float]) -> list[str]:
    """Names of the intervals of `cut`, as R writes them: 3 digits, more where needed."""
    own = given.get("labels")
    if isinstance(own, list):
        if len(own) != len(breaks) - 1:
            raise InvalidInput(f"labels of cut must be {len(breaks) - 1}, as intervals are")
        return [str(each) for each in own]
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


def _learn_scale(x: FloatArray, given: Mapping[str, Any]) -> dict[str, Any]:
    center, scale = given.get("center", True), given.get("scale", True)
    middle = float(x.mean()) if center is True else float(center)  # FALSE is 0
    if scale is True:  # R: the deviation, or the root mean square where nothing is subtracted
        spread = float(np.sqrt(((x - middle) ** 2).sum() / max(x.size - 1, 1)))
    else:
        spread = 1.0 if scale is False else float(scale)
    if not spread > 0:
        raise InvalidInput("scale() must have a column that varies: it is constant")
    return {"center": middle, "scale": spread}


def _degree(given: Mapping[str, Any], default: int) -> int:
    degree = given.get("degree", default)
    if not isinstance(degree, int) or isinstance(degree, bool) or not 1 <= degree <= 20:
        raise InvalidInput(f"degree must be a whole number from 1 to 20: found {degree!r}")
    return degree


def _learn_poly(x: FloatArray, degree: int) -> dict[str, Any]:
    """Coefficients of the three-term recurrence of polynomials orthogonal on x, as R keeps them."""
    if np.unique(x).size <= degree:
        raise InvalidInput(
            f"poly() of degree {degree} must have more than {degree} distinct values"
        )
    middle = float(x.mean())
    values = [np.ones_like(x), x - middle]
    norms, alpha = [float(x.size), float((values[1] ** 2).sum())], [middle]
    for k in range(1, degree):
        alpha.append(float((x * values[k] ** 2).sum() / norms[k]))
        values.append((x - alpha[k]) * values[k] - norms[k] / norms[k - 1] * values[k - 1])
        norms.append(float((values[-1] ** 2).sum()))
    return {"alpha": alpha, "norms": norms}


def _poly(x: FloatArray, degree: int, taken: Taken) -> FloatArray:
    if not taken:
        return np.column_stack([x**power for power in range(1, degree + 1)])
    alpha, norms = taken["alpha"], taken["norms"]
    values = [np.ones_like(x), x - alpha[0]]
    for k in range(1, degree):
        values.append((x - alpha[k]) * values[k] - norms[k] / norms[k - 1] * values[k - 1])
    return np.column_stack([v / np.sqrt(s) for v, s in zip(values[1:], norms[1:], strict=True)])


def n_knots(name: str, given: Mapping[str, Any]) -> int:
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


def _learn_spline(name: str, x: FloatArray, given: Mapping[str, Any]) -> dict[str, Any]:
    ends = given.get("Boundary_knots", [float(x.min()), float(x.max())])
    if not isinstance(ends, list) or len(ends) != 2 or not ends[0] < ends[1]:
        raise InvalidInput(f"Boundary.knots of {name} must be two numbers, the smaller one first")
    if "knots" in given:
        knots = given["knots"] if isinstance(given["knots"], list) else [given["knots"]]
    else:
        inside = x[(x >= ends[0]) & (x <= ends[1])]
        count = n_knots(name, given)
        shares = np.arange(1, count + 1) / (count + 1)
        knots = [float(q) for q in np.quantile(inside, shares)] if inside.size else []
    knots = sorted(float(knot) for knot in knots)
    if any(not ends[0] < knot < ends[1] for knot in knots):
        raise InvalidInput(f"knots of {name} must lie between its boundary knots; give other ones")
    return {"knots": knots, "ends": [float(end) for end in ends]}


def _splines(x: FloatArray, degree: int, taken: Taken, derivative: int = 0) -> FloatArray:
    """All B-splines of the knots at x, continued as polynomials beyond the ends; (n, k)."""
    from scipy.interpolate import BSpline

    low, high = taken["ends"]
    knots = np.concatenate([[low] * (degree + 1), taken["knots"], [high] * (degree + 1)])
    every = BSpline(knots, np.eye(knots.size - degree - 1), degree, extrapolate=True)
    return np.asarray(every(x, nu=derivative))


def _bs(x: FloatArray, given: Mapping[str, Any], taken: Taken) -> FloatArray:
    columns = _splines(x, _degree(given, 3), taken)
    return columns if given.get("intercept", False) else columns[:, 1:]


def _ns(x: FloatArray, given: Mapping[str, Any], taken: Taken) -> FloatArray:
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


def _breaks(x: FloatArray, given: Mapping[str, Any]) -> list[float]:
    breaks = given.get("breaks")
    if isinstance(breaks, list):
        edges = sorted(float(each) for each in breaks)
        if len(edges) < 2 or len(set(edges)) < len(edges):
            raise InvalidInput("breaks of cut must be two or more different numbers")
        return edges
    if not isinstance(breaks, int) or isinstance(breaks, bool) or not 2 <= breaks <= 200:
        raise InvalidInput(
            "breaks of cut must be c(...) of numbers, or how many intervals, 2 to 200"
        )
    low, high = float(x.min()), float(x.max())
    edges = [float(each) for each in np.linspace(low, high, breaks + 1)]
    edges[0], edges[-1] = low - (high - low) / 1000, high + (high - low) / 1000
    return edges


def _interval(x: FloatArray, given: Mapping[str, Any], breaks: list[float]) -> npt.NDArray[np.intp]:
    """Place of the interval that each value lies in; -1 for none."""
    edges, right = np.asarray(breaks), given.get("right", True)
    place = np.searchsorted(edges, x, side="left" if right else "right") - 1
    if given.get("include_lowest", False):
        place = np.where(x == edges[0 if right else -1], 0 if right else edges.size - 2, place)
    return np.where((place >= 0) & (place < edges.size - 1) & ~np.isnan(x), place, -1)
