"""Figures: the papers' (bounds, weights, intervals, loss by record), utility, risk, and masking.

Every function takes arrays and returns a `matplotlib.figure.Figure`; none touches pyplot, a
backend or any other global state, and equal input gives equal figures. Colors are Okabe and
Ito's (2008, Color universal design); line styles and markers differ as well.

An argument `groups` maps names (of mechanisms, versions, columns) to arrays, in the order of
drawing; `label` names an axis. What is drawn was checked where it was computed. Records that
coincide are one point of larger area. All figures are confidential.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.reports import drawing as draw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from pyhybrid.masking import RiskSubgroups
    from pyhybrid.studies.comparing.contraction import Contraction

Fit = tuple[npt.ArrayLike, npt.ArrayLike, float]

NORMAL = 1.959963984540054  # half a 95 % interval, in standard errors

MEASURES = {
    "max_ecdf": "max-ECDF",
    "avg_ecdf": "avg-ECDF",
    "error_mean": "error of the mean",
    "error_q90": "error of the 90th percentile",
}
"""Measures that a curve is drawn of; 0 is best for all."""

_GRID, _CAP = 256, 10.0
_SLANTED = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
_BY_RECORD = "by-record Lipschitz bound (nats)"
_WEIGHTS = {"LW": "Lipschitz weights (LW)", "SW": "scalar weights (SW)"}
_SUBGROUPS = {"low": draw.COLORS[2], "medium": draw.COLORS[4], "high": draw.COLORS[1]}


def figure_png(figure: Figure, *, dpi: int = 144) -> bytes:
    """Return the figure as PNG with its titles and labels as description, and no other metadata:
    equal figures give equal bytes."""
    labels = [(ax.get_title("left"), ax.get_ylabel(), ax.get_xlabel()) for ax in figure.axes]
    words = dict.fromkeys(word for of_panel in labels for word in of_panel if word)
    said = {"Software": None, "Description": "; ".join(words) or None}
    buffer = io.BytesIO()
    with warnings.catch_warnings():  # of glyphs that no font has, and of names longer than a panel
        warnings.filterwarnings("ignore", "Glyph |constrained_layout", UserWarning)
        figure.savefig(buffer, format="png", dpi=dpi, metadata=said)
    return buffer.getvalue()


def plot_bounds(
    groups: draw.Groups, *, overall: Mapping[str, float] | None = None, label: str = _BY_RECORD
) -> Figure:
    """Violins of by-record Lipschitz bounds (n,), one per mechanism [V25 fig. 1, 4], with `overall`
    ones marked by a line; infinite bounds are not drawn but counted below the violin. `label` is
    for groups of other bounds, such as the overall ones of many databases."""
    parts = {key: draw.finite(values) for key, values in groups.items()}
    marked = overall or {}
    ax = draw.new_panels(min(7, 2.6 + 1.4 * len(parts)), 3.9)[0]
    labels = []
    for place, (key, values) in enumerate(parts.items()):
        grid = np.linspace(values.min(), values.max(), _GRID)
        flat = np.ptp(values) <= 1e-9 * abs(values).max()
        height = np.ones(_GRID) if flat else _density(values, grid)
        half = 0.4 * height / height.max()
        ax.fill_betweenx(grid, place - half, place + half, color=draw.COLORS[place % 6], alpha=0.45)
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        ax.plot([place, place], [low, high], color=draw.INK, linewidth=3, solid_capstyle="butt")
        dot: dict[str, Any] = {"color": "white", "mec": draw.INK, "ms": 5}
        ax.plot([place], [middle], "o", label="median and quartiles", **dot)
        if key in marked:
            ends = [place - 0.42, place + 0.42]
            ax.plot(ends, [marked[key]] * 2, label="overall bound Δ", **draw.RULE)
            ax.text(ends[1], marked[key], f"{marked[key]:.2f}", ha="right", **draw.NUMBER)
        lost = np.size(groups[key]) - values.size
        labels.append(draw.plain(key) + (f"\n({lost:,} not finite)" if lost else ""))
    crowded = sum(len(line.split("\n")[0]) for line in labels) > 75
    ax.set_xticks(range(len(parts)), labels, **(_SLANTED if crowded else {}))
    ax.set(xlim=(-0.6, len(parts) - 0.4), ylim=(0, None), ylabel=label)
    return draw.finish(ax)


def plot_weights(groups: draw.Groups) -> Figure:
    """Histograms of record weights (n,) in [0, 1], one panel for each group, with the records at
    exactly 0 and exactly 1 set apart."""
    panels = draw.new_panels(7, 0.8 + 1.7 * len(groups), rows=len(groups), sharex=True)
    for place, (ax, (key, values)) in enumerate(zip(panels, groups.items(), strict=True)):
        alpha = np.asarray(values, dtype=np.float64)
        inside = alpha[(alpha > 0) & (alpha < 1)]
        apart = {-0.07: (alpha == 0).sum(), 1.07: (alpha == 1).sum()}
        _histogram(ax, inside, apart, place, alpha.size)
        draw.title(ax, f"{key}, {alpha.size:,} records")
        ax.set(ylabel="share of records", ymargin=0.18)
    ticks = {-0.07: "= 0", 0: "0", 0.25: "0.25", 0.5: "0.5", 0.75: "0.75", 1: "1", 1.07: "= 1"}
    ax.set_xticks(list(ticks), ticks.values())
    ax.set_xlabel("record weight α")
    return draw.finish(panels[0])


def plot_matching_risk(groups: draw.Groups) -> Figure:
    """Histograms of matching risk by record (n,), T/c or 1/c in [0, 1] of every target, one panel
    each, with targets without risk set apart."""
    panels = draw.new_panels(6.4, 0.7 + 2.0 * len(groups), rows=len(groups), sharex=True)
    for place, (ax, (name, values)) in enumerate(zip(panels, groups.items(), strict=True)):
        risk = np.asarray(values, dtype=np.float64)
        _histogram(ax, risk[risk > 0], {-0.06: (risk == 0).sum()}, place, 1)
        certain = int((risk == 1).sum())
        if certain:
            ax.text(1.0, certain, f"{certain:,} at 1", ha="right", **draw.NUMBER)
        ax.set_yscale("symlog", linthresh=10)
        ax.set(ylabel="targets", ymargin=0.2)
        draw.title(ax, f"{name}: {risk.size:,} targets, mean {risk.mean():.3f}")
    panels[-1].set_xticks([-0.06, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    panels[-1].set_xlabel("probability of being matched, mean over the sets")
    return draw.finish(panels[0])


def _histogram(
    ax: Any, inside: FloatArray, apart: Mapping[float, int], place: int, total: int
) -> None:
    """25 bars of [0, 1], and black bars beside it of numbers that are set `apart`, over `total`."""
    counts, edges = np.histogram(inside, bins=25, range=(0.0, 1.0))
    ax.stairs(counts / total, edges, fill=True, color=draw.COLORS[place % 6], alpha=0.6)
    for x, mass in apart.items():
        ax.bar(x, mass / total, width=0.05, color=draw.INK)
        ax.text(x, mass / total, f"{mass:,}", ha="center", **draw.NUMBER)


def plot_distributions(
    data: npt.ArrayLike,
    synthetic: draw.Sets,
    *,
    discrete: bool,
    scale: str = "log",
    label: str = "y",
) -> Figure:
    """Distribution of the data (n,) against the m sets of each mechanism: lines are means over
    them, bands the range. NaN and infinities are left out.

    Discrete: relative frequencies of whole numbers, in some 60 equal bins if they span more than
    100, on a "log" scale, which shows the tail and nothing where a frequency is 0, or a "linear"
    one. Else kernel density and distribution function of values that are not all equal.
    """
    truth = draw.finite(data)
    parts = {key: [draw.finite(values) for values in sets] for key, sets in synthetic.items()}
    pooled = np.concatenate([truth, *(values for sets in parts.values() for values in sets)])
    low, high, label, floor = pooled.min(), pooled.max(), draw.plain(label), 0.0
    if not discrete:
        grid = np.linspace(low, high, _GRID)
        panels = draw.new_panels(7, 3.6, columns=2)
        kinds = {"density": _density, "distribution function": _distribution}
        for ax, (kind, curve) in zip(panels, kinds.items(), strict=True):
            ax.plot(grid, curve(truth, grid), color=draw.INK, linewidth=2, label="data")
            _bands(ax, grid, parts, lambda values, of=curve: of(values, grid), floor, {})
            ax.set(xlabel=label, ylabel=kind)
        return draw.finish(panels[0])
    step = 1.0 if high - low <= 100 else np.ceil((high - low + 1) / 60)
    edges = np.arange(low, high + step + 1, step) - 0.5
    floor = 0.5 / truth.size if scale == "log" else 0.0
    ax = draw.new_panels(7, 3.9)[0]

    def shares(values: FloatArray) -> Any:
        return np.histogram(values, edges)[0] / values.size

    bars = {"fill": True, "color": draw.PALE, "label": "data"}
    ax.stairs(shares(truth), edges, baseline=floor, **bars)
    _bands(ax, (edges[1:] + edges[:-1]) / 2, parts, shares, floor, {"markersize": 3})
    ax.locator_params(axis="x", integer=True)
    kind = "relative frequency" if step == 1 else f"share per {step:,.10g} values"
    ax.set(xlabel=label, ylabel=f"{kind} ({scale} scale)", yscale=scale, ylim=(floor, None))
    return draw.finish(ax)


def _bands(
    ax: Any, x: FloatArray, parts: Mapping[str, Any], curve: Any, floor: float, points: Any
) -> None:
    """By mechanism the mean over the sets of their curves as a line, and their range as a band, or
    as lines beside `points`; nothing below `floor`."""
    for place, (key, sets) in enumerate(parts.items()):
        style = {**draw.STYLES[place % 6], **points}
        style |= {"marker": draw.MARKERS[place % 6]} if points else {}
        curves = np.array([curve(values) for values in sets])
        mean, low, high = curves.mean(axis=0), curves.min(axis=0), curves.max(axis=0)
        what = "1 set" if len(curves) == 1 else f"mean and range of {len(curves)} sets"
        label = f"{draw.plain(key)}, {what}"
        ax.plot(x, np.where(mean >= floor, mean, np.nan), label=label, **style)
        ends, shade = np.maximum([low, high], floor), {"color": style["color"], "alpha": 0.3}
        if points:
            ax.vlines(x, *ends, linewidth=4, **shade)
        else:
            ax.fill_between(x, *ends, linewidth=0, **shade)


def _density(values: FloatArray, grid: FloatArray) -> FloatArray:
    """Gaussian kernel density on `grid` from 2048 bin counts: its cost does not grow with n."""
    counts, edges = np.histogram(values, bins=2048)
    width = max(_bandwidth(values), grid[1] - grid[0])  # no narrower than the grid can show
    distance = (grid[:, None] - (edges[1:] + edges[:-1]) / 2) / width
    kernel = np.exp(-0.5 * distance**2) / (width * np.sqrt(2 * np.pi))
    return np.asarray(kernel @ counts / values.size)


def _distribution(values: FloatArray, grid: FloatArray) -> FloatArray:
    return np.asarray(np.searchsorted(np.sort(values), grid, side="right") / values.size)


def _bandwidth(values: FloatArray) -> float:
    """Silverman's rule of thumb, in the unit of `values`."""
    low, high = np.quantile(values, [0.25, 0.75])
    spread = min(values.std(), (high - low) / 1.34) or values.std()
    return float(0.9 * spread * values.size**-0.2)


