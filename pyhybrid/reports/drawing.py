"""What figures are drawn with: colors, panels, names, ranges in rows, the legend."""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Groups = Mapping[str, npt.ArrayLike]
Sets = Mapping[str, Sequence[npt.ArrayLike]]

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


def panels_for(
    n: int, width: float, across: int, row: float, head: float = 0.5, **share: Any
) -> list[Any]:
    """Axes for `n` panels, at most `across` in a row, each row so many inches high."""
    columns = min(n, across)
    rows = -(-n // columns)
    axes = new_panels(width, head + row * rows, rows, columns, **share)
    for ax in axes[n:]:
        ax.set_visible(False)
    return list(axes[:n])


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
    """The figure of `ax`, with the labels of `ax` in a legend above all panels, and with 54,000 at
    the ticks of linear axes, 200k from 100,000 on: no powers of ten, and room between ticks."""
    from matplotlib.ticker import EngFormatter, ScalarFormatter

    figure: Figure = ax.figure
    for panel in figure.axes:
        for axis in (panel.xaxis, panel.yaxis):
            if axis.get_scale() == "linear" and type(axis.get_major_formatter()) is ScalarFormatter:
                most = np.abs(axis.get_view_interval()).max()
                plain_ticks = "{x:,.10g}" if most >= 1e4 else "{x:.10g}"  # years have no commas
                axis.set_major_formatter(EngFormatter(sep="") if most >= 1e5 else plain_ticks)
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if handles:
        room = figure.get_figwidth() / (0.6 + 0.075 * max(len(label) for label in handles))
        style: dict[str, Any] = {"frameon": False, "fontsize": TEXT, "ncols": int(max(1, room))}
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", **style)
    return figure


def plain(text: Any) -> str:
    """Text that matplotlib shows as it is: no mathematics, and not hidden from the legend."""
    escaped = str(text).replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def title(ax: Any, text: str, **style: Any) -> None:
    ax.set_title(plain(text), loc="left", **{"fontsize": TEXT, **style})


def finite(values: npt.ArrayLike) -> FloatArray:
    """The finite values."""
    vector = np.asarray(values, dtype=np.float64)
    return vector[np.isfinite(vector)]


def rows_of(ax: Any, names: Sequence[Any]) -> FloatArray:
    """Places of named rows, the first one at the top."""
    at = np.arange(len(names), dtype=np.float64)
    ax.set_yticks(at, [plain(name) for name in names])
    return at


def draw_ranges(
    ax: Any, at: Any, low: Any, point: Any, high: Any, *, place: int, **style: Any
) -> None:
    """Horizontal ranges with a point in each, in the style of a place."""
    color, marker = style.pop("color", COLORS[place % 6]), style.pop("marker", MARKERS[place % 6])
    ax.hlines(at, low, high, color=color, linewidth=style.pop("linewidth", 1.6))
    ax.plot(point, at, marker, color=color, markersize=5, **style)
