r"""Which tables are measured: all that are named, or a private choice of them.

**In two steps.** Every column is first measured alone in all its bins, at a share of the price;
neighboring bins are merged by what came out, and pairs of columns are measured in merged bins.

**The private choice.** In rounds, a table is chosen by the exponential mechanism, is measured with
noise, and its column's model is fitted anew (AIM, with log-linear models of columns in the place of
a graphical model). The score of the table c of a column with a predictor is

.. math:: u_c(x) = \lVert M_c(x) - M_c(\hat\theta) \rVert_1
    - K_c L_c \operatorname{E}|\text{noise}|,

M the counts of the records, and of rows simulated from the model so far: the error of the table,
less the error that noise alone would cause. The model comes from noisy answers alone, so that
:math:`M_c(\hat\theta)` is the same for neighbors at any given earlier answers, and by the triangle
inequality the sensitivity of :math:`u_c` is that of the table: 1 under "remove", 2 under "replace",
as a record adds 1 to each table. No weights and no squares are in it: these would change by more.

**Price.** Rounds are composed adaptively: pure prices add, and so does rho, of which the
exponential mechanism at epsilon takes epsilon^2 / 8. Where the model's table moved by less than the
noise of the measurement that moved it, the parts of later rounds grow (annealing): noise of half
the scale, which is twice the epsilon or four times the rho. The last round takes what is left. That
later prices depend on earlier answers changes nothing, as their sum is fixed beforehand.

References
----------
McKenna, Mullins, Sheldon, Miklau (2022), AIM: an adaptive and iterative mechanism for
differentially private synthetic data, PVLDB 15:2599-2612. [BS16]; Cesar, Rogers (2021), Bounding,
concentrating, and truncating: unifying privacy loss composition for data analytics, ALT (rho of
the exponential mechanism). Whitehouse, Ramdas, Rogers, Wu (2023), Fully-adaptive composition in
differential privacy (prices that depend on earlier answers).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

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
    Table,
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
from pyhybrid.mechanisms.marginals.sample import Chain
from pyhybrid.primitives.laplace import CHANGED
from pyhybrid.primitives.selection import NoisyChoice, exponential_mechanism
from pyhybrid.primitives.tables import CountedTable, NoisyTables, Price, size_of_noise
from pyhybrid.sources.source import Source

ALONE = 0.2
"""Share of the price for columns alone."""
ROUNDS = 30
"""At the price of the first one, if no round's price grew."""
_MOST_EFFECTS_OF_A_ROUND = 1000  # of one column: fits are many, and take their third power
_MOST_OF_REFERENCE, _MANY = 1500, 10  # effects, with those a reference alone informs; columns
_CHOICE = 0.1  # of a round's price, for the choice
_NOTHING_LEFT = 1e-9
_ROUNDED = 1 + 1e-5  # sums of floating-point numbers, of up to 10^9 records
_MOST_BLOCKS = 0.7  # of a column that has them, in parts of its cells


@dataclass(kw_only=True, eq=False, repr=False)
class Measured:
    """What came out: functions of noisy counts, all of it. The prices of all `answers` and
    `choices` (of tables to measure) add.

    `fine` are the declared cells, `domain` those of tables, after merging; `alone` the shares of
    fine ones, and `tables` the measurements of each column by predictor."""

    fine: Mapping[str, ColumnDomain]
    domain: dict[str, ColumnDomain]
    tables: dict[str, dict[str, Measurement]]
    alone: dict[str, OneWay] = field(default_factory=dict)
    answers: list[NoisyTables] = field(default_factory=list)
    choices: list[NoisyChoice] = field(default_factory=list)

    def add(self, answers: Sequence[NoisyTables], measurements: Iterable[Measurement]) -> None:
        """More answers, whose measurements count beside those of the same clique."""
        self.answers += answers
        for measurement in measurements:
            column, name = measurement.clique
            before = self.tables[column].get(name)
            self.tables[column][name] = (
                measurement if before is None else before.combined(measurement)
            )

    def records(
        self, df: pd.DataFrame, public: Mapping[str, Predictor], names: Iterable[str] | None = None
    ) -> Records:
        """Cells of these columns, or of all, confidential if the table is. Merged cells come from
        fine ones: what a value is counted in, or refused for, does not hang on noise."""
        fine = {name: self.fine[name] for name in names or self.fine if name in self.fine}
        records = Records(domain=fine, public=public, n=len(df)).of(df)
        starts = {name: starts_of(cut, self.domain[name]) for name, cut in fine.items()}
        places = {
            name: np.searchsorted(starts[name], cells, side="right") - 1
            for name, cells in records.places.items()
        }
        return replace(records, domain=self.domain, places=places)

    @property
    def merged(self) -> dict[str, OneWay]:
        """Columns whose bins were, with their shares."""
        return {
            name: alone
            for name, alone in self.alone.items()
            if alone.mode.size > self.domain[name].n_cells
        }