def plot_bound_against_weight(
    alpha: npt.ArrayLike, by_record: npt.ArrayLike, *, overall: float, before: Fit | None = None
) -> Figure:
    """By-record bound (n,), nats, against weight (n,) with a smooth and the overall bound [V25
    figs 3, 6]; the same `before` re-weighting, (alpha, by_record, overall), in a panel to the left.

    The smooth is a lowess curve through the mean bounds in 100 equal bins of the weight: ties
    cannot break it and its cost does not grow with n. It needs 4 bins that hold records. Infinite
    bounds are not drawn.
    """
    fits = [*([] if before is None else [before]), (alpha, by_record, overall)]
    panels = draw.new_panels(5.2 if before is None else 7, 3.7, columns=len(fits), sharey=True)
    titles = [""] if before is None else ["before re-weighting", "after re-weighting"]
    for ax, title, (given, by_fit, bound) in zip(panels, titles, fits, strict=True):
        bounds = np.asarray(by_fit, dtype=np.float64)
        weights = np.asarray(given, dtype=np.float64)[np.isfinite(bounds)]
        _tied_scatter(ax, weights, draw.finite(bounds))
        _smooth(ax, weights, draw.finite(bounds))
        ax.axhline(bound, label="overall bound Δ", **draw.RULE)
        ax.text(0, bound, f"{bound:.2f}", **draw.NUMBER)
        ax.set(xlim=(-0.03, 1.03), xlabel="record weight α", ymargin=0.1)
        draw.title(ax, title)
    panels[0].set(ylim=(0, None), ylabel=_BY_RECORD)
    return draw.finish(panels[0])


