"""Synthetic against data by predictor: means, or shares of a level, in groups of another column."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures.groups import plot_grouped_means
from pyhybrid.reports.judged import LIMITS, is_number, word_of
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Marked, Section, Table, picture_of

__all__ = ["GroupedMeans", "by_predictor", "grouped_means", "lost_relations"]

_MOST_GROUPS, _BINS, _LEAST = 8, 5, 10
_MOST_PREDICTORS, _MOST_OUTCOMES = 4, 6


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedMeans:
    """Means of an outcome by group of a predictor. Confidential.

    Attributes
    ----------
    groups : tuple of str, length G
        Levels, or intervals of a predictor of numbers with more than 8 values.
    count : ndarray, shape (G,)
        Records of the data.
    mean, error : ndarray, shape (G,)
        Mean of the data and its standard error.
    synthetic : ndarray, shape (m, G)
        Mean of each synthetic set; NaN where a set has no record.
    """

    groups: tuple[str, ...]
    count: npt.NDArray[np.intp]
    mean: FloatArray
    error: FloatArray
    synthetic: FloatArray

    @property
    def made(self) -> FloatArray:
        """Mean over the sets that have records of the group, shape (G,); NaN where none has."""
        known = ~np.isnan(self.synthetic)
        total = np.where(known, self.synthetic, 0.0).sum(axis=0)
        return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)

    @property
    def difference(self) -> FloatArray:
        """Distance of `made` from the data in its standard errors, shape (G,); NaN for none."""
        error = np.where(self.error > 0, self.error, np.nan)
        return np.abs(self.made - self.mean) / error


def by_predictor(release: Release, data: pd.DataFrame) -> list[Section]:
    """A section for each synthesized column with its predictors, at most 6 columns of 4: means of
    numbers, and of levels the share of one, the second of two or else the most frequent."""
    return [
        _section(outcome, label, found) for outcome, (label, found) in _all(release, data).items()
    ]


def lost_relations(release: Release, data: pd.DataFrame) -> list[str]:
    """A sentence for each predictor one of whose groups is further off than chance explains among
    all groups of the page: a difference of two samples, with the level .05 for all of them."""
    shown = _all(release, data)
    far = {
        (outcome, name): each.difference
        for outcome, (_, found) in shown.items()
        for name, each in found.items()
    }
    groups = sum(int(np.isfinite(off).sum()) for off in far.values())
    chance = max(LIMITS["standardised_difference"][1], _of_two_samples(groups))
    return [
        f"{outcome} by {name}: {int((off > chance).sum())} of {off.size} groups are off by up to "
        f"{np.nanmax(off):.1f} standard errors of the data (POOR): the relation is not kept."
        for (outcome, name), off in far.items()
        if (off > chance).any()
    ]


def _of_two_samples(groups: int) -> float:
    """What the largest of so many standardized differences stays below, 19 times of 20."""
    return float(np.sqrt(2) * norm.isf(0.05 / (2 * max(groups, 1))))


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
    grouped by its own predictor, so that a synthesized one counts as it was synthesized.
    """
    names, code = _grouping(data[predictor])
    own = _by_group(data[outcome], code(data[predictor]), len(names))
    chosen = np.flatnonzero(own[0] >= _LEAST)
    chosen = chosen[np.argsort(-own[0][chosen], kind="stable")[:_MOST_GROUPS]]
    chosen.sort()
    if chosen.size < 2:
        return None
    means = [_by_group(each[outcome], code(each[predictor]), len(names))[1] for each in sets]
    return GroupedMeans(
        groups=tuple(names[k] for k in chosen),
        count=own[0][chosen],
        mean=own[1][chosen],
        error=own[2][chosen],
        synthetic=np.array(means)[:, chosen],
    )


def _predictors(release: Release, outcome: str) -> list[str]:
    own = next(
        (step.predictors for step in release.steps.values() if outcome in step.synthesized),
        release.predictors,
    )
    return [name for name in own if name != outcome]


def _section(outcome: str, label: str, found: Mapping[str, GroupedMeans]) -> Section:
    picture = picture_of(
        plot_grouped_means(
            {name: (each.groups, each.mean, each.error, each.synthetic)
             for name, each in found.items()},
            label=label,
        ),
        alt=f"{_opening(label)} by group of {', '.join(found)}, in data and synthetic sets.",
        caption="Bars: the data with 95 % intervals. Points: the synthetic sets, their mean and "
        "range. Where a point leaves its bar the relation to the predictor is not kept.",
    )  # fmt: skip
    heading = f"By predictor: {outcome}"
    return Section(heading=heading, pictures=[picture], tables=[_table(label, found)])


def _opening(label: str) -> str:
    return f"{label[0].upper()}{label[1:]}"


def _table(label: str, found: Mapping[str, GroupedMeans]) -> Table:
    rows = []
    for name, each in found.items():
        for k, group in enumerate(each.groups):
            off = float(each.difference[k])
            word = word_of("standardised_difference", off)
            text = number_text(round(off, 2))
            cell = Marked(text=text, word=word) if word else text
            shown = (int(each.count[k]), float(each.mean[k]), float(each.made[k]))
            rows.append([f"{name} = {group}", *map(number_text, shown), cell])
    return Table(
        caption=f"{_opening(label)} by group. Standardized difference: in standard errors of the "
        "data; among many groups a few differ by chance.",
        header=["Group", "records", "data", "synthetic", "standardized difference"],
        rows=rows,
        numbers=True,
    )


def _grouping(
    column: pd.Series,
) -> tuple[list[str], Callable[[pd.Series], npt.NDArray[np.intp]]]:
    """Names of the groups of a predictor, and the group of each value, -1 for none."""
    if not is_number(column) or column.nunique() <= _MOST_GROUPS:
        levels = {str(level): k for k, level in enumerate(_levels(column))}

        def place(other: pd.Series) -> npt.NDArray[np.intp]:
            return np.asarray(other.astype(str).map(levels).fillna(-1), dtype=np.intp)

        return list(levels), place
    cuts = np.unique(np.nanquantile(_numbers(column), np.linspace(0, 1, _BINS + 1)[1:-1]))
    ends = [number_text(float(cut)) for cut in cuts]
    between = [f"above {low} to {high}" for low, high in itertools.pairwise(ends)]
    names = [f"up to {ends[0]}", *between, f"above {ends[-1]}"]

    def interval(other: pd.Series) -> npt.NDArray[np.intp]:
        values = _numbers(other)
        return np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="left"))

    return names, interval


def _levels(column: pd.Series) -> list[object]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories)
    values = column.dropna().unique().tolist()
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def _by_group(
    outcome: pd.Series, code: npt.NDArray[np.intp], n_groups: int
) -> tuple[npt.NDArray[np.intp], FloatArray, FloatArray]:
    values = _numbers(outcome)
    known = np.isfinite(values) & (code >= 0)
    values, code = values[known], code[known]
    count = np.bincount(code, minlength=n_groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(code, values, n_groups) / count
        square = np.bincount(code, (values - mean[code]) ** 2, n_groups)
        error = np.sqrt(square / (count - 1) / count)
    return count, mean, error


def _numbers(column: pd.Series) -> FloatArray:
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
