"""Regression models: formula, priors, distinct rows, Stan data, replicates.

Records that share outcome, predictors and weight count as one row with a frequency: the target
density is unchanged, and for counts 10^6 records become a few hundred rows. A censored term is
clipped per record, so a row contributes its frequency times the clipped term.

A family is the name of its Stan program and a law of a linear predictor, or two functions of arrays
(`log_lik`, `draw_outcome`), with rules for its outcome.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import BoolArray, FloatArray, IntArray, check_choice
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.core.rows import Rows, distinct_rows
from pyhybrid.engines.base import Draws
from pyhybrid.engines.programs import declared_names, load_program
from pyhybrid.models.base import BLOCK_ELEMENTS, BoundModel
from pyhybrid.models.columns.form import (
    Form,
    OutcomeLevels,
    check_levels_given,
    column_of,
    level_places,
    numbers_in,
    outcome_levels,
    places_of_levels,
)
from pyhybrid.models.columns.support import draw_within, in_form_of, limits_of_dtype, support_said
from pyhybrid.models.formula.design import Design, Matrix, read_design
from pyhybrid.models.formula.terms import sides_of
from pyhybrid.models.formula.values import first_row
from pyhybrid.models.grid import ParameterGrid
from pyhybrid.models.initialization import dispersed, starts_of
from pyhybrid.models.scoring import Scoring
from pyhybrid.privacy.censoring import Cap, FrozenRows
from pyhybrid.privacy.log_lik import LogLik

Parameters = Mapping[str, FloatArray]
Hints = dict[str, Any]
Rng = np.random.Generator
Offset = FloatArray | float
"""Added to the linear predictor of each row."""
PUBLISHED = ("poisson", "negative_binomial", "beta", "beta_regression", "normal_mixture")
"""The papers' own programs, in stan/published, by the name of ours of their posterior."""
_NONE = 1e300  # a cap that no term reaches
Rules = Sequence[tuple[str, BoolArray]]
"""What an outcome must be, with {} for the first row that is not, and which are not (n,)."""


def weighted_rows(rows: Rows, alpha: FloatArray, unit: IntArray | None = None) -> Rows:
    """Rows split further by record weight, and by unit if terms are summed by unit; the rows
    themselves if these agree within each."""
    for values in (alpha, unit):
        if values is not None and not np.array_equal(values[rows.first][rows.row_of], values):
            rows = distinct_rows(np.column_stack([rows.row_of, values]))
    return rows


def _by_predictors(rows: Rows, X: FloatArray) -> Rows:
    """Rows in an order in which those of the same predictors X (n, K) are neighbors."""
    order = np.argsort(distinct_rows(X[rows.first]).row_of, kind="stable")
    return Rows(
        first=rows.first[order],
        row_of=np.argsort(order)[rows.row_of],
        frequency=rows.frequency[order],
    )


def cap_data(cap: Cap | None, chosen: IntArray) -> dict[str, Any]:
    """What stan/functions/pseudo_log_lik.stan reads of a cap, for the records `chosen` (d,)."""
    none, names = np.zeros(chosen.size), ("cap_below", "cap_above", "farthest", "steep", "n_units")
    data: dict[str, Any] = {**dict.fromkeys(names, 0), "use_cap": int(cap is not None)}
    data |= {"reference": none, "unit": none.astype(np.int64), "n_frozen": 0}
    if cap is not None:
        numbers = cap.below, cap.above, cap.farthest, cap.steep, cap.n_units
        data |= zip(names, numbers, strict=True)
    if cap is not None and cap.reference is not None:
        data["reference"] = cap.reference[chosen]
    if cap is not None and cap.unit is not None:
        data["unit"] = cap.unit[chosen] + 1
    return data


def _with_frozen(data: dict[str, Any], frozen: FrozenRows, y: npt.NDArray[Any]) -> dict[str, Any]:
    """A data block with frozen rows, of outcomes y (d,), after the records'."""
    after = {
        "y": y,
        "X": frozen.X,
        "offsets": frozen.offset,
        "frequency": frozen.share,
        "weights": frozen.alpha,
        "reference": frozen.center,
        "unit": np.zeros(frozen.y.size, dtype=np.int64),
    }
    longer = {name: np.concatenate([data[name], values]) for name, values in after.items()}
    return {**data, **longer, "n": longer["y"].shape[0], "n_frozen": frozen.y.size}


