"""Steps by which an outcome is made: whether it is missing, 0 or below 0, and how large it is.

Each step has a model of its own, joined to the records that reach it. Predictors are coded with
those of all records: which of them reach a step is confidential and must not shape the coding.

What a record tells is the sum of its log-likelihoods in all steps, so that weights, bounds and caps
act on the whole record, and one charge covers all parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.rows import Rows, distinct_rows
from pyhybrid.engines.base import Draws, FirstTry, StanProgram
from pyhybrid.engines.programs import DROPPED, SHARED, joint_program
from pyhybrid.models.base import Model
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import support_said
from pyhybrid.models.composite.survey_weighted import without_survey
from pyhybrid.models.families.coefficients import NORMAL_ACCEPTANCE
from pyhybrid.models.families.regression import (
    BoundRegression,
    Parameters,
    Positions,
    RegressionModel,
    cap_data,
    frozen_log_lik,
    weighted_rows,
)
from pyhybrid.models.formula.design import Design, Matrix, check_formulas
from pyhybrid.models.formula.terms import sides_of
from pyhybrid.models.formula.values import Completion, column_like, with_columns
from pyhybrid.models.grid import GridForm
from pyhybrid.privacy.censoring import Cap, FrozenParts, FrozenRows, FrozenTerms
from pyhybrid.privacy.log_lik import LogLik


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A model of one step, joined to the records `at` (k,), ascending, that reach it; `name` is the
    suffix of its parameters, as in ``beta_zero``. Confidential."""

    name: str
    bound: BoundRegression
    at: Positions

    def parameters(self, draws: Draws) -> Parameters:
        """Its parameters (S, *dims) by their own names."""
        return {
            name: draws.flat(f"{name}_{self.name}") for name in self.bound.likelihood_parameters
        }

    @cached_property
    def place_of(self) -> Positions:
        """Place of each record of the table among its own, shape (n,); -1 for none."""
        places = np.full(len(self.bound.table), -1, dtype=np.intp)
        places[self.at] = np.arange(self.at.size)
        return places


@dataclass(frozen=True, kw_only=True, eq=False)
class Constant:
    """All records that come here have one value; None is a missing one."""

    value: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Amount:
    """The value itself, `sign` times what the model gives, within limits before the sign; never the
    value `apart`, which a step before it gives."""

    part: Part
    sign: float = 1.0
    within: tuple[float, float] = (-np.inf, np.inf)
    apart: float | None = None

    @property
    def released_ends(self) -> tuple[float, float]:
        """Smallest and largest value that may be released, 0 for one next to it."""
        low, high = self.part.bound.model.declared_support or (-np.inf, np.inf)
        low, high = max(low, self.within[0]), min(high, self.within[1])
        low = 0.0 if 0 < low < np.finfo(np.float64).tiny else low
        return (low, high) if self.sign > 0 else (-high, -low)


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """A decision between two ways on, by a model of two levels: the second one is `yes`."""

    part: Part
    yes: Node
    no: Node


@dataclass(frozen=True, kw_only=True, eq=False)
class Inflated:
    """A mixture of a count and an extra zero; `at_zero` (n,): records whose count is 0."""

    zero: Part
    count: Amount
    at_zero: npt.NDArray[np.bool_]


Node = Constant | Amount | Step | Inflated


class PartsModel(ABC):
    """A model of one outcome made of several."""

    @property
    @abstractmethod
    def models(self) -> dict[str, RegressionModel]:
        """The models of its parts, by name."""

    @property
    @abstractmethod
    def main(self) -> RegressionModel:
        """The model of the values."""

    @abstractmethod
    def tree(self, df: pd.DataFrame, at: Positions) -> Node:
        """The steps of the records at the positions `at` (k,)."""

    def bind(self, df: pd.DataFrame) -> BoundParts:
        """Check `df` and join the model to it; see `RegressionModel.bind`."""
        check_formulas(df, [model.formula for model in self.models.values()])
        root = self.tree(df, np.arange(len(df)))
        return BoundParts(model=self, table=df, column=outcome_of(self.main), root=root)

    @property
    def name(self) -> str:
        return type(self).__name__

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Form of the outcome's column in a strict release: that of its values."""
        return self.main.forms(df)

    def describe(self) -> dict[str, Any]:
        """Public settings of all parts."""
        return {
            "model": self.name,
            "outcome": outcome_of(self.main),
            "formula": self.main.formula,
            **{name: model.describe() for name, model in self.models.items()},
        }


def outcome_of(model: RegressionModel) -> str:
    """The outcome that a formula names."""
    return sides_of(model.formula)[0]