def _smooth(ax: Any, weights: FloatArray, bounds: FloatArray) -> None:
    place = np.minimum((100 * weights).astype(np.intp), 99)
    counts = np.bincount(place)
    if (counts > 0).sum() < 4:
        return
    from statsmodels.nonparametric.smoothers_lowess import lowess

    x, y = (np.bincount(place, v)[counts > 0] / counts[counts > 0] for v in (weights, bounds))
    smooth = lowess(y, x, frac=max(0.3, 4 / x.size), it=0).T
    gaps = 1 + np.flatnonzero(np.diff(np.flatnonzero(counts)) > 5)  # no line without records
    curve = np.insert(smooth, gaps, np.nan, axis=1)
    ax.plot(*curve, color=draw.COLORS[1], linewidth=1.8, label="smooth")


def _tied_scatter(ax: Any, x: FloatArray, y: FloatArray) -> None:
    """One point per distinct pair; above 5000 records, pairs to a 1000th of their range."""
    if x.size > 5000:
        x, y = (np.round(v / (v.max() or 1), 3) * v.max() for v in (x, y))
    pairs, counts = np.unique(x + 1j * y, return_counts=True)  # many times faster than axis=0
    style = {"color": draw.COLORS[0], "alpha": 0.5, "linewidths": 0, "label": "records"}
    ax.scatter(pairs.real, pairs.imag, s=9 + 250 * (counts - 1) / x.size, **style)