class Counted(Protocol):
    """Confidential records, wherever they are, of which tables are counted."""

    @property
    def n(self) -> int:
        """Number of records."""

    def tables(self, results: Measured, cliques: Sequence[Clique]) -> list[Table]:
        """Counts of cliques in the merged cells of `results`."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountedFrame:
    """Records of a data frame, beside their public predictors."""

    table: pd.DataFrame
    public: Mapping[str, Predictor]

    @property
    def n(self) -> int:
        return len(self.table)

    def tables(self, results: Measured, cliques: Sequence[Clique]) -> list[Table]:
        records = results.records(self.table, self.public)
        return [records.table(clique) for clique in cliques]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountedSource:
    """Records of a table that stays where it is."""

    source: Source
    n: int

    def tables(self, results: Measured, cliques: Sequence[Clique]) -> list[Table]:
        cells = {
            name: fine.cells(name, starts_of(fine, results.domain[name]))
            for name, fine in results.fine.items()
        }
        asked = [
            (cells[column],) if name == NO_PREDICTOR else (cells[column], cells[name])
            for column, name in cliques
        ]
        counts = self.source.counts(asked)
        tables = [CountedTable(records=own.reshape(len(own), -1), n=self.n) for own in counts]
        if any(int(table.records.sum()) != self.n for table in tables):
            raise SourceFailed("the table must not change while it is read: it did")
        return [*tables]


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
        return Measured(
            fine=self.domain, domain=dict(self.domain), tables={name: {} for name in self.order}
        )

    def check_sizes(self, order: Mapping[str, Sequence[str]]) -> None:
        """Refuse models that are too large, before anything confidential is looked at."""
        sizes = {name: most_cells(domain, self.most_bins) for name, domain in self.domain.items()}
        sizes |= {name: predictor.positions.size for name, predictor in self.public.items()}
        for column, names in order.items():
            effects = sizes[column] * (1 + sum(sizes[name] for name in names))
            if effects > MOST_EFFECTS:
                raise InvalidInput(
                    f"cells of {column!r} times those of its predictors must be at most "
                    f"{MOST_EFFECTS}: found {effects}; merge levels, take fewer bins, or give "
                    "predictors=, which also means less noise"
                )

    def all_tables(self, data: Counted) -> Measured:
        """Count every column with each of its predictors, and add noise."""
        self.check_sizes(self.order)
        results, price = self.nothing, self.price
        if self.most_bins is not None:
            results, price = self.columns_alone(data), price.part(1 - ALONE)
        tables = data.tables(results, self.cliques)
        results.add(*measured(self.cliques, tables, price, self.relation))
        return results

    def columns_alone(self, data: Counted) -> Measured:
        """Every column alone, and what that says of it: smooth shares, merged bins."""
        results, n = self.nothing, data.n
        cliques = [(name, NO_PREDICTOR) for name in self.order]
        tables = data.tables(results, cliques)
        of_column = dict(zip(self.order, tables, strict=True))
        queries = self._blocks()
        for name, query in queries.items():
            cliques.append((name, NO_PREDICTOR))
            tables.append(of_column[name].in_blocks(query.argmax(axis=0)))
        answer, noisy = with_noise(cliques, tables, self.price.part(ALONE), self.relation)
        results.answers.append(answer)
        wide = dict(zip(queries, noisy[len(self.order) :], strict=True))
        for name, own in zip(self.order, noisy, strict=False):
            measurements = [own]
            if name in wide:
                measurements.append(replace(wide[name], query=queries[name]))
            if self.reference is not None:
                measurements.append(self._of_reference((name, NO_PREDICTOR), results, n))
            results.tables[name] = {NO_PREDICTOR: self._alone(name, measurements, results, n)}
        return results

    def _alone(
        self, name: str, measurements: Sequence[Measurement], results: Measured, n: int
    ) -> Measurement:
        """A column's counts in merged bins, from all measurements of it."""
        domain = self.domain[name]
        if domain.n_bins < FEWEST_BINS:
            return functools.reduce(Measurement.combined, measurements)
        alone = smooth(measurements, domain, n, informed=not self.for_intervals)
        few = merged_domain(
            domain, alone.shares, min(self.most_bins or domain.n_bins, domain.n_bins)
        )
        results.alone[name], results.domain[name] = alone, few
        return alone.merged(name, n, domain, few)

    def _blocks(self) -> dict[str, FloatArray]:
        """Blocks of cells that are counted, too: where the noise is Gaussian, which grows by the
        root of the number of tables, no reference tells of tails, and one set is drawn."""
        if self.price.rho is None or self.for_intervals or self.reference is not None:
            return {}
        smoothed = (name for name in self.order if self.domain[name].n_bins >= FEWEST_BINS)
        queries = {name: blocks(self.domain[name]) for name in smoothed}
        return {
            name: query
            for name, query in queries.items()
            if query.shape[0] < _MOST_BLOCKS * query.shape[1]
        }

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
        counts = results.records(table, public, clique).counts(clique)
        return of_reference(clique, counts, n, margins)

    def chain(self, results: Measured, n: int, random: Streams) -> Chain:
        """The model of what came out."""
        chain = Chain(links=(), records=Records(domain=results.domain, public=self.public, n=n))
        for column in self.order:
            chain = chain.with_column(self.of_column(column, results, n), random)
        return chain

    def of_column(self, column: str, results: Measured, n: int) -> list[Measurement]:
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

    # --- The private choice ------------------------------------------------------------------

    def chosen_tables(
        self, data: Counted, random: Streams, *, most_rounds: int = ROUNDS
    ) -> Measured:
        """Measure all columns alone, then tables chosen by noisy scores: the first round takes
        1 / most_rounds of what is left for rounds, and fewer follow if parts grow."""
        n_tables = sum(len(names) for names in self.order.values())
        if n_tables < 2:
            raise InvalidInput(
                "select='private' must have two tables or more to choose among: found "
                f"{n_tables}; take select='all'"
            )
        self.check_sizes(dict.fromkeys(self.order, ()))
        rounds = _Rounds(self, data, random)
        left, part = 1.0, 1 / most_rounds
        price = self.price.part(1 - ALONE)
        while left > _NOTHING_LEFT:
            part = left if left < 2 * part else part
            learned = rounds.take(price.part(part))
            if learned is None:
                break
            left -= part
            if learned <= 0:
                part *= 2 if price.rho is None else 4
        return rounds.results


