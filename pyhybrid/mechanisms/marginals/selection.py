r"""The private choice of tables: one after the other, where the model so far errs most.

Every column is first measured alone. Then, in rounds, a table is chosen by the exponential
mechanism, is measured with noise, and its column's model is fitted anew (AIM, of McKenna and
others, with log-linear models of columns in the place of a graphical model). The score of the table
c of a column with a predictor is

.. math:: u_c(x) = \lVert M_c(x) - M_c(\hat\theta) \rVert_1
    - K_c L_c \operatorname{E}|\text{noise}|,

M the counts of the records, and of rows simulated from the model so far: the error of the table,
less the error that noise alone would cause.

**Sensitivity.** The model comes from noisy answers alone, so that :math:`M_c(\hat\theta)` and the
noise are the same for neighbors at any given earlier answers, and by the triangle inequality

.. math:: |u_c(x) - u_c(x')| \le \lVert M_c(x) - M_c(x') \rVert_1 \le 1
    \text{ (remove), } 2 \text{ (replace)},

as a record adds 1 to each table, in one cell or shared out between cells of a public number. No
weights of a column and no squares are in it: these would change by more.

**Price.** Rounds are composed adaptively: pure prices add, and so does rho, of which the
exponential mechanism at epsilon takes epsilon^2 / 8. A round starts with a small part of the price.
Where the model's table moved by less than the noise of the measurement that moved it, so that
smaller noise is needed to learn more, the parts of later rounds grow (annealing): noise of half the
scale, which is twice the epsilon or four times the rho. The last round takes what is left. That
prices of later rounds depend on earlier answers changes nothing, as their sum is fixed beforehand.

References
----------
McKenna, Mullins, Sheldon, Miklau (2022), AIM: an adaptive and iterative mechanism for
differentially private synthetic data, PVLDB 15:2599-2612. [BS16]; Cesar, Rogers (2021), Bounding,
concentrating, and truncating: unifying privacy loss composition for data analytics, ALT (rho of
the exponential mechanism). Rogers, Roth, Ullman, Vadhan (2016), Privacy odometers and filters, and
Whitehouse, Ramdas, Rogers, Wu (2023), Fully-adaptive composition in differential privacy (prices
that depend on earlier answers).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import sparse

from pyhybrid.core.checks import FloatArray, did_you_mean, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.domain import ALONE, PARTS, IntArray
from pyhybrid.mechanisms.marginals.log_linear import Chain, Measurement, fit_link
from pyhybrid.mechanisms.marginals.measurement import Measured, Measuring, Tables
from pyhybrid.primitives.laplace import CHANGED
from pyhybrid.primitives.selection import NoisyChoice, exponential_mechanism
from pyhybrid.primitives.tables import CrossTable, NoisyTables, Price, size_of_noise

MOST_EFFECTS_OF_A_ROUND = 1000  # of one column: fits are many, and take their third power
_CHOICE = 0.1  # of a round's price, for the choice
_NOTHING_LEFT = 1e-9
_ROUNDED = 1 + 1e-6  # sums of floating-point numbers, of up to 10^9 records
ROUNDS = 30
"""At the price of the first one, if no round's price grew."""
SELECTS = ("all", "private")
"""How the tables to measure are found: all that are named, or a private choice of them."""
Clique = tuple[str, str]
"""A column and a predictor."""


def chosen_tables(
    measuring: Measuring, df: pd.DataFrame, random: Streams, *, most_rounds: int = ROUNDS
) -> Measured:
    """Measure all columns alone, then tables chosen by noisy scores: the first round takes
    1 / most_rounds of what is left for rounds, and fewer follow if parts grow."""
    n_tables = sum(len(reads) for reads in measuring.order.values())
    if n_tables < 2:
        raise InvalidInput(
            "select='private' must have two tables or more to choose among: found "
            f"{n_tables}; take select='all'"
        )
    replace(measuring, order=dict.fromkeys(measuring.order, ())).check_sizes()
    rounds = _Rounds(measuring, df, random)
    left, part = 1.0, 1 / most_rounds
    price = measuring.price.part(1 - measuring.share)
    while left > _NOTHING_LEFT:
        part = left if left < 2 * part else part
        if rounds.take(price.part(part)):
            left -= part
        else:
            break
        if rounds.moved <= rounds.noise:  # less was learned than the noise of the measurement
            part *= 2 if price.rho is None else 4
    return rounds.measured()


def score(true: FloatArray, modeled: FloatArray, size: float) -> float:
    """What a model's table is off by, less noise of mean size `size` on each cell; changes by no
    more than a neighbor changes `true` (see the module)."""
    return float(np.abs(true - modeled).sum() - size * true.size)


