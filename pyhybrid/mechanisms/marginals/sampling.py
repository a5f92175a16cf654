"""Synthetic sets from the models of all columns: several that differ honestly, or one even set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.randomness import Streams
from pyhybrid.fitting.replicates import joined
from pyhybrid.mechanisms.marginals.chain import Chain
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.marginals.effects import Effects
from pyhybrid.mechanisms.marginals.measurement import Measured
from pyhybrid.mechanisms.marginals.one_way import within

__all__ = ["Sets"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sets:
    """What each of m sets is drawn from.

    Attributes
    ----------
    chain : Chain
    few : mapping of str to ColumnDomain
        Columns as they were measured, with merged bins.
    effects : sequence of mapping, or None for the modes
        Of each set, by column.
    shares : sequence of mapping of str to ndarray
        Of each set: shares of the bins of columns that were measured alone, too.
    even : bool
        Of a single set the tables are those of the model. Sets that are compared with each other
        have the sampling noise that rules for several sets count on.
    """

    chain: Chain
    few: Mapping[str, ColumnDomain]
    effects: Sequence[Mapping[str, Effects] | None]
    shares: Sequence[Mapping[str, FloatArray]]
    even: bool

    @classmethod
    def of(
        cls, chain: Chain, found: Measured, m: int, *, noise_aware: bool, random: Streams
    ) -> Sets:
        """m sets, from draws of the effects, or all from the modes."""
        apart = noise_aware and m > 1
        return cls(
            chain=chain,
            few=found.domain,
            effects=chain.sample(m, random) if apart else [None] * m,
            shares=found.shares(m, random.generator("alone")) if apart else [found.modes] * m,
            even=m == 1,
        )

    def table(
        self, place: int, df: pd.DataFrame, domain: Mapping[str, ColumnDomain], random: Streams
    ) -> pd.DataFrame:
        """Set `place`, from 0: public columns of `df`, and values of `domain` for the others."""
        name = place + 1
        cells = self.chain.simulate(
            random, f"marginals/{name}", self.effects[place], even=self.even
        )
        for column, shares in self.shares[place].items():
            rng = random.generator(f"bins/{name}/{column}")
            cells[column] = within(
                domain[column], self.few[column], cells[column], shares, rng, even=self.even
            )
        columns = {
            column: domain[column].values(
                own, random.generator(f"within/{name}/{column}"), df[column], even=self.even
            )
            for column, own in cells.items()
        }
        return joined(df, pd.DataFrame(columns, index=df.index))
