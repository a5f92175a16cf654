"""A measurement: noisy counts, the columns they are of, their standard deviation, and a query.

All of a step are made at once by `pyhybrid.primitives.tables.noisy_tables`, which checks that each
record adds as much to each table as the noise is made for. All else is a function of noisy counts,
public columns and a public reference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms.marginals.domain import (
    NO_PREDICTOR,
    PARTS,
    ColumnDomain,
    IntArray,
    Predictor,
)
from pyhybrid.primitives.tables import CrossTable, NoisyTables, Price, noisy_tables

Clique = tuple[str, str]
"""A column and a predictor, or `NO_PREDICTOR`."""
DRIFT = 0.1
"""Assumed relative drift of a count between reference and data, beside sampling; public."""
_LEAST = 0.5  # records: what is not in a reference may be in the data
_BY_CELLS = {"laplace": 1 / 2, "gaussian": 2 / 3}
"""Powers of a table's cells that its part of the price goes by, in steps of 2: cells times the size
of noise, summed over tables, is then least."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Records in each cell of a column (rows) and of its predictor, with noise."""

    noisy: FloatArray  # (K, L)
    clique: Clique
    stddev: FloatArray  # (K, L), of the noise of each cell
    query: FloatArray | None = None  # (m, K), of a column alone: `noisy` (m, 1) are these sums

    def combined(self, other: Measurement) -> Measurement:
        """Both measurements of one table, each by its precision."""
        one, two = (1 / np.maximum(margin.stddev, 1e-6) ** 2 for margin in (self, other))
        noisy = (one * self.noisy + two * other.noisy) / (one + two)
        return replace(self, noisy=noisy, stddev=1 / np.sqrt(one + two))

    def margin(self) -> Measurement:
        """What a table's columns add to for the predictor, as its own counts (L, 1)."""
        stddev = np.sqrt(np.square(self.stddev).sum(axis=0))[:, None]
        clique = (self.clique[1], NO_PREDICTOR)
        return Measurement(noisy=self.noisy.sum(axis=0)[:, None], clique=clique, stddev=stddev)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Records:
    """Cells of n records, confidential or simulated, `places` (n,) by column, beside their public
    predictors."""

    domain: Mapping[str, ColumnDomain]
    public: Mapping[str, Predictor]
    n: int
    places: Mapping[str, IntArray] = field(default_factory=dict)

    def predictor(self, name: str) -> Predictor:
        """A public predictor, a column with cells, or none."""
        if name == NO_PREDICTOR:
            return Predictor.of_cells(np.zeros(self.n, np.int64), np.full(1, np.nan))
        if name in self.public:
            return self.public[name]
        return Predictor.of_cells(self.places[name], self.domain[name].positions, synthesized=True)

    def table(self, clique: Clique) -> CrossTable:
        """The counts of a clique, before noise. Confidential."""
        column, name = clique
        cells, n_rows = self.predictor(name).cells, self.domain[column].n_cells
        return CrossTable.of_records(self.places[column], cells, n_rows=n_rows, unit=PARTS)


def with_noise(
    cliques: Sequence[Clique], tables: Sequence[CrossTable], price: Price, relation: str
) -> tuple[NoisyTables, list[Measurement]]:
    """All tables at once, with the same noise on each cell."""
    answer = noisy_tables(tables, price=price, relation=relation)
    return answer, [
        Measurement(
            noisy=noisy, clique=clique, stddev=np.full(noisy.shape, math.sqrt(answer.variance))
        )
        for clique, noisy in zip(cliques, answer.tables(), strict=True)
    ]


def measured(
    cliques: Sequence[Clique], tables: Sequence[CrossTable], price: Price, relation: str
) -> tuple[list[NoisyTables], list[Measurement]]:
    """All tables, larger ones at a larger part of the price; parts add to it."""
    power = _BY_CELLS["laplace" if price.rho is None else "gaussian"]
    parts = [2.0 ** round(power * math.log2(table.counts.size)) for table in tables]
    answers, measurements = [], []
    for part in sorted({*parts}):
        alike = [place for place, size in enumerate(parts) if size == part]
        answer, noisy = with_noise(
            [cliques[place] for place in alike],
            [tables[place] for place in alike],
            price.part(part * len(alike) / sum(parts)),
            relation,
        )
        answers.append(answer)
        measurements += noisy
    return answers, measurements


def of_reference(
    clique: Clique,
    counts: FloatArray,
    n: int,
    margins: tuple[FloatArray, FloatArray] | None = None,
) -> Measurement:
    """The `counts` (K, L) of a reference as a measurement of n records: what the data differ by is
    sampling, of both, and a drift of a tenth; public, or not protected. Where `margins` (K,), (L,)
    are known, the reference's are raked to them, as it tells of the pair alone."""
    times = n / counts.sum()
    noisy = times * counts
    if margins is not None:
        noisy += times * _LEAST / counts.shape[0]
        wanted = [np.maximum(margin, _LEAST) for margin in margins]
        for axis in (0, 1) * 5:
            factor = wanted[axis] * (n / wanted[axis].sum()) / noisy.sum(axis=1 - axis)
            noisy = noisy * np.expand_dims(factor, 1 - axis)
    expected = noisy + times * _LEAST
    variance = (1 + times) * expected + np.square(DRIFT * expected)
    return Measurement(noisy=noisy, clique=clique, stddev=np.sqrt(variance))