class _Rounds:
    """What was measured so far, and its model."""

    def __init__(self, measuring: Measuring, df: pd.DataFrame, random: Streams) -> None:
        """Every column alone, its bins merged, and the model of independent columns."""
        self.measuring, self.random, names = measuring, random, tuple(measuring.order)
        first = measuring.first(df)
        self.alone, self.fine, self.domain = first.alone, first.fine, first.domain
        self.noisy = {name: {ALONE: table} for name, table in first.tables.items()}
        self.tables = by_candidate(measuring, measuring.two_way(df, self.domain))
        self.true = {clique: true_counts(table) for clique, table in self.tables.items()}
        self.answers: list[NoisyTables] = [first.answer]
        self.choices: list[NoisyChoice] = []
        self.chain = Chain(links=(), domain=self.domain, public=measuring.public, n=len(df))
        self.rows: dict[str, IntArray] = {}
        self.modeled: dict[Clique, FloatArray] = {}
        self.moved = self.noise = 0.0
        for name in names:
            self.fit(name)
        self.look()

    def take(self, price: Price) -> bool:
        """One round at `price`; False if no table is left that a model could hold."""
        among = [each for each in self.tables if self._fits(each)]
        if len(among) < 2:
            return False
        relation = self.measuring.relation
        spent, of_choice = price.part(1 - _CHOICE), price.part(_CHOICE)
        size = size_of_noise(spent, relation)
        choice = exponential_mechanism(
            [score(self.true[each], self.modeled[each], size) for each in among],
            sensitivity=CHANGED[relation] * _ROUNDED,
            epsilon=of_choice.epsilon if of_choice.rho is None else math.sqrt(8 * of_choice.rho),
            relation=relation,
            candidates=among,
        )
        column, name = chosen = choice.candidate
        answer = self.measuring.noisy([self.tables[chosen]], spent)
        self.choices.append(choice)
        self.answers.append(answer)
        table = Measurement(counts=answer.tables()[0], variance=answer.variance)
        before = self.noisy[column].get(name)
        self.noisy[column][name] = table if before is None else before.with_another(table)
        self.fit(column)
        was = self.modeled[chosen]
        self.look(list(self.measuring.order).index(column))
        self.moved = float(np.abs(self.modeled[chosen] - was).sum())
        self.noise = size * was.size
        return True

    def fit(self, column: str) -> None:
        """The column's model, in its place."""
        names = list(self.measuring.order)
        place = names.index(column)
        links = self.chain.links
        before = replace(self.chain, links=links[:place])
        own = self._reads(column)
        link = fit_link(
            before, column, own, [self.noisy[column][name] for name in own],
            random=self.random.child(f"round {len(self.choices)}"),
            known=self.measuring.known(self.domain),
            earlier=links[place] if place < len(links) else None,
        )  # fmt: skip
        self.chain = replace(self.chain, links=(*before.links, link, *links[place + 1 :]))

    def look(self, first: int = 0) -> None:
        """Tables of rows simulated from the model, as of n records; those of the columns before
        the place `first`, whose models are as they were, stay."""
        names = list(self.measuring.order)
        kept, changed = names[:first], set(names[first:])
        many = self.chain.repeated
        self.rows = many.simulate(
            self.random, "rows", kept={name: self.rows[name] for name in kept}
        )
        for column, name in self.tables:
            if column in changed:
                there, n_rows = many.public.get(name), self.domain[column].n_cells
                cells = (self.rows[name], self.domain[name].n_cells) if not there else there.cells
                counts = counts_of(self.rows[column], n_rows, cells)
                self.modeled[column, name] = counts * (self.chain.n / many.n)

    def _reads(self, column: str) -> tuple[str, ...]:
        """What the column was measured with, in the order of its predictors."""
        own = self.noisy[column]
        return (ALONE, *(name for name in self.measuring.order[column] if name in own))

    def _fits(self, candidate: Clique) -> bool:
        column, name = candidate
        cells = {own: self.noisy[column][own].counts.shape[1] for own in self.noisy[column]}
        cells[name] = self.tables[candidate].shape[1]
        effects = self.domain[column].n_cells * (1 + sum(cells.values()))
        return bool(effects <= MOST_EFFECTS_OF_A_ROUND)

    def measured(self) -> Measured:
        order = {name: self._reads(name) for name in self.measuring.order}
        return Measured(
            order=order,
            noisy={name: tuple(self.noisy[name][own] for own in reads)
                   for name, reads in order.items()},
            domain=self.domain,
            fine=self.fine,
            alone=self.alone,
            answers=tuple(self.answers),
            choices=tuple(self.choices),
        )  # fmt: skip


def by_candidate(measuring: Measuring, tables: Tables) -> dict[Clique, CrossTable]:
    """Tables as `Measuring.two_way` lists them, but those of columns without predictors."""
    names = [(name, own) for name, reads in measuring.order.items() for own in reads or (ALONE,)]
    return {each: table for each, table in zip(names, tables, strict=True) if each[1] != ALONE}


def true_counts(table: CrossTable) -> FloatArray:
    """Records in each cell, (K L,). Confidential."""
    return counts_of(table.codes, table.n_rows, table.cells)


def counts_of(
    codes: IntArray, n_rows: int, cells: sparse.csr_array | tuple[IntArray, int]
) -> FloatArray:
    """Of records in rows (n,) that are shared out over columns, or each in one: (n_rows L,)."""
    if isinstance(cells, tuple):
        places, n_columns = cells
        held = codes * n_columns + places
        weights = np.ones(codes.size)
    else:
        n_columns = cells.shape[1]
        held = np.repeat(codes, np.diff(cells.indptr)) * n_columns + cells.indices
        weights = cells.data / PARTS
    counts = np.bincount(held, weights=weights, minlength=n_rows * n_columns)
    return np.asarray(counts, dtype=np.float64)


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


def noise_of(answers: Sequence[NoisyTables], choices: Sequence[NoisyChoice]) -> str:
    """All noise, scale by scale."""
    same: dict[str, list[NoisyTables]] = {}
    for answer in answers:
        same.setdefault(f"{answer.noise} of scale {answer.scale:g}", []).append(answer)
    told = []
    for noise, own in same.items():
        n_tables = sum(len(answer.shapes) for answer in own)
        counts = sum(answer.value.size for answer in own)
        told.append(
            f"{noise} on each count of {number_of(n_tables, 'table')}, {counts} counts in all"
        )
    scales = Counter(f"{choice.scale:g}" for choice in choices)
    told += [
        f"Gumbel of scale {scale} on the scores of {number_of(times, 'choice')}"
        for scale, times in scales.items()
    ]
    return "; ".join(told)