def plot_weights_before_after(before: npt.ArrayLike, after: npt.ArrayLike) -> Figure:
    """Record weights (n,), in [0, 1], after re-weighting against those before it."""
    old, new = (np.asarray(alpha, dtype=np.float64) for alpha in (before, after))
    ax = draw.new_panels(4.2, 4.4)[0]
    ax.plot([0, 1], [0, 1], label="unchanged", **draw.RULE)
    _tied_scatter(ax, old, new)
    ax.set(aspect="equal", xlabel="record weight α before", ylabel="record weight α after")
    return draw.finish(ax)


def plot_mean_density(groups: draw.Groups, *, label: str = "posterior mean of y") -> Figure:
    """Posterior densities of one parameter from draws (S,), not all equal, a curve per group."""
    ax = draw.new_panels(5.6, 3.6)[0]
    for place, (key, draws) in enumerate(groups.items()):
        values = draw.finite(draws)
        margin = 3 * _bandwidth(values)
        grid = np.linspace(values.min() - margin, values.max() + margin, _GRID)
        ax.plot(grid, _density(values, grid), label=draw.plain(key), **draw.STYLES[place % 6])
    ax.set(xlabel=draw.plain(label), ylabel="density", ylim=(0, None))
    return draw.finish(ax)


def plot_intervals(table: pd.DataFrame, *, reference: str | None = None) -> Figure:
    """Estimates with 95 % intervals by source, one panel per statistic, in order of appearance,
    from a tidy table; the interval of `reference`, such as the data, is shaded over the whole
    panel."""
    sources, statistics = list(table["source"].unique()), list(table["statistic"].unique())
    panels = draw.panels_for(len(statistics), 7, 4, 0.9 + 0.3 * len(sources), 0, sharey=True)
    for ax, statistic in zip(panels, statistics, strict=True):
        for row in table[table["statistic"] == statistic].itertuples(index=False):
            place = sources.index(row.source)
            if row.source == reference:
                ax.axvspan(row.lower, row.upper, color=draw.PALE, alpha=0.5, linewidth=0)
            color = {"color": draw.INK} if row.source == reference else {}
            draw.draw_ranges(ax, place, row.lower, row.estimate, row.upper, place=place, **color)
        draw.title(ax, statistic)
        ax.locator_params(axis="x", nbins=3)
    panels[0].set_yticks(range(len(sources)), map(draw.plain, sources))
    panels[0].set_ylim(len(sources) - 0.5, -0.5)
    return draw.finish(panels[0])


