"""Regression models: formula, priors, distinct rows, Stan data, replicates.

Records that share outcome, predictors and weight count as one row with a frequency: the target
density is unchanged, and for counts 10^6 records become a few hundred rows. A censored term is
clipped per record, so a row contributes its frequency times the clipped term.

A model of its own adds two functions of arrays (`log_lik` and `draw_outcome`, or `log_density` and
`draw` of a linear predictor), a check of the outcome and the name of its Stan program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.core.rows import Rows, distinct_rows
from pyhybrid.engines.base import Draws, FirstTry, StanProgram
from pyhybrid.engines.programs import load_program, with_large_weights
from pyhybrid.models.base import BLOCK_ELEMENTS, BoundModel
from pyhybrid.models.columns.form import Form, numbers_in
from pyhybrid.models.columns.support import (
    draw_within,
    in_form_of,
    limits_of_dtype,
    support_said,
)
from pyhybrid.models.families.published import check_program, published_data
from pyhybrid.models.formula.design import Design, Matrix, read_design
from pyhybrid.models.formula.terms import sides_of
from pyhybrid.models.formula.values import first_row
from pyhybrid.models.grid import GridForm
from pyhybrid.models.initialization import dispersed, starts_of
from pyhybrid.models.scoring import Scoring
from pyhybrid.privacy.censoring import Cap, FrozenRows
from pyhybrid.privacy.log_lik import LogLik


def weighted_rows(rows: Rows, alpha: FloatArray, unit: npt.NDArray[np.intp] | None = None) -> Rows:
    """Rows split further by record weight, and by unit if terms are summed by unit; the rows
    themselves if these agree within each."""
    for values in (alpha, unit):
        if values is not None and not np.array_equal(values[rows.first][rows.row_of], values):
            rows = distinct_rows(np.column_stack([rows.row_of, values]))
    return rows


def cap_data(cap: Cap | None, chosen: npt.NDArray[np.intp]) -> dict[str, Any]:
    """What stan/functions/pseudo_log_lik.stan reads of a cap, for the records `chosen` (d,)."""
    none = np.zeros(chosen.size)
    reference = none if cap is None or cap.reference is None else cap.reference[chosen]
    unit = none.astype(np.int64) if cap is None or cap.unit is None else cap.unit[chosen] + 1
    return {
        "use_cap": int(cap is not None),
        "cap_below": 0.0 if cap is None else cap.below,
        "cap_above": 0.0 if cap is None else cap.above,
        "reference": reference,
        "n_units": 0 if cap is None else cap.n_units,
        "unit": unit,
        "n_frozen": 0,  # until they are appended
        "farthest": 0.0 if cap is None else cap.farthest,
        "steep": 0.0 if cap is None else cap.steep,
    }


def with_frozen(
    data: dict[str, Any], cap: Cap | None, outcome: Callable[[FloatArray], npt.NDArray[Any]]
) -> dict[str, Any]:
    """A data block with a cap's frozen rows, if it has any, after the records'; `outcome` makes
    theirs (d,) as the program reads it."""
    frozen = None if cap is None else cap.frozen
    if frozen is None:
        return data
    after = {
        "y": outcome(frozen.y),
        "X": frozen.X,
        "offsets": frozen.offset,
        "frequency": frozen.share,
        "weights": frozen.alpha,
        "reference": frozen.center,
        "unit": np.zeros(frozen.y.size, dtype=np.int64),
    }
    longer = {
        name: np.concatenate([data[name], frozen_values]) for name, frozen_values in after.items()
    }
    return {**data, **longer, "n": longer["y"].shape[0], "n_frozen": frozen.y.size}


def frozen_rows(
    design: Design,
    alpha: FloatArray,
    center: FloatArray,
    chosen: npt.NDArray[np.intp] | None = None,
) -> FrozenRows:
    """Distinct rows of the records of a design, or of those `chosen`, with weights and center;
    those with the same predictors are neighbors, as programs of many levels want them."""
    places = np.arange(design.y.size) if chosen is None else chosen
    table = np.column_stack([design.y, design.X, design.offset, alpha])[places]
    rows = distinct_rows(table)
    order = np.argsort(distinct_rows(design.X[places[rows.first]]).row_of, kind="stable")
    first = places[rows.first[order]]
    return FrozenRows(
        y=design.y[first],
        X=design.X[first],
        offset=design.offset[first],
        alpha=alpha[first],
        count=rows.frequency[order].astype(np.int64),
        center=center[first],
    )


def frozen_log_lik(model: Any, frozen: FrozenRows, parameters: Mapping[str, FloatArray]) -> LogLik:
    """Unweighted log-likelihood of frozen rows under a model, at parameters (S, *dims)."""
    n_draws = len(next(iter(parameters.values())))
    levels = max(values.shape[2] if values.ndim == 3 else 1 for values in parameters.values())
    size = max(1, BLOCK_ELEMENTS // (n_draws * levels))
    alike = bool((frozen.X[0] == frozen.X).all() and (frozen.offset[0] == frozen.offset).all())

    def blocks() -> Iterator[FloatArray]:
        for start in range(0, frozen.y.size, size):
            rows = slice(start, start + size)
            read = slice(0, 1) if alike else rows
            yield model.log_lik(parameters, frozen.y[rows], frozen.X[read], frozen.offset[read])

    return LogLik(make=blocks, row_of=np.repeat(np.arange(frozen.y.size), frozen.count))


Parameters = Mapping[str, FloatArray]
Hints = dict[str, Any]
Rng = np.random.Generator
Offset = FloatArray | float
"""Added to the linear predictor of each row."""
Positions = npt.NDArray[np.intp]
"""Places of records in a table."""


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

    def __post_init__(self) -> None:
        """Check the settings; classes below check their own and call this."""
        check_program(self)

    @property
    def name(self) -> str:
        """Name of the model."""
        return type(self).__name__

    def describe(self) -> dict[str, Any]:
        """Public settings of the model."""
        program = {} if self.program == "default" else {"program": self.program}
        return {"model": self.name, "formula": self.formula, **program}

    @property
    def any_rank(self) -> bool:
        """True if the design's columns may be combinations of each other."""
        return False

    def first_try(self, columns: tuple[str, ...]) -> FirstTry | None:
        """`BoundModel.first_try` for the design's `columns`."""
        return None

    @property
    def stan_program(self) -> str:
        """Name of the program that is sampled."""
        return self.program_name if self.program == "default" else f"published/{self.program_name}"

    @property
    def monitored_parameters(self) -> tuple[str, ...]:
        """Names of the variables that must have converged."""
        return self.parameters

    def prior_data(self, design: Matrix) -> dict[str, Any]:
        """Stan data of the prior on the coefficients of a design, if it has any."""
        return {}

    def grid_form(self, columns: tuple[str, ...]) -> GridForm | None:
        """How the parameters lie on a grid, for a design of these columns, or None."""
        return None

    def bind(self, df: pd.DataFrame) -> BoundModel:
        """Join the model to `df`; raises InvalidInput as `read_design` does, and for outcomes the
        model cannot take."""
        return self.bind_at(df)

    def bind_at(self, df: pd.DataFrame, at: Positions | None = None) -> BoundRegression:
        """The model itself, joined to `df` or to its records at the positions `at` (k,) alone."""
        rank = self.any_rank
        design = read_design(
            self.formula, df, at=at, any_rank=rank,
            one_value=rank and not self.density_above_one,
        )  # fmt: skip
        self.check_outcome(design, df.index if at is None else df.index[at])
        design = replace(design, y=self.to_support(design.y))
        return BoundRegression(model=self, table=df, design=design, at=at)

    def to_support(self, y: FloatArray) -> FloatArray:
        """Outcomes of the table on the scale of the likelihood, record by record."""
        return y

    @property
    def given_decimals(self) -> int | None:
        """Number of decimals of released values; None if it is taken from the data."""
        return getattr(self, "decimals", 0)

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Form of the outcome's column in a strict release, by its name, if it is declared."""
        name = sides_of(self.formula)[0]
        form = self.form_of(df[name]) if list(df.columns).count(name) == 1 else None
        return {} if form is None else {name: form}

    def form_of(self, column: pd.Series) -> Form | None:
        """Numbers of the decimals given, for `column`; None if none are."""
        return None if self.given_decimals is None else Form(decimals=self.given_decimals)

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        """Replicates on the scale of the table, rounded to `decimals`."""
        return values

    def support(self, dtype: Any) -> tuple[float, float]:
        """Smallest and largest value that may be released for a column of this dtype."""
        return limits_of_dtype(dtype)

    @property
    def declared_support(self) -> tuple[float, float] | None:
        """Ends that the user declared and that replicates are drawn within, if there are any."""
        return None

    def shape_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """The data block as the model's program takes it."""
        return data

    def advice(self, design: Design) -> str:
        """What to tell a user whose data are far from what the priors expect; else empty."""
        return ""

    @abstractmethod
    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Raise InvalidInput, naming the first row, for outcomes outside the support."""

    @abstractmethod
    def log_lik(self, at: Parameters, y: FloatArray, X: FloatArray, offset: Offset) -> FloatArray:
        """Unweighted log-likelihood in nats (S, b), of rows y (b,), X (b, K), offset (b,)."""

    @abstractmethod
    def draw_outcome(self, at: Parameters, X: FloatArray, offset: Offset, rng: Rng) -> FloatArray:
        """One replicate of the outcome, shape (n,), from one draw of the parameters."""

    @abstractmethod
    def start(self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset) -> Hints:
        """Location and scale of the reparametrization; the posterior does not depend on them."""

    def scoring(self, matrix: Matrix) -> Scoring:
        """Scores at the rows of a design matrix, under normal priors; see `Scoring`."""
        return self.scoring_of_values(matrix)

    def scoring_of_values(self, matrix: Matrix) -> Scoring:
        """The same of the model itself, without blocks."""
        raise InvalidInput(f"{self.name} has no scores: clipped scores need another model")

    def takes(self, y: FloatArray) -> npt.NDArray[np.bool_]:
        """Which outcomes (n,) lie in the support, each by itself."""
        low, high = self.support(np.dtype(np.float64))
        return np.asarray((y >= low) & (y <= high))

    def outcome_numbers(self, column: pd.Series) -> FloatArray:
        """Each cell on the scale of the likelihood, (n,), NaN for what the model does not take; no
        cell has a say in how another is read."""
        y = numbers_in(column)
        with np.errstate(all="ignore"):
            return np.where(self.takes(y), self.to_support(y), np.nan)

    @property
    def declared_form(self) -> Form:
        """Form of released values; InvalidInput if it would be read from the data."""
        if self.given_decimals is None:
            raise InvalidInput(
                f"decimals must be declared: {self.name}({self.formula!r}, decimals=0) releases "
                "whole numbers"
            )
        return Form(decimals=self.given_decimals)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundRegression(BoundModel):
    """A regression model joined to a table. Confidential.

    `design` is of the records it was fitted to, at the positions `at` (n,) of the table, or all."""

    model: RegressionModel
    design: Design
    at: Positions | None = None

    def __repr__(self) -> str:
        return f"<{self.model.name} {self.model.formula!r} bound to {self.n} records>"

    @property
    def n(self) -> int:
        return self.design.y.size

    @property
    def program(self) -> StanProgram:
        program = load_program(self.model.stan_program)
        return program if self.survey is None else with_large_weights(program)

    @property
    def synthesized(self) -> tuple[str, ...]:
        return (self.design.outcome,)

    @property
    def outcome(self) -> FloatArray:
        values = self.table[self.design.outcome]
        return self.numbers_of(values if self.at is None else values.iloc[self.at])

    @property
    def predictors(self) -> tuple[str, ...]:
        weights = () if self.survey is None else (self.survey.column,)
        return tuple(dict.fromkeys((*self.design.predictors, *weights)))

    @property
    def matrix(self) -> Matrix:
        return self.design

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        return self.model.parameters

    @property
    def data_dependent(self) -> tuple[str, ...]:
        weights = () if self.survey is None else self.survey.data_dependent
        return (*self.design.data_dependent, *weights)

    @property
    def assumptions(self) -> tuple[str, ...]:
        said = support_said(self.design.outcome, self.model.declared_support)
        return (*said, *super().assumptions)

    @property
    def takes_center(self) -> bool:  # type: ignore[override]
        """True of all built-in programs but the papers' own."""
        return self.model.program == "default"

    @property
    def first_try(self) -> FirstTry | None:  # type: ignore[override]
        return self.model.first_try(self.design.columns) if self.takes_center else None

    @property
    def grid_form(self) -> GridForm | None:  # type: ignore[override]
        # With an offset the coordinates are no longer those of the mean that the ends suit.
        if self.design.has_offset or not self.takes_center:
            return None
        return self.model.grid_form(self.design.columns)

    @property
    def advice(self) -> str:  # type: ignore[override]
        return self.model.advice(self.design)

    @cached_property
    def rows(self) -> Rows:
        """Distinct rows of (outcome, predictors, offset, survey weight)."""
        design = self.design
        weight = [] if self.survey is None else [self.survey.weight]
        return distinct_rows(np.column_stack([design.y, design.X, design.offset, *weight]))

    @property
    def row_of(self) -> Positions:
        return self.rows.row_of

    def stan_rows(self, alpha: FloatArray, unit: Positions | None = None) -> Rows:
        """Rows of the data block, in its order: distinct ones of one weight, and unit if given."""
        return weighted_rows(self.rows, alpha, unit)

    def stan_data(
        self,
        alpha: FloatArray,
        *,
        cap: float | Cap | None = None,
        dispersion: float = 1.0,
        emit_log_lik: bool = False,
    ) -> dict[str, Any]:
        alpha, clip = self.under_survey(alpha, cap)
        if self.model.program != "default":
            outcome = self._stan_outcome(self.design.y)
            return published_data(self.model, self.design, alpha, outcome, clip)
        rows, design = self.stan_rows(alpha, None if clip is None else clip.unit), self.design
        chosen = (values[rows.first] for values in (design.y, design.X, design.offset, alpha))
        y, X, offset, weights, frequency = _some(*chosen, rows.frequency)
        with starts_of(self.design.predictors):
            start = self._start(y, X, frequency * weights, offset)
        data = {
            **dispersed(start, dispersion),
            **self.model.prior_data(self.design),
            "n": y.size,
            "K": X.shape[1],
            "y": self._stan_outcome(y),
            "frequency": frequency,
            "weights": weights,
            "X": X,
            "offsets": offset,
            **cap_data(clip, rows.first if rows.first.size else np.zeros(1, dtype=np.intp)),
            "emit_log_lik": int(emit_log_lik),
        }
        return self._shaped(with_frozen(data, clip, self._stan_outcome))

    def _shaped(self, data: dict[str, Any]) -> dict[str, Any]:
        return self.model.shape_data(data)

    def _start(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: FloatArray
    ) -> dict[str, Any]:
        return self.model.start(y, X, weight, offset)

    def frozen(self, alpha: FloatArray, center: FloatArray, chosen: Positions) -> FrozenRows:
        """Frozen rows of the records `chosen`, under weights (n,) and a center (n,)."""
        return frozen_rows(self.design, alpha, center, chosen)

    def frozen_log_lik(self, frozen: FrozenRows, draws: Draws) -> LogLik:
        """Unweighted log-likelihood of frozen rows, one column for each."""
        return frozen_log_lik(self.model, frozen, {n: draws.flat(n) for n in self.model.parameters})

    def _stan_outcome(self, y: FloatArray) -> npt.NDArray[Any]:
        return y if self.density_above_one else y.astype(np.int64)

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        parameters = {name: draws.flat(name) for name in self.model.parameters}
        size = max(1, BLOCK_ELEMENTS // draws.n_draws)
        for start in range(0, self.rows.first.size, size):
            yield self.terms(parameters, slice(start, start + size))

    def terms(self, parameters: Parameters, rows: slice | Positions) -> FloatArray:
        """Log-likelihood times survey weight (S, b) of some of the distinct rows."""
        first, design = self.rows.first[rows], self.design
        read = first[:1] if self._alike else first  # one linear predictor for all, by broadcasting
        terms = self.model.log_lik(parameters, design.y[first], design.X[read], design.offset[read])
        return terms if self.survey is None else terms * self.survey.weight[first]

    @cached_property
    def _alike(self) -> bool:
        X, offset = self.design.X, self.design.offset
        return bool((X[:1] == X).all() and (offset[:1] == offset).all())

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        """Parameters of the likelihood, and the prior scales of the coefficients."""
        return {name: draws.variables[name] for name in self.model.monitored_parameters}

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
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
        own: Design | Matrix,
        places: Positions | None = None,
        within: tuple[float, float] = (-np.inf, np.inf),
        apart: float | None = None,
    ) -> FloatArray:
        """Outcomes drawn anew for the rows of a matrix, or those at `places` (k,), as numbers on
        the scale of the table; from the model given that they are in its support and `within`, and
        not the value `apart`."""
        parameters = {name: draws.flat(name)[draw] for name in self.model.parameters}
        n = own.X.shape[0] if places is None else places.size

        def outcomes_of(rows: Any) -> FloatArray:
            chosen = rows if places is None else places[rows]
            values = self.model.draw_outcome(parameters, own.X[chosen], own.offset[chosen], rng)
            if not np.isfinite(values).all():
                raise SamplingError("a replicate is not finite: the posterior has no finite mean")
            return self.model.from_support(values, self.decimals)

        low, high = self.model.support(self.table[self.design.outcome].dtype)
        return draw_within(outcomes_of, n, (max(low, within[0]), min(high, within[1])), apart)

    def released(self, values: FloatArray, like: pd.Series) -> pd.Series:
        """Replicates (n,) as a column in the form of the data's, `like`."""
        decimals = self.model.given_decimals if self.density_above_one else None
        return in_form_of(values, like, decimals)


def _some(*rows: FloatArray) -> list[FloatArray]:
    """Outcomes, predictors and more of rows; in the place of none one row without weight, as Stan's
    programs have one at least: what comes of them is the prior's."""
    none = [np.zeros((1, *values.shape[1:])) for values in rows]
    return [*rows] if rows[0].size else [none[0] + 0.5, *none[1:]]


def refuse_rows(
    design: Design, index: pd.Index, rules: Sequence[tuple[str, npt.NDArray[np.bool_]]]
) -> None:
    """Raise InvalidInput for the first row, named in its rule, where a rule is broken (n,)."""
    for rule, broken in rules:
        if broken.any():
            said = rule.format(first_row(index, broken))
            raise InvalidInput(f"outcome {design.outcome!r} must {said}")


def refuse_outside(design: Design, index: pd.Index, ends: tuple[float, float]) -> None:
    """Raise InvalidInput, naming the first row, for outcomes outside of inclusive ends."""
    low, high = ends
    rule = f"lie in [{low:g}, {high:g}]: {{}} does not; give lower and upper"
    refuse_rows(design, index, [(rule, (design.y < low) | (design.y > high))])
