"""The papers' figures: bounds, weights, data against synthetic data, intervals, loss by record.

Every function takes arrays and returns a `matplotlib.figure.Figure`; none touches pyplot, a
backend or any other global state, and equal input gives equal figures. Colors are Okabe and
Ito's (2008, Color universal design); line styles and markers differ as well.

An argument `groups` maps names of mechanisms to arrays, in the order of drawing; `label` names an
axis. All functions raise `InvalidInput` for no group, a wrong shape, or values that are not as
stated. Records that coincide are one point of larger area. Bounds and weights are confidential.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    check_alpha,
    check_choice,
    check_finite,
    check_nonnegative_vector,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.diagnostics import RELIABLE_K
from pyhybrid.privacy.leave_one_out import LeaveOneOutLoss
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

Groups = Mapping[str, npt.ArrayLike]
Sets = Mapping[str, Sequence[npt.ArrayLike]]
Fit = tuple[npt.ArrayLike, npt.ArrayLike, float]

_GRID = 256
_INTERVAL = ("lower", "estimate", "upper")
_SLANTED = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
_BY_RECORD = "by-record Lipschitz bound (nats)"


def figure_png(figure: Figure, *, dpi: int = 144) -> bytes:
    """Return the figure as PNG without metadata: equal figures give equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def figure_data_uri(figure: Figure, *, dpi: int = 144) -> str:
    """Return the figure as a ``data:image/png;base64,...`` address for use in HTML."""
    return "data:image/png;base64," + base64.b64encode(figure_png(figure, dpi=dpi)).decode("ascii")


def plot_bounds(
    groups: Groups, *, overall: Mapping[str, float] | None = None, label: str = _BY_RECORD
) -> Figure:
    """Violins of by-record Lipschitz bounds, one per mechanism [V25 fig. 3].

    Parameters
    ----------
    groups : mapping of str to array_like, shape (n,)
        By-record bounds in nats. Infinite ones are not drawn but counted below the violin.
    overall : mapping of str to float, optional
        Overall bounds in nats of some or all of the groups, marked by a line.
    label : str
        For groups of other bounds, such as the overall ones of many databases.
    """
    parts = {key: finite_of(values, f"groups[{key!r}]") for key, values in named(groups).items()}
    marked = {
        check_choice(key, "a name in overall", parts): check_finite(bound, f"overall[{key!r}]")
        for key, bound in (overall or {}).items()
    }
    ax = new_panels(min(7, 2.6 + 1.4 * len(parts)), 3.9)[0]
    labels = []
    for place, (key, values) in enumerate(parts.items()):
        _violin(ax, place, values)
        if key in marked:
            ends = [place - 0.42, place + 0.42]
            ax.plot(ends, [marked[key]] * 2, label="overall bound Δ", **RULE)
            ax.text(ends[1], marked[key], f"{marked[key]:.2f}", ha="right", **NUMBER)
        lost = np.size(groups[key]) - values.size
        labels.append(plain(key) + (f"\n({lost:,} not finite)" if lost else ""))
    crowded = sum(len(line.split("\n")[0]) for line in labels) > 75
    ax.set_xticks(range(len(parts)), labels, **(_SLANTED if crowded else {}))
    ax.set(xlim=(-0.6, len(parts) - 0.4), ylim=(0, None), ylabel=label)
    return finish(ax)


