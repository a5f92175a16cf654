"""Which tables are measured, and the model of what comes out.

**In two steps.** Every column is first measured alone in all its bins, at a share of the price;
neighboring bins are merged by what came out, and pairs of columns are measured in merged bins.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, SourceFailed
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.domain import NO_PREDICTOR, PARTS, ColumnDomain, Predictor
from pyhybrid.mechanisms.marginals.log_linear import MOST_EFFECTS
from pyhybrid.mechanisms.marginals.measurement import (
    Clique,
    Measurement,
    Records,
    measured,
    of_reference,
    with_noise,
)
from pyhybrid.mechanisms.marginals.one_way import (
    FEWEST_BINS,
    OneWay,
    blocks,
    merged_domain,
    smooth,
    starts_of,
)
from pyhybrid.mechanisms.marginals.sample import Chain, fitted_chain
from pyhybrid.primitives.tables import CrossTable, NoisyTables, Price
from pyhybrid.sources.source import Source

ALONE = 0.2
"""Share of the price for columns alone."""
_MOST_OF_REFERENCE, _MANY = 1500, 10  # effects, with those a reference alone informs; columns
_MOST_BLOCKS = 0.7  # of a column that has them, in parts of its cells


@dataclass(kw_only=True, eq=False, repr=False)
class Measured:
    """What came out: functions of noisy counts, all of it. The prices of all `answers` add.

    `fine` are the declared cells, `domain` those of tables, after merging; `alone` the shares of
    fine ones, and `tables` the measurements of each column by predictor."""

    fine: Mapping[str, ColumnDomain]
    domain: dict[str, ColumnDomain]
    tables: dict[str, dict[str, Measurement]]
    alone: dict[str, OneWay] = field(default_factory=dict)
    answers: list[NoisyTables] = field(default_factory=list)

    def records(
        self, df: pd.DataFrame, public: Mapping[str, Predictor], names: Sequence[str] | None = None
    ) -> Records:
        """Cells of these columns, or of all, confidential if the table is. Merged cells come from
        fine ones: what a value is counted in, or refused for, does not hang on noise."""
        places = {}
        for name in self.fine if names is None else [name for name in self.fine if name in names]:
            starts = starts_of(self.fine[name], self.domain[name])
            cells = self.fine[name].places(df[name])
            places[name] = np.searchsorted(starts, cells, side="right") - 1
        return Records(domain=self.domain, public=public, n=len(df), places=places)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountedFrame:
    """Records of a data frame, beside their public predictors."""

    table: pd.DataFrame
    public: Mapping[str, Predictor]

    @property
    def n(self) -> int:
        return len(self.table)

    def tables(self, results: Measured, cliques: Sequence[Clique]) -> list[CrossTable]:
        """Counts of cliques in the merged cells of `results`. Confidential."""
        records = results.records(self.table, self.public)
        return [records.table(clique) for clique in cliques]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountedSource:
    """Records of a table that stays where it is."""

    source: Source
    n: int

    def tables(self, results: Measured, cliques: Sequence[Clique]) -> list[CrossTable]:
        """As of `CountedFrame`."""
        cells = {
            name: fine.cells(name, starts_of(fine, results.domain[name]))
            for name, fine in results.fine.items()
        }
        asked = [
            (cells[column],) if name == NO_PREDICTOR else (cells[column], cells[name])
            for column, name in cliques
        ]
        counts = self.source.counts(asked)
        if any(int(table.sum()) != self.n for table in counts):
            raise SourceFailed("the table must not change while it is read: it did")
        return [
            CrossTable(counts=PARTS * table.reshape(len(table), -1), unit=PARTS) for table in counts
        ]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Measuring:
    """What is counted of each column, with the predictors of `order`, and at what price of one row,
    all tables together. A column has `most_bins` in two-way tables, after a first step; None for
    all of its domain, in one step. `for_intervals`: several draws are to show what the noise leaves
    open, so that no prior may know more than the domain says. A `reference` has its public
    predictors in the cells of the data's."""

    domain: Mapping[str, ColumnDomain]
    order: Mapping[str, tuple[str, ...]]
    public: Mapping[str, Predictor]
    most_bins: int | None
    price: Price
    relation: str
    reference: tuple[pd.DataFrame, Mapping[str, Predictor]] | None = None
    for_intervals: bool = False

    @property
    def cliques(self) -> list[Clique]:
        """Every column with each of its predictors, or alone."""
        return [
            (name, predictor)
            for name, reads in self.order.items()
            for predictor in reads or (NO_PREDICTOR,)
        ]

    @property
    def nothing(self) -> Measured:
        """Nothing measured yet."""
        tables: dict[str, dict[str, Measurement]] = {name: {} for name in self.order}
        return Measured(fine=self.domain, domain=dict(self.domain), tables=tables)

    def all_tables(self, data: CountedFrame | CountedSource) -> Measured:
        """Count every column with each of its predictors, and add noise."""
        self._check_sizes()
        results, price = self.nothing, self.price
        if self.most_bins is not None:
            results, price = self.columns_alone(data), price.part(1 - ALONE)
        tables = data.tables(results, self.cliques)
        answers, measurements = measured(self.cliques, tables, price, self.relation)
        results.answers += answers
        for measurement in measurements:
            column, name = measurement.clique
            before = results.tables[column].get(name)
            results.tables[column][name] = (
                measurement if before is None else before.combined(measurement)
            )
        return results

    def _check_sizes(self) -> None:
        """Refuse models that are too large, before anything confidential is looked at."""
        sizes = {name: most_cells(domain, self.most_bins) for name, domain in self.domain.items()}
        sizes |= {name: predictor.positions.size for name, predictor in self.public.items()}
        for column, names in self.order.items():
            effects = sizes[column] * (1 + sum(sizes[name] for name in names))
            if effects > MOST_EFFECTS:
                raise InvalidInput(
                    f"cells of {column!r} times those of its predictors must be at most "
                    f"{MOST_EFFECTS}: found {effects}; merge levels, take fewer bins, or give "
                    "predictors=, which also means less noise"
                )

    def columns_alone(self, data: CountedFrame | CountedSource) -> Measured:
        """Every column alone, and what that says of it: smooth shares, merged bins."""
        results, n = self.nothing, data.n
        cliques = [(name, NO_PREDICTOR) for name in self.order]
        tables = data.tables(results, cliques)
        of_column = dict(zip(self.order, tables, strict=True))
        queries = self._blocks()
        cliques += [(name, NO_PREDICTOR) for name in queries]
        tables += [of_column[name].in_blocks(q.argmax(axis=0)) for name, q in queries.items()]
        answer, noisy = with_noise(cliques, tables, self.price.part(ALONE), self.relation)
        results.answers.append(answer)
        measurements = {name: [one] for name, one in zip(self.order, noisy, strict=False)}
        for (name, query), wide in zip(queries.items(), noisy[len(self.order) :], strict=True):
            measurements[name].append(replace(wide, query=query))
        for name, of_name in measurements.items():
            if self.reference is not None:
                of_name.append(self._of_reference((name, NO_PREDICTOR), results, n))
            results.tables[name] = {NO_PREDICTOR: self._alone(name, of_name, results, n)}
        return results

    def _alone(
        self, name: str, measurements: Sequence[Measurement], results: Measured, n: int
    ) -> Measurement:
        """A column's counts in merged bins, from all measurements of it."""
        domain = self.domain[name]
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
        smoothed = (name for name in self.order if self.domain[name].n_bins >= FEWEST_BINS)
        queries = {name: blocks(self.domain[name]) for name in smoothed}
        return {name: q for name, q in queries.items() if len(q) < _MOST_BLOCKS * q.shape[1]}

    # --- Reference and models ----------------------------------------------------------------

    def _of_reference(
        self,
        clique: Clique,
        results: Measured,
        n: int,
        margins: tuple[FloatArray, FloatArray] | None = None,
    ) -> Measurement:
        assert self.reference is not None
        table, public = self.reference
        counts = results.records(table, public, clique).table(clique).counts / PARTS
        return of_reference(clique, counts, n, margins)

    def chain(self, results: Measured, n: int, random: Streams) -> Chain:
        """The model of what came out."""
        records = Records(domain=results.domain, public=self.public, n=n)
        columns = [self._of_column(column, results, n) for column in self.order]
        return fitted_chain(columns, records, random)

    def _of_column(self, column: str, results: Measured, n: int) -> list[Measurement]:
        """All that was measured of a column, with what its reference tells of pairs, too."""
        tables = dict(results.tables[column])
        for name, others in results.tables.items():
            if column in others and name != column and NO_PREDICTOR in tables:
                tables[NO_PREDICTOR] = tables[NO_PREDICTOR].combined(others[column].margin())
        if self.reference is not None:
            for name in self._known_pairs(column, tables, results.domain):
                margins = self._margins(name, tables, results)
                reference = self._of_reference((column, name), results, n, margins)
                tables[name] = tables[name].combined(reference) if name in tables else reference
        names = dict.fromkeys([NO_PREDICTOR, *self.order[column], *tables])
        return [tables[name] for name in names if name in tables]

    def _margins(
        self, name: str, tables: Mapping[str, Measurement], results: Measured
    ) -> tuple[FloatArray, FloatArray] | None:
        """Records in each cell of a column and of a predictor, as far as they are known."""
        if NO_PREDICTOR not in tables or name == NO_PREDICTOR:
            return None
        if name in self.public:
            of_predictor = np.asarray(self.public[name].cells.sum(axis=0)).ravel() / PARTS
        else:
            of_predictor = results.tables[name][NO_PREDICTOR].noisy.ravel()
        return tables[NO_PREDICTOR].noisy.ravel(), of_predictor

    def _known_pairs(
        self, column: str, tables: Mapping[str, Measurement], domain: Mapping[str, ColumnDomain]
    ) -> list[str]:
        """Predictors that a reference tells of: measured ones, then others, the nearest first, as
        long as the model stays small."""
        names = list(self.order)
        sizes = {NO_PREDICTOR: 1} | {name: cut.n_cells for name, cut in domain.items()}
        sizes |= {name: predictor.positions.size for name, predictor in self.public.items()}
        known = [name for name in tables if name != NO_PREDICTOR or self.most_bins is None]
        left = _MOST_OF_REFERENCE * min(1.0, _MANY / len(names)) ** 1.5 / sizes[column]
        left -= sum(sizes[name] for name in tables)
        for name in (*reversed(names[: names.index(column)]), *self.public):
            if name not in tables and sizes[name] <= left:
                left -= sizes[name]
                known.append(name)
        return known


def most_cells(domain: ColumnDomain, most_bins: int | None) -> int:
    """Cells of a column in tables with predictors, at most."""
    return domain.n_cells - max(0, domain.n_bins - (most_bins or domain.n_bins))
