"""Which tables are measured, with what noise, and what a reference tells beside them.

All tables of a step are made at once by `pyhybrid.primitives.tables.noisy_tables`. All else is a
function of noisy counts, public columns and a public reference.

**In two steps.** Every column is first measured alone in all its bins, at a share of the price;
neighboring bins are merged by what came out, and pairs of columns are measured in merged bins.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, SourceFailed
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.domain import (
    NO_PREDICTOR,
    ColumnDomain,
    IntArray,
    Predictor,
    starts_of,
)
from pyhybrid.mechanisms.marginals.log_linear import MOST_EFFECTS, Clique, LogLinear, Measurement
from pyhybrid.mechanisms.marginals.one_way import FEWEST_BINS, OneWay, blocks, merged_domain, smooth
from pyhybrid.mechanisms.marginals.sample import Records, fitted_chain
from pyhybrid.primitives.tables import NoisyTables, Price, noisy_tables
from pyhybrid.sources.source import Source

ALONE = 0.2
"""Share of the price for columns alone."""
DRIFT = 0.1
"""Assumed relative drift of a count between reference and data, beside sampling; public."""
_LEAST = 0.5  # records: what is not in a reference may be in the data
_BY_CELLS = {"laplace": 1 / 2, "gaussian": 2 / 3}
"""Powers of a table's cells that its part of the price goes by, in steps of 2: cells times the size
of noise, summed over tables, is then least."""
_MOST_OF_REFERENCE, _MANY = 1500, 10  # effects, with those a reference alone informs; columns
_MOST_BLOCKS = 0.7  # of a column that has them, in parts of its cells


@dataclass(kw_only=True, eq=False, repr=False)
class Measured:
    """What came out: functions of noisy counts, all of it. The prices of all `answers` add.

    `domain` are the cells of tables, after merging, `alone` the shares of declared cells."""

    domain: dict[str, ColumnDomain]
    tables: dict[Clique, Measurement] = field(default_factory=dict)
    alone: dict[str, OneWay] = field(default_factory=dict)
    answers: list[NoisyTables] = field(default_factory=list)

    def ask(
        self, cliques: Sequence[Clique], tables: Sequence[IntArray], price: Price, relation: str
    ) -> list[Measurement]:
        """All tables at once, with the same noise on each cell."""
        answer = noisy_tables(tables, price=price, relation=relation)
        self.answers.append(answer)
        sd = math.sqrt(answer.variance)
        return [
            Measurement(noisy=noisy, clique=clique, stddev=np.full(noisy.shape, sd))
            for clique, noisy in zip(cliques, answer.tables(), strict=True)
        ]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountedSource:
    """Records of a table that stays where it is."""

    domain: Mapping[str, ColumnDomain]
    source: Source
    n: int
    public: Mapping[str, Predictor] = field(default_factory=dict)

    def tables(
        self, domain: Mapping[str, ColumnDomain], cliques: Sequence[Clique]
    ) -> list[IntArray]:
        """As of `Records`."""
        cells = {
            name: fine.cells(name, starts_of(fine, domain[name]))
            for name, fine in self.domain.items()
        }
        requests = [
            tuple(cells[name] for name in clique if name != NO_PREDICTOR) for clique in cliques
        ]
        counts = self.source.counts(requests)
        if any(int(table.sum()) != self.n for table in counts):
            raise SourceFailed("the table must not change while it is read: it did")
        return [table.reshape(len(table), -1) for table in counts]


def of_reference(
    clique: Clique,
    counts: FloatArray | IntArray,
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Measuring:
    """What is counted of each column, with the predictors of `order`, and at what price of one row,
    all tables together. A column has `most_bins` in two-way tables, after a first step; None for
    all of its domain, in one step. `for_intervals`: several draws are to show what the noise leaves
    open, so that no prior may know more than the domain says. A `reference` has its public
    predictors in the cells of the data's."""

    data: Records | CountedSource
    order: Mapping[str, tuple[str, ...]]
    most_bins: int | None
    price: Price
    relation: str
    reference: Records | None = None
    for_intervals: bool = False

    def all_tables(self) -> Measured:
        """Count every column with each of its predictors, and add noise; larger tables take a
        larger part of the price."""
        results, price = Measured(domain=dict(self.data.domain)), self.price
        if self.most_bins is not None:
            price = price.part(1 - ALONE)
            self._columns_alone(results)
        read = {name: reads or (NO_PREDICTOR,) for name, reads in self.order.items()}
        cliques = [(name, predictor) for name, reads in read.items() for predictor in reads]
        tables = self.data.tables(results.domain, cliques)
        power = _BY_CELLS["laplace" if price.rho is None else "gaussian"]
        parts = [2.0 ** round(power * math.log2(table.size)) for table in tables]
        for part in sorted({*parts}):
            alike = [place for place, size in enumerate(parts) if size == part]
            named, counts = [cliques[place] for place in alike], [tables[place] for place in alike]
            share = price.part(part * len(alike) / sum(parts))
            for measurement in results.ask(named, counts, share, self.relation):
                _add(results.tables, measurement)
        return results

    def _columns_alone(self, results: Measured) -> None:
        """Every column alone, and what that says of it: smooth shares, merged bins."""
        queries, n = self._blocks(), len(self.order)
        cliques = [(name, NO_PREDICTOR) for name in (*self.order, *queries)]
        tables = self.data.tables(self.data.domain, cliques[:n])
        bins = dict(zip(self.order, tables, strict=True))
        tables += [np.asarray(query @ bins[name], np.int64) for name, query in queries.items()]
        noisy = results.ask(cliques, tables, self.price.part(ALONE), self.relation)
        measurements = {name: [one] for name, one in zip(self.order, noisy[:n], strict=True)}
        for name, sums in zip(queries, noisy[n:], strict=True):
            measurements[name].append(replace(sums, query=queries[name]))
        for clique, of_name in zip(cliques, measurements.values(), strict=False):
            if self.reference is not None:
                of_name.append(of_reference(clique, self.reference.table(clique), self.data.n))
            results.tables[clique] = self._alone(clique[0], of_name, results)

    def _alone(
        self, name: str, measurements: Sequence[Measurement], results: Measured
    ) -> Measurement:
        """A column's counts in merged bins, from all measurements of it."""
        domain, n = self.data.domain[name], self.data.n
        if domain.n_bins < FEWEST_BINS:
            return functools.reduce(Measurement.combined, measurements)
        alone = smooth(measurements, domain, n, informed=not self.for_intervals)
        few = merged_domain(domain, alone.shares, self.most_bins or domain.n_bins)
        results.alone[name], results.domain[name] = alone, few
        return alone.merged(name, n, domain, few)

    def _blocks(self) -> dict[str, FloatArray]:
        """Blocks of cells that are counted, too: where the noise is Gaussian, which grows by the
        root of the number of tables, no reference tells of tails, and one set is drawn."""
        if self.price.rho is None or self.for_intervals or self.reference is not None:
            return {}
        domains = {name: self.data.domain[name] for name in self.order}
        queries = {name: blocks(own) for name, own in domains.items() if own.n_bins >= FEWEST_BINS}
        return {name: q for name, q in queries.items() if len(q) < _MOST_BLOCKS * q.shape[1]}

    def models(self, results: Measured, random: Streams) -> dict[str, LogLinear]:
        """The models of what came out, and of what a reference tells."""
        records = Records(domain=results.domain, public=self.data.public, n=self.data.n)
        reference = None if self.reference is None else self.reference.merged(results.domain)
        columns = [self._of_column(column, results, reference) for column in self.order]
        return fitted_chain(columns, records, random)

    def _of_column(
        self, column: str, results: Measured, reference: Records | None
    ) -> list[Measurement]:
        """All that was measured of a column, with what its reference tells of pairs, too."""
        alone = (column, NO_PREDICTOR)
        tables = {clique: one for clique, one in results.tables.items() if clique[0] == column}
        for (_, predictor), one in results.tables.items():
            if predictor == column and alone in tables:
                _add(tables, one.margin())
        if reference is not None:
            for name in self._known_pairs(column, [*tables], results.domain):
                clique, margins = (column, name), None
                if alone in tables and (other := self._margin_of(name, results)) is not None:
                    margins = tables[alone].noisy.ravel(), other
                known = of_reference(clique, reference.table(clique), self.data.n, margins)
                _add(tables, known)
        names = dict.fromkeys([NO_PREDICTOR, *self.order[column], *(name for _, name in tables)])
        return [tables[column, name] for name in names if (column, name) in tables]

    def _margin_of(self, predictor: str, results: Measured) -> FloatArray | None:
        """Records in each cell of a predictor, as far as they are known."""
        if public := self.data.public.get(predictor):
            return np.bincount(public.cells, minlength=public.positions.size).astype(np.float64)
        alone = results.tables.get((predictor, NO_PREDICTOR))
        return None if alone is None else alone.noisy.ravel()

    def _known_pairs(
        self, column: str, tables: Sequence[Clique], domain: Mapping[str, ColumnDomain]
    ) -> list[str]:
        """Predictors that a reference tells of: measured ones, then others, the nearest first, as
        long as the model stays small."""
        names, public = list(self.order), self.data.public
        sizes = {NO_PREDICTOR: 1} | {name: cut.n_cells for name, cut in domain.items()}
        sizes |= {name: predictor.positions.size for name, predictor in public.items()}
        counted = [name for _, name in tables]
        known = [name for name in counted if name != NO_PREDICTOR or self.most_bins is None]
        left = _MOST_OF_REFERENCE * min(1.0, _MANY / len(names)) ** 1.5 / sizes[column]
        left -= sum(sizes[name] for name in counted)
        for name in (*reversed(names[: names.index(column)]), *public):
            if name not in counted and sizes[name] <= left:
                left -= sizes[name]
                known.append(name)
        return known