def plot_weights(groups: Groups) -> Figure:
    """Histograms of record weights, with the records at exactly 0 and exactly 1 set apart.

    Parameters
    ----------
    groups : mapping of str to array_like, shape (n,)
        Record weights in [0, 1]; one panel each.
    """
    k = len(named(groups))
    panels = new_panels(7, 0.8 + 1.7 * k, rows=k, sharex=True)
    for place, (ax, (key, values)) in enumerate(zip(panels, groups.items(), strict=True)):
        alpha = check_alpha(values, np.size(values))
        counts, edges = np.histogram(alpha[(alpha > 0) & (alpha < 1)], bins=25, range=(0.0, 1.0))
        ax.stairs(counts / alpha.size, edges, fill=True, color=COLORS[place % 6], alpha=0.6)
        for x, mass in ((-0.07, (alpha == 0).sum()), (1.07, (alpha == 1).sum())):
            ax.bar(x, mass / alpha.size, width=0.05, color=INK)
            ax.text(x, mass / alpha.size, f"{mass:,}", ha="center", **NUMBER)
        ax.set_title(f"{plain(key)}, {alpha.size:,} records", loc="left", fontsize=TEXT)
        ax.set(ylabel="share of records", ymargin=0.18)
    ticks = {-0.07: "= 0", 0: "0", 0.25: "0.25", 0.5: "0.5", 0.75: "0.75", 1: "1", 1.07: "= 1"}
    ax.set_xticks(list(ticks), ticks.values())
    ax.set_xlabel("record weight α")
    return finish(panels[0])


def plot_distributions(
    data: npt.ArrayLike, synthetic: Sets, *, discrete: bool, scale: str = "log", label: str = "y"
) -> Figure:
    """Distribution of the data against synthetic sets, with bands over the sets.

    Parameters
    ----------
    data : array_like, shape (n,)
        Confidential outcome. NaN and infinities are left out, here and below.
    synthetic : mapping of str to sequence of array_like
        The m synthetic outcomes of each mechanism: lines are means over them, bands the range.
    discrete : bool
        True: relative frequencies of whole numbers, in some 60 equal bins if they span more than
        100. False: kernel density and distribution function of values that are not all equal.
    scale : {"log", "linear"}
        Of relative frequencies; "log" shows the tail, and nothing where a frequency is 0.
    """
    check_choice(scale, "scale", ("log", "linear"))
    truth = finite_of(data, "data")
    parts = {
        key: [finite_of(values, f"synthetic[{key!r}][{i}]") for i, values in enumerate(sets)]
        for key, sets in named(synthetic).items()
    }
    if not all(parts.values()):
        raise InvalidInput("synthetic must hold at least one set for each name: found none")
    if discrete:
        return _draw_frequencies(truth, parts, scale, plain(label))
    return _draw_densities(truth, parts, plain(label))


def plot_bound_against_weight(
    alpha: npt.ArrayLike, by_record: npt.ArrayLike, *, overall: float, before: Fit | None = None
) -> Figure:
    """By-record bound against weight with a smooth and the overall bound [V25 figs 2, 6].

    The smooth is a lowess curve through the mean bounds in 100 equal bins of the weight: ties
    cannot break it and its cost does not grow with n. It needs 4 bins that hold records.

    Parameters
    ----------
    alpha, by_record : array_like, shape (n,)
        Record weights in [0, 1] and by-record bounds in nats; infinite ones are not drawn.
    overall : float
        Overall bound, nats.
    before : tuple of (alpha, by_record, overall), optional
        The same before re-weighting, drawn in a panel to the left on the same scale.
    """
    fits = [*([] if before is None else [before]), (alpha, by_record, overall)]
    panels = new_panels(5.2 if before is None else 7, 3.7, columns=len(fits), sharey=True)
    titles = [""] if before is None else ["before re-weighting", "after re-weighting"]
    for ax, title, (weights, bounds, bound) in zip(panels, titles, fits, strict=True):
        _bound_panel(ax, weights, bounds, check_finite(bound, "overall"))
        ax.set_title(title, loc="left", fontsize=TEXT)
    panels[0].set(ylim=(0, None), ylabel=_BY_RECORD)
    return finish(panels[0])


def plot_weights_before_after(before: npt.ArrayLike, after: npt.ArrayLike) -> Figure:
    """Record weights (n,), in [0, 1], after re-weighting against those before it."""
    old, new = (check_alpha(alpha, np.size(before)) for alpha in (before, after))
    ax = new_panels(4.2, 4.4)[0]
    ax.plot([0, 1], [0, 1], label="unchanged", **RULE)
    _tied_scatter(ax, old, new)
    ax.set(aspect="equal", xlabel="record weight α before", ylabel="record weight α after")
    return finish(ax)


