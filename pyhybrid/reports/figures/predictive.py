"""Statistics of replicates as histograms, with that of the data as a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.reports.figures.style import (
    COLORS,
    INK,
    RULE,
    TEXT,
    finish,
    named,
    new_panels,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_predictive"]


def plot_predictive(found: Mapping[str, tuple[float, FloatArray]]) -> Figure:
    """One panel for each statistic, three in a row.

    Parameters
    ----------
    found : mapping of str to (float, ndarray of shape (m,))
        By statistic: its value in the data, and in each replicate.
    """
    columns = min(3, len(named(found)))
    rows = -(-len(found) // columns)
    axes = new_panels(7, 0.5 + 1.7 * rows, rows, columns)
    for ax in axes[len(found) :]:
        ax.remove()
    for ax, (name, (data, replicates)) in zip(axes, found.items(), strict=False):
        ends = np.array([min(replicates.min(), data), max(replicates.max(), data)])
        flat = np.ptp(ends) <= 1e-9 * max(1.0, abs(data))
        bins = ends[0] + np.array([-0.5, 0.5]) if flat else np.linspace(ends[0], ends[1], 21)
        ax.hist(replicates, bins=bins, color=COLORS[0], alpha=0.6, label="replicates")
        ax.axvline(data, label="data", **RULE)
        ax.set_title(plain(name), fontsize=TEXT + 1, loc="left", color=INK)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.locator_params(axis="x", nbins=4)
    return finish(axes[0])
