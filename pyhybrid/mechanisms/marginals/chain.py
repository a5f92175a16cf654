"""Columns one after the other, each given public columns and those before it, from noisy tables.

The joint distribution is p(y_1 | x) p(y_2 | y_1, x) ...: one log-linear model for each factor. The
first has public predictors only, whose rows are known. A later one has predictors whose true values
are confidential: its tables are held against rows simulated from the models before it.

**Even records.** Cells can be drawn so that the tables with every predictor come out as the model
has them. Records drawn one by one bring the noise of a sample into every table, which for n in the
thousands is as large as that of epsilon 4. Here they are drawn in random order, a quarter of those
left at a time: the probabilities of such a block are raked (iterative proportional fitting) to the
tables that the records before it have left due. What is missing at the end is about one record of a
cell, at any n. A draw reads the model and public columns alone, so that it costs no epsilon.
Averaged over draws a table is the model's within a third of a record: cells of few records are
chased gently, as what they have too much of cannot be taken back.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.domain import (
    ALONE,
    ColumnDomain,
    Predictor,
    Rows,
    of_cells,
    of_nothing,
    stacked,
)
from pyhybrid.mechanisms.marginals.log_linear import (
    Known,
    LogLinear,
    Measurement,
    Prior,
    fit_log_linear,
    probabilities,
)

SIMULATED = 20_000
"""Rows, at least, that the tables of later columns are held against."""
IntArray = npt.NDArray[np.int64]
KnownOf = Callable[[str, Sequence[str]], Known]
"""From a column and its predictors to records of a reference."""
_LARGEST_BLOCK = 2**22  # probabilities
_SWEEPS = 3
_FARTHEST = 4.0  # factor of a probability in a sweep
_LEAST = 1e-12  # records of a cell that are divided by
_GENTLE = 2.0  # a cell is made up for whole if a block has the square of this in it, else in part


@dataclass(frozen=True, kw_only=True, eq=False)
class Link:
    """One column's model and its predictors: public columns, and columns before it; `ALONE` among
    them if the column's own counts were measured, too."""

    column: str
    reads: tuple[str, ...]
    model: LogLinear


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """Models of all columns, in their order: functions of noisy tables and public columns.

    `domain` is of the synthesized columns, `public` the public predictors of the n records."""

    links: tuple[Link, ...]
    domain: Mapping[str, ColumnDomain]
    public: Mapping[str, Predictor]
    n: int

    def simulate(
        self,
        random: Streams,
        name: str,
        draws: Mapping[str, FloatArray] | None = None,
        *,
        kept: Mapping[str, IntArray] | None = None,
        even: bool = False,
    ) -> dict[str, IntArray]:
        """Cells of every column for the n records, shape (n,) each.

        `draws` are effects by column; the modes if omitted. `kept` are the cells of the first
        columns, which are not drawn then. `even` records are drawn so that their tables are the
        model's, in place of one by one.
        """
        cells: dict[str, IntArray] = dict(kept or {})
        for link in self.links[len(cells) :]:
            effects = link.model.mode if draws is None else draws[link.column]
            predictors = predictors_of(link.reads, self.public, cells, self.domain, self.n)
            rng = random.generator(f"{name}/{link.column}")
            rows = stacked(predictors)
            p = probabilities(effects, rows.cells)
            if even:
                widths = [each.cells.shape[1] for each in predictors]
                cells[link.column] = balanced(p, rows, widths, rng)
            else:
                cells[link.column] = drawn(p, rows.of_record, rng)
        return cells

    @property
    def repeated(self) -> Chain:
        """The same models over the records so many times over that `SIMULATED` rows are reached."""
        times = max(1, math.ceil(SIMULATED / self.n))
        rows = np.tile(np.arange(self.n), times)
        public = {
            name: replace(own, cells=sparse.csr_array(own.cells[rows]))
            for name, own in self.public.items()
        }
        return replace(self, public=public, n=times * self.n)

    def sample(self, n: int, random: Streams) -> list[dict[str, FloatArray]]:
        """n draws of the effects of all columns."""
        effects = {
            link.column: link.model.sample(n, random.generator(f"effects/{link.column}"))
            for link in self.links
        }
        return [{column: drawn[place] for column, drawn in effects.items()} for place in range(n)]


def predictors_of(
    reads: Sequence[str],
    public: Mapping[str, Predictor],
    places: Mapping[str, IntArray],
    domain: Mapping[str, ColumnDomain],
    n: int,
) -> list[Predictor]:
    """Predictors of a column: public ones, and others whose cells `places` holds."""
    predictors = [
        of_nothing(n)
        if name == ALONE
        else public[name]
        if name in public
        else of_cells(
            name, places[name], domain[name].n_cells, domain[name].positions, synthesized=True
        )
        for name in reads
    ]
    return predictors or [of_nothing(n)]


