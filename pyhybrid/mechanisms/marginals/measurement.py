r"""The noisy tables of a release: all that looks at confidential values.

In one step, or in two: first every column of many bins alone, then, with neighboring bins merged,
each column with each of its predictors. Which bins are merged is read off the noisy counts of the
first step, so that both together cost what their parts add to.

**A column alone.** Two-way tables need few bins, or noise drowns them; values need many, or all
within a wide bin are alike. So a column is first measured alone in all bins of its domain, and

.. math:: \mu = n\, \operatorname{softmax}(\log w + s + e),\qquad
    \tilde c_k \mid \mu \approx N(\mu_k,\ \mu_k + \sigma^2),

with n the public number of records, w the widths of bins times a t density with 3 degrees of
freedom, from which s departs by little unless counts say so; its center and unit are declared, or
are the median and half the distance of the quartiles of the noisy counts. s is smooth (second
differences N(0, 1 / lambda): a P-spline on the bins) and e independent, N(0, tau^2), for heaps;
levels have no s. Both scales maximize the approximate marginal likelihood. Differences are taken on
the scale arsinh((y - median) / unit): a long tail is few steps long there, so that what noise
drowns keeps falling. Noise that is cut at zero in each of many empty cells would add up, and move a
mean by more than all else. Blocks of bins, wider the further they are from the center, have a table
of their own where noise is Gaussian: they measure a tail with less noise than its bins do. So have
single numbers of a range of many steps. One whose count is above 5 sigma is cut out of its bin: the
bin keeps its smoothed total, and what the number leaves of it is even over the rest.

References
----------
Eilers, Marx (1996), Flexible smoothing with B-splines and penalties, Statistical Science 11:89-121.
MacKay (1992), Bayesian interpolation, Neural Computation 4:415-447. Panter, Dite (1951),
Quantization distortion in pulse-count modulation, Proc. IRE 39:44-48 (bins by a power of density).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import linalg, sparse, special

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.domain import (
    ALONE,
    PARTS,
    ColumnDomain,
    IntArray,
    Predictor,
    merged,
    most_cells,
    of_nothing,
)
from pyhybrid.mechanisms.marginals.log_linear import (
    MOST_EFFECTS,
    Chain,
    Known,
    KnownOf,
    Measurement,
    fit_link,
    power_of_known,
    predictors_of,
)
from pyhybrid.models.columns.support import of_steps
from pyhybrid.primitives.selection import NoisyChoice
from pyhybrid.primitives.tables import (
    CrossTable,
    NoisyTables,
    Price,
    noisy_tables,
    size_of_noise,
)

_BY_CELLS = {"laplace": 1 / 2, "gaussian": 2 / 3}
"""Powers of a table's cells that its part of the price goes by, in steps of 2: cells times the
size of noise, summed over tables, is then least."""
_STEPS, _CLOSE = 60, 1e-3
_SMOOTH, _OWN = (1e-3, 1e6), (1e-3, 3.0)  # ends of lambda and of tau
_SD_OF_LEVEL = 10.0  # of a log count
_SD_OF_LINE = 1.0  # of what second differences leave free, about that density
_SPREAD = 1.7  # of the density about it, in units
_TAIL = (2.0, 1.5)  # (df + 1) / 2 of a t density, of even bins and of wider ones far out
_MOST_OF_REFERENCE = 1500  # effects of a column, with those that a reference alone informs,
_MANY = 10  # of so many columns; of more fewer, so that all take no longer
_UNTOLD = 1e3  # deviation of a count that was not measured, in n
_FEWEST_EDGES = 3  # of a column that is smoothed
_FARTHEST = 2.0  # that a log count moves in a step
_LEAST = 0.5  # records: what is not in a reference may be in the data
_MOST_BLOCKS = 0.7  # of a column that has them, in parts of its cells
_OUT = 5.0  # deviations of noise from which on a number's count stands out
_MOST_OF_A_SINGLE = 0.1  # of n, that a count must have to stand out; else none is looked for
_FULL = 0.95  # of a bin that its singles take at most, where others are in it
_LEAST_LEFT = 0.05  # of the variance of a column, beside other columns


Tables = Sequence[CrossTable]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """What came out: functions of noisy counts, all of it.

    `order` are the predictors that each column was measured with, `noisy` its tables with each of
    these, `domain` what they were counted in, `alone` what was found of columns of bins alone, in
    cells of `fine`. The prices of all `answers` and `choices` (of tables to measure) add."""

    order: Mapping[str, tuple[str, ...]]
    noisy: Mapping[str, tuple[Measurement, ...]]
    domain: Mapping[str, ColumnDomain]
    fine: Mapping[str, ColumnDomain]
    alone: Mapping[str, OneWay]
    answers: tuple[NoisyTables, ...]
    choices: tuple[NoisyChoice, ...] = ()

    def shares(self, n: int, rng: np.random.Generator) -> list[dict[str, FloatArray]]:
        """n draws of the shares of all cells of the columns whose bins were merged."""
        draws = {name: self.alone[name].sample(n, rng) for name in self.merged}
        return [{name: drawn[place] for name, drawn in draws.items()} for place in range(n)]

    def with_margins(self, column: str, table: Measurement) -> Measurement:
        """A column's own counts, and what the tables of others with it add up to."""
        for name, reads in self.order.items():
            if column in reads:
                other = self.noisy[name][reads.index(column)]
                sums = (own.sum(axis=0)[:, None] for own in (other.counts, other.variances))
                table = table.with_another(Measurement(counts=next(sums), variance=next(sums)))
        return table

    @property
    def modes(self) -> dict[str, FloatArray]:
        """The most probable shares of the same cells."""
        return {name: self.alone[name].shares for name in self.merged}

    @property
    def merged(self) -> tuple[str, ...]:
        """Columns whose bins were."""
        return tuple(
            name for name in self.alone if self.domain[name].n_cells < self.alone[name].mode.size
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class First:
    """Columns alone: the `answer`, the smooth shares of those with bins, in cells of `fine`, in
    which numbers that stand out are alone, the domain with bins merged by them, and each column's
    counts in its merged domain (K, 1)."""

    answer: NoisyTables
    alone: Mapping[str, OneWay]
    fine: Mapping[str, ColumnDomain]
    domain: Mapping[str, ColumnDomain]
    tables: Mapping[str, Measurement]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measuring:
    """What is counted, and at what price of one row, all tables together. A column has `most_bins`
    in two-way tables, after a first step at this `share`; None for all of its domain, in one
    step. `for_intervals`: several draws are to show what the noise leaves open, so that no prior
    may know more than the domain says."""

    domain: Mapping[str, ColumnDomain]
    order: Mapping[str, tuple[str, ...]]
    public: Mapping[str, Predictor]
    most_bins: int | None
    share: float
    price: Price
    relation: str
    reference: Reference | None = None
    for_intervals: bool = False

    @property
    def binned(self) -> tuple[str, ...]:
        """Columns that are measured alone first."""
        most = self.most_bins
        return tuple(n for n in self.order if most and len(self.domain[n].bins) - 1 > most)

    def check_sizes(self) -> None:
        """Refuse models that are too large, before anything confidential is looked at."""
        sizes = {name: most_cells(own, self.most_bins) for name, own in self.domain.items()}
        sizes |= {name: own.cells.shape[1] for name, own in self.public.items()}
        for column, reads in self.order.items():
            effects = sizes[column] * (1 + sum(sizes[name] for name in reads))
            if effects > MOST_EFFECTS:
                raise InvalidInput(
                    f"cells of {column!r} times those of its predictors must be at most "
                    f"{MOST_EFFECTS}: found {effects}; merge levels, take fewer bins, or give "
                    "predictors=, which also means less noise"
                )

    def of(self, df: pd.DataFrame) -> Measured:
        """Count and add noise."""
        self.check_sizes()
        first = None if self.most_bins is None else self.first(df)
        return self._all_tables(df, first)

    def first(self, df: pd.DataFrame) -> First:
        """Every column alone, and what that says of it."""
        counted = dict(zip(self.order, self.one_way(df, tuple(self.order)), strict=True))
        blocks = self.blocks()
        wide = [counted[name].in_blocks(own) for name, own in blocks.items()]
        singles = self.singles(df, len(wide))
        answer = self.noisy(
            [*counted.values(), *wide, *singles.values()], self.price.part(self.share)
        )
        tables = iter(answer.tables())
        counts = dict(zip(self.order, tables, strict=False))
        coarse = {name: (block, next(tables).ravel()) for name, block in blocks.items()}
        alone = self.alone(counts, answer.variance, len(df), coarse)
        fine = dict(self.domain)
        for name in singles:
            own = self.domain[name], next(tables).ravel()[:-1]
            fine[name], alone[name] = alone[name].with_singles(*own, answer.variance, len(df))
        domain = self.merged(alone, fine)
        return First(
            answer=answer,
            alone=alone,
            fine=fine,
            domain=domain,
            tables={
                name: alone[name].in_few(len(df), fine[name], domain[name])
                if name in alone
                else Measurement(counts=counts[name], variance=answer.variance)
                for name in self.order
            },
        )

    def _all_tables(self, df: pd.DataFrame, first: First | None) -> Measured:
        """Every column with each of its predictors, at once."""
        domain = self.domain if first is None else first.domain
        counted = self.two_way(df, domain)
        answers, found = self._with_noise(counted)
        measured, order, noisy = iter(found), dict(self.order), {}
        for name, reads in self.order.items():
            own = tuple(next(measured) for _ in reads or (ALONE,))
            if first is not None:
                its = first.tables[name]
                own = (its, *own) if reads else (its.with_another(own[0]),)
            order[name] = reads if reads and first is None else (ALONE, *reads)
            noisy[name] = own
        return Measured(
            order=order,
            noisy=noisy,
            domain=domain,
            fine=self.domain if first is None else first.fine,
            alone={} if first is None else first.alone,
            answers=answers if first is None else (first.answer, *answers),
        )

    def by_size(self, counted: Tables) -> list[tuple[list[int], Price]]:
        """The places of tables that share one noise, and what they pay: larger ones more."""
        price = self.price if self.most_bins is None else self.price.part(1 - self.share)
        power = _BY_CELLS["laplace" if price.rho is None else "gaussian"]
        parts = [2.0 ** round(power * math.log2(math.prod(own.shape))) for own in counted]
        return [
            (
                [k for k, own in enumerate(parts) if own == part],
                price.part(part * parts.count(part) / sum(parts)),
            )
            for part in sorted({*parts})
        ]

    def _with_noise(self, counted: Tables) -> tuple[tuple[NoisyTables, ...], list[Measurement]]:
        answers, found = [], {}
        for places, price in self.by_size(counted):
            answer = self.noisy([counted[place] for place in places], price)
            answers.append(answer)
            for place, counts in zip(places, answer.tables(), strict=True):
                found[place] = Measurement(counts=counts, variance=answer.variance)
        return tuple(answers), [found[place] for place in range(len(counted))]

    def blocks(self) -> dict[str, IntArray]:
        """Blocks of cells that are counted, too, where Gaussian noise grows by the root of the
        number of tables, no reference tells of tails, and one set is drawn."""
        if self.reference is not None or self.price.rho is None or self.for_intervals:
            return {}
        own = {name: self.domain[name].blocks for name in self.order}
        return {
            name: block for name, block in own.items() if block[-1] + 1 < _MOST_BLOCKS * block.size
        }

    def singles(self, df: pd.DataFrame, n_wide: int) -> dict[str, CrossTable]:
        """Counts of single numbers of columns of bins, where noise is Gaussian and small beside n,
        and one set is drawn."""
        names = [n for n in self.order if len(self.domain[n].bins) > _FEWEST_EDGES]
        names = [n for n in names if self.domain[n].singles.size]
        noise = self.price.part(self.share / (len(self.order) + n_wide + max(len(names), 1)))
        if (
            self.price.rho is None
            or self.for_intervals
            or _OUT * size_of_noise(noise, self.relation) > _MOST_OF_A_SINGLE * len(df)
        ):
            return {}
        cells = of_nothing(len(df)).cells
        return {
            name: CrossTable(
                codes=own.single_of(df[name]), n_rows=own.singles.size + 1, cells=cells
            )
            for name, own in ((name, self.domain[name]) for name in names)
        }

    def alone(
        self,
        counts: Mapping[str, FloatArray],
        variance: float,
        n: int,
        coarse: Mapping[str, tuple[IntArray, FloatArray]],
    ) -> dict[str, OneWay]:
        """Columns of bins from their noisy counts (K, 1), and from `coarse` ones."""
        reference = self.reference
        return {
            name: Smoothing(
                counts[name].ravel(),
                variance=variance,
                domain=self.domain[name],
                n=n,
                known=None if reference is None else reference.counts(name, self.domain[name]),
                coarse=coarse.get(name),
                informed=not self.for_intervals,
            ).fit()
            for name in self.order
            if len(self.domain[name].bins) > _FEWEST_EDGES
        }

    def merged(
        self, alone: Mapping[str, OneWay], fine: Mapping[str, ColumnDomain]
    ) -> dict[str, ColumnDomain]:
        """The domain with the bins of columns that were measured alone merged, to as many as they
        had where `most_bins` is None."""
        bins = {name: len(self.domain[name].bins) - 1 for name in alone}
        few = {
            name: merged(fine[name], alone[name].shares, min(self.most_bins or most, most))
            for name, most in bins.items()
        }
        return {**self.domain, **few}

    def chain(self, measured: Measured, n: int, random: Streams) -> Chain:
        """The model of what came out."""
        chain = Chain(links=(), domain=measured.domain, public=self.public, n=n)
        known = self.known(measured.domain)
        for column, own in measured.order.items():
            reads, tables = own, measured.noisy[column]
            if known is not None:
                reads, tables = self._with_unmeasured(column, measured, n)
            if reads[0] == ALONE:
                tables = (measured.with_margins(column, tables[0]), *tables[1:])
            link = fit_link(chain, column, reads, tables, random=random, known=known)
            chain = replace(chain, links=(*chain.links, link))
        return chain

    def _with_unmeasured(
        self, column: str, measured: Measured, n: int
    ) -> tuple[tuple[str, ...], tuple[Measurement, ...]]:
        """What a column was measured with, and other predictors that only a reference tells of, the
        nearest first, as long as its model stays small."""
        reads, tables = list(measured.order[column]), list(measured.noisy[column])
        domain, names = measured.domain, list(measured.order)
        n_rows, sizes = domain[column].n_cells, {ALONE: 1}
        sizes |= {name: own.n_cells for name, own in domain.items()}
        sizes |= {name: own.cells.shape[1] for name, own in self.public.items()}
        effects = n_rows * (1 + sum(sizes[name] for name in reads))
        most = _MOST_OF_REFERENCE * min(1.0, _MANY / len(names)) ** 1.5
        for name in (*reversed(names[: names.index(column)]), *self.public):
            if name not in reads and effects + n_rows * sizes[name] <= most:
                effects += n_rows * sizes[name]
                reads.append(name)
                nothing = np.zeros((n_rows, sizes[name]))
                tables.append(Measurement(counts=nothing, variance=(_UNTOLD * n) ** 2))
        return tuple(reads), tuple(tables)

    def known(self, domain: Mapping[str, ColumnDomain]) -> KnownOf | None:
        """From a column and its predictors to the records of the reference in cells of `domain`."""
        own = self.reference
        return None if own is None else lambda column, reads: own.known(column, reads, domain)

    def one_way(self, df: pd.DataFrame, columns: Sequence[str]) -> Tables:
        """Counts of columns alone. Confidential."""
        cells = of_nothing(len(df)).cells
        own = ((self.domain[name], df[name]) for name in columns)
        return tuple(CrossTable(codes=d.places(y), n_rows=d.n_cells, cells=cells) for d, y in own)

    def two_way(self, df: pd.DataFrame, domain: Mapping[str, ColumnDomain]) -> Tables:
        """What is counted with predictors: each column with each of its own. Confidential."""
        places = {name: domain[name].places(df[name]) for name in self.order}
        return tuple(
            CrossTable(codes=places[column], n_rows=domain[column].n_cells, cells=each.cells)
            for column, reads in self.order.items()
            for each in predictors_of(reads, self.public, places, domain, len(df))
        )

    def noisy(self, tables: Tables, price: Price) -> NoisyTables:
        return noisy_tables(tables, price=price, relation=self.relation, unit=PARTS)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneWay:
    """Posterior of the log counts of a domain's cells given one noisy table: its `mode` (K,), and a
    `root` (K, R) of the covariance about it."""

    mode: FloatArray
    root: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Of the cells at the mode, shape (K,)."""
        return _shares(self.mode)

    def in_few(self, n: int, domain: ColumnDomain, few: ColumnDomain) -> Measurement:
        """The counts of n records in the cells of `few`, the domain after bins were merged."""
        first, counts = len(domain.levels), n * self.shares
        inner = first + np.searchsorted(domain.bins, few.bins[:-1])
        missing = [domain.n_cells - 1] if domain.missing else []
        starts: IntArray = np.array([*range(first), *inner, *missing], dtype=np.int64)
        slope = counts[:, None] * (self.root - self.shares @ self.root)
        variance = np.square(np.add.reduceat(slope, starts, axis=0)).sum(axis=1)
        return Measurement(
            counts=np.add.reduceat(counts, starts)[:, None], variance=variance[:, None]
        )

    def with_singles(
        self, domain: ColumnDomain, noisy: FloatArray, variance: float, n: int
    ) -> tuple[ColumnDomain, OneWay]:
        """The domain with each of its singles alone whose count of `noisy` (M,) stands out of the
        noise, and its cells: what their bin has beside them is even over the rest of it."""
        size, levels = math.sqrt(variance), np.array(domain.levels, dtype=np.float64)
        numbers = of_steps(domain.singles, domain.step or 1.0)
        places = np.flatnonzero((noisy > _OUT * size) & ~np.isin(numbers, levels))
        if not places.size:
            return domain, self
        fine = domain.with_singles(domain.singles[places])
        least, whole = pd.Series(fine.least()), n * self.shares
        parent = np.append(domain.cells_of(least), np.full(int(fine.missing), whole.size - 1))
        alone = fine.cells_of(pd.Series(numbers[places]))
        held, widths = np.zeros(fine.n_cells), np.ones(fine.n_cells)
        held[alone] = noisy[places]
        widths[levels.size : levels.size + len(fine.bins) - 1] = np.diff(fine.bins)
        widths[alone] = 0
        room, single = (np.bincount(parent, own, whole.size) for own in (widths, held))
        most = np.where(room > 0, np.minimum(1, _FULL * whole / np.maximum(single, size)), 1)
        full = room == 0
        most[full] = whole[full] / single[full]
        rest = np.where(full, 0, whole - most * single)
        counts = most[parent] * held + (rest / np.where(full, 1, room))[parent] * widths
        root = (whole / np.where(full, np.inf, rest))[parent][:, None] * self.root[parent]
        root[alone] = 0
        share = -size / np.maximum(rest, size)[parent]
        noise = np.where(parent[:, None] == parent[alone], share[:, None], 0.0)
        noise[alone] = np.diag(size / counts[alone])
        return fine, OneWay(mode=np.log(counts), root=np.hstack([root, noise]))

    def sample(self, n: int, rng: np.random.Generator) -> list[FloatArray]:
        """n draws of the shares."""
        normals = rng.standard_normal((n, self.root.shape[1]))
        return [_shares(self.mode + self.root @ normal) for normal in normals]


def _shares(log_counts: FloatArray) -> FloatArray:
    counts = np.exp(log_counts - log_counts.max())
    return np.asarray(counts / counts.sum())


class Smoothing:
    """To smooth one noisy table (K,) of n records; `known` (K,) are a reference's counts, `coarse`
    the block (K,) of each cell and noisy counts (B,) of blocks, of the same variance. `informed`:
    start from the density about noisy quartiles.

    Log counts of bins, s + e, are taken along the directions of s, in which both are independent:
    `design` (K, K), `rough` (B,) the squared second differences of each."""

    def __init__(
        self,
        noisy: FloatArray,
        *,
        variance: float,
        domain: ColumnDomain,
        n: int,
        known: FloatArray | None = None,
        coarse: tuple[IntArray, FloatArray] | None = None,
        informed: bool = True,
    ) -> None:
        # Errors of cells given both counts: variance on the diagonal, less `shared` in a block.
        self.block, self.shared = np.arange(noisy.size), np.zeros(noisy.size)
        if coarse is not None:
            self.block, of_blocks = coarse
            parts = 1 / (np.bincount(self.block) + 1)
            noisy = noisy + (parts * (of_blocks - np.bincount(self.block, noisy)))[self.block]
            self.shared = variance * parts
        self.starts = np.flatnonzero(np.diff(self.block, prepend=-1))
        self.noisy, self.variance, self.n, self.known = noisy, variance, n, known
        self.sd_of_line = _SD_OF_LINE if informed else _SD_OF_LEVEL
        first, n_bins, n_cells = len(domain.levels), max(0, len(domain.bins) - 1), domain.n_cells
        self.bins = bins = slice(first, first + n_bins)
        self.design, self.offset, self.rough = np.eye(n_cells), np.zeros(n_cells), np.zeros(n_bins)
        if n_bins:
            # Widths in steps, so that a level is a cell of one step, at their middle size.
            widths = np.log(np.diff(domain.bins))
            self.offset[bins] = widths - np.median(widths)
            edges = np.array(domain.bins)
            middle = _middle(edges, noisy[bins]) if informed else None
            if domain.center is not None and domain.unit is not None:
                middle = domain.center, domain.unit
            if middle is not None:
                away = ((edges[1:] + edges[:-1]) / 2 - middle[0]) / (_SPREAD * middle[1])
                self.offset[bins] -= _TAIL[int(np.ptp(widths) > 1)] * np.log1p(away**2)
        if n_bins > 2:
            second = _roughness(np.array(domain.bins), noisy[bins])
            values, self.design[bins, bins] = linalg.eigh(second)
            self.rough = np.maximum(values, 0)

    def fit(self) -> OneWay:
        scales, at = (10.0, 0.1), self._start()
        for _ in range(_STEPS):
            moved, root = self._step(at, self._precision(scales))
            found = self._new_scales(moved, root, scales)
            changed = np.abs(np.log(np.divide(found, scales))).max() + np.abs(moved - at).max()
            at, scales = moved, found
            if changed < _CLOSE:
                break
        spread = linalg.solve_triangular(root, np.eye(at.size), lower=True).T
        return OneWay(mode=self.offset + self.design @ at, root=np.asarray(self.design @ spread))

    def _start(self) -> FloatArray:
        """At a reference's counts, or at those of blocks above all noise: where few are expected
        slopes are about 0, so that no step leads up to them."""
        away = np.zeros(self.offset.size)
        if self.known is not None:
            away = np.log((self.known + _LEAST) / self.known.mean()) - self.offset
        elif self.shared.any():
            mu = np.bincount(self.block, self.n * _shares(self.offset))
            counts, noise = np.bincount(self.block, self.noisy), 2 * self.variance
            seen = counts > math.sqrt(noise * math.log(mu.size))
            away = np.log(np.where(seen, counts, mu) / mu)[self.block]
        return np.asarray(self.design.T @ away)

    def _smooth(self, scales: tuple[float, float]) -> FloatArray:
        """Variance of s in each direction, shape (B,)."""
        return 1 / (scales[0] * self.rough + 1 / self.sd_of_line**2 / max(self.rough.size, 1))

    def _precision(self, scales: tuple[float, float]) -> FloatArray:
        whole = np.full(self.offset.size, 1 / _SD_OF_LEVEL**2)
        whole[self.bins] = 1 / (self._smooth(scales) + scales[1] ** 2)
        return whole

    def _step(self, at: FloatArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
        """One Gauss-Newton step, halved until it helps, and the root of the precision before it."""
        p, noisy = _shares(self.offset + self.design @ at), self.noisy
        mu = self.n * p
        weight = 1 / (mu + max(self.variance, 1e-6))
        told, extra = noisy, np.zeros(noisy.size)
        if self.known is not None:
            times = self.n / self.known.sum()
            power = power_of_known(mu + _LEAST, np.full(mu.size, self.variance), times)
            told, extra = times * self.known, power / (times * (mu + _LEAST))
        turn = self.shared / (1 - self.shared * np.bincount(self.block, weight))

        def weighted(columns: FloatArray) -> FloatArray:
            own = weight[:, None] * columns
            blocks = turn[:, None] * np.add.reduceat(own, self.starts, axis=0)
            return own + weight[:, None] * blocks[self.block]

        slope = mu[:, None] * (self.design - p @ self.design)
        information = slope.T @ (weighted(slope) + extra[:, None] * slope)
        information.flat[:: at.size + 1] += precision
        root = linalg.cholesky(information, lower=True)
        rest = weighted((noisy - mu)[:, None]).ravel() + extra * (told - mu)
        move = linalg.cho_solve((root, True), slope.T @ rest - precision * at)

        def objective(here: FloatArray) -> float:
            found = self.n * _shares(self.offset + self.design @ here)
            off, beside = noisy - found, told - found
            fit = float(off @ weighted(off[:, None]).ravel() + extra @ np.square(beside))
            return fit + float(here @ (precision * here))

        before, length = objective(at), min(1.0, _FARTHEST / max(np.abs(move).max(), 1e-12))
        while length > 1e-3 and objective(at + length * move) > before:
            length /= 2
        return np.asarray(at + length * move), root

    def _new_scales(
        self, at: FloatArray, root: FloatArray, scales: tuple[float, float]
    ) -> tuple[float, float]:
        """MacKay's update of lambda and tau: s and e given their sum, in each direction."""
        n_bins = self.rough.size
        if n_bins < 3:
            return scales
        spread = linalg.solve_triangular(root, np.eye(at.size), lower=True)
        squares = (at**2 + np.square(spread).sum(axis=0))[self.bins]
        smooth, own = self._smooth(scales), scales[1] ** 2
        part, left = smooth / (smooth + own), smooth * own / (smooth + own)
        rough = float(self.rough @ (part**2 * squares + left))
        independent = float(np.sum((1 - part) ** 2 * squares + left))
        return (
            float(np.clip((n_bins - 2) / max(rough, 1e-12), *_SMOOTH)),
            float(np.clip(np.sqrt(independent / n_bins), *_OWN)),
        )


def _middle(edges: FloatArray, noisy: FloatArray) -> tuple[float, float]:
    """Median and half the distance of the quartiles of noisy counts in bins; counts below zero
    stay, or noise would add up over empty bins."""
    middle, below = (edges[1:] + edges[:-1]) / 2, np.cumsum(noisy)
    at = np.searchsorted(np.maximum.accumulate(below), np.array([0.25, 0.5, 0.75]) * below[-1])
    low, median, high = middle[np.minimum(at, middle.size - 1)]
    return float(median), max(float(high - low) / 2, float(np.median(np.diff(edges))))


def _roughness(edges: FloatArray, noisy: FloatArray) -> FloatArray:
    """Matrix (B, B) of squared second differences of bins on the scale arsinh((y - median) / half
    the distance of quartiles), all of the noisy counts: free near most records, stiff far out."""
    middle = (edges[1:] + edges[:-1]) / 2
    center_at, unit = _middle(edges, noisy)
    along = np.arcsinh((middle - center_at) / unit)
    slopes = np.diff(np.eye(middle.size), axis=0) / np.diff(along)[:, None]
    bends = np.diff(slopes, axis=0) / np.sqrt((along[2:] - along[:-2]) / 2)[:, None]
    center = int(np.clip(np.argmin(np.abs(middle - center_at)) - 1, 0, middle.size - 3))
    bends /= np.abs(bends[center, center])
    return np.asarray(bends.T @ bends)


def leaning(
    column: str,
    cells: Mapping[str, IntArray],
    domain: Mapping[str, ColumnDomain],
    public: Mapping[str, Predictor],
    rng: np.random.Generator,
) -> FloatArray:
    """Numbers in [0, 1) to order synthetic records (n,) by within bins of a column: a normal score,
    drawn within its bin by a linear regression on synthetic and public cells of all others. Drawn
    without them, it would flatten slopes, the more the wider bins are."""
    bins = len(domain[column].bins) - 1
    place, at = cells[column] - len(domain[column].levels), rng.random(cells[column].size)
    rows = np.flatnonzero((place >= 0) & (place < bins))
    reads, own = [*public, *(name for name in cells if name != column)], place[rows]
    if not reads or not rows.size:
        return at
    told = [each.cells for each in predictors_of(reads, public, cells, domain, at.size)]
    design = sparse.csr_array(sparse.hstack(told, format="csr")[rows] / PARTS)
    held = np.bincount(own, minlength=bins) / rows.size
    cuts = special.ndtri(np.minimum(np.append(0, np.cumsum(held)), 1))
    heights = np.exp(-(cuts**2) / 2) / math.sqrt(2 * math.pi)
    scores = (-np.diff(heights) / np.maximum(held, 1e-12))[own]
    information = (design.T @ design).toarray() + np.eye(design.shape[1])
    mean = design @ linalg.solve(information, design.T @ scores, assume_a="pos")
    mean /= max(float(np.mean(scores**2)), _LEAST_LEFT)  # what bins leave of the variance
    size = max(1 - float(np.var(mean)), _LEAST_LEFT) ** 0.5
    low, high = (special.ndtr(np.clip((cuts[own + k] - mean) / size, -7, 7)) for k in (0, 1))
    at[rows] = special.ndtr(mean + size * special.ndtri(low + (high - low) * at[rows]))
    return np.minimum(at, 1 - 1e-9)  # below the next bin's numbers


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reference:
    """A reference table, the power of its likelihood, in (0, 1], and its public predictors in the
    cells of the data's."""

    table: pd.DataFrame
    weight: float
    public: Mapping[str, Predictor]

    def counts(self, column: str, domain: ColumnDomain) -> FloatArray:
        """Weighted counts of a column's cells, shape (K,)."""
        own = domain.places(self.table[column])
        return self.weight * np.bincount(own, minlength=domain.n_cells).astype(np.float64)

    def known(self, column: str, reads: Sequence[str], domain: Mapping[str, ColumnDomain]) -> Known:
        """Its records in the cells of a column and of its predictors."""
        names = [column, *(name for name in reads if name not in self.public and name != ALONE)]
        places = {name: domain[name].places(self.table[name]) for name in names}
        own = predictors_of(reads, self.public, places, domain, len(self.table))
        whole = sparse.csr_array(sparse.hstack([each.cells for each in own], format="csr"))
        return Known(outcome=places[column], cells=whole / PARTS, weight=self.weight)