def plot_told(groups: draw.Groups, *, charged: float) -> Figure:
    """Mu of every record (n,), >= 0, in descending order, one line per mechanism, and that
    `charged` for a draw of the last group; both axes logarithmic. Infinite ones and zeros are left
    out and counted in the legend."""
    ax = draw.new_panels(6.4, 3.6)[0]
    for place, (key, given) in enumerate(groups.items()):
        values = draw.finite(given)
        shown = np.sort(values[values > 0])[::-1]
        lost = np.size(given) - shown.size
        label = draw.plain(key) + (f" ({lost:,} are 0 or not finite)" if lost else "")
        ax.step(np.arange(1, shown.size + 1), shown, where="post", label=label,
                marker="." if shown.size < 50 else "", **draw.STYLES[place % 6])  # fmt: skip
    _level(ax, charged, f"charged for {draw.plain(list(groups)[-1])}")
    ax.set(xscale="log", yscale="log", xlabel="records, the largest mu first",
           ylabel="mu of one released draw")  # fmt: skip
    return draw.finish(ax)


def _level(ax: Any, level: float, label: str) -> None:
    """A horizontal line, its number at the right end, where curves that fall are far below."""
    ax.axhline(level, label=label, **draw.RULE)
    ax.text(1, level, f"{level:.3g}", transform=ax.get_yaxis_transform(), ha="right", **draw.NUMBER)


def plot_levels(
    levels: Sequence[str], data: npt.ArrayLike, synthetic: npt.ArrayLike, name: str
) -> Figure:
    """Shares of L levels, from the top down: a bar for the data (L,), a point and the range over
    the sets (m, L) of what has this name."""
    shares = np.atleast_2d(np.asarray(synthetic, dtype=np.float64))
    ax = draw.new_panels(6.4, 0.9 + 0.26 * len(levels))[0]
    at = draw.rows_of(ax, levels)
    ax.barh(at, np.asarray(data, dtype=np.float64), height=0.72, color=draw.PALE, label="data")
    ends = shares.min(axis=0), shares.mean(axis=0), shares.max(axis=0)
    label = f"{draw.plain(name)}: mean and range of {len(shares)}"
    draw.draw_ranges(ax, at, *ends, place=0, label=label)
    ax.invert_yaxis()
    ax.set(xlim=(0, None), xlabel="share of records")
    return draw.finish(ax)