def most_cells(domain: ColumnDomain, most_bins: int | None) -> int:
    """Cells of a column in tables with predictors, at most."""
    return domain.n_cells - max(0, domain.n_bins - (most_bins or domain.n_bins))


def score(true: FloatArray, modeled: FloatArray, size: float) -> float:
    """What a model's table is off by, less noise of mean size `size` on each cell; changes by no
    more than a neighbor changes `true` (see the module)."""
    return float(np.abs(true - modeled).sum() - size * true.size)


class _Rounds:
    """What was measured so far, its model, and tables of the data and of rows simulated from it."""

    def __init__(self, measuring: Measuring, data: Counted, random: Streams) -> None:
        """Every column alone, its bins merged, and the model of independent columns."""
        self.measuring, self.random, self.n = measuring, random, data.n
        self.results = measuring.columns_alone(data)
        cliques = [clique for clique in measuring.cliques if clique[1] != NO_PREDICTOR]
        self.tables = dict(zip(cliques, data.tables(self.results, cliques), strict=True))
        self.true = {clique: own.counts(PARTS) / PARTS for clique, own in self.tables.items()}
        self.chain = measuring.chain(self.results, self.n, random.child("round 0"))
        self.rows = self.chain.records
        self.modeled: dict[Clique, FloatArray] = {}
        self._simulate(0)

    def take(self, price: Price) -> float | None:
        """How much further than the noise one round at `price` moved the model's table; None if no
        table is left that a model could hold."""
        among = [clique for clique in self.tables if self._fits(clique)]
        if len(among) < 2:
            return None
        relation = self.measuring.relation
        spent, of_choice = price.part(1 - _CHOICE), price.part(_CHOICE)
        size = size_of_noise(spent, relation)
        choice = exponential_mechanism(
            [score(self.true[clique], self.modeled[clique], size) for clique in among],
            sensitivity=CHANGED[relation] * _ROUNDED,
            epsilon=of_choice.epsilon if of_choice.rho is None else math.sqrt(8 * of_choice.rho),
            relation=relation,
            candidates=among,
        )
        chosen = choice.candidate
        self.results.choices.append(choice)
        self.results.add(*measured([chosen], [self.tables[chosen]], spent, relation))
        before, place = self.modeled[chosen], list(self.measuring.order).index(chosen[0])
        self._fit(chosen[0], place)
        self._simulate(place)
        return float(np.abs(self.modeled[chosen] - before).sum()) - size * before.size

    def _fit(self, column: str, place: int) -> None:
        """The column's model anew, in its place."""
        links = self.chain.links
        measurements = self.measuring.of_column(column, self.results, self.n)
        random = self.random.child(f"round {len(self.results.choices)}")
        after = replace(self.chain, links=links[:place], rows=None).with_column(
            measurements, random, links[place]
        )
        self.chain = replace(after, links=(*after.links, *links[place + 1 :]))

    def _simulate(self, first: int) -> None:
        """Tables of rows simulated from the model, as of n records; those of the columns before
        the place `first`, whose models are as they were, stay."""
        kept = dict(itertools.islice(self.rows.places.items(), first))
        self.rows = self.chain.repeated.simulate(self.random, "rows", kept=kept)
        for clique in self.tables:
            if clique[0] not in kept:
                self.modeled[clique] = self.rows.counts(clique) * (self.n / self.rows.n)

    def _fits(self, clique: Clique) -> bool:
        column, name = clique
        cells = {other: m.noisy.shape[1] for other, m in self.results.tables[column].items()}
        cells[name] = self.tables[clique].shape[1]
        effects = self.results.domain[column].n_cells * (1 + sum(cells.values()))
        return bool(effects <= _MOST_EFFECTS_OF_A_ROUND)