def plot_mean_density(groups: Groups, *, label: str = "posterior mean of y") -> Figure:
    """Posterior densities of one parameter, one curve per mechanism.

    Parameters
    ----------
    groups : mapping of str to array_like, shape (S,)
        Draws of the parameter, not all equal.
    """
    ax = new_panels(5.6, 3.6)[0]
    for place, (key, draws) in enumerate(named(groups).items()):
        values = finite_of(draws, f"groups[{key!r}]")
        margin = 3 * _bandwidth(values)
        grid = np.linspace(values.min() - margin, values.max() + margin, _GRID)
        ax.plot(grid, _density(values, grid), label=plain(key), **STYLES[place % 6])
    ax.set(xlabel=plain(label), ylabel="density", ylim=(0, None))
    return finish(ax)


def plot_intervals(table: pd.DataFrame, *, reference: str | None = None) -> Figure:
    """Estimates with 95 % intervals by source, one panel per statistic.

    Parameters
    ----------
    table : DataFrame
        Columns statistic, source, estimate, lower, upper; drawn in order of appearance.
    reference : str, optional
        Source (such as the data) whose interval is shaded over the whole panel.
    """
    _check_intervals(table, reference)
    sources, statistics = list(table["source"].unique()), list(table["statistic"].unique())
    rows, columns = -(-len(statistics) // 4), min(len(statistics), 4)
    panels = new_panels(7, rows * (0.9 + 0.3 * len(sources)), rows, columns, sharey=True)
    for ax, statistic in zip(panels, statistics, strict=False):
        for row in table[table["statistic"] == statistic].itertuples(index=False):
            place = sources.index(row.source)
            if row.source == reference:
                ax.axvspan(row.lower, row.upper, color=PALE, alpha=0.5, linewidth=0)
            color = INK if row.source == reference else COLORS[place % 6]
            ax.plot([row.lower, row.upper], [place, place], color=color, linewidth=1.6)
            ax.plot([row.estimate], [place], MARKERS[place % 6], color=color, markersize=5)
        ax.set_title(plain(statistic), loc="left", fontsize=TEXT)
        ax.locator_params(axis="x", nbins=3)
    panels[0].set_yticks(range(len(sources)), map(plain, sources))
    panels[0].set_ylim(len(sources) - 0.5, -0.5)
    for ax in panels[len(statistics) :]:
        ax.set_visible(False)
    return finish(panels[0])


def _violin(ax: Any, place: int, values: FloatArray) -> None:
    grid = np.linspace(values.min(), values.max(), _GRID)
    flat = np.ptp(values) <= 1e-9 * abs(values).max()
    height = np.ones(_GRID) if flat else _density(values, grid)
    half = 0.4 * height / height.max()
    ax.fill_betweenx(grid, place - half, place + half, color=COLORS[place % 6], alpha=0.45)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    ax.plot([place, place], [low, high], color=INK, linewidth=3, solid_capstyle="butt")
    ax.plot([place], [middle], "o", color="white", mec=INK, ms=5, label="median and quartiles")


def _draw_frequencies(
    truth: FloatArray, parts: dict[str, list[FloatArray]], scale: str, label: str
) -> Figure:
    pooled = np.concatenate([truth, *(values for sets in parts.values() for values in sets)])
    if (pooled != np.floor(pooled)).any():
        raise InvalidInput("discrete outcomes must be whole numbers: pass discrete=False")
    low, high = pooled.min(), pooled.max()
    step = 1.0 if high - low <= 100 else np.ceil((high - low + 1) / 60)
    edges = np.arange(low, high + step + 1, step) - 0.5
    floor = 0.5 / truth.size if scale == "log" else 0.0
    ax = new_panels(7, 3.9)[0]
    share = np.histogram(truth, edges)[0] / truth.size
    ax.stairs(share, edges, baseline=floor, fill=True, color=PALE, label="data")
    for place, (key, sets) in enumerate(parts.items()):
        shares = np.array([np.histogram(values, edges)[0] / values.size for values in sets])
        style = {**STYLES[place % 6], "marker": MARKERS[place % 6], "markersize": 3}
        _band(ax, (edges[1:] + edges[:-1]) / 2, shares, key, floor, **style)
    kind = "relative frequency" if step == 1 else f"share per {step:,.10g} values"
    ax.set(xlabel=label, ylabel=f"{kind} ({scale} scale)", yscale=scale, ylim=(floor, None))
    return finish(ax)


def _draw_densities(truth: FloatArray, parts: dict[str, list[FloatArray]], label: str) -> Figure:
    pooled = np.concatenate([truth, *(v for sets in parts.values() for v in sets)])
    grid = np.linspace(pooled.min(), pooled.max(), _GRID)
    panels = new_panels(7, 3.6, columns=2)
    for ax, kind in zip(panels, ("density", "distribution function"), strict=True):
        curve = _density if kind == "density" else _distribution
        ax.plot(grid, curve(truth, grid), color=INK, linewidth=2, label="data")
        for place, (key, sets) in enumerate(parts.items()):
            _band(ax, grid, np.array([curve(v, grid) for v in sets]), key, 0.0, **STYLES[place % 6])
        ax.set(xlabel=label, ylabel=kind)
    return finish(panels[0])


def _band(ax: Any, x: FloatArray, curves: FloatArray, key: str, floor: float, **style: Any) -> None:
    """Mean of `curves` (m, len(x)) as a line, their range as a band; nothing below `floor`."""
    mean, low, high = curves.mean(axis=0), curves.min(axis=0), curves.max(axis=0)
    sets = "1 set" if len(curves) == 1 else f"mean and range of {len(curves)} sets"
    ax.plot(x, np.where(mean >= floor, mean, np.nan), label=f"{plain(key)}, {sets}", **style)
    shade = {"color": style["color"], "alpha": 0.3}
    if "marker" in style:
        ax.vlines(x, np.maximum(low, floor), np.maximum(high, floor), linewidth=4, **shade)
    else:
        ax.fill_between(x, low, high, linewidth=0, **shade)


def _bound_panel(ax: Any, alpha: npt.ArrayLike, by_record: npt.ArrayLike, overall: float) -> None:
    bounds = check_nonnegative_vector(by_record, "by_record")
    weights = check_alpha(alpha, bounds.size)[np.isfinite(bounds)]
    bounds = finite_of(bounds, "by_record")
    _tied_scatter(ax, weights, bounds)
    place = np.minimum((100 * weights).astype(np.intp), 99)
    counts = np.bincount(place)
    if (counts > 0).sum() >= 4:
        from statsmodels.nonparametric.smoothers_lowess import lowess

        x, y = (np.bincount(place, v)[counts > 0] / counts[counts > 0] for v in (weights, bounds))
        smooth = lowess(y, x, frac=max(0.3, 4 / x.size), it=0).T
        gaps = 1 + np.flatnonzero(np.diff(np.flatnonzero(counts)) > 5)  # no line without records
        curve = np.insert(smooth, gaps, np.nan, axis=1)
        ax.plot(*curve, color=COLORS[1], linewidth=1.8, label="smooth")
    ax.axhline(overall, label="overall bound Δ", **RULE)
    ax.text(0, overall, f"{overall:.2f}", **NUMBER)
    ax.set(xlim=(-0.03, 1.03), xlabel="record weight α", ymargin=0.1)


def _tied_scatter(ax: Any, x: FloatArray, y: FloatArray) -> None:
    """One point per distinct pair; above 5000 records, pairs to a 1000th of their range."""
    if x.size > 5000:
        x, y = (np.round(v / (v.max() or 1), 3) * v.max() for v in (x, y))
    pairs, counts = np.unique(x + 1j * y, return_counts=True)  # many times faster than axis=0
    style = {"color": COLORS[0], "alpha": 0.5, "linewidths": 0, "label": "records"}
    ax.scatter(pairs.real, pairs.imag, s=9 + 250 * (counts - 1) / x.size, **style)


def _check_intervals(table: pd.DataFrame, reference: str | None) -> None:
    if table.empty or not {"statistic", "source", *_INTERVAL} <= set(table.columns):
        raise InvalidInput("table must have rows and statistic, source, estimate, lower, upper")
    low, middle, high = (check_vector(table[name], name) for name in _INTERVAL)
    if not ((low <= middle) & (middle <= high) & np.isfinite(low + high)).all():
        raise InvalidInput("lower <= estimate <= upper must hold in every row, all finite")
    check_choice(reference or table["source"].iloc[0], "reference", table["source"].unique())


def _density(values: FloatArray, grid: FloatArray) -> FloatArray:
    """Gaussian kernel density on `grid` from 2048 bin counts: its cost does not grow with n."""
    if np.ptp(values) <= 1e-9 * abs(values).max():
        raise InvalidInput("a density needs at least two distinct values: found one")
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


def plot_told(groups: Groups, *, charged: float) -> Figure:
    """Mu of every record in descending order, one line per mechanism; both axes logarithmic.

    Parameters
    ----------
    groups : mapping of str to array_like, shape (n,)
        Mu by record, >= 0. Infinite ones are left out and counted in the legend; so are zeros.
    charged : float
        Mu that is charged for one draw of the last group, marked by a line.
    """
    ax = new_panels(6.4, 3.6)[0]
    for place, (key, given) in enumerate(named(groups).items()):
        values = check_nonnegative_vector(finite_of(given, f"groups[{key!r}]"), f"groups[{key!r}]")
        shown = np.sort(values[values > 0])[::-1]
        left_out = _left_out(given, int((values == 0).sum()))
        ax.plot(
            np.arange(1, shown.size + 1), shown, label=plain(key) + left_out,
            drawstyle="steps-post", marker="." if shown.size < 50 else "",
            **STYLES[place % len(STYLES)],
        )  # fmt: skip
    level = check_finite(charged, "charged")
    ax.axhline(level, label=f"charged for {plain(list(groups)[-1])}", **RULE)
    _number(ax, level)
    ax.set(xscale="log", yscale="log", xlabel="records, the most told about first",
           ylabel="mu of one released draw")  # fmt: skip
    return finish(ax)


def plot_losses(found: LeaveOneOutLoss, *, charged: float | None = None) -> Figure:
    """Leave-one-out loss of each record over the draws, by its largest in descending order.

    Parameters
    ----------
    found : LeaveOneOutLoss
    charged : float, optional
        Epsilon of one draw, in nats, marked by a line.
    """
    ax = new_panels(7, 3.8)[0]
    order = np.argsort(-found.by_record, kind="stable")
    place = np.arange(1, order.size + 1)
    lines = {"largest over the draws": found.by_record}
    for k in reversed(range(len(found.probabilities))):
        share = found.probabilities[k]
        name = "median over the draws" if share == 0.5 else f"{share:.0%} of the draws below"
        lines[name] = found.quantiles[:, k]
    for (name, values), style in zip(lines.items(), STYLES, strict=False):
        ax.plot(place, values[order], label=name, linewidth=1.3, **style)
    if charged is not None:
        ax.axhline(charged, label="epsilon charged", **RULE)
        _number(ax, charged)
    unreliable = np.flatnonzero(found.pareto_k[order] > RELIABLE_K)
    if unreliable.size:
        at = found.by_record[order][unreliable]
        ax.plot(place[unreliable], at, "x", color=INK, markersize=5, label="unreliable estimate")
    ax.set(xscale="log", xlabel="records, the most told about first", ylabel="absolute loss, nats",
           ylim=(0, None))  # fmt: skip
    return finish(ax)


def _number(ax: Any, level: float) -> None:
    """The number of a horizontal line at its right end, where curves that fall are far below."""
    ax.text(1, level, f"{level:.3g}", transform=ax.get_yaxis_transform(), ha="right", **NUMBER)


def _left_out(given: npt.ArrayLike, zeros: int) -> str:
    infinite = int(np.isinf(np.asarray(given, dtype=np.float64)).sum())
    parts = [f"{n:,} {what}" for n, what in ((infinite, "not finite"), (zeros, "at 0")) if n]
    return f" ({', '.join(parts)})" if parts else ""