def plot_forest(table: pd.DataFrame, name: str) -> Figure:
    """Coefficients of data and of sets of this name with 95 % intervals on one axis, in standard
    errors of the data: `ModelUtility.table`, where the interval of the data has a length."""
    ax = draw.new_panels(7, 1.2 + 0.36 * len(table))[0]
    ax.axvspan(-NORMAL, NORMAL, color=draw.PALE, alpha=0.6, lw=0, label="data, 95 % interval")
    ax.axvline(0, color=draw.INK, linewidth=1)
    error = (table["upper"] - table["lower"]) / (2 * NORMAL)
    ends = ((table[f"synthetic_{end}"] - table["estimate"]) / error
            for end in ("lower", "estimate", "upper"))  # fmt: skip
    color, at = draw.COLORS[1], draw.rows_of(ax, list(table.index))
    draw.draw_ranges(ax, at, *ends, place=0, color=color, label=draw.plain(name))
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlabel("difference from the data, in its standard errors", fontsize=draw.TEXT)
    return draw.finish(ax)


def plot_pairs(ratios: pd.DataFrame) -> Figure:
    """Heat map of table ratios >= 0: pairs off the diagonal, single columns on it; see
    `TableUtility.matrix`. Colors end at 10."""
    values = ratios.to_numpy(dtype=np.float64)
    k = len(values)
    size, few = min(8.0, 2.6 + 0.36 * k), k <= 12
    ax = draw.new_panels(size, size + 0.9)[0]
    ax.tick_params(labelsize=draw.TEXT + 3 * few)
    image = ax.imshow(np.minimum(values, _CAP), cmap="cividis", vmin=0, vmax=_CAP)
    names = [draw.plain(name) for name in ratios.columns]
    ax.set_xticks(range(k), names, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(k), names)
    ax.spines[:].set_visible(False)
    if k <= 20:
        for (i, j), value in np.ndenumerate(values):
            color = "black" if value > _CAP / 2 else "white"
            text = f"{value:.1f}" if value < 99.95 else f"{value:.0f}" if value < 1e3 else ">999"
            ax.text(j, i, text, ha="center", va="center", fontsize=6.5 + 2.5 * few, color=color)
    bar = ax.figure.colorbar(image, ax=ax, location="top", extend="max")
    bar.set_label("table ratio (1: as a second sample)", fontsize=draw.TEXT + 3 * few)
    bar.ax.tick_params(labelsize=draw.TEXT + 3 * few)
    figure: Figure = ax.figure
    return figure


def plot_curve(table: pd.DataFrame) -> Figure:
    """Utility measures against epsilon of one draw, one panel each; lower left is best.

    Points of LW carry their (scale, shift); the unweighted fit is a horizontal line, as its epsilon
    is usually far to the right. Bars are 95 % intervals over the sets of a point, where the table,
    that of a `pyhybrid.studies.RiskUtilityCurve`, has standard errors.
    """
    panels = draw.panels_for(len(MEASURES), 7.4, 2, 2.7, sharex=True)
    for ax, (measure, label) in zip(panels, MEASURES.items(), strict=True):
        _curve_panel(ax, table, measure)
        ax.set(ylabel=label, ymargin=0.2, xmargin=0.12)
        ax.set_ylim(0, ax.get_ylim()[1])
    for ax in panels[-2:]:
        ax.set_xlabel("epsilon of one draw (nats)")
        ax.tick_params(labelbottom=True)
    return draw.finish(panels[0])


