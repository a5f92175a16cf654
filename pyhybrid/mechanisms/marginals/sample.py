"""Synthetic records: a chain of log-linear models, column by column, and numbers within bins.

The joint distribution is p(y_1 | x) p(y_2 | y_1, x) ...: one model for each factor. The first has
public predictors only, whose rows are known. A later one has predictors whose true values are
confidential: its tables are compared with rows simulated from the models before.

**Even records.** Cells can be drawn so that the tables with every predictor come out as the model
has them. Records drawn one by one add the noise of a sample to every table, which for n in the
thousands is as large as that of epsilon 4. Here they are drawn in random order, a quarter of those
left at a time: the probabilities of such a block are raked (iterative proportional fitting) to the
tables that the records before it have left due. What is missing at the end is about one record of a
cell, at any n; averaged over draws, a third of one, as a surplus cannot be taken back. A draw reads
the model and public columns alone, so that it costs no epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy import linalg, sparse, special

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.domain import (
    NO_PREDICTOR,
    ColumnDomain,
    IntArray,
    Predictor,
    starts_of,
)
from pyhybrid.mechanisms.marginals.log_linear import (
    Clique,
    LogLinear,
    Measurement,
    Prior,
    Rows,
    Tables,
    indicators,
    probabilities,
    summed_effects,
)
from pyhybrid.primitives.tables import cross_table

_SIMULATED, _MOST_SIMULATED = 20_000, 200_000  # rows that tables of later columns are held against
_RAKINGS, _MOST_RAKED = 3, 2**17  # sweeps; records, which make up for those before them
_FARTHEST = 4.0  # factor of a probability in a sweep
_DIVISOR = 1e-12  # records of a cell that are divided by
_GENTLE = 2.0  # a cell is made up for whole if a block has the square of this in it, else in part
_IN_CACHE = 2**13  # records that are drawn at once
_MOST_REGRESSED = 20_000  # synthetic records that a regression is fitted to
_LEAST_LEFT = 0.05  # of the variance of a column, beside other columns


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Records:
    """Cells of n records by column, `places` (n,), beside their public predictors. Confidential if
    the records are; simulated ones get their cells column by column."""

    domain: Mapping[str, ColumnDomain]
    public: Mapping[str, Predictor]
    n: int
    places: Mapping[str, IntArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, df: pd.DataFrame, domain: Mapping[str, ColumnDomain], public: Mapping[str, Predictor]
    ) -> Records:
        """Of a data frame; raises InvalidInput for a value outside of its domain."""
        places = {name: own.places(df[name]) for name, own in domain.items()}
        return cls(domain=domain, public=public, n=len(df), places=places)

    def merged(self, domain: Mapping[str, ColumnDomain]) -> Records:
        """The records in merged cells: what a value is counted in does not hang on noise."""
        places = {
            name: np.searchsorted(starts_of(self.domain[name], domain[name]), cells, "right") - 1
            for name, cells in self.places.items()
        }
        return replace(self, domain=domain, places=places)

    def predictor(self, name: str) -> Predictor:
        """A public predictor, a column with cells, or none."""
        if name == NO_PREDICTOR:
            return Predictor(cells=np.zeros(self.n, np.int64), positions=np.full(1, np.nan))
        if name in self.public:
            return self.public[name]
        positions = self.domain[name].positions
        return Predictor(cells=self.places[name], positions=positions, synthesized=True)

    def table(self, clique: Clique) -> IntArray:
        """The counts of a clique, before noise. Confidential."""
        column, predictor = clique[0], self.predictor(clique[1])
        shape = self.domain[column].n_cells, predictor.positions.size
        return cross_table([self.places[column], predictor.cells], shape)

    def tables(
        self, domain: Mapping[str, ColumnDomain], cliques: Sequence[Clique]
    ) -> list[IntArray]:
        """Counts of cliques in merged cells. Confidential."""
        return [*map(self.merged(domain).table, cliques)]


def fitted_chain(
    columns: Sequence[Sequence[Measurement]], records: Records, random: Streams
) -> dict[str, LogLinear]:
    """Models of all columns, in order, for n `records` without cells, fitted to the measurements of
    each. Rows are simulated from the models before, of as many columns as a fit has need of."""
    models: dict[str, LogLinear] = {}
    rows = None
    for measurements in columns:
        column, names = measurements[0].clique[0], tuple(m.clique[1] for m in measurements)
        held = records
        if not {*names} <= {NO_PREDICTOR, *records.public}:
            kept, stream = rows or _repeated(records), f"fit/{column}/rows"
            before = {name: model.predictors for name, model in models.items()}
            modes = {name: model.mode for name, model in models.items()}
            held = rows = simulated(before, kept, modes, random, stream, even=False)
        elif not records.public and {*names} == {NO_PREDICTOR}:
            held = replace(records, n=1)  # all records are alike
        predictors = [held.predictor(name) for name in names]
        tables = Tables(
            noisy=np.hstack([m.noisy for m in measurements]),
            stddev=np.hstack([m.stddev for m in measurements]),
            rows=Rows.of(predictors),
            n=records.n,
            prior=Prior(
                of_outcome=records.domain[column].positions,
                of_predictors=[predictor.positions for predictor in predictors],
            ),
            rng=random.generator(f"fit/{column}"),
            synthesized=[predictor.synthesized for predictor in predictors],
        )
        models[column] = replace(tables.fit(), predictors=names)
    return models


def _repeated(records: Records) -> Records:
    """The records so many times over that enough rows are reached."""
    times = max(1, math.ceil(_SIMULATED / records.n))
    n = times * records.n if records.public else min(times * records.n, _MOST_SIMULATED)
    of_record = np.arange(n if records.public else 0) % records.n
    public = {name: predictor.rows(of_record) for name, predictor in records.public.items()}
    return replace(records, public=public, n=n)


def simulated(
    predictors: Mapping[str, Sequence[str]],
    records: Records,
    effects: Mapping[str, FloatArray],
    random: Streams,
    stream: str,
    *,
    even: bool,
) -> Records:
    """Cells of the columns that `records` lack, in the order of `predictors`, from `effects`."""
    for column in [*predictors][len(records.places) :]:
        cells = [records.predictor(name) for name in predictors[column]]
        rng = random.generator(f"{stream}/{column}")
        if even:
            rows, widths = Rows.of(cells), [predictor.positions.size for predictor in cells]
            places = balanced(probabilities(effects[column], rows.cells), rows, widths, rng)
        else:
            places = drawn_alone(effects[column], cells, rng)
        records = replace(records, places={**records.places, column: places})
    return records


def drawn_alone(
    effects: FloatArray, predictors: Sequence[Predictor], rng: np.random.Generator
) -> IntArray:
    """A cell for each record (n,), each on its own, by intercepts and effects (K, 1 + L)."""
    n = predictors[0].cells.size
    places = np.empty(n, dtype=np.int64)
    for first in range(0, n, _IN_CACHE):
        records = slice(first, first + _IN_CACHE)
        chances = effects[:, 0] + summed_effects(effects[:, 1:], predictors, records)
        chances -= chances.max(axis=1, keepdims=True)
        places[records] = drawn(np.exp(chances, out=chances), rng)
    return places


def drawn(chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """A cell for each record (n,), in the proportions of its `chances` (n, K)."""
    below = chances.cumsum(axis=1)
    at = rng.random(len(below))[:, None] * below[:, -1:]
    return np.asarray(np.minimum((below <= at).sum(axis=1), below.shape[1] - 1))


def balanced(
    p: FloatArray, rows: Rows, widths: Sequence[int], rng: np.random.Generator
) -> IntArray:
    """A cell for each record (n,), so that tables with all predictors, of `widths` cells, are near
    those that `p` (R, K) says: raking (Deming, Stephan 1940, Ann. Math. Statist. 11). Of more than
    `_MOST_RAKED` records the last so many make up for the others."""
    order, n_cells = rng.permutation(rows.of_record.size), p.shape[1]
    cells = np.empty(order.size, dtype=np.int64)
    due = np.zeros((rows.cells.shape[1], n_cells))
    while order.size:
        made_up_for = order.size <= _MOST_RAKED
        records, order = np.split(order, [-(-order.size // 4)])
        distinct, place, times = np.unique(
            rows.of_record[records], return_inverse=True, return_counts=True
        )
        shares, chances = rows.cells[distinct], p[distinct]
        expected = shares.T @ (times[:, None] * chances)
        if made_up_for and due.any():
            wanted = expected + due * np.minimum(1, np.sqrt(expected) / _GENTLE)
            chances = _raked(chances, times, shares, wanted, np.cumsum([0, *widths]))
        for first in range(0, records.size, _IN_CACHE):
            some = slice(first, first + _IN_CACHE)
            cells[records[some]] = drawn(chances[place[some]], rng)
        due += expected - shares.T @ cross_table([place, cells[records]], (distinct.size, n_cells))
    return cells


def _raked(
    p: FloatArray, times: IntArray, shares: sparse.csr_array, wanted: FloatArray, ends: IntArray
) -> FloatArray:
    """Probabilities (R, K) of rows that so many records have, whose sums over records are nearer to
    `wanted` (L, K), which may have cells below 0."""
    raked: FloatArray = p.copy()
    predictors = [(first, last, shares[:, first:last]) for first, last in itertools.pairwise(ends)]
    for first, last, cells in predictors * _RAKINGS:
        now = cells.T @ (times[:, None] * raked)
        factor = np.maximum(wanted[first:last], _DIVISOR) / np.maximum(now, _DIVISOR)
        raked *= np.exp(cells @ np.log(np.clip(factor, 1 / _FARTHEST, _FARTHEST)))
        raked /= raked.sum(axis=1, keepdims=True)
    return raked


def spread(groups: IntArray, rng: np.random.Generator, at: FloatArray | None = None) -> FloatArray:
    """Numbers in [0, 1) for each record, evenly spread among those of its group, in the order of
    `at` (n,), in [0, 1), or at random, shape (n,)."""
    order = np.argsort(groups + (rng.random(groups.size) if at is None else at))
    times = np.bincount(groups)
    ordered = groups[order]
    place = np.arange(groups.size) - (np.cumsum(times) - times)[ordered]
    numbers = np.empty(groups.size)
    numbers[order] = (place + rng.random(groups.size)) / times[ordered]
    return numbers


def within(
    starts: IntArray,
    cells: IntArray,
    shares: FloatArray,
    rng: np.random.Generator,
    order: FloatArray | None,
) -> IntArray:
    """A fine cell for each record (n,), drawn within its merged one by `shares` (K,), one by one,
    or spread over it in this `order` (n,); `starts` are the first fine cells of merged ones."""
    below = np.concatenate([[0.0], np.cumsum(shares)])
    low, high = below[starts[cells]], below[starts[cells + 1]]
    at = rng.random(cells.size) if order is None else spread(cells, rng, order)
    places = np.searchsorted(below, low + (high - low) * at, side="right") - 1
    return np.asarray(np.clip(places, starts[cells], starts[cells + 1] - 1), dtype=np.int64)


def following_others(column: str, records: Records, rng: np.random.Generator) -> FloatArray:
    """Numbers in [0, 1) to order synthetic records (n,) by within bins of a column: a normal score,
    drawn within its bin by a linear regression on synthetic and public cells of all others. Drawn
    without them, it would flatten slopes, the more the wider bins are."""
    domain, at = records.domain[column], rng.random(records.n)
    place = records.places[column] - len(domain.levels)
    rows = np.flatnonzero((place >= 0) & (place < domain.n_bins))
    names = [*records.public, *(name for name in records.places if name != column)]
    if not names or not rows.size:
        return at
    others = [records.predictor(name) for name in names]
    design = indicators(others, rows[:_MOST_REGRESSED])
    bins = place[rows]
    held = np.bincount(bins, minlength=domain.n_bins) / rows.size
    cuts = special.ndtri(np.minimum(np.append(0, np.cumsum(held)), 1))
    heights = np.exp(-(cuts**2) / 2) / math.sqrt(2 * math.pi)
    scores = (-np.diff(heights) / np.maximum(held, 1e-12))[bins]
    information = (design.T @ design).toarray() + np.eye(design.shape[1])
    effects = linalg.solve(information, design.T @ scores[: design.shape[0]], assume_a="pos")
    mean = summed_effects(effects[None], others, rows)[:, 0]
    mean /= max(float(np.mean(scores**2)), _LEAST_LEFT)  # what bins leave of the variance
    size = max(1 - float(np.var(mean)), _LEAST_LEFT) ** 0.5
    low, high = (special.ndtr(np.clip((cuts[bins + k] - mean) / size, -7, 7)) for k in (0, 1))
    at[rows] = special.ndtr(mean + size * special.ndtri(low + (high - low) * at[rows]))
    return np.minimum(at, 1 - 1e-9)  # below the next bin's numbers
