r"""A measurement: noisy counts, the columns they are of, their standard deviation, and a query.

All of a step are made at once by `pyhybrid.primitives.tables.noisy_tables`, which checks that each
record adds as much to each table as the noise is made for. Everything after that is a function of
noisy counts, public columns and a public reference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms.marginals.domain import (
    NO_PREDICTOR,
    PARTS,
    ColumnDomain,
    IntArray,
    Predictor,
)
from pyhybrid.primitives.tables import CrossTable, NoisyTables, Price, cross_counts, noisy_tables

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
    """Noisy counts of a clique.

    Attributes
    ----------
    noisy : ndarray, shape (K, L)
        Records in each cell of the column (rows) and of its predictor, with noise.
    clique : (str, str)
    stddev : ndarray, shape (K, L)
        Of the noise of each cell.
    query : ndarray, shape (m, K), optional
        Of a column alone: `noisy` (m, 1) are these sums of its cells. The cells themselves if
        omitted.
    """

    noisy: FloatArray
    clique: Clique
    stddev: FloatArray
    query: FloatArray | None = None

    def combined(self, other: Measurement) -> Measurement:
        """Both measurements of one table, each by its precision."""
        one, two = (1 / np.maximum(own.stddev, 1e-6) ** 2 for own in (self, other))
        noisy = (one * self.noisy + two * other.noisy) / (one + two)
        return replace(self, noisy=noisy, stddev=1 / np.sqrt(one + two))

    def margin(self) -> Measurement:
        """What a table's columns add to for the predictor, as its own counts (L, 1)."""
        stddev = np.sqrt(np.square(self.stddev).sum(axis=0))[:, None]
        clique = (self.clique[1], NO_PREDICTOR)
        return Measurement(noisy=self.noisy.sum(axis=0)[:, None], clique=clique, stddev=stddev)


def counts_of(table: CrossTable) -> FloatArray:
    """Records in each cell, shape (K, L), without noise. Confidential."""
    return cross_counts([table], unit=PARTS).reshape(table.shape) / PARTS


def of_reference(
    clique: Clique,
    table: CrossTable,
    n: int,
    margins: tuple[FloatArray, FloatArray] | None = None,
) -> Measurement:
    """The counts of a reference as a measurement of n records: what the data differ by is sampling,
    of both, and a drift of a tenth; public, or not protected. Where `margins` (K,), (L,) are known,
    the reference's are raked to them, as it tells of the pair alone."""
    times = n / table.codes.size
    noisy = times * counts_of(table)
    if margins is not None:
        noisy += times * _LEAST / table.n_rows
        wanted = [np.maximum(own, _LEAST) for own in margins]
        for axis in (0, 1) * 5:
            factor = wanted[axis] * (n / wanted[axis].sum()) / noisy.sum(axis=1 - axis)
            noisy = noisy * np.expand_dims(factor, 1 - axis)
    expected = noisy + times * _LEAST
    variance = (1 + times) * expected + np.square(DRIFT * expected)
    return Measurement(noisy=noisy, clique=clique, stddev=np.sqrt(variance))


def places_of(df: pd.DataFrame, domain: Mapping[str, ColumnDomain]) -> dict[str, IntArray]:
    """Cell of each record in each column. Confidential."""
    return {name: domain[name].places(df[name]) for name in domain}


def cross_table(
    clique: Clique,
    places: Mapping[str, IntArray],
    domain: Mapping[str, ColumnDomain],
    public: Mapping[str, Predictor],
) -> CrossTable:
    """The counts of a clique, before noise. Confidential."""
    column, name = clique
    codes = places[column]
    cells = predictor(name, codes.size, places, domain, public).cells
    return CrossTable(codes=codes, n_rows=domain[column].n_cells, cells=cells)


def predictor(
    name: str,
    n: int,
    places: Mapping[str, IntArray],
    domain: Mapping[str, ColumnDomain],
    public: Mapping[str, Predictor],
) -> Predictor:
    """A public predictor, a column whose cells `places` has, or none."""
    if name == NO_PREDICTOR:
        return Predictor.intercept(n)
    if name in public:
        return public[name]
    return Predictor.of_cells(places[name], domain[name].positions, synthesized=True)


def with_noise(
    tables: Sequence[CrossTable], price: Price, relation: str
) -> tuple[NoisyTables, list[tuple[FloatArray, FloatArray]]]:
    """The answer, and noisy counts with their standard deviations of each table."""
    answer = noisy_tables(tables, price=price, relation=relation, unit=PARTS)
    stddev = math.sqrt(answer.variance)
    return answer, [(noisy, np.full(noisy.shape, stddev)) for noisy in answer.tables()]


def measured(
    cliques: Sequence[Clique], tables: Sequence[CrossTable], price: Price, relation: str
) -> tuple[list[NoisyTables], list[Measurement]]:
    """Tables at once, larger ones at a larger part of the price; parts add to it."""
    power = _BY_CELLS["laplace" if price.rho is None else "gaussian"]
    parts = [2.0 ** round(power * math.log2(math.prod(table.shape))) for table in tables]
    answers, found = [], {}
    for part in sorted({*parts}):
        places = [place for place, own in enumerate(parts) if own == part]
        share = price.part(part * len(places) / sum(parts))
        answer, noisy = with_noise([tables[place] for place in places], share, relation)
        answers.append(answer)
        for place, (counts, stddev) in zip(places, noisy, strict=True):
            found[place] = Measurement(noisy=counts, clique=cliques[place], stddev=stddev)
    return answers, [found[place] for place in range(len(tables))]