def fit_link(
    before: Chain,
    column: str,
    reads: Sequence[str],
    tables: Sequence[Measurement],
    *,
    random: Streams,
    known: KnownOf | None = None,
    earlier: Link | None = None,
) -> Link:
    """Fit one column given the chain of those before it, to its noisy `tables` with each of what it
    reads; `known` goes from a column and its predictors to records of a reference.

    `earlier` is a fit of the same column to fewer tables, to start from.
    """
    many, places = before, {}
    if not all(name == ALONE or name in before.public for name in reads):
        many = before.repeated
        places = many.simulate(random, f"fit/{column}/rows")
    first = predictors_of(reads, many.public, places, many.domain, many.n)
    rows = stacked(first)
    model = fit_log_linear(
        np.hstack([each.counts for each in tables]),
        variance=np.hstack([each.variances for each in tables]),
        cells=rows.cells,
        times=rows.times * (before.n / many.n),
        prior=Prior(
            of_outcome=before.domain[column].positions,
            of_predictors=[each.positions for each in first],
        ),
        unknown=[each.synthesized for each in first],
        known=None if known is None else known(column, reads),
        start=None if earlier is None else _start(earlier, reads, first),
        rng=random.generator(f"fit/{column}"),
    )
    return Link(column=column, reads=tuple(reads), model=model)


def _start(earlier: Link, reads: Sequence[str], predictors: Sequence[Predictor]) -> FloatArray:
    """Effects of an earlier fit, 0 of predictors that it had not."""
    own, ends = earlier.model.mode, earlier.model.prior.ends
    parts = [own[:, :1]]
    for name, each in zip(reads, predictors, strict=True):
        if name in earlier.reads:
            place = earlier.reads.index(name)
            parts.append(own[:, 1 + ends[place] : 1 + ends[place + 1]])
        else:
            parts.append(np.zeros((own.shape[0], each.cells.shape[1])))
    return np.hstack(parts)


def drawn(p: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """A cell for each record (n,), each on its own, from probabilities `p` (R, K) by distinct row;
    `rows` (n,) is the row of each record."""
    below = p.cumsum(axis=1)
    at = rng.random(rows.size)
    cells = np.zeros(at.size, dtype=np.int64)
    for cell in range(below.shape[1] - 1):
        cells += at > below[rows, cell]
    return cells


def balanced(
    p: FloatArray, rows: Rows, widths: Sequence[int], rng: np.random.Generator
) -> IntArray:
    """A cell for each record (n,); tables with all predictors are near those that `p` (R, K) says.

    `widths` are the cells of each predictor, in the order of the columns of ``rows.cells``.

    References
    ----------
    Deming, Stephan (1940), On a least squares adjustment of a sampled frequency table when the
    expected marginal totals are known, Ann. Math. Statist. 11 (raking)."""
    order, n_cells = rng.permutation(rows.of_record.size), p.shape[1]
    ends = np.concatenate([[0], np.cumsum(widths)])
    cells = np.empty(order.size, dtype=np.int64)
    due = np.zeros((rows.cells.shape[1], n_cells))
    for records in _blocks(order, _LARGEST_BLOCK // n_cells):
        own, place, times = np.unique(
            rows.of_record[records], return_inverse=True, return_counts=True
        )
        shares = rows.cells[own]
        expected = shares.T @ (times[:, None] * p[own])
        wanted = expected + due * np.minimum(1, np.sqrt(expected) / _GENTLE)
        raked = _raked(p[own], times, shares, wanted, ends)
        cells[records] = drawn(raked, place, rng)
        came = np.bincount(place * n_cells + cells[records], minlength=own.size * n_cells)
        due += expected - shares.T @ came.reshape(own.size, n_cells)
    return cells


def _blocks(order: IntArray, most: int) -> Iterator[IntArray]:
    """A quarter of the records, a quarter of those left, ..., one, one; at most so many."""
    start = 0
    while start < order.size:
        size = min(max(most, 1), -(-(order.size - start) // 4))
        yield order[start : start + size]
        start += size


def _raked(
    p: FloatArray, times: IntArray, shares: sparse.csr_array, wanted: FloatArray, ends: IntArray
) -> FloatArray:
    """Probabilities (R, K) of rows that so many records have, whose sums over records are nearer to
    `wanted` (L, K), which may have cells below 0."""
    raked: FloatArray = p.copy()
    for _ in range(_SWEEPS):
        for first, last in itertools.pairwise(ends):
            own = shares[:, first:last]
            now = own.T @ (times[:, None] * raked)
            factor = np.maximum(wanted[first:last], _LEAST) / np.maximum(now, _LEAST)
            raked *= np.exp(own @ np.log(np.clip(factor, 1 / _FARTHEST, _FARTHEST)))
            raked /= raked.sum(axis=1, keepdims=True)
    return raked
