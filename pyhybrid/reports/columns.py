"""Synthesized columns against the data: distributions, pairs, rows of persons. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.disclosive_columns import repeated_identifiers
from pyhybrid.measures.reconcile import reconcile_tables
from pyhybrid.measures.utility import table_utility
from pyhybrid.models.columns.support import LARGEST
from pyhybrid.models.formula.values import is_number
from pyhybrid.releases.release import Release
from pyhybrid.reports import drawing, figures
from pyhybrid.reports.page import Section, Table, number_text, section, sentence
from pyhybrid.reports.verdicts import LIMITS, level_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PAIRED, _LEAST_PAIRED, _ROWS = 30, 3, 20_000
_MOST_NAMED = 8  # pairs
_SMALL_BINS, _SMALL_LEVELS, _LEVELS = 24, 8, 30  # of small pictures; of others
_APART = 1e4  # floats from one end to the other, for a picture
_MOST_REPEATED, _NOTEWORTHY = 12, 0.05  # columns, and their intraclass correlation


def pair_ratios(release: Release, data: pd.DataFrame) -> pd.DataFrame | None:
    """Table ratios of pairs of synthesized columns and their predictors in the first set, single
    columns on the diagonal; None of fewer than two columns, or of tables that do not compare."""
    shown = {*release.synthesized, *release.predictors}
    columns = [name for name in data.columns if name in shown][:_MOST_PAIRED]
    rows = np.linspace(0, len(data) - 1, min(len(data), _ROWS)).astype(np.intp)
    if len(columns) < 2:
        return None
    try:
        first = release.synthetic[0][columns].iloc[rows]
        return table_utility(reconcile_tables(data[columns].iloc[rows], first)).matrix()
    except InvalidInput:
        return None


def damaged_pairs(ratios: pd.DataFrame | None) -> list[str]:
    """A sentence that names the pairs whose relation is damaged, the worst first: beyond their
    limits, and beyond what their columns are off alone."""
    if ratios is None:
        return []
    off = ratios.to_numpy()
    of_pairs = np.triu(np.where(off > np.maximum.outer(off.diagonal(), off.diagonal()), off, 0), 1)
    damaged, badly = LIMITS["table_ratio"]
    pairs = sorted(zip(*np.nonzero(of_pairs > damaged), strict=True), key=lambda p: -of_pairs[p])
    if not pairs:
        return []
    named = [f"{ratios.columns[i]} and {ratios.columns[j]} {of_pairs[i, j]:.3g}" for i, j in pairs]
    more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    named = [*named[:_MOST_NAMED], *more]
    return [sentence("pairs at a glance", "damaged", named=named, damaged=damaged, badly=badly)]


def pairs_section(ratios: pd.DataFrame | None) -> list[Section]:
    """A heat map of all pairs, those of the worst pairs first; none of fewer than three columns."""
    if ratios is None or len(ratios) < _LEAST_PAIRED:
        return []
    upper = np.triu(ratios.to_numpy(), 1)
    i, j = divmod(int(upper.argmax()), len(upper))
    by_worst = ratios.columns[np.argsort(-ratios.max().to_numpy(), kind="stable")]
    shown = section(
        "pairs at a glance", figures=[figures.plot_pairs(ratios.loc[by_worst, by_worst])],
        first=ratios.columns[i], second=ratios.columns[j], ratio=float(upper[i, j]),
    )  # fmt: skip
    (picture,) = shown.pictures
    share = min(picture.share, 50 if len(ratios) < 12 else 75)
    return [replace(shown, pictures=[replace(picture, share=share)])]


def plot_release(release: Release, column: str | None = None) -> Figure:
    """Data against synthetic sets: the distribution of a synthesized `column`, the first one if it
    is omitted, of a release that was made in this session. CONFIDENTIAL.

    Raises
    ------
    InvalidInput
        For a release that was loaded, which has no data, and for a column not synthesized.
    """
    if release.origin is None:
        raise InvalidInput(
            "release must be one that was made in this session: one that was loaded has no data "
            "to be plotted against; see pyhybrid.measures.utility_summary"
        )
    chosen = release.synthesized[0] if column is None else column
    if chosen not in release.synthesized:
        raise InvalidInput(
            f"column must be a synthesized one, {', '.join(release.synthesized)}: found {chosen!r}"
        )
    truth, name = release.origin.data[chosen], release.charge.mechanism
    sets = [table[chosen] for table in release.synthetic]
    numbers = [numeric_values(values) for values in sets]
    figure, _ = _distribution(chosen, numeric_values(truth), name, numbers)
    return _levels_figure(shares_of(truth, sets), name) if figure is None else figure


def shares_of(data: pd.Series, sets: Sequence[pd.Series], *, most: int = _LEVELS) -> pd.DataFrame:
    """Shares of the `most` frequent levels in the data, the first column, and in each set; ordered
    categories in their order."""
    columns = [level_shares(column) for column in (data, *sets)]
    table: pd.DataFrame = pd.concat(columns, axis=1).fillna(0.0)
    table = table.iloc[np.argsort(-table.iloc[:, 0].to_numpy(), kind="stable")[:most]]
    if isinstance(data.dtype, pd.CategoricalDtype) and data.dtype.ordered:
        ordered = [str(level) for level in data.dtype.categories]
        kept = [level for level in ordered if level in table.index]
        table = table.loc[[*kept, *table.index.difference(kept, sort=False)]]
    return table


def _levels_figure(shares: pd.DataFrame, name: str) -> Figure:
    data, sets = shares.iloc[:, 0].to_numpy(), shares.iloc[:, 1:].to_numpy().T
    return figures.plot_levels(list(shares.index), data, sets, name)


def column_section(
    column: str,
    data: pd.Series,
    sets: Sequence[pd.Series],
    name: str = "synthetic",
    *,
    levels: bool = False,
) -> Section:
    """Figure and table of one column, data against the synthetic sets, whose `name` is shown;
    numbers are shown as `levels` if they are codes."""
    truth = np.empty(0) if levels else numeric_values(data)
    drawn, mean = [numeric_values(values) for values in sets], f"{name}, mean of {len(sets)}"
    if not all(values.size for values in (truth, *drawn)):
        shares = shares_of(data, sets)
        pairs = zip(shares.index, shares.iloc[:, 0], shares.iloc[:, 1:].mean(axis=1), strict=True)
        rows = [[level, f"{of_data:.3f}", f"{of_sets:.3f}"] for level, of_data, of_sets in pairs]
        table = Table(header=["level", "data", mean], rows=rows, numbers=True)
        picture = _levels_figure(shares, name)
        return section("column of levels", figures=[picture], tables=[table], column=column)
    figure, whole = _distribution(column, truth, name, drawn)
    pictures = [] if figure is None else [figure]
    summaries = {"data": _summary(truth), mean: np.mean([_summary(y) for y in drawn], axis=0)}
    rows = [[source, *map(number_text, numbers)] for source, numbers in summaries.items()]
    header = ["", "mean", "median", "15th percentile", "90th percentile"]
    table = Table(header=header, rows=rows, numbers=True)
    return section(
        "column of numbers", figures=pictures, tables=[table], column=column, whole=whole
    )


def _summary(values: FloatArray) -> FloatArray:
    return np.array([values.mean(), *np.quantile(values, [0.5, 0.15, 0.9])])


def _distribution(
    column: str, truth: FloatArray, name: str, sets: Sequence[FloatArray]
) -> tuple[Figure | None, bool]:
    """The figure, if the values vary, and whether they are whole."""
    whole = all(values.size and _whole(values) for values in (truth, *sets))
    if not all(values.size and (whole or np.ptp(values) > 0) for values in (truth, *sets)):
        return None, whole
    scale = "log" if truth.max() > 3 * np.quantile(truth, 0.9) else "linear"
    figure = figures.plot_distributions(
        truth, {name: sets}, discrete=whole, scale=scale, label=column
    )
    return figure, whole


def numeric_values(column: pd.Series) -> FloatArray:
    """Finite values of a column of numbers, shape (k,); none if it holds anything else, or large
    ones that floats hardly tell apart, which are levels."""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return np.empty(0)
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    if numbers.notna().sum() < column.notna().sum():
        return np.empty(0)
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.asarray(values[np.isfinite(values)])
    largest = np.abs(values).max(initial=0)
    if largest >= LARGEST and np.ptp(values) < _APART * np.spacing(largest):
        return np.empty(0)
    return values


def small_figure(data: pd.Series, sets: Sequence[pd.Series]) -> Figure:
    """Shares of values or levels: the data as gray bars, the mean of the sets as a line or points.
    What is beyond the 99.5 % quantile of the data is in the last bar."""
    ax = drawing.new_panels(2.5, 1.35)[0]
    truth, *made = (numeric_values(column) for column in (data, *sets))
    if truth.size and all(values.size for values in made):
        low, high = float(truth.min()), float(np.quantile(truth, 0.995))
        half = 0.5 * _whole(truth)
        step = np.ceil((high - low + 1) / _SMALL_BINS) if half else (high - low or 1) / _SMALL_BINS
        edges = (
            low - half + step * np.arange(np.ceil((high - low + 2 * half or 1) / step - 1e-9) + 1)
        )
        inside = (np.clip(values, edges[0], edges[-1]) for values in (truth, *made))
        bars, *lines = (np.histogram(values, edges)[0] / values.size for values in inside)
        ax.stairs(bars, edges, fill=True, color=drawing.PALE)
        ax.stairs(np.mean(lines, axis=0), edges, color=drawing.COLORS[0], linewidth=1.5)
        ax.set_xlim(edges[0], edges[-1])
        ends = [edges[0] + half, edges[-1] - half]
        beyond = "+" if max(values.max() for values in (truth, *made)) > ends[1] else ""
        marks = {ends[0]: number_text(ends[0]), ends[1]: number_text(ends[1]) + beyond}
        ax.set_xticks(list(marks), marks.values())
        for label, side in zip(ax.get_xticklabels(), ("left", "right"), strict=False):
            label.set_horizontalalignment(side)
    else:
        shares = shares_of(data, sets, most=_SMALL_LEVELS)
        names = list(shares.index)
        ax.bar(range(len(names)), shares.iloc[:, 0], color=drawing.PALE)
        ax.plot(shares.iloc[:, 1:].mean(axis=1).to_numpy(), "o", ms=4, color=drawing.COLORS[0])
        if sum(map(len, names)) > 30:  # no room but for the first
            names = [names[0][:12], *[""] * (len(names) - 1)]
        ax.set_xticks(range(len(names)), map(drawing.plain, names))
    ax.tick_params(length=2, labelsize=7)
    ax.set_ylim(0, None)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    figure: Figure = ax.figure
    return figure


def _whole(values: FloatArray) -> bool:
    return bool((values == np.floor(values)).all())


def repeated_section(release: Release, data: pd.DataFrame) -> list[Section]:
    """Intraclass correlation of synthesized numbers within persons with several rows, in the data;
    in a release that draws rows independently it is 0."""
    units = [release.charge.unit] if release.charge.unit else repeated_identifiers(data)
    named = next((unit for unit in units if unit in data and unit not in release.synthesized), None)
    if named is None:
        return []
    columns = [name for name in release.synthesized if name in data and is_number(data[name])]
    shares = {
        name: intraclass_correlation(data[name], data[named]) for name in columns[:_MOST_REPEATED]
    }
    rows = [[name, number_text(share)] for name, share in shares.items() if share > _NOTEWORTHY]
    table = Table(header=("column", "intraclass correlation in the data"), rows=rows)
    return [section("persons", tables=[table], unit=named)] if rows else []


def intraclass_correlation(values: pd.Series, group: pd.Series) -> float:
    """ICC(1) of one-way analysis of variance, of groups of any sizes; NaN if there are no two rows
    of a group (Donner 1986, International Statistical Review 54)."""
    known = values.notna() & group.notna()
    y = values[known].to_numpy(dtype=np.float64)
    keys = group[known].where(group[known].map(lambda key: isinstance(key, Hashable)))
    codes = pd.factorize(keys)[0]
    sizes = np.bincount(codes[codes >= 0])
    n, groups = y.size, sizes.size
    if groups < 2 or n <= groups:
        return float("nan")
    means = np.bincount(codes, y) / sizes
    within = float(((y - means[codes]) ** 2).sum()) / (n - groups)
    between = float((sizes * (means - y.mean()) ** 2).sum()) / (groups - 1)
    typical = (n - (sizes**2).sum() / n) / (groups - 1)
    total = between + (typical - 1) * within
    return (between - within) / total if total > 0 else float("nan")
