"""Means by group of a predictor, and coefficients: the data as bars or a band, sets as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.reports.figures.style import (
    COLORS,
    INK,
    MARKERS,
    PALE,
    TEXT,
    finish,
    named,
    new_panels,
    plain,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["plot_forest", "plot_grouped_means"]

_WIDTH = 9.6


def plot_grouped_means(
    panels: Mapping[str, tuple[Sequence[str], FloatArray, FloatArray, FloatArray]], *, label: str
) -> Figure:
    """One panel for each predictor, two in a row.

    Parameters
    ----------
    panels : mapping of str to (groups, mean, error, synthetic)
        By predictor: names of G groups; mean of the data and its standard error, shape (G,); means
        of the synthetic sets, shape (m, G), NaN for none.
    label : str
        Of the axis of means.
    """
    columns = min(2, len(named(panels)))
    rows = -(-len(panels) // columns)
    most = max(len(groups) for groups, *_ in panels.values())
    axes = new_panels(_WIDTH, 0.6 + rows * (1.0 + 0.3 * most), rows, columns)
    for ax in axes[len(panels) :]:
        ax.remove()
    for ax, (name, (groups, mean, error, sets)) in zip(axes, panels.items(), strict=False):
        at = np.arange(len(groups), dtype=np.float64)
        half = 1.96 * np.where(np.isfinite(error), error, 0.0)
        style = {"color": PALE, "ecolor": INK, "error_kw": {"elinewidth": 1.2}}
        ax.barh(at, mean, xerr=half, height=0.72, label="data, 95 % interval", **style)
        known = ~np.isnan(sets).all(axis=0)
        low, high = np.nanmin(sets[:, known], axis=0), np.nanmax(sets[:, known], axis=0)
        ax.hlines(at[known], low, high, color=COLORS[1], linewidth=1.8)
        points = np.nanmean(sets[:, known], axis=0)
        shown = f"synthetic: mean and range of {len(sets)}"
        ax.plot(points, at[known], "o", color=COLORS[1], markersize=5, label=shown)
        ax.set_yticks(at, [plain(group) for group in groups])
        ax.invert_yaxis()
        ax.set_xlabel(plain(label), fontsize=TEXT)
        ax.set_title(plain(f"by {name}"), fontsize=TEXT + 1, loc="left")
    return finish(axes[0])


def plot_forest(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Coefficients with 95 % intervals on one axis, in standard errors of the data, one row a term.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        By release: a row for each term, with columns estimate, lower and upper of the data and
        synthetic_estimate, synthetic_lower and synthetic_upper; the interval of the data has a
        length.
    """
    first = next(iter(named(tables).values()))
    terms, n = [str(term) for term in first.index], len(tables)
    ax = new_panels(7, 1.2 + (0.22 + 0.14 * n) * len(terms))[0]
    ax.axvspan(-_NORMAL, _NORMAL, color=PALE, alpha=0.6, linewidth=0, label="data, 95 % interval")
    ax.axvline(0, color=INK, linewidth=1)
    places = np.arange(len(terms), dtype=np.float64)
    for k, (name, table) in enumerate(tables.items()):
        error = (table["upper"] - table["lower"]).to_numpy() / (2 * _NORMAL)
        center = table["estimate"].to_numpy()
        at, low, high = (
            (table[f"synthetic_{end}"].to_numpy() - center) / error
            for end in ("estimate", "lower", "upper")
        )
        y = places + 0.5 * ((k + 0.5) / n - 0.5)
        color = COLORS[(n - k) % 6]
        ax.hlines(y, low, high, color=color, linewidth=1.6)
        ax.plot(at, y, MARKERS[k % 6], color=color, markersize=5, label=plain(name))
    ax.set_yticks(places, [plain(term) for term in terms])
    ax.set_ylim(len(terms) - 0.5, -0.5)
    ax.set_xlabel("difference from the data, in its standard errors", fontsize=TEXT)
    return finish(ax)


_NORMAL = 1.959963984540054  # half a 95 % interval, in standard errors