def _add(tables: dict[Clique, Measurement], more: Measurement) -> None:
    """Both measurements of one table, if there is one."""
    own = tables.get(more.clique)
    tables[more.clique] = more if own is None else own.combined(more)


def check_sizes(
    domain: Mapping[str, ColumnDomain],
    order: Mapping[str, Sequence[str]],
    public: Mapping[str, Predictor],
    most_bins: int | None,
) -> None:
    """Refuse models that are too large, before anything confidential is looked at."""
    sizes = {name: most_cells(own, most_bins) for name, own in domain.items()}
    sizes |= {name: predictor.positions.size for name, predictor in public.items()}
    for column, effects in n_effects(sizes, order).items():
        if effects > MOST_EFFECTS:
            raise InvalidInput(
                f"cells of {column!r} times those of its predictors must be at most "
                f"{MOST_EFFECTS}: found {effects}; merge levels, take fewer bins, or give "
                "predictors=, which also means less noise"
            )


def most_cells(domain: ColumnDomain, most_bins: int | None) -> int:
    """Cells of a column in tables with predictors, at most."""
    return domain.n_cells - max(0, domain.n_bins - (most_bins or domain.n_bins))


def n_effects(cells: Mapping[str, int], order: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Effects of the model of each column: its cells times those of what it is measured with."""
    return {
        name: cells[name] * (1 + sum(cells[predictor] for predictor in reads))
        for name, reads in order.items()
    }
