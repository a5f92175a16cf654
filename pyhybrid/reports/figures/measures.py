"""Figures of utility and disclosure risk: distributions, groups, coefficients, pairs, the curve.

In the style of `pyhybrid.reports.figures.mechanisms`: arrays in, a `matplotlib.figure.Figure` out,
no global state, equal input gives equal figures. All of them show the confidential data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_choice, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.reports.figures.style import (
    COLORS,
    INK,
    MARKERS,
    NUMBER,
    PALE,
    RULE,
    STYLES,
    TEXT,
    finish,
    finite_of,
    named,
    new_panels,
    plain,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_MOST_STEPS = 400
_CAP = 10.0
_NORMAL = 1.959963984540054  # half a 95 % interval, in standard errors


def plot_ecdfs(columns: Mapping[str, tuple[npt.ArrayLike, Sequence[npt.ArrayLike]]]) -> Figure:
    """Distribution functions of the data (black) and of each synthetic set, one panel per column.

    Parameters
    ----------
    columns : mapping of str to (data, sets)
        Values (n,) of the data, and m vectors of synthetic ones. The outermost 1 % of the values
        of both may lie outside the panel.
    """
    k = len(named(columns))
    across = min(k, 3)
    rows = -(-k // across)
    panels = new_panels(7.2 if across > 1 else 5, 0.5 + 2.2 * rows, rows, across, sharey=True)
    for ax, (name, (data, sets)) in zip(panels, columns.items(), strict=False):
        truth = finite_of(data, name)
        parts = [finite_of(values, f"set of {name}") for values in sets]
        pooled = np.concatenate([truth, *parts])
        low = np.quantile(pooled, 0.005, method="lower")
        high = np.quantile(pooled, 0.995, method="higher")
        grid = np.unique(pooled[(pooled >= low) & (pooled <= high)])
        grid = grid[np.linspace(0, grid.size - 1, min(grid.size, _MOST_STEPS)).astype(np.intp)]
        style = {"drawstyle": "steps-post"}
        ax.plot(grid, _heights(truth, grid), color=INK, linewidth=2.2, label="data", **style)
        for values in parts:
            color = {"color": COLORS[1], "linewidth": 1.1, "linestyle": STYLES[1]["linestyle"]}
            ax.plot(grid, _heights(values, grid), label="synthetic sets", **color, **style)
        ax.set_title(plain(name), loc="left", fontsize=TEXT)
        ax.set(ylim=(-0.02, 1.02))
        ax.locator_params(axis="x", nbins=4)
        ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 5), useMathText=True)
    for ax in panels[k:]:
        ax.set_visible(False)
    panels[0].set_ylabel("share of records up to here")
    return finish(panels[0])


def plot_levels(
    levels: Sequence[str], data: npt.ArrayLike, synthetic: Mapping[str, npt.ArrayLike]
) -> Figure:
    """Shares of levels: a bar for the data, a point and the range over the sets beside it.

    Parameters
    ----------
    levels : sequence of str, length L
        From the top down.
    data : array_like, shape (L,)
        Shares in the data.
    synthetic : mapping of str to array_like, shape (m, L)
        Shares in the m sets of each mechanism.
    """
    truth = check_vector(data, "data")
    ax = new_panels(6.4, 0.9 + 0.26 * len(levels))[0]
    at = np.arange(len(levels), dtype=np.float64)
    ax.barh(at, truth, height=0.72, color=PALE, label="data")
    k = len(named(synthetic))
    for place, (name, sets) in enumerate(synthetic.items()):
        shares = np.atleast_2d(np.asarray(sets, dtype=np.float64))
        style = {"color": COLORS[place % 6], "linewidth": 1.6}
        row = at + (0.0 if k == 1 else 0.5 * (place / (k - 1) - 0.5))
        ax.hlines(row, shares.min(axis=0), shares.max(axis=0), **style)
        label = f"{plain(name)}: mean and range of {len(shares)}"
        marker = MARKERS[place % 6]
        ax.plot(shares.mean(axis=0), row, marker, color=style["color"], markersize=5, label=label)
    ax.set_yticks(at, [plain(level) for level in levels])
    ax.invert_yaxis()
    ax.set(xlim=(0, None), xlabel="share of records")
    return finish(ax)


def plot_propensities(groups: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]) -> Figure:
    """Histograms of the probability of being synthetic, data against a synthetic set.

    Parameters
    ----------
    groups : mapping of str to (data, synthetic)
        Propensities in [0, 1] of the rows of both, by the name of the classifier.
    """
    k = len(named(groups))
    panels = new_panels(3.6 * k if k > 1 else 5, 3.2, 1, k)
    for ax, (name, (data, synthetic)) in zip(panels, groups.items(), strict=True):
        parts = [check_vector(values, name) for values in (data, synthetic)]
        edges = np.linspace(0, 1, 41)
        styles: tuple[dict[str, Any], ...] = ({"color": INK, "linestyle": "-"}, STYLES[1])
        for values, label, style in zip(parts, ("data", "synthetic"), styles, strict=True):
            share = np.histogram(values, edges)[0] / values.size
            ax.stairs(share, edges, linewidth=1.6, label=label, **style)
        middle = parts[1].size / (parts[0].size + parts[1].size)
        ax.axvline(middle, label="share of synthetic rows", **{**RULE, "linewidth": 1})
        ax.set_title(plain(name), loc="left", fontsize=TEXT)
        ax.set(xlim=(-0.02, 1.02), xlabel="probability of being synthetic")
    panels[0].set_ylabel("share of rows")
    return finish(panels[0])


def plot_pairs(ratios: pd.DataFrame) -> Figure:
    """Heat map of table ratios: pairs off the diagonal, single columns on it.

    Parameters
    ----------
    ratios : DataFrame, square
        Ratios >= 0 with the names of the columns; see `TableUtility.matrix`. Colors end at 10.
    """
    values = ratios.to_numpy(dtype=np.float64)
    if values.size == 0 or values.shape[0] != values.shape[1] or not (values >= 0).all():
        raise InvalidInput("ratios must be a square table of numbers >= 0")
    k = len(values)
    size = min(8.0, 2.6 + 0.36 * k)
    ax = new_panels(size + 0.9, size)[0]
    image = ax.imshow(np.minimum(values, _CAP), cmap="cividis", vmin=0, vmax=_CAP)
    names = [plain(name) for name in ratios.columns]
    ax.set_xticks(range(k), names, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(k), names)
    ax.spines[:].set_visible(False)
    if k <= 20:
        for (i, j), value in np.ndenumerate(values):
            color = "black" if value > _CAP / 2 else "white"
            text = f"{value:.1f}" if value < 99.95 else f"{value:.0f}" if value < 1e3 else ">999"
            ax.text(j, i, text, ha="center", va="center", fontsize=6.5, color=color)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, extend="max")
    bar.set_label("table ratio (1: as a second sample)", fontsize=TEXT)
    bar.ax.tick_params(labelsize=TEXT)
    figure: Figure = ax.figure
    return figure


def plot_matching_risk(groups: Mapping[str, npt.ArrayLike]) -> Figure:
    """Histograms of matching risk by record, with targets without risk set apart.

    Parameters
    ----------
    groups : mapping of str to array_like, shape (n,)
        T/c or 1/c in [0, 1] of every target; one panel each.
    """
    k = len(named(groups))
    panels = new_panels(6.4, 0.7 + 2.0 * k, rows=k, sharex=True)
    for place, (ax, (name, values)) in enumerate(zip(panels, groups.items(), strict=True)):
        risk = check_vector(values, name)
        if not ((risk >= 0) & (risk <= 1)).all():
            raise InvalidInput(f"matching risk of {name} must lie in [0, 1]")
        counts, edges = np.histogram(risk[risk > 0], bins=25, range=(0.0, 1.0))
        ax.stairs(counts, edges, fill=True, color=COLORS[place % 6], alpha=0.6)
        _count(ax, -0.06, int((risk == 0).sum()))
        _count(ax, None, int((risk == 1).sum()))
        ax.set_yscale("symlog", linthresh=10)
        ax.set(ylabel="targets", ymargin=0.2)
        ax.set_title(f"{plain(name)}, {risk.size:,} targets", loc="left", fontsize=TEXT)
    panels[-1].set_xticks([-0.06, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    panels[-1].set_xlabel("probability of being matched, mean over the sets")
    return finish(panels[0])


def _count(ax: Any, x: float | None, number: int) -> None:
    """A bar of its own at `x`, or for None a remark at 1, with the number of targets."""
    if x is not None:
        ax.bar(x, number, width=0.04, color=INK)
        ax.text(x, number, f"{number:,}", ha="center", **NUMBER)
    elif number:
        ax.text(1.0, number, f"{number:,} at 1", ha="right", **NUMBER)


def _heights(values: npt.NDArray[np.float64], grid: npt.NDArray[np.float64]) -> Any:
    return np.searchsorted(np.sort(values), grid, side="right") / values.size


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
    axes = new_panels(9.6, 0.6 + rows * (1.0 + 0.3 * most), rows, columns)
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


MEASURES = {
    "max_ecdf": "max-ECDF",
    "avg_ecdf": "avg-ECDF",
    "error_mean": "error of the mean",
    "error_q90": "error of the 90th percentile",
}
"""Measures that are drawn unless others are asked for; 0 is best for all."""

_NAMES = {"LW": "Lipschitz weights (LW)", "SW": "scalar weights (SW)"}


def plot_curve(table: pd.DataFrame, *, measures: dict[str, str] | None = None) -> Figure:
    """Utility measures against epsilon of one draw, one panel each; lower left is best.

    Points of LW carry their (scale, shift); the unweighted fit is a horizontal line, as its epsilon
    is usually far to the right. Bars are 95 % intervals over the sets of a point, where the table
    has standard errors.

    Parameters
    ----------
    table : DataFrame
        Of a `pyhybrid.studies.RiskUtilityCurve`.
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


