"""What all figures share: colors that the color-blind tell apart, panels, the legend."""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_vector
from pyhybrid.core.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = ("-", "--", "-.", (0, (1, 1.2)), (0, (6, 1, 1, 1, 1, 1)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P")
STYLES = [{"color": c, "linestyle": s} for c, s in zip(COLORS, LINES, strict=True)]
INK, PALE, TEXT = "#222222", "#C9C9C9", 9
RULE = {"color": INK, "linestyle": "--", "linewidth": 1.4}
NUMBER = {"va": "bottom", "fontsize": TEXT - 1}


def new_panels(width: float, height: float, rows: int = 1, columns: int = 1, **share: Any) -> Any:
    """Axes in row order, on a new figure of `width` x `height` inches."""
    figure = _shown_figure()(figsize=(width, height), layout="constrained", facecolor="white")
    grid = figure.subplots(rows, columns, squeeze=False, **share)
    for ax in grid.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=TEXT)
    return grid.ravel()


@functools.cache
def _shown_figure() -> type[Figure]:
    """A figure that is the picture of a notebook's cell, where pyplot was never imported, too."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            written = io.BytesIO()
            self.savefig(written, format="png")
            return written.getvalue()

    return ShownFigure


def finish(ax: Any) -> Figure:
    """The figure of `ax`, with the labels of `ax` in a legend above all panels."""
    figure: Figure = ax.figure
    _write_numbers_as_people_do(figure)
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if handles:
        room = figure.get_figwidth() / (0.6 + 0.075 * max(len(label) for label in handles))
        style: dict[str, Any] = {"frameon": False, "fontsize": TEXT, "ncols": int(max(1, room))}
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", **style)
    return figure


def _write_numbers_as_people_do(figure: Figure) -> None:
    """54,000 at the ticks of linear axes, no powers of ten beside them."""
    from matplotlib.ticker import ScalarFormatter

    for each in figure.axes:
        for axis in (each.xaxis, each.yaxis):
            if axis.get_scale() == "linear" and type(axis.get_major_formatter()) is ScalarFormatter:
                axis.set_major_formatter("{x:,.10g}")


def plain(text: Any) -> str:
    """Text that matplotlib shows as it is: no mathematics, and not hidden from the legend."""
    escaped = str(text).replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def named(groups: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(groups, Mapping) or not groups:
        raise InvalidInput("groups must be a mapping of at least one name to its values: no name")
    return groups


def finite_of(values: npt.ArrayLike, name: str) -> FloatArray:
    vector = check_vector(values, name)
    finite = vector[np.isfinite(vector)]
    if not finite.size:
        raise InvalidInput(f"{name} must hold a finite value: found none among {vector.size}")
    return finite
