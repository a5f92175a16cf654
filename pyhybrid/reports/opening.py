"""What the owner's report opens with: each column at a glance, and pairs. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.reconcile import reconcile_tables
from pyhybrid.measures.utility import table_utility
from pyhybrid.releases.release import Release
from pyhybrid.reports import drawing
from pyhybrid.reports.columns import numeric_values
from pyhybrid.reports.figures import plot_pairs
from pyhybrid.reports.levels import shares_of
from pyhybrid.reports.page import (
    Card,
    Marked,
    Section,
    facts_of_table,
    number_text,
    picture_of,
    rendered,
    section,
    sentence,
)
from pyhybrid.reports.verdicts import LIMITS, Judged, worst_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS, _LEVELS, _SETS, _ROWS = 24, 8, 3, 20_000
_IN_FIRST = 0.75  # of the records: their picture shows one bar
_FEW = 6  # columns whose cards show values
_MOST_PAIRED, _LEAST_PAIRED = 30, 3
_MARGINALS = "NoisyMarginals"


def facts_of(release: Release, data: pd.DataFrame, table: str) -> list[str]:
    """The line below the title: date, table, model and mechanism, sets, epsilon."""
    charge = release.charge
    named = [step.settings for step in release.parts or (release,)]
    models = {str(s.get("value", s).get("model")) for s in named}  # "value" if some are missing
    models -= {"None", charge.mechanism}
    made = " and ".join(sorted(models)[:3])
    by = f"{made} by {charge.mechanism}" if made else charge.mechanism
    known = [*facts_of_table(table, *data.shape), by]
    return [*known, sets_in_words(charge.n_synthetic), f"{charge.cost}, {charge.kind}"]


def sets_in_words(number: int) -> str:
    """``1 synthetic set``, ``3 synthetic sets``."""
    return f"{number} synthetic {'sets' if number > 1 else 'set'}"


def cards_of(
    judged: Mapping[str, Sequence[Judged]], release: Release, data: pd.DataFrame
) -> list[Card]:
    """A small picture of each column with the worst of its words."""
    few, alone = len(judged) <= _FEW, len(judged) == 1
    cards = []
    for column, measures in judged.items():
        sets = [table[column] for table in release.synthetic[:_SETS]]
        shown = measures if alone else measures[:1]
        cards.append(
            Card(
                name=column,
                place=list(data.columns).index(column),
                picture=picture_of(
                    small_figure(data[column], sets, large=alone),
                    alt=sentence("at a glance", "alt", column=column),
                ),
                word=worst_of(m.word for m in measures),
                values=[(m.label, Marked(text=m.text, word=m.word)) for m in shown if few],
            )
        )
    return cards


def small_figure(data: pd.Series, sets: Sequence[pd.Series], *, large: bool = False) -> Figure:
    """Shares of values or levels: the data as gray bars, the mean of the sets as a line or points.
    What is beyond the 99.5 % quantile of the data is in the last bar."""
    ax = drawing.new_panels(*((5.2, 2.8) if large else (2.5, 1.35)))[0]
    size = drawing.TEXT if large else 7
    truth, made = numeric_values(data), [numeric_values(each) for each in sets]
    if truth.size and all(each.size for each in made):
        edges = _edges(truth)
        bars, line = _shares(truth, edges), np.mean([_shares(v, edges) for v in made], axis=0)
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
    if low > 0.5 and (values < low + (high - low) / _BINS).mean() > _IN_FIRST and high > 50 * low:
        return np.geomspace(low - 0.5 * _whole(values), high, _BINS + 1)
    if not _whole(values):
        return np.linspace(low, high if high > low else low + 1, _BINS + 1)
    step = np.ceil((high - low + 1) / _BINS)
    return np.arange(low, high + step + 1, step) - 0.5


def _whole(values: FloatArray) -> bool:
    return bool((values == np.floor(values)).all())


def _shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    inside = np.clip(values, edges[0], np.nextafter(edges[-1], -np.inf))
    return np.asarray(np.histogram(inside, edges)[0] / values.size)


def pairs_section(release: Release, data: pd.DataFrame) -> list[Section]:
    """Heat maps of all pairs of synthesized columns, those of the worst pairs first and in the
    order of the table, and a bullet on the worst; none of fewer than three columns."""
    columns = [name for name in data.columns if name in release.synthesized][:_MOST_PAIRED]
    if len(columns) < _LEAST_PAIRED:
        return []
    rows = np.linspace(0, len(data) - 1, min(len(data), _ROWS)).astype(np.intp)
    sets = [table[columns].iloc[rows] for table in release.synthetic[:1]]
    try:
        found = table_utility(reconcile_tables(data[columns].iloc[rows], sets)).matrix()
    except InvalidInput:
        return []
    upper = np.triu(found.to_numpy(), 1)
    i, j = divmod(int(upper.argmax()), len(upper))
    worst: dict[str, Any] = {
        "first": found.columns[i],
        "second": found.columns[j],
        "ratio": float(upper[i, j]),
    }
    by_worst = found.columns[np.argsort(-found.max().to_numpy(), kind="stable")]
    noisy, limits = release.charge.mechanism == _MARGINALS, LIMITS["table_ratio"]
    said = rendered("pairs at a glance", "wrong", noisy=noisy, limits=limits, **worst)
    figures = [plot_pairs(found.loc[by_worst, by_worst])]
    made = section("pairs at a glance", figures=figures, bullets=said, **worst)
    shown = made.pictures[0]
    in_table = picture_of(plot_pairs(found), alt=shown.alt, caption=shown.caption)
    share = min(shown.share, 50 if len(found) < 12 else 75)
    pictures = [
        replace(picture, share=share, sorted_by=order)
        for order, picture in {"worst": shown, "table": in_table}.items()
    ]
    return [replace(made, pictures=pictures)]
