"""Means by group of a predictor: the data as bars, synthetic sets as points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pyhybrid.checks import FloatArray
from pyhybrid.reports.figures.style import COLORS, INK, PALE, TEXT, finish, named, new_panels, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_grouped_means"]

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
