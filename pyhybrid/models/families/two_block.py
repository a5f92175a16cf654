"""Zeros, codes and missing values: whether an outcome is one of them, and its value if it is none.

Blocks share no parameters: missing, then the codes in their order, then 0 have a Bernoulli model
each, by the same formula, of the records that are none of those before; the model itself is of the
others. What a record tells is the sum of its log-likelihoods in its blocks, so that weights and
bounds act on the whole record and one charge covers all. Predictors are coded with those of all
records: which of them reach a block is confidential and must not shape the coding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import BoolArray, FloatArray, IntArray, check_finite, check_flag
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.rows import Rows, distinct_rows
from pyhybrid.engines.base import Draws, StanProgram, of_block
from pyhybrid.models.base import BLOCK_ELEMENTS, BoundModel, SurveyWeights
from pyhybrid.models.columns.form import Form, OutcomeLevels, numbers_in
from pyhybrid.models.columns.support import check_decimals, support_said
from pyhybrid.models.families.coefficients import LinearModel
from pyhybrid.models.families.regression import BoundRegression, LeveledModel, RegressionModel
from pyhybrid.models.formula.design import Matrix, check_table
from pyhybrid.models.formula.terms import parse_formula, sides_of
from pyhybrid.models.formula.values import column_like, is_number, with_columns
from pyhybrid.models.grid import Axis
from pyhybrid.models.laws import BERNOULLI, Law
from pyhybrid.models.scoring import BlockScoring, Scoring


def value_of(block: str) -> float:
    """What a record has of which the block of this name says yes."""
    named = {"missing": np.nan, "zero": 0.0}
    return named[block] if block in named else float(block)


@dataclass(frozen=True)
class Indicator(LeveledModel, LinearModel):
    """An outcome with two levels, under a logistic regression; see `pyhybrid.Bernoulli`."""

    _: KW_ONLY
    prior: str = "normal"
    n_levels: ClassVar[int | None] = 2
    numbers: ClassVar[tuple[Any, ...] | None] = (0, 1)
    grid_axes: ClassVar[tuple[Axis, ...]] = (Axis(name="logit", lower=-40, upper=40, size=160_000),)
    program_name: ClassVar[str] = "bernoulli"
    parameters: ClassVar[tuple[str, ...]] = ("beta",)
    law: ClassVar[Law] = BERNOULLI

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        levels = super().levels_of(values, name)
        if len(levels.values) > 2 or (len(levels.values) < 2 and not levels.read):
            raise InvalidInput(
                f"outcome {name!r} must have 2 levels for Bernoulli: found {len(levels.values)}; "
                "declare the two with levels= if it has no others, or take another model"
            )
        return levels


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """A model joined to the records `at` (k,), ascending, that reach it; `name` is the suffix of
    its variables, as in ``beta_zero``. Confidential."""

    name: str
    bound: BoundRegression
    at: IntArray

    def draws_of(self, draws: Draws) -> Draws:
        return replace(draws, variables=of_block(draws.variables, self.name))


def check_one_block(bound: BoundModel) -> None:
    """Raise InvalidInput for a model in blocks, where a cap is to clip what a record tells."""
    if bound.blocks:
        raise InvalidInput(
            "a cap needs a model without zeros=, codes= and missing=: it clips what a record tells "
            "in all, and the blocks of such a model are sampled one by one; take another mechanism"
        )


@dataclass(frozen=True)
class BlockModel(RegressionModel):
    """A model whose outcome may be missing, or 0, or a code.

    Parameters
    ----------
    zeros, missing : bool, keyword
        True if the outcome may be 0, or missing, by a Bernoulli model of the same formula under its
        default prior; the model itself then draws no 0. A cap does not take such a model.
    codes : tuple of float, optional, keyword
        Answers that are no amounts, such as -9 for refused: public, released in their shares, each
        by a Bernoulli model as that of zeros; no amount that is drawn is one of them.
    """

    _: KW_ONLY
    zeros: bool = False
    missing: bool = False
    codes: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.missing, "missing")
        if check_flag(self.zeros, "zeros") and isinstance(self, LeveledModel):
            raise InvalidInput(f"zeros=True is for amounts and counts: found {self.name}")
        if self.codes is not None:
            object.__setattr__(self, "codes", self._checked_codes(self.codes))

    def form_of(self, column: pd.Series) -> Form | None:
        form = super().form_of(column)
        return form if form is None else replace(form, missing=self.missing)

    def _checked_codes(self, codes: Any) -> tuple[float, ...]:
        if isinstance(codes, str) or not isinstance(codes, Sequence) or not codes:
            raise InvalidInput("codes must be a tuple of numbers, such as (-9, -8)")
        numbers = [check_finite(code, "each of codes") for code in codes]
        check_decimals(self.given_decimals)
        plain = tuple(int(code) if code.is_integer() else code for code in numbers)
        decimals = self.given_decimals
        if isinstance(self, LeveledModel):
            raise InvalidInput(f"codes= are for amounts and counts: {self.name} has levels=")
        if len({*plain}) < len(plain) or (self.zeros and 0 in plain):
            raise InvalidInput("codes must be different, and 0 none of them beside zeros=True")
        if decimals is not None and any(round(code, decimals) != code for code in plain):
            raise InvalidInput(f"codes must be numbers of {decimals} decimals, as amounts are")
        return plain

    @property
    def points(self) -> tuple[float, ...]:
        """Numbers that have a block of their own, and no amount is drawn at."""
        return (*(self.codes or ()), *((0.0,) if self.zeros else ()))

    @property
    def block_names(self) -> tuple[str, ...]:
        """Names of the blocks beside that of the values, in the order in which they are asked."""
        codes = tuple(map(str, self.codes or ()))
        return ("missing",) * self.missing + codes + ("zero",) * self.zeros

    def scoring(self, matrix: Matrix) -> Scoring:
        """Scores at the rows of a design matrix, under normal priors; see `Scoring`."""
        values: Scoring = self.scoring_of_values(matrix)
        if not self.block_names:
            return values
        indicator = Indicator(self.formula).scoring_of_values(matrix)
        blocks = [(name, indicator) for name in self.block_names]
        return BlockScoring(blocks=(*blocks, ("value", values)))

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        what = " or ".join(self.block_names).replace("zero", "0")
        outcome = sides_of(self.formula)[0]
        said = f"Whether a value of {outcome} is {what} was modeled, too, and the charge covers it."
        return (said,) if what else ()

    def outcome_numbers(self, column: pd.Series) -> FloatArray:
        """As of other models; of one in blocks (n, B), NaN in blocks that a record does not reach,
        and in all of them for what the model does not take."""
        values = super().outcome_numbers(column)
        if not self.block_names:
            return values
        chosen = [_is_one(column, name, numbers_in(column)) for name in self.block_names]
        blocks, left = list[FloatArray](), np.any([*chosen, np.isfinite(values)], axis=0)
        for yes in chosen:
            blocks.append(np.where(left, yes, np.nan))
            left = left & ~yes
        return np.column_stack([*blocks, np.where(left, values, np.nan)])

    def bind(self, df: pd.DataFrame) -> BoundModel:
        """Join the model to `df`; InvalidInput as of `bind_at`."""
        if not self.block_names:
            return self.bind_at(df)
        check_table(df)
        outcome = parse_formula(self.formula, df).outcome
        column, at, blocks = df[outcome], np.arange(len(df)), list[Block]()
        if self.points and not is_number(column):
            raise InvalidInput(
                f"zeros=True or codes= needs a numeric outcome: {outcome!r} is {column.dtype}"
            )
        for name in self.block_names:
            decision = _is_one(column, name, column)
            indicator = Indicator(self.formula).bind_at(with_columns(df, {outcome: decision}), at)
            blocks.append(Block(name=name, bound=indicator, at=at))
            at = at[~decision[at]]
        bound = self.bind_at(df, at)
        blocks.append(Block(name="value", bound=bound, at=at))
        run = [block.bound.program for block in blocks]
        names, text = "_and_".join(p.name for p in run), "\n".join(p.text for p in run)
        return BoundBlocks(
            model=self, table=df, blocks=tuple(blocks), synthesized=bound.synthesized,
            reads=bound.reads, matrix=bound.design.recoded(df), levels=bound.levels,
            source=StanProgram(name=names, text=text),
            likelihood_parameters=tuple(
                f"{name}_{b.name}" for b in blocks for name in b.bound.likelihood_parameters
            ),
        )  # fmt: skip


def _is_one(column: pd.Series, block: str, numbers: Any) -> BoolArray:
    """Of which records the block says yes, whatever those before it say, shape (n,)."""
    yes = column.isna() if block == "missing" else pd.Series(numbers) == value_of(block)
    return yes.to_numpy(dtype=bool, na_value=False)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundBlocks(BoundModel):
    """A model in blocks joined to a table; the last block is that of the values. The blocks are
    sampled one after the other. Confidential."""

    model: BlockModel
    blocks: tuple[Block, ...]

    @property
    def value(self) -> BoundRegression:
        return self.blocks[-1].bound

    def numbers_of(self, column: pd.Series) -> FloatArray:
        there = column.notna().to_numpy(dtype=bool)
        values = np.full(len(column), np.nan)
        values[there] = self.value.numbers_of(column[there])
        return values

    @property
    def data_dependent(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for b in self.blocks for text in b.bound.data_dependent))

    @property
    def assumptions(self) -> tuple[str, ...]:
        low, high = self.value.model.ends
        ends = min(low, *self.model.points, low), max(high, *self.model.points, high)
        said = support_said(self.synthesized[0], ends)
        return (*self.model.assumptions, *said, *super().assumptions)

    @cached_property
    def decimals(self) -> int | None:
        return self.value.decimals

    def with_survey(self, survey: SurveyWeights) -> BoundModel:
        blocks = tuple(
            replace(b, bound=replace(b.bound, survey=replace(survey, weight=survey.weight[b.at])))
            for b in self.blocks
        )
        return replace(self, survey=survey, blocks=blocks)

    @cached_property
    def row_in(self) -> IntArray:
        """Row of each record in each block, shape (n, B); -1 where it does not reach it."""
        row_in = np.full((self.n, len(self.blocks)), -1, dtype=np.intp)
        for place, block in enumerate(self.blocks):
            row_in[block.at, place] = block.bound.row_of
        return row_in

    @cached_property
    def rows(self) -> Rows:
        """Distinct records: of the same row in every block."""
        return distinct_rows(self.row_in.astype(np.float64))

    @property
    def row_of(self) -> IntArray:
        return self.rows.row_of

    def stan_data(self, alpha: FloatArray, **how: Any) -> dict[str, Any]:
        raise InvalidInput(
            "a model with zeros=, codes= or missing= has a data block for each of its blocks"
        )

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """The sum over the blocks that a record reaches, (S, b) at a time."""
        draws_of = {b.name: b.draws_of(draws) for b in self.blocks}
        size = max(1, BLOCK_ELEMENTS // draws.n_draws)
        for start in range(0, self.rows.first.size, size):
            first = self.rows.first[start : start + size]
            total = np.zeros((draws.n_draws, first.size))
            for block, row_of in zip(self.blocks, self.row_in[first].T, strict=True):
                reached = row_of >= 0
                rows, column = np.unique(row_of[reached], return_inverse=True)
                if rows.size:
                    terms = np.hstack([*block.bound.terms(draws_of[block.name], rows)])
                    total[:, reached] += terms[:, column]
            yield total

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        return {
            f"{name}_{b.name}": values
            for b in self.blocks
            for name, values in b.bound.monitored(b.draws_of(draws)).items()
        }

    def replicate(
        self, draws: Draws, draw: int, rng: np.random.Generator, given: pd.DataFrame | None = None
    ) -> pd.DataFrame:
        table = self.table if given is None else given
        values, at = np.full(self.n, np.nan), np.arange(self.n)
        for block in self.blocks[:-1]:
            matrix = block.bound.design.recoded(table)
            yes = block.bound.drawn(block.draws_of(draws), draw, rng, matrix, at) == 1
            values[at[yes]] = value_of(block.name)
            at = at[~yes]
        if at.size:
            of_value, matrix = self.blocks[-1].draws_of(draws), self.value.design.recoded(table)
            values[at] = self.value.drawn(of_value, draw, rng, matrix, at, self.model.points)
        there, like = ~np.isnan(values), self.table[self.synthesized[0]]
        if there.all():
            return self.value.released(values, like).to_frame()
        return with_missing(self.value.released(values[there], like[there]), there, like).to_frame()


def with_missing(values: pd.Series, there: BoolArray, like: pd.Series) -> pd.Series:
    """`values` (k,) where they are `there` (n,), and elsewhere what `like` (n,) has for missing."""
    places = np.where(there, np.cumsum(there) - 1, -1)
    if values.dtype == object:
        gone = like[like.isna()]
        whole = np.full(len(like), gone.iloc[0] if len(gone) else None, dtype=object)
        whole[there] = values.to_numpy(dtype=object)
        return column_like(whole, like, object)
    taken = pd.api.extensions.take(values.array, places, allow_fill=True)
    return column_like(taken, like)