def plot_published(rows: pd.DataFrame, speeds: Sequence[Any]) -> Figure:
    """Differences of published programs from ours, and effective draws per second of both.

    `rows` and `speeds` are those of `pyhybrid.validation.agreement.Validation`.
    """
    shown = rows[(rows["unit"] == "standard error") & np.isfinite(rows["difference"])]
    parts = list(dict.fromkeys(shown["part"]))
    height = 1.2 + 0.35 * max(len(parts), len(speeds))
    left, right = new_panels(11, height, columns=2)
    for place, part in enumerate(parts):
        apart = shown.loc[shown["part"] == part, "difference"]
        left.plot(apart, np.full(len(apart), place), "o", color=COLORS[0], alpha=0.5, ms=5)
    left.axvline(5, color="0.4", ls="--", lw=1)
    left.set_yticks(range(len(parts)), [plain(part.partition(": ")[2]) for part in parts])
    left.set_xlabel("difference, Monte Carlo standard errors (at most 5)")
    for place, speed in enumerate(speeds):
        right.barh(place, speed.rate, color=COLORS[speed.text == "default"])
    names = [plain(f"{speed.program}, {speed.text}, {speed.engine}") for speed in speeds]
    right.set_yticks(range(len(speeds)), names)
    right.set_xscale("log")
    right.set_xlabel("effective draws per second")
    for ax in (left, right):
        ax.invert_yaxis()
    return finish(left)