def decision(
    df: pd.DataFrame, outcome: str, name: str, model: Any, at: Positions, yes: Any
) -> Part:
    """The part that says which of the records at `at` (k,) are `yes` (k,), by a Bernoulli model."""
    told = np.zeros(len(df), dtype=bool)
    told[at] = yes
    return Part(name=name, bound=model.bind(with_columns(df, {outcome: told}), at), at=at)


def of_part(draws: Draws, name: str) -> Draws:
    """The variables of one part, by their own names."""
    end = f"_{name}"
    own = {key.removesuffix(end): v for key, v in draws.variables.items() if key.endswith(end)}
    return replace(draws, variables=own)


@dataclass(frozen=True, kw_only=True, eq=False)
class Replicate:
    """One replicate while it is made: `values` (n,) are filled in, NaN where missing; `draws` and
    `matrices` are by part."""

    draws: Mapping[str, Draws]
    draw: int
    rng: np.random.Generator
    matrices: Mapping[str, Matrix]
    values: FloatArray

    def fill(self, node: Node, places: Positions) -> None:
        """Values of the records at `places` (k,), which come by this way."""
        if not places.size:
            return
        if isinstance(node, Constant):
            self.values[places] = np.nan if node.value is None else node.value
        elif isinstance(node, Amount):
            self.values[places] = node.sign * self._drawn(
                node.part, places, node.within, node.apart
            )
        elif isinstance(node, Inflated):
            extra = self._drawn(node.zero, places) == 1
            self.values[places[extra]] = 0.0
            self.fill(node.count, places[~extra])
        else:
            decided = self._drawn(node.part, places) == 1
            self.fill(node.yes, places[decided])
            self.fill(node.no, places[~decided])

    def _drawn(
        self,
        part: Part,
        places: Positions,
        *limits: Any,
    ) -> FloatArray:
        name, own = part.name, part.bound
        how = (self.draws[name], self.draw, self.rng, self.matrices[name], places)
        return own.drawn(*how, *limits)


def with_missing(values: pd.Series, there: npt.NDArray[np.bool_], like: pd.Series) -> pd.Series:
    """`values` (k,) where they are `there` (n,), and elsewhere what `like` (n,) has for missing."""
    places = np.where(there, np.cumsum(there) - 1, -1)
    if values.dtype == object:
        gone = like[like.isna()]
        whole = np.full(len(like), gone.iloc[0] if len(gone) else None, dtype=object)
        whole[there] = values.to_numpy(dtype=object)
        objects: pd.Series = pd.Series(whole, index=like.index, name=like.name, dtype=object)
        return objects
    taken = pd.api.extensions.take(values.array, places, allow_fill=True)
    return column_like(taken, like)


def parts_of(node: Node) -> Iterator[Part]:
    """All models, in the order of their steps."""
    if isinstance(node, Amount):
        yield node.part
    elif isinstance(node, Inflated):
        yield node.zero
        yield node.count.part
    elif isinstance(node, Step):
        yield node.part
        yield from parts_of(node.yes)
        yield from parts_of(node.no)


def amounts_of(node: Node) -> Iterator[Amount]:
    """Where values come from, those of the first sign first."""
    if isinstance(node, Amount):
        yield node
    elif isinstance(node, Inflated):
        yield node.count
    elif isinstance(node, Step):
        yield from amounts_of(node.no)
        yield from amounts_of(node.yes)


def _constants_of(node: Node) -> Iterator[float]:
    """Values that all records of a step have."""
    if isinstance(node, Step):
        yield from (*_constants_of(node.no), *_constants_of(node.yes))
    elif isinstance(node, Constant) and node.value is not None:
        yield node.value


def inflated_of(node: Node) -> Inflated | None:
    """The mixture among the steps, if there is one."""
    if isinstance(node, Step):
        return inflated_of(node.no) or inflated_of(node.yes)
    return node if isinstance(node, Inflated) else None


def terms_with_frozen(
    data: dict[str, Any], frozen: FrozenParts, n_rows: Mapping[str, int]
) -> dict[str, Any]:
    """A joint data block with the frozen records after the others; of each part, whose frozen rows
    stand after its own, `n_rows` are its own."""
    d = frozen.count.size
    after: dict[str, Any] = {
        "frequency": frozen.share,
        "weights": frozen.alpha,
        "reference": frozen.center,
        "unit": np.zeros(d, dtype=np.int64),
    }
    if "at_zero" in data:
        after["at_zero"] = frozen.at_zero.astype(np.int64)
    for name, own in n_rows.items():
        place = own + np.cumsum(frozen.reached[name])  # from 1: place 0 is a record of none
        after[f"row_{name}"] = np.where(frozen.reached[name], place + 1, 1)
    longer = {name: np.concatenate([data[name], own]) for name, own in after.items()}
    return {**data, **longer, "n_terms": data["n_terms"] + d, "n_frozen": d}


