"""Synthesized columns against the data: distributions, predictors, replicates. CONFIDENTIAL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.release import Release
from pyhybrid.reports import drawing, figures
from pyhybrid.reports.levels import level_figure, level_table, shares_of
from pyhybrid.reports.page import Cell, Section, Table, number_text, section
from pyhybrid.reports.verdicts import LIMITS, is_number, judged_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_GROUPS, _BINS, _LEAST = 8, 5, 10
_SMALL_BINS, _LEVELS = 24, 8  # of small pictures
_IN_FIRST = 0.75  # of the records: their picture shows one bar
_MOST_PREDICTORS, _MOST_OUTCOMES = 4, 6


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedMeans:
    """Means of an outcome by G groups of a predictor: count of records, mean and its standard error
    in the data, each (G,), and means of the synthetic sets, (m, G), NaN where a set has no
    record."""

    groups: tuple[str, ...]
    count: npt.NDArray[np.intp]
    mean: FloatArray
    error: FloatArray
    synthetic: FloatArray

    @property
    def made(self) -> FloatArray:
        """Mean over the sets that have records of the group, shape (G,); NaN where none has."""
        return np.asarray(pd.DataFrame(self.synthetic).mean())

    @property
    def difference(self) -> FloatArray:
        """Distance of `made` from the data in its standard errors, shape (G,); NaN for none."""
        error = np.where(self.error > 0, self.error, np.nan)
        return np.abs(self.made - self.mean) / error


def by_predictor(release: Release, data: pd.DataFrame) -> list[Section]:
    """A section for each synthesized column with its predictors, at most 6 columns of 4: means of
    numbers, and of levels the share of one, the second of two or else the most frequent."""
    return [
        _group_section(outcome, label, found)
        for outcome, (label, found) in _all(release, data).items()
    ]


def lost_relations(release: Release, data: pd.DataFrame) -> list[str]:
    """A sentence for each outcome and predictor, one of whose groups is further off than chance
    explains among all groups of the page, at the level .05 for all of them."""
    far = {
        f"{outcome} by {name}": means.difference
        for outcome, (_, found) in _all(release, data).items()
        for name, means in found.items()
    }
    groups = sum(int(np.isfinite(off).sum()) for off in far.values())
    # What the largest of so many differences of two samples stays below, 19 times of 20.
    largest = float(-np.sqrt(2) * ndtri(0.05 / (2 * max(groups, 1))))
    chance = max(LIMITS["standardised_difference"][1], largest)
    return [
        f"{relation}: {int((off > chance).sum())} of {off.size} groups off by up to "
        f"{number_text(np.nanmax(off))} standard errors of the data (POOR, beyond "
        f"{number_text(round(chance, 1))}). The relation is not kept."
        for relation, off in far.items()
        if (off > chance).any()
    ]


def _all(release: Release, data: pd.DataFrame) -> dict[str, tuple[str, dict[str, GroupedMeans]]]:
    """What is shown of each outcome, and its means by predictor, where there are some."""
    shown = {}
    for outcome in release.synthesized[:_MOST_OUTCOMES]:
        others = [name for name in _predictors(release, outcome) if name in data.columns]
        tables = [data, *release.synthetic]
        label = f"mean of {outcome}"
        if not is_number(data[outcome]):
            if data[outcome].nunique() < 2:
                continue
            level = _shown_level(data[outcome])
            label = f"share of {outcome} = {level}"
            tables = [
                with_columns(table, {outcome: (table[outcome].astype(str) == level).astype(float)})
                for table in tables
            ]
        own, *sets = tables
        found = {
            name: means
            for name in others[:_MOST_PREDICTORS]
            if (means := grouped_means(outcome, name, own, sets)) is not None
        }
        if found:
            shown[outcome] = label, found
    return shown


def _shown_level(column: pd.Series) -> str:
    """The second of two levels, else the most frequent one."""
    levels = [str(level) for level in _levels(column)]
    return levels[1] if len(levels) == 2 else str(column.astype(str).value_counts().index[0])


def grouped_means(
    outcome: str, predictor: str, data: pd.DataFrame, sets: Sequence[pd.DataFrame]
) -> GroupedMeans | None:
    """Means of `outcome` by group of `predictor`; None if fewer than two groups have 10 records.
    Groups are levels; numbers with more than 8 values are cut at the data's fifths. Each table is
    grouped by its own predictor, so that a synthesized one counts as it was synthesized."""
    names, code = _grouping(data[predictor])
    grouped = _numbers(data[outcome]).groupby(code(data[predictor]))
    known = grouped.agg(["count", "mean", "sem"])
    known = known[known["count"] >= _LEAST].nlargest(_MOST_GROUPS, "count").sort_index()
    if len(known) < 2:
        return None
    means = [_numbers(table[outcome]).groupby(code(table[predictor])).mean() for table in sets]
    return GroupedMeans(
        groups=tuple(names[int(place)] for place in known.index),
        count=known["count"].to_numpy(),
        mean=known["mean"].to_numpy(),
        error=known["sem"].to_numpy(),
        synthetic=np.array([mean.reindex(known.index).to_numpy() for mean in means]),
    )


def _predictors(release: Release, outcome: str) -> list[str]:
    own = next(
        (step.predictors for step in release.steps.values() if outcome in step.synthesized),
        release.predictors,
    )
    return [name for name in own if name != outcome]


def _group_section(outcome: str, label: str, found: Mapping[str, GroupedMeans]) -> Section:
    panels = {
        name: (each.groups, each.mean, each.error, each.synthetic) for name, each in found.items()
    }
    rows: list[list[Cell]] = []
    for name, each in found.items():
        for k, group in enumerate(each.groups):
            off = float(each.difference[k])
            cell = judged_cell("standardised_difference", off, number_text(round(off, 2)))
            shown = (int(each.count[k]), float(each.mean[k]), float(each.made[k]))
            rows.append([f"{name} = {group}", *map(number_text, shown), cell])
    header = ["Group", "records", "data", "synthetic", "standardized difference"]
    return section(
        "by predictor",
        figures=[figures.plot_grouped_means(panels, label=label)],
        tables=[Table(header=header, rows=rows, numbers=True)],
        outcome=outcome, opening=f"{label[0].upper()}{label[1:]}", names=list(found),
    )  # fmt: skip


def _grouping(column: pd.Series) -> tuple[list[str], Callable[[pd.Series], pd.Series]]:
    """Names of the groups of a predictor, and the place of each value's group, NaN for none."""
    if not is_number(column) or column.nunique() <= _MOST_GROUPS:
        names = [str(level) for level in _levels(column)]
        places = {name: place for place, name in enumerate(names)}
        return names, lambda other: other.astype(str).map(places).reset_index(drop=True)
    cuts = np.unique(np.nanquantile(_numbers(column), np.linspace(0, 1, _BINS + 1)[1:-1]))
    ends = [number_text(float(cut)) for cut in cuts]
    between = [f"above {low} to {high}" for low, high in itertools.pairwise(ends)]
    edges = [-np.inf, *cuts, np.inf]
    names = [f"up to {ends[0]}", *between, f"above {ends[-1]}"]
    return names, lambda other: pd.cut(_numbers(other), edges, labels=False)


