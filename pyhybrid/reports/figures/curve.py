"""The risk-utility curve [S22 fig. 7]: utility against epsilon, LW beside SW at equal bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyhybrid.core.checks import check_choice
from pyhybrid.core.errors import InvalidInput
from pyhybrid.reports.figures.style import INK, MARKERS, STYLES, TEXT, finish, new_panels, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["MEASURES", "plot_curve"]

MEASURES = {
    "max_ecdf": "max-ECDF",
    "avg_ecdf": "avg-ECDF",
    "error_mean": "error of the mean",
    "error_q90": "error of the 90th percentile",
}
"""Measures that are drawn unless others are asked for; 0 is best for all."""

_NORMAL = 1.959963984540054  # half a 95 % interval, in standard errors
_NAMES = {"LW": "Lipschitz weights (LW)", "SW": "scalar weights (SW)"}


def plot_curve(table: pd.DataFrame, *, measures: dict[str, str] | None = None) -> Figure:
    """Utility measures against epsilon of one draw, one panel each; lower left is best.

    Points of LW carry their (scale, shift); the unweighted fit is a horizontal line, as its epsilon
    is usually far to the right. Bars are 95 % intervals over the sets of a point, where the table
    has standard errors.

    Parameters
    ----------
    table : DataFrame
        Of a `pyhybrid.RiskUtilityCurve`.
    measures : dict of str to str, optional
        Columns and their labels; `MEASURES` if omitted.
    """
    shown = MEASURES if measures is None else measures
    if table.empty or not {"mechanism", "scale", "shift", "epsilon"} <= set(table.columns):
        raise InvalidInput("table must be the table of a risk-utility curve, with rows")
    if not shown:
        raise InvalidInput("measures must name at least one column: found none")
    for measure in shown:
        check_choice(measure, "each of measures", table.columns)
    rows, columns = -(-len(shown) // 2), min(len(shown), 2)
    panels = new_panels(7.4, 0.5 + 2.7 * rows, rows, columns, sharex=True)
    for ax, (measure, label) in zip(panels, shown.items(), strict=False):
        _curve_panel(ax, table, measure)
        ax.set(ylabel=plain(label), ymargin=0.2, xmargin=0.12)
        ax.set_ylim(0, ax.get_ylim()[1])
    for ax in panels[len(shown) :]:
        ax.set_visible(False)
    for ax in panels[max(0, len(shown) - columns) : len(shown)]:
        ax.set_xlabel("epsilon of one draw (nats)")
        ax.tick_params(labelbottom=True)
    return finish(panels[0])


def _curve_panel(ax: Any, table: pd.DataFrame, measure: str) -> None:
    for place, (mechanism, name) in enumerate(_NAMES.items()):
        points = table[table["mechanism"] == mechanism].sort_values("epsilon")
        style = {**STYLES[place], "marker": MARKERS[place], "markersize": 5}
        ax.plot(points["epsilon"], points[measure], label=name, **style)
        if f"{measure}_se" in points:
            half = _NORMAL * points[f"{measure}_se"]
            low = (points[measure] - half).clip(lower=0)  # no measure is below 0
            ax.vlines(points["epsilon"], low, points[measure] + half, color=style["color"])
        if mechanism == "LW":
            _label_points(ax, points, measure)
    for row in table[table["mechanism"] == "Unweighted"].itertuples():
        label = f"unweighted, epsilon {row.epsilon:g}"
        ax.axhline(getattr(row, measure), color=INK, linestyle=":", linewidth=1.3, label=label)


def _label_points(ax: Any, points: pd.DataFrame, measure: str) -> None:
    """(scale, shift) just above and just below the points by turns, to keep neighbors clear."""
    floor = 0.12 * points[measure].max()  # no room below a point on the axis
    for place, (_, point) in enumerate(points.iterrows()):
        below = place % 2 == 1 and point[measure] > floor
        ax.annotate(
            f"({point['scale']:g}, {point['shift']:g})",
            (point["epsilon"], point[measure]),
            xytext=(0, -5 if below else 5),
            textcoords="offset points",
            ha="center",
            va="top" if below else "bottom",
            fontsize=TEXT - 2,
            bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.6},
        )
