"""The noisy tables of a release: all that looks at confidential values.

In one step, or in two: first every column of many bins alone, then, with neighboring bins merged,
each column with each of its predictors. Which bins are merged is read off the noisy counts of the
first step, so that both together cost what their parts add to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.chain import Chain, KnownOf, fit_chain, predictors_of
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.marginals.effects import TableWithNoise
from pyhybrid.mechanisms.marginals.log_linear import MOST_EFFECTS
from pyhybrid.mechanisms.marginals.one_way import OneWay, fit_one_way, merged
from pyhybrid.mechanisms.marginals.predictors import ALONE, PARTS, Predictor, of_nothing
from pyhybrid.mechanisms.marginals.reference import Reference
from pyhybrid.primitives.selection import NoisyChoice
from pyhybrid.primitives.tables import CrossTable, NoisyTables, Price, noisy_tables

__all__ = ["Columns", "Measured", "Measuring", "check_columns", "check_predictors", "most_cells"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """What came out: functions of noisy counts, all of it.

    Attributes
    ----------
    order : mapping of str to tuple of str
        Predictors that each column was measured with.
    noisy : mapping of str to tuple of TableWithNoise
        Of each column with each of these.
    domain : mapping of str to ColumnDomain
        That these were counted in.
    alone : mapping of str to OneWay
        Of the columns whose bins were merged.
    answers : tuple of NoisyTables
    choices : tuple of NoisyChoice
        Of tables to measure. The prices of all answers and choices add.
    """

    order: Mapping[str, tuple[str, ...]]
    noisy: Mapping[str, tuple[TableWithNoise, ...]]
    domain: Mapping[str, ColumnDomain]
    alone: Mapping[str, OneWay]
    answers: tuple[NoisyTables, ...]
    choices: tuple[NoisyChoice, ...] = ()

    def shares(self, n: int, rng: np.random.Generator) -> list[dict[str, FloatArray]]:
        """n draws of the shares of all cells of the columns whose bins were merged."""
        each = {name: own.sample(n, rng) for name, own in self.alone.items()}
        return [{name: drawn[place] for name, drawn in each.items()} for place in range(n)]

    @property
    def modes(self) -> dict[str, FloatArray]:
        """The most probable shares of the same cells."""
        return {name: own.shares for name, own in self.alone.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """`Measured.domain` and `Measured.alone`."""

    domain: Mapping[str, ColumnDomain]
    alone: Mapping[str, OneWay]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measuring:
    """What is counted, and at what price.

    Attributes
    ----------
    domain : mapping of str to ColumnDomain
        Of the synthesized columns.
    order : mapping of str to tuple of str
        Predictors of each.
    public : mapping of str to Predictor
    most_bins : int or None
        Of a column in two-way tables; None for all of its domain, in one step.
    share : float
        Of the price, for the first step.
    price : Price
        Of one row, all tables together.
    relation : str
    reference : Reference, optional
        Whose records count beside the noisy tables.
    """

    domain: Mapping[str, ColumnDomain]
    order: Mapping[str, tuple[str, ...]]
    public: Mapping[str, Predictor]
    most_bins: int | None
    share: float
    price: Price
    relation: str
    reference: Reference | None = None

    @property
    def binned(self) -> tuple[str, ...]:
        """Columns that are measured alone first."""
        return tuple(name for name in self.order if _is_merged(self.domain[name], self.most_bins))

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
        if not self.binned:
            return self._all_tables(df, self.price, Columns(domain=self.domain, alone={}))
        first = self.noisy(self.one_way(df, self.binned), self.price.part(self.share))
        columns = self.alone(dict(zip(self.binned, first.tables(), strict=True)), first.variance)
        return self._all_tables(df, self.price.part(1 - self.share), columns, first)

    def _all_tables(
        self, df: pd.DataFrame, price: Price, columns: Columns, *before: NoisyTables
    ) -> Measured:
        """Every column with each of its predictors, at once."""
        answer = self.noisy(self.two_way(df, columns.domain), price)
        tables = iter(answer.tables())
        noisy = {
            name: tuple(
                TableWithNoise(counts=next(tables), variance=answer.variance)
                for _ in reads or (ALONE,)
            )
            for name, reads in self.order.items()
        }
        return Measured(
            order=self.order,
            noisy=noisy,
            domain=columns.domain,
            alone=columns.alone,
            answers=(*before, answer),
        )

    def alone(self, counts: Mapping[str, FloatArray], variance: float) -> Columns:
        """Columns of many bins from their noisy counts (K, 1), and these bins merged."""
        if self.most_bins is None:
            return Columns(domain=self.domain, alone={})
        alone = {
            name: fit_one_way(
                counts[name].ravel(),
                variance=variance,
                domain=self.domain[name],
                known=self.counts_known(name),
            )
            for name in self.binned
        }
        few = {name: merged(self.domain[name], own.shares, self.most_bins)
               for name, own in alone.items()}  # fmt: skip
        return Columns(domain={**self.domain, **few}, alone=alone)

    def chain(self, found: Measured, n: int, random: Streams) -> Chain:
        """The model of what came out."""
        return fit_chain(
            found.noisy,
            order=found.order,
            domain=found.domain,
            public=self.public,
            n=n,
            random=random,
            known=self.known(found.domain),
        )

    def counts_known(self, name: str) -> FloatArray | None:
        """Counts of a column in the reference, shape (K,), if there is one."""
        own = self.reference
        return None if own is None else own.counts(name, self.domain[name])

    def known(self, domain: Mapping[str, ColumnDomain]) -> KnownOf | None:
        """From a column and its predictors to the records of the reference in cells of `domain`."""
        own = self.reference
        return None if own is None else lambda column, reads: own.known(column, reads, domain)

    def one_way(self, df: pd.DataFrame, columns: Sequence[str]) -> tuple[CrossTable, ...]:
        """Counts of columns alone. Confidential."""
        cells = of_nothing(len(df)).cells
        return tuple(
            CrossTable(
                codes=self.domain[name].places(df[name]),
                n_rows=self.domain[name].n_cells,
                cells=cells,
            )
            for name in columns
        )

    def two_way(
        self, df: pd.DataFrame, domain: Mapping[str, ColumnDomain]
    ) -> tuple[CrossTable, ...]:
        """What is counted with predictors: each column with each of its own. Confidential."""
        places = {name: domain[name].places(df[name]) for name in self.order}
        return tuple(
            CrossTable(codes=places[column], n_rows=domain[column].n_cells, cells=each.cells)
            for column, reads in self.order.items()
            for each in predictors_of(reads, self.public, places, domain, len(df))
        )

    def noisy(self, tables: Sequence[CrossTable], price: Price) -> NoisyTables:
        return noisy_tables(tables, price=price, relation=self.relation, unit=PARTS)


def check_columns(
    df: pd.DataFrame, synthesized: Sequence[str], given: Sequence[str], delta: float | None
) -> None:
    """Refuse a table that lacks a column, or is too large for a delta."""
    if not isinstance(df, pd.DataFrame) or len(df) == 0:
        raise InvalidInput(f"data must be a DataFrame with rows: found {type(df).__name__}")
    twice = df.columns[df.columns.duplicated()]
    if len(twice):
        raise InvalidInput(f"column names must be unique: {twice[0]!r} occurs more than once")
    for column in (*synthesized, *given):
        if column not in df.columns:
            raise InvalidInput(
                f"column {column!r} must be in the data: found "
                f"{', '.join(str(c) for c in df.columns[:20])}"
                f"{did_you_mean(column, df.columns)}"
            )
    if delta is not None and delta * len(df) >= 1:
        raise InvalidInput(
            f"delta must be below 1 / n = {1 / len(df):.1e}, n the number of records: found "
            f"{delta:g}; a larger one would allow to publish a record as it is"
        )


def check_predictors(
    predictors: Mapping[str, Sequence[str]], given: Sequence[str], synthesizes: Sequence[str]
) -> None:
    """Refuse predictors that are neither public nor synthesized before their column."""
    known = (*given, *synthesizes)
    for column, reads in predictors.items():
        if column not in synthesizes:
            raise InvalidInput(
                f"predictors must be of columns that are synthesized: {column!r} is none"
                f"{did_you_mean(column, synthesizes)}"
            )
        before = (*given, *synthesizes[: synthesizes.index(column)])
        for name in reads:
            if name not in before:
                why = "comes later in domain" if name in known else "is no column of given"
                raise InvalidInput(
                    f"predictors of {column!r} must be public or synthesized before it: "
                    f"{name!r} {why}{did_you_mean(name, before)}"
                )


def most_cells(domain: ColumnDomain, most_bins: int | None) -> int:
    """Cells of a column in tables with predictors, at most."""
    merged_bins = 0 if most_bins is None else max(0, len(domain.bins) - 1 - most_bins)
    return domain.n_cells - merged_bins


def _is_merged(domain: ColumnDomain, most_bins: int | None) -> bool:
    return most_bins is not None and len(domain.bins) - 1 > most_bins