@dataclass(frozen=True)
class RegressionModel(ABC):
    """A regression of one sensitive column on columns that stay.

    Parameters
    ----------
    formula : str
        Wilkinson formula as in R, e.g. ``"visits ~ 1"`` or ``"visits ~ age + region"``. An
        ``offset(log(days))`` is added to the linear predictor without a coefficient: rates per day.
    program : {"default", "published"}, keyword
        "published" samples the program as the papers print or describe it (stan/published), of the
        models that have one: the same posterior, by longer chains.
    """

    formula: str
    _: KW_ONLY
    program: str = "default"
    program_name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    density_above_one: ClassVar[bool] = False
    any_rank: ClassVar[bool] = False
    """True if the prior identifies coefficients that the data do not."""
    many_levels: ClassVar[bool] = False
    """True if the program reads rows with the same predictors together."""
    undeclared: ClassVar[str] = "decimals must be declared: {}, decimals=0) releases whole numbers"
    assumptions: ClassVar[tuple[str, ...]] = ()
    """What a charge must state of the model, beyond what is declared."""
    ends: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Ends that the user declared and that replicates are drawn within, infinite for none."""

    def __post_init__(self) -> None:
        if check_choice(self.program, "program", ("default", "published")) == "default":
            return
        if self.program_name not in PUBLISHED:
            raise InvalidInput(
                "program='published' must be of Poisson, NegativeBinomial, Beta, BetaRegression or "
                f"MixtureRegression, which the papers print or describe: {self.name} with these "
                "settings has none"
            )
        if getattr(self, "prior", "published") != "published":
            raise InvalidInput("program='published' has the papers' prior: leave prior= out")

    @property
    def name(self) -> str:
        return type(self).__name__

    def describe(self) -> dict[str, Any]:
        """Public settings, without those that are None or False."""
        settings = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        if self.program == "default":
            del settings["program"]
        given = {k: v for k, v in settings.items() if v is not None and v is not False}
        lists = {k: list(v) for k, v in given.items() if isinstance(v, tuple)}
        return {"model": self.name, **given, **lists}

    @property
    def one_value(self) -> bool:
        """True if all records may have the same outcome."""
        return self.any_rank and not self.density_above_one

    @property
    def given_decimals(self) -> int | None:
        """Number of decimals of released values; None if it is taken from the data."""
        return getattr(self, "decimals", 0)

    def bind_at(self, df: pd.DataFrame, at: IntArray | None = None) -> BoundRegression:
        """The model itself, joined to `df` or to its records at the positions `at` (k,) alone;
        InvalidInput as of `read_design`, and for outcomes the model cannot take."""
        design = read_design(
            self.formula, df, self.coder, at, any_rank=self.any_rank, one_value=self.one_value
        )
        values = df[design.outcome] if at is None else df[design.outcome].iloc[at]
        self.check_outcome(design, values.index)
        design = replace(design, y=self.to_support(design.y))
        default, columns = self.program == "default", design.columns
        program = self.program_name if default else f"published/{self.program_name}"
        return BoundRegression(
            model=self, table=df if at is None else values.to_frame(), design=design,
            synthesized=(design.outcome,), reads=design.predictors, matrix=design,
            likelihood_parameters=self.parameters,
            source=load_program(program), levels=self.levels_of(values, design.outcome),
            takes_center=default,
            first_try=self.first_try(columns) if default else None,
            # With an offset the coordinates are no longer those of the mean that the ends suit.
            grid=self.grid(columns) if default and not design.has_offset else None,
        )  # fmt: skip

    def first_try(self, columns: tuple[str, ...]) -> Mapping[str, Any] | None:
        """`BoundModel.first_try` for the design's `columns`."""
        return None

    def grid(self, columns: tuple[str, ...]) -> ParameterGrid | None:
        """A grid of the parameters for a design of these columns, or None."""
        return None

    # The outcome ---------------------------------------------------------------------------------

    @property
    def coder(self) -> Callable[[pd.Series, str], FloatArray] | None:
        """How `read_design` makes numbers of the outcome; None for a column of numbers."""
        return None

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels | None:
        """Levels of the outcome's column; None for numbers."""
        return None

    def rules(self, y: FloatArray) -> Rules:
        """What outcomes (n,) must be."""
        return ()

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Raise InvalidInput, naming the first row, for outcomes outside the support."""
        for rule, broken in self.rules(design.y):
            if broken.any():
                said = rule.format(first_row(index, broken))
                raise InvalidInput(f"outcome {design.outcome!r} must {said}")

    def to_support(self, y: FloatArray) -> FloatArray:
        """Outcomes of the table on the scale of the likelihood, record by record."""
        return y

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        """Replicates on the scale of the table, rounded to `decimals`."""
        return values

    def support(self, dtype: Any) -> tuple[float, float]:
        """Smallest and largest value that may be released for a column of this dtype."""
        low, high = limits_of_dtype(dtype)
        return max(low, self.ends[0]), min(high, self.ends[1])

    def outcome_numbers(self, column: pd.Series) -> FloatArray:
        """Each cell on the scale of the likelihood, (n,), NaN for what the model does not take; no
        cell has a say in how another is read."""
        y = numbers_in(column)
        with np.errstate(all="ignore"):
            broken = np.any([broken for _, broken in self.rules(y)], axis=0)
            return np.where(broken, np.nan, self.to_support(y))

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Form of the outcome's column in a strict release, by its name, if it is declared."""
        name = sides_of(self.formula)[0]
        form = self.form_of(df[name]) if list(df.columns).count(name) == 1 else None
        return {} if form is None else {name: form}

    def form_of(self, column: pd.Series) -> Form | None:
        """Form of a column's released values by what is declared and its dtype; None if by more."""
        return None if self.given_decimals is None else Form(decimals=self.given_decimals)

    @property
    def declared_form(self) -> Form:
        """Form of released values, whatever the column; InvalidInput if it is not declared."""
        form = self.form_of(pd.Series(dtype=object))
        if form is None:
            raise InvalidInput(self.undeclared.format(f"{self.name}({self.formula!r}"))
        return form

    # The likelihood ------------------------------------------------------------------------------

    @abstractmethod
    def log_lik(self, at: Parameters, y: FloatArray, X: FloatArray, offset: Offset) -> FloatArray:
        """Unweighted log-likelihood in nats (S, b), of rows y (b,), X (b, K), offset (b,)."""

    @abstractmethod
    def draw_outcome(self, at: Parameters, X: FloatArray, offset: Offset, rng: Rng) -> FloatArray:
        """One replicate of the outcome, shape (n,), from one draw of the parameters."""

    @abstractmethod
    def start(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset, n_levels: int = 0
    ) -> Hints:
        """Location and scale of the reparametrization, from frequency x record weights (d,)."""

    def scoring_of_values(self, matrix: Matrix) -> Scoring:
        """Scores at the rows of a design matrix, under normal priors, without blocks."""
        raise InvalidInput(f"{self.name} has no scores: clipped scores need another model")

    def stan_outcome(self, y: FloatArray) -> npt.NDArray[Any]:
        """Outcomes (n,) as the program reads them."""
        return y if self.density_above_one else y.astype(np.int64)

    def shape_data(self, data: dict[str, Any], design: Matrix) -> dict[str, Any]:
        """The data block as the model's program takes it, with that of the prior on a design's
        coefficients; what the program does not declare is left out."""
        return data

    def monitored(self, draws: Draws, design: Design) -> Mapping[str, FloatArray]:
        """What must have converged: parameters of the likelihood."""
        return {name: draws.variables[name] for name in self.parameters}