_BLOCK_ELEMENTS = 2_000_000


def _frozen_terms(part: Part, frozen: FrozenParts, draws: Draws, here: slice) -> FloatArray:
    """Unweighted log-likelihood (S, b) of the records `here` in one step, 0 of those not in it."""
    reached = frozen.reached[part.name]
    terms = np.zeros((draws.n_draws, frozen.count[here].size))
    if reached[here].any():
        before, among = int(reached[: here.start].sum()), int(reached[here].sum())
        rows = frozen.parts[part.name].some(slice(before, before + among))
        log_lik = frozen_log_lik(part.bound.model, rows, part.parameters(draws))
        terms[:, reached[here]] = np.hstack(list(log_lik.make()))
    return terms


def _slices(n: int, draws: Draws) -> Iterator[slice]:
    """Slices of n records."""
    size = max(1, _BLOCK_ELEMENTS // draws.n_draws)
    return (slice(start, start + size) for start in range(0, n, size))


def _rows_at(part: Part, places: Positions) -> FrozenRows:
    """A part's rows; what a record weighs and its center are of all its parts together."""
    own = part.bound.design
    return FrozenRows(
        y=own.y[places],
        X=own.X[places],
        offset=own.offset[places],
        alpha=np.ones(places.size),
        count=np.ones(places.size, dtype=np.int64),
        center=np.zeros(places.size),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundParts:
    """A model of several steps joined to a table, a `BoundModel`. Confidential. `completion`
    completes missing predictors for the parts; `said` are sentences that a charge must state."""

    model: Model
    table: pd.DataFrame
    column: str
    root: Node
    completion: Completion | None = None
    said: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.model.name} of {self.column!r} bound to {self.n} records>"

    @property
    def n(self) -> int:
        return len(self.table)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All models, in the order of their steps."""
        return tuple(parts_of(self.root))

    @cached_property
    def amounts(self) -> tuple[Amount, ...]:
        """Where values come from."""
        return tuple(amounts_of(self.root))

    @property
    def program(self) -> StanProgram:
        programs = {part.name: part.bound.program.name for part in self.parts}
        if any("/" in name for name in programs.values()):
            raise InvalidInput(
                "program='published' must be of a single model: the parts of "
                f"{self.model.name} are sampled by one program that joins theirs"
            )
        if self.inflated is None:
            return joint_program(programs, " + ".join(f"of_{name}" for name in programs))
        own = (self.inflated.zero.name, self.inflated.count.part.name)
        mixture = f"zero_inflated(of_{own[0]}, of_{own[1]}, at_zero)"
        others = [f"of_{name}" for name in programs if name not in own]
        return joint_program(
            programs,
            " + ".join([*others, mixture]),
            functions=("functions/zero_inflated.stan",),
            data="  array[n_terms] int<lower=0, upper=1> at_zero;  // 1: the count is 0\n",
        )

    @cached_property
    def inflated(self) -> Inflated | None:
        """The mixture of zeros and counts, if there is one."""
        return inflated_of(self.root)

    @property
    def synthesized(self) -> tuple[str, ...]:
        return (self.column,)

    @cached_property
    def matrix(self) -> Matrix:
        """Predictors of an amount, of all records, whether they have one or not."""
        table = self.table if self.completion is None else self.completion.of(self.table)
        return self.amounts[0].part.bound.design.recoded(table)

    @property
    def predictors(self) -> tuple[str, ...]:
        names = {name for part in self.parts for name in part.bound.predictors}
        return tuple(sorted({self.completion.source(n) if self.completion else n for n in names}))

    @property
    def outcome(self) -> FloatArray:
        return self.numbers_of(self.table[self.column])

    def numbers_of(self, column: pd.Series) -> FloatArray:
        there = column.notna().to_numpy(dtype=bool)
        values = np.full(len(column), np.nan)
        values[there] = self.amounts[0].part.bound.numbers_of(column[there])
        return values

    @property
    def design_columns(self) -> tuple[str, ...]:
        return tuple(
            f"{part.name}: {name}" for part in self.parts for name in part.bound.design_columns
        )

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        return tuple(
            f"{name}_{part.name}"
            for part in self.parts
            for name in part.bound.likelihood_parameters
        )

    @property
    def n_parameters(self) -> int:
        """Of all parts."""
        return sum(part.bound.n_parameters for part in self.parts)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        read = () if self.completion is None else self.completion.data_dependent
        own = (text for part in self.parts for text in part.bound.data_dependent)
        return tuple(dict.fromkeys((*own, *read)))

    @property
    def assumptions(self) -> tuple[str, ...]:
        ends = [amount.released_ends for amount in self.amounts]
        ends += [(value, value) for value in _constants_of(self.root)]
        whole = (min(low for low, _ in ends), max(high for _, high in ends))
        single = {
            text for amount in self.amounts
            for text in support_said(self.column, amount.part.bound.model.declared_support)
        }  # fmt: skip
        own = (text for part in self.parts for text in part.bound.assumptions)
        others = (text for text in own if text not in single)
        return tuple(dict.fromkeys((*self.said, *others, *support_said(self.column, whole))))

    @property
    def density_above_one(self) -> bool:
        return any(part.bound.density_above_one for part in self.parts)

    @property
    def first_try(self) -> FirstTry | None:
        """The most careful of the parts' first tries. None if one has none, or if zeros and counts
        are mixed under a published prior: what one part says of the other is not in its hints."""
        tries = [part.bound.first_try for part in self.parts]
        found = [each for each in tries if each is not None]
        if len(found) < len(tries):
            return None
        largest = max(each.acceptance for each in found)
        if self.inflated is not None and largest != NORMAL_ACCEPTANCE:
            return None
        metrics = {each.metric for each in found}
        return FirstTry(acceptance=largest, metric="adapted" if "adapted" in metrics else "unit")

    @property
    def takes_center(self) -> bool:
        return True

    @property
    def grid_form(self) -> GridForm | None:
        """None: there are too many parameters."""
        return None

    @property
    def decimals_given(self) -> bool:
        return all(amount.part.bound.decimals_given for amount in self.amounts)

    @property
    def decimals(self) -> int | None:
        return self.amounts[0].part.bound.decimals

    @cached_property
    def rows(self) -> Rows:
        """Distinct records: of the same row in every part."""
        rows = []
        for part in self.parts:
            own = np.full(self.n, -1, dtype=np.intp)
            own[part.at] = part.bound.row_of
            rows.append(own)
        return distinct_rows(np.column_stack(rows))

    def stan_data(
        self,
        alpha: FloatArray,
        *,
        cap: float | Cap | None = None,
        dispersion: float = 1.0,
        emit_log_lik: bool = False,
    ) -> dict[str, Any]:
        clip = None if cap is None else Cap.of(cap)
        by_term = clip is not None or emit_log_lik or self.inflated is not None
        rows = weighted_rows(self.rows, alpha, None if clip is None else clip.unit)
        first = rows.first if by_term else rows.first[:0]
        data = {
            **cap_data(clip, first),
            "emit_log_lik": int(emit_log_lik),
            "by_term": int(by_term),
            "n_terms": first.size,
            "frequency": rows.frequency[: first.size],
            "weights": alpha[first],
        }
        if self.inflated is not None:
            data["at_zero"] = self.inflated.at_zero[first].astype(np.int64)
        frozen = None if clip is None else clip.frozen
        assert frozen is None or isinstance(frozen, FrozenParts)
        n_rows = {}
        for part in self.parts:
            weights = alpha[part.at]
            rows_of_part = part.bound.stan_rows(weights)
            n_rows[part.name] = max(1, rows_of_part.first.size)
            after = None if frozen is None else frozen.parts.get(part.name)
            own = part.bound.stan_data(
                weights,
                # Any: the part's rows are written then, and the frozen ones after them.
                cap=Cap(below=1.0, above=1.0, frozen=after) if by_term else None,
                dispersion=dispersion,
                emit_log_lik=emit_log_lik,
            )
            left_out = (*SHARED, *DROPPED)
            data |= {f"{k}_{part.name}": v for k, v in own.items() if k not in left_out}
            row_of = np.append(rows_of_part.row_of, -1)  # of a record of none
            data[f"row_{part.name}"] = row_of[part.place_of[first]] + 2
        return data if frozen is None else terms_with_frozen(data, frozen, n_rows)

    def frozen(self, alpha: FloatArray, center: FloatArray, chosen: Positions) -> FrozenParts:
        rows = distinct_rows(np.column_stack([self.rows.row_of, alpha])[chosen])
        first = chosen[rows.first]
        reached = {part.name: part.place_of[first] >= 0 for part in self.parts}
        return FrozenParts(
            alpha=alpha[first],
            count=rows.frequency.astype(np.int64),
            center=center[first],
            parts={
                part.name: _rows_at(part, part.place_of[first][reached[part.name]])
                for part in self.parts
                if reached[part.name].any()
            },
            reached=reached,
            at_zero=self._at_zero[first],
        )

    @cached_property
    def _at_zero(self) -> npt.NDArray[np.bool_]:
        return np.zeros(self.n, dtype=bool) if self.inflated is None else self.inflated.at_zero

    def log_lik(self, draws: Draws) -> LogLik:
        return LogLik.of_draws(self, draws, self.log_lik_blocks, self.rows.row_of)

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """Unweighted log-likelihood, (S, b) at a time: the sum over the parts."""
        for here in _slices(self.rows.first.size, draws):
            first = self.rows.first[here]
            own = {part.name: self._terms(part, draws, first) for part in self.parts}
            yield self._joined(own, self._at_zero[first])

    def frozen_log_lik(self, frozen: FrozenTerms, draws: Draws) -> LogLik:
        assert isinstance(frozen, FrozenParts)

        def blocks() -> Iterator[FloatArray]:
            for here in _slices(frozen.count.size, draws):
                own = {part.name: _frozen_terms(part, frozen, draws, here) for part in self.parts}
                yield self._joined(own, frozen.at_zero[here])

        row_of = np.repeat(np.arange(frozen.count.size), frozen.count)
        return LogLik(make=blocks, row_of=row_of)

    def _terms(self, part: Part, draws: Draws, first: Positions) -> FloatArray:
        """Log-likelihood (S, b) of the records `first` (b,) in one part; 0 of those not in it."""
        none, place = np.zeros((draws.n_draws, 1)), part.place_of[first]
        here = place >= 0
        rows, row_of = np.unique(part.bound.row_of[place[here]], return_inverse=True)
        terms = part.bound.terms(part.parameters(draws), rows) if rows.size else none[:, :0]
        column = np.full(first.size, rows.size)
        column[here] = row_of
        return np.take(terms if here.all() else np.hstack([terms, none]), column, axis=1)

    def _joined(self, own: Mapping[str, FloatArray], at: npt.NDArray[np.bool_]) -> FloatArray:
        """The sum over the parts, with a mixture where a count is 0, `at` (b,)."""
        total: FloatArray = np.sum(list(own.values()), axis=0)
        if self.inflated is None:
            return total
        zero, count = own[self.inflated.zero.name], own[self.inflated.count.part.name]
        with np.errstate(divide="ignore"):
            none = np.log(-np.expm1(zero[:, at])) + count[:, at]
        total[:, at] += np.logaddexp(zero[:, at], none) - zero[:, at] - count[:, at]
        return total

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        return {
            f"{name}_{part.name}": values
            for part in self.parts
            for name, values in part.bound.monitored(of_part(draws, part.name)).items()
        }

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        table = self.table if given is None else given
        if self.completion is not None:
            table = self.completion.of(table)
        made = Replicate(
            draws={part.name: of_part(draws, part.name) for part in self.parts},
            draw=draw,
            rng=rng,
            matrices={part.name: part.bound.design.recoded(table) for part in self.parts},
            values=np.full(self.n, np.nan),
        )
        made.fill(self.root, np.arange(self.n))
        like = self.table[self.column]
        there = ~np.isnan(made.values)
        part = self.amounts[0].part
        if there.all():
            return part.bound.released(made.values, like).to_frame()
        own = part.bound.released(made.values[there], like[there])
        return with_missing(own, there, like).to_frame()


def single_models(bound: Any) -> list[Any]:
    """The bound models that it is made of, or it alone; of a survey's model, those within."""
    inner = without_survey(bound)
    return [part.bound for part in inner.parts] if isinstance(inner, BoundParts) else [inner]


def designs_of(bound: Any) -> list[Design]:
    """The designs of a bound model, or of its parts, that were coded by a formula."""
    designs = [getattr(each, "design", None) for each in single_models(bound)]
    return [own for own in designs if isinstance(own, Design) and own.coding is not None]


WIDE = 100
"""Spread of a predictor from which on other units are better."""


def advice_on_scale(bound: Any) -> str:
    """What to say where chains are slow of a predictor whose values differ by hundreds or more: of
    one that separates levels the prior, which expects a coefficient of about 1, leaves next to all
    open, and steps are as short as its values are large. Empty if there is none."""
    for own in designs_of(bound):
        spread = own.X.std(axis=0)
        name, size = own.columns[int(spread.argmax())], f"{spread.max():.0g}"
        if spread.max() >= WIDE and name.isidentifier():
            return (
                f"chains are slow, and values of {name!r} differ by about {float(size):,.0f}: give "
                f"it in other units, e.g. I({name} / {float(size):.0f}) in the formula"
            )
    return ""