def _curve_panel(ax: Any, table: pd.DataFrame, measure: str) -> None:
    for place, (mechanism, name) in enumerate(_WEIGHTS.items()):
        points = table[table["mechanism"] == mechanism].sort_values("epsilon")
        style = {**draw.STYLES[place], "marker": draw.MARKERS[place], "markersize": 5}
        ax.plot(points["epsilon"], points[measure], label=name, **style)
        if f"{measure}_se" in points:
            half = NORMAL * points[f"{measure}_se"]
            low = (points[measure] - half).clip(lower=0)  # no measure is below 0
            ax.vlines(points["epsilon"], low, points[measure] + half, color=style["color"])
        if mechanism != "LW":
            continue
        for k, point in enumerate(points.itertuples()):  # above and below by turns, to be clear
            ax.annotate(
                f"({point.scale:g}, {point.shift:g})", (point.epsilon, getattr(point, measure)),
                xytext=(0, -5 if k % 2 else 5), textcoords="offset points", ha="center",
                va="top" if k % 2 else "bottom", fontsize=draw.TEXT - 2,
            )  # fmt: skip
    for row in table[table["mechanism"] == "Unweighted"].itertuples():
        label = f"unweighted, epsilon {row.epsilon:g}"
        ax.axhline(getattr(row, measure), color=draw.INK, linestyle=":", linewidth=1.3, label=label)


def plot_contraction(contraction: Contraction) -> Figure:
    """Lipschitz bounds of simulated databases by their number of records, with that of the data
    [S22 fig. 1]; beside them records of reduced weight and weight removed, over the root of n,
    which assumption 4 wants bounded."""
    bounds, weights = draw.new_panels(9.2, 3.6, columns=2)
    for n, part in contraction.databases.groupby("n"):
        shown = draw.finite(part["lipschitz_bound"])
        bounds.plot([n] * shown.size, shown, "o", color=draw.COLORS[0], alpha=0.4)
    table = contraction.table
    bounds.plot(table["n"], table["mean"], color=draw.INK, label="mean over databases")
    _level(bounds, contraction.bound, f"the data, n = {contraction.n:,}")
    bounds.set(ylabel="Lipschitz bound Δ (nats)")
    labels = {"reduced": "records of weight below 1", "removed": "sum of 1 - α"}
    for style, (name, label) in zip(draw.STYLES, labels.items(), strict=False):
        weights.plot(table["n"], table[f"{name} / sqrt n"], marker="o", label=label, **style)
    weights.set(ylim=(0, None), ylabel="over √n")
    for ax in (bounds, weights):
        ax.set(xscale="log", xlabel="records n")
        ax.set_xticks(table["n"], [f"{n:,}" for n in table["n"]])
        ax.minorticks_off()
    weights.legend(frameon=False, fontsize=draw.TEXT)
    return draw.finish(bounds)


def plot_subgroups(groups: RiskSubgroups) -> Figure:
    """Records by how many others match them on all keys, colored by subgroup, and their shares."""
    left, right = draw.new_panels(7, 3.2, columns=2)
    top = max(int(np.quantile(groups.n_matches, 0.99)), groups.k0 + 1)
    step = max(1, -(-top // 40))
    edges = np.arange(0, top + 2 * step, step) - 0.5
    shown = np.minimum(groups.n_matches, edges[-1] - 0.5)
    parts = [shown[groups.by_record == name] for name in _SUBGROUPS]
    labels, colors = [f"{name} risk" for name in _SUBGROUPS], list(_SUBGROUPS.values())
    left.hist(parts, bins=edges, stacked=True, color=colors, label=labels)
    left.axvline(groups.k0 - 0.5, color=draw.INK, linestyle="--", linewidth=1.2)
    left.set(xlabel=f"other records that match on all keys ({top}+ at the end)", ylabel="records")
    left.locator_params(axis="x", integer=True)
    table = groups.table
    bars = right.bar(table["subgroup"], table["share"], color=table["subgroup"].map(_SUBGROUPS))
    right.bar_label(bars, [f"{n:,}" for n in table["records"]], fontsize=draw.TEXT - 1)
    right.set(xlabel="risk subgroup", ylabel="share of records", ymargin=0.12)
    return draw.finish(left)