@dataclass(frozen=True)
class LeveledModel(RegressionModel):
    """A regression of an outcome with levels, coded as places among these."""

    _: KW_ONLY
    levels: tuple[Any, ...] | None = None
    ordered: ClassVar[bool] = False
    undeclared: ClassVar[str] = (
        "levels must be declared: {}, levels=(...)) with all values that the column can hold"
    )
    n_levels: ClassVar[int | None] = None
    """Number of levels that must be given, None for any."""
    numbers: ClassVar[tuple[Any, ...] | None] = None
    """Levels of a column of numbers that declares none; those that are there if None."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "levels", check_levels_given(self.levels, self.n_levels))

    @property
    def one_value(self) -> bool:
        """True of declared levels: a refusal would tell of the last record of another level."""
        return self.levels is not None

    def levels_of(self, values: pd.Series, name: str) -> OutcomeLevels:
        return outcome_levels(values, self.levels, self.numbers)

    @property
    def coder(self) -> Callable[[pd.Series, str], FloatArray]:
        return lambda values, name: level_places(values, name, self.levels_of(values, name))

    def form_of(self, column: pd.Series) -> Form | None:
        with suppress(InvalidInput, TypeError):
            levels = outcome_levels(column.dropna(), self.levels, self.numbers)
            return None if levels.read else Form(levels=levels.values, ordered=self.ordered)
        return None

    def outcome_numbers(self, column: pd.Series) -> FloatArray:
        levels = self.declared_form.levels or ()
        places = places_of_levels(column, levels).astype(np.float64)
        return np.where(places < 0, np.nan, places)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundRegression(BoundModel):
    """A regression model joined to a table, or to the outcome of some of its records. Confidential.

    `design` is of the records it was fitted to, coded with all."""

    model: RegressionModel
    design: Design

    def numbers_of(self, column: pd.Series) -> FloatArray:
        if self.levels is None:
            return super().numbers_of(column)
        return level_places(column, self.design.outcome, self.levels)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        read = self.levels is not None and self.levels.read
        levels = (f"levels of {self.design.outcome}; levels= declares them",) * read
        return (*self.design.data_dependent, *super().data_dependent, *levels)

    @property
    def assumptions(self) -> tuple[str, ...]:
        said = support_said(self.design.outcome, self.model.ends)
        return (*said, *super().assumptions, *self.model.assumptions)

    @cached_property
    def rows(self) -> Rows:
        """Distinct rows of (outcome, predictors, offset, survey weight)."""
        design = self.design
        weight = [] if self.survey is None else [self.survey.weight]
        return self._ordered(
            distinct_rows(np.column_stack([design.y, design.X, design.offset, *weight]))
        )

    @property
    def row_of(self) -> IntArray:
        return self.rows.row_of

    def _ordered(self, rows: Rows) -> Rows:
        return _by_predictors(rows, self.design.X) if self.model.many_levels else rows

    def stan_data(
        self,
        alpha: FloatArray,
        *,
        cap: float | Cap | None = None,
        dispersion: float = 1.0,
        emit_log_lik: bool = False,
    ) -> dict[str, Any]:
        model, design, (alpha, clip) = self.model, self.design, self.under_survey(alpha, cap)
        if model.program != "default":
            return self._published_data(alpha, clip)
        unit = None if clip is None else clip.unit
        rows = self._ordered(weighted_rows(self.rows, alpha, unit))
        n_levels = 0 if self.levels is None else len(self.levels.values)
        first, frequency = rows.first, rows.frequency
        y, X, offset, weights = design.y[first], design.X[first], design.offset[first], alpha[first]
        if not first.size:  # one row without weight, as programs read one: what comes is the prior
            y, X, offset = np.full(1, 0.5), np.zeros((1, X.shape[1])), np.zeros(1)
            weights, frequency, first = np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.intp)
        with starts_of(design.predictors):
            start = model.start(y, X, frequency * weights, offset, n_levels)
        data = {
            **dispersed(start, dispersion),
            "n": y.size,
            "K": X.shape[1],
            "n_levels": n_levels,
            "y": model.stan_outcome(y),
            "frequency": frequency,
            "weights": weights,
            "X": X,
            "offsets": offset,
            **cap_data(clip, first),
            "emit_log_lik": int(emit_log_lik),
        }
        if clip is not None and clip.frozen is not None:
            data = _with_frozen(data, clip.frozen, model.stan_outcome(clip.frozen.y))
        declared = declared_names(self.source, "data")
        data = model.shape_data(data, design)
        return {name: value for name, value in data.items() if name in declared}

    def _published_data(self, alpha: FloatArray, cap: Cap | None) -> dict[str, Any]:
        """Data block of a published program, of which that of `Beta` alone takes a cap, about 0."""
        model, X = self.model, self.design.X
        if self.design.has_offset:
            raise InvalidInput(
                "program='published' takes no offset(), which the papers do not have: "
                "leave program= out, the default one samples the same posterior"
            )
        if cap is not None and model.program_name != "beta":
            raise InvalidInput(
                f"program='published' of {model.name} takes no cap, as no paper prints one for it: "
                "leave program= out"
            )
        if cap is not None and (
            cap.reference is not None or cap.unit is not None or cap.below != cap.above
        ):
            raise InvalidInput(
                "program='published' clips the terms of single records at a cap about 0: leave "
                "center, calibration and unit out, or program="
            )
        outcome = model.stan_outcome(self.design.y)
        everything = {
            "n": self.n,
            "P": X.shape[1],
            "K": getattr(model, "n_components", X.shape[1]),
            "X": X,
            "y": outcome,
            "outcome": outcome,
            "weights": alpha,
            "alpha": alpha,
            "M": _NONE if cap is None or not np.isfinite(cap.below) else cap.below,
        }
        return {name: everything[name] for name in declared_names(self.source, "data")}

    def frozen(self, alpha: FloatArray, center: FloatArray, chosen: IntArray) -> FrozenRows:
        """Distinct rows of the records `chosen`, under weights (n,) and a center (n,); those with
        the same predictors are neighbors, as programs of many levels want them."""
        design = self.design
        table = np.column_stack([design.y, design.X, design.offset, alpha])[chosen]
        rows = _by_predictors(distinct_rows(table), design.X[chosen])
        first = chosen[rows.first]
        return FrozenRows(
            y=design.y[first], X=design.X[first], offset=design.offset[first], alpha=alpha[first],
            count=rows.frequency.astype(np.int64), center=center[first],
        )  # fmt: skip

    def frozen_log_lik(self, frozen: FrozenRows, draws: Draws) -> LogLik:
        """Unweighted log-likelihood of frozen rows, one column for each."""
        return LogLik(
            make=lambda: self._in_blocks(draws, frozen.y, frozen.X, frozen.offset),
            row_of=np.repeat(np.arange(frozen.y.size), frozen.count),
        )

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        return self.terms(draws, slice(None))

    def terms(self, draws: Draws, rows: slice | IntArray) -> Iterator[FloatArray]:
        """Log-likelihood times survey weight of some of the distinct rows, (S, b) at a time."""
        first, design, start = self.rows.first[rows], self.design, 0
        chosen = design.y[first], design.X[first], design.offset[first]
        for terms in self._in_blocks(draws, *chosen):
            start, block = start + terms.shape[1], first[start : start + terms.shape[1]]
            yield terms if self.survey is None else terms * self.survey.weight[block]

    def _in_blocks(
        self, draws: Draws, y: FloatArray, X: FloatArray, offset: FloatArray
    ) -> Iterator[FloatArray]:
        at = {name: draws.flat(name) for name in self.model.parameters}
        width = max(values.shape[2] if values.ndim == 3 else 1 for values in at.values())
        size = max(1, BLOCK_ELEMENTS // (draws.n_draws * width))
        # one linear predictor for all, by broadcasting
        alike = bool((X[:1] == X).all() and (offset[:1] == offset).all())
        # rows of many levels with the same predictors stay together: these share probabilities
        new = np.append(True, (X[1:] != X[:-1]).any(axis=1) | (not self.model.many_levels))
        for start, end in pairwise([*np.flatnonzero(new[: y.size])[::size], y.size]):
            rows = slice(start, end)
            read = slice(0, 1) if alike else rows
            yield self.model.log_lik(at, y[rows], X[read], offset[read])

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        return self.model.monitored(draws, self.design)

    def replicate(
        self, draws: Draws, draw: int, rng: np.random.Generator, given: pd.DataFrame | None = None
    ) -> pd.DataFrame:
        same = given is None or all(given[n].equals(self.table[n]) for n in self.design.predictors)
        design = self.design if given is None or same else self.design.recoded(given)
        values = self.drawn(draws, draw, rng, design)
        return self.released(values, self.table[self.design.outcome]).to_frame()

    def drawn(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        matrix: Matrix,
        chosen: IntArray | None = None,
        apart: Sequence[float] = (),
    ) -> FloatArray:
        """Outcomes drawn anew for the rows of a matrix, or those `chosen` (k,), as numbers on the
        scale of the table; from the model given that they are in its support, and not `apart`."""
        at = {name: draws.flat(name)[draw] for name in self.model.parameters}
        chosen = np.arange(matrix.X.shape[0]) if chosen is None else chosen

        def outcomes_of(some: Any) -> FloatArray:
            rows = chosen[some]
            values = self.model.draw_outcome(at, matrix.X[rows], matrix.offset[rows], rng)
            if not np.isfinite(values).all():
                raise SamplingError("a replicate is not finite: the posterior has no finite mean")
            return self.model.from_support(values, self.decimals)

        ends = self.model.support(self.table[self.design.outcome].dtype)
        return draw_within(outcomes_of, chosen.size, ends, apart)

    def released(self, values: FloatArray, like: pd.Series) -> pd.Series:
        """Replicates (n,) as a column in the form of the data's, `like`."""
        if self.levels is not None:
            return column_of(values, self.levels, like)
        decimals = self.model.given_decimals if self.density_above_one else None
        return in_form_of(values, like, decimals)