def _levels(column: pd.Series) -> list[object]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories)
    values = column.dropna().unique().tolist()
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def _numbers(column: pd.Series) -> pd.Series:
    """Finite values by their place, NaN for others."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.Series(np.where(np.isfinite(values), values, np.nan))


STATISTICS: Mapping[str, Callable[[FloatArray], float]] = {
    "mean": lambda y: float(y.mean()),
    "median": lambda y: float(np.quantile(y, 0.5)),
    "15th percentile": lambda y: float(np.quantile(y, 0.15)),
    "90th percentile": lambda y: float(np.quantile(y, 0.9)),
}
"""Statistics of a column of numbers."""


def plot_release(release: Release, column: str | None = None) -> Figure:
    """Data against synthetic sets: the distribution of a synthesized column. CONFIDENTIAL.

    Parameters
    ----------
    release : Release
        One that was made in this session: the data come from its `origin`.
    column : str, optional
        A synthesized column; the first one if omitted.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InvalidInput
        For a release that was loaded, which has no data, and for a column not synthesized.
    """
    if release.origin is None:
        raise InvalidInput(
            "release must be one that was made in this session: a release that was loaded has no "
            "data to be plotted against; give both to pyhybrid.measures.utility_summary(data, "
            "release.synthetic)"
        )
    chosen = release.synthesized[0] if column is None else column
    if chosen not in release.synthesized:
        raise InvalidInput(
            f"column must be a synthesized one, {', '.join(release.synthesized)}: found {chosen!r}"
        )
    data, name = release.origin.data[chosen], release.charge.mechanism
    columns = [table[chosen] for table in release.synthetic]
    sets = {name: [numeric_values(each) for each in columns]}
    figure, _ = _distribution(chosen, numeric_values(data), sets)
    return level_figure(data, {name: columns}) if figure is None else figure


def column_section(
    column: str,
    data: pd.Series,
    versions: Mapping[str, Sequence[pd.Series]],
    *,
    levels: bool = False,
) -> Section:
    """Figure and table of one column, data against the synthetic sets of each version; numbers are
    shown as `levels` if they are codes."""
    truth = np.empty(0) if levels else numeric_values(data)
    sets = {name: [numeric_values(own) for own in columns] for name, columns in versions.items()}
    if not all(values.size for values in (truth, *itertools.chain(*sets.values()))):
        return section(
            "column of levels",
            figures=[level_figure(data, versions)],
            tables=[level_table(column, data, versions)],
            column=column,
        )
    figure, whole = _distribution(column, truth, sets)
    return section(
        "column of numbers", figures=[figure], tables=[_statistics(truth, sets)], column=column,
        whole=whole,
    )  # fmt: skip


def _distribution(
    column: str, truth: FloatArray, sets: Mapping[str, Sequence[FloatArray]]
) -> tuple[Figure | None, bool]:
    """The figure, if the values vary, and whether they are whole."""
    everything = [truth, *(values for each in sets.values() for values in each)]
    whole = all(values.size and (values == np.floor(values)).all() for values in everything)
    if not all(values.size and (whole or np.ptp(values) > 0) for values in everything):
        return None, whole
    scale = "log" if truth.max() > 3 * np.quantile(truth, 0.9) else "linear"
    return figures.plot_distributions(truth, sets, discrete=whole, scale=scale, label=column), whole


def _statistics(truth: FloatArray, sets: Mapping[str, Sequence[FloatArray]]) -> Table:
    """Statistics of the data, and of each release the mean over its sets."""
    rows = [["data", *(number_text(of(truth)) for of in STATISTICS.values())]]
    for name, columns in sets.items():
        means = [np.mean([of(values) for values in columns]) for of in STATISTICS.values()]
        rows.append([f"{name}, mean of {len(columns)}", *map(number_text, means)])
    return Table(header=["", *STATISTICS], rows=rows, numbers=True)


def numeric_values(column: pd.Series) -> FloatArray:
    """Finite values of a column of numbers, shape (k,); none if it holds anything else."""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return np.empty(0)
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    if numbers.notna().sum() < column.notna().sum():
        return np.empty(0)
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(values[np.isfinite(values)])


def small_figure(data: pd.Series, sets: Sequence[pd.Series], *, large: bool = False) -> Figure:
    """Shares of values or levels: the data as gray bars, the mean of the sets as a line or points.
    What is beyond the 99.5 % quantile of the data is in the last bar."""
    ax = drawing.new_panels(*((5.2, 2.8) if large else (2.5, 1.35)))[0]
    size = drawing.TEXT if large else 7
    truth, made = numeric_values(data), [numeric_values(each) for each in sets]
    if truth.size and all(each.size for each in made):
        edges = _edges(truth)
        bars, line = _binned(truth, edges), np.mean([_binned(v, edges) for v in made], axis=0)
        ax.stairs(bars, edges, fill=True, color=drawing.PALE)
        ax.stairs(line, edges, color=drawing.COLORS[0], linewidth=1.5)
        ax.set_xlim(edges[0], edges[-1])
        if not np.allclose(np.diff(edges), edges[1] - edges[0]):
            ax.set_xscale("log")
            ax.set_xlabel("logarithmic", fontsize=size)
        half = 0.5 if _whole(truth) else 0.0
        ends = [edges[0] + half, min(edges[-1] - half, truth.max())]
        beyond = "+" if max(own.max() for own in (truth, *made)) > ends[1] else ""
        before = "≤ " if min(own.min() for own in made) < ends[0] else ""
        low, high = (number_text(float(end)) for end in ends)
        named = [before + low, high + beyond]
        ax.set_xticks(ends, named, fontsize=size)
        ax.minorticks_off()
        left, right = ax.get_xticklabels()
        left.set_horizontalalignment("left")
        right.set_horizontalalignment("right")
    else:
        shares = shares_of(data, {"": sets})
        at = np.arange(min(_LEVELS, len(shares.levels)))
        ax.bar(at, shares.data[at], color=drawing.PALE)
        ax.plot(at, shares.synthetic[""].mean(axis=0)[at], "o", ms=4, color=drawing.COLORS[0])
        most = (42 if large else 30) // max(at.size, 1)
        names = [name if len(name) <= most else f"{name[: most - 1]}…" for name in shares.levels]
        if most < 5 and max(map(len, names)) == most:  # no room but for the first
            names = [shares.levels[0][:12], *[""] * (at.size - 1)]
        ax.set_xticks(at, [drawing.plain(name) for name in names[: at.size]], fontsize=size)
    ax.set_ylim(0, None)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.tick_params(length=2)
    figure: Figure = ax.figure
    return figure


def _edges(values: FloatArray) -> FloatArray:
    """Ends of bins, each of equally many whole numbers if the values are whole; of amounts nearly
    all of which the first would have, of equal width on the logarithmic scale."""
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    if (
        low > 0.5
        and (values < low + (high - low) / _SMALL_BINS).mean() > _IN_FIRST
        and high > 50 * low
    ):
        return np.geomspace(low - 0.5 * _whole(values), high, _SMALL_BINS + 1)
    if not _whole(values):
        return np.linspace(low, high if high > low else low + 1, _SMALL_BINS + 1)
    step = np.ceil((high - low + 1) / _SMALL_BINS)
    return np.arange(low, high + step + 1, step) - 0.5


def _whole(values: FloatArray) -> bool:
    return bool((values == np.floor(values)).all())


def _binned(values: FloatArray, edges: FloatArray) -> FloatArray:
    inside = np.clip(values, edges[0], np.nextafter(edges[-1], -np.inf))
    return np.asarray(np.histogram(inside, edges)[0] / values.size)
