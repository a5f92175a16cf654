"""What a mechanism needs of a model: a description, and the same joined to a table.

A `Model` is a description; `bind` joins it to a table. The bound model is confidential.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, IntArray, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.programs import with_large_weights
from pyhybrid.measures.reconcile import survey_weights
from pyhybrid.models.columns.form import OutcomeLevels
from pyhybrid.models.columns.support import decimals_of
from pyhybrid.models.formula.design import Matrix
from pyhybrid.models.grid import ParameterGrid
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.log_lik import LogLik

BLOCK_ELEMENTS = 2_000_000
"""Numbers of a log-likelihood that are held at a time."""
_MEAN = (0.8, 1.25)  # of survey weights: normalized by a public number they average nearly 1
_EXACTLY = 1e-6  # so near to 1 they do by no chance
_OWN = "Survey weights of records are functions of these records and of public numbers alone."


@dataclass(frozen=True, kw_only=True, eq=False)
class SurveyWeights:
    """A column of survey weights and the weight of each record, shape (n,). Confidential.

    The pseudo posterior of a survey weights record i by w_i, which averages 1, so that the model is
    fitted to the population [H22]. Privacy weights come on top: what a record tells is
    alpha_i w_i f_i, of which bounds, ranges, risk and caps are. Weights are taken as they are, so
    that a term is a function of its own record alone; those that were normalized by their sum, or
    calibrated to a total, all move when one record leaves: they average exactly 1, by which they
    are known, and no charge is then strict.
    """

    column: str
    weight: FloatArray = field(repr=False)
    of_sample: bool
    """True of weights that were normalized or calibrated so that they average 1."""

    @classmethod
    def read(cls, df: pd.DataFrame, column: str) -> SurveyWeights:
        """From a column of positive numbers that average about 1; InvalidInput for others."""
        if column not in df.columns:
            raise InvalidInput(
                f"survey weights {column!r} must be a column of the data{did_you_mean(column, df)}"
            )
        weight = survey_weights(df[column], column)
        if not _MEAN[0] <= weight.mean() <= _MEAN[1]:
            raise InvalidInput(
                f"survey weights {column!r} must average about 1: divide them by a public number, "
                "the members of the population for each record (N / n)"
            )
        of_sample = bool(abs(weight.mean() - 1) < _EXACTLY and np.ptp(weight) > 0)
        return cls(column=column, weight=weight, of_sample=of_sample)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What is computed from all records, as a charge names it."""
        return (f"survey weights {self.column}, whose mean over the sample is 1",) * self.of_sample

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What survey weights do to the guarantee."""
        said = (
            f"A record's term is its log-likelihood times its survey weight ({self.column})"
            ": a record of a large weight tells more, and is charged for it."
        )
        return (said,) if self.of_sample else (said, _OWN)


class Model(Protocol):
    """A synthesizer: a likelihood, a prior and a way to draw replicates."""

    @property
    def name(self) -> str:
        """Name of the model, as on the command line and in records."""

    def bind(self, df: pd.DataFrame) -> BoundModel:
        """Check `df` and join the model to it; raises InvalidInput."""

    def describe(self) -> dict[str, Any]:
        """Public settings of the model, as plain JSON types."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundModel(ABC):
    """A model joined to the n records of a confidential table, and to survey weights, if any."""

    model: Any
    table: pd.DataFrame
    synthesized: tuple[str, ...]
    """Columns that a replicate replaces."""
    reads: tuple[str, ...]
    """Columns the model reads and leaves as they are, without that of survey weights."""
    matrix: Matrix | None
    """Predictors of all records as they are coded; None of models without."""
    likelihood_parameters: tuple[str, ...]
    """Names of the variables that the likelihood reads."""
    source: StanProgram
    """The Stan program that is sampled without survey weights."""
    survey: SurveyWeights | None = None
    blocks: tuple[Any, ...] = ()
    """Models of parts of the records, sampled one after the other; empty if it is one."""
    first_try: Mapping[str, Any] | None = None
    """Acceptance rate and metric of a first try, see `SamplerSettings.unless_asked`."""
    takes_center: bool = False
    """True if the program clips terms less a center; see `pyhybrid.privacy.censoring.Cap`."""
    grid: ParameterGrid | None = None
    """A grid of the parameters, if the posterior can be sampled exactly."""
    levels: OutcomeLevels | None = None
    """Levels of the outcome; None for numbers."""

    def __repr__(self) -> str:
        return f"<{self.model.name} {self.program.name!r} bound to {self.n} records>"

    @property
    @abstractmethod
    def row_of(self) -> IntArray:
        """Column of each record in `log_lik_blocks`, shape (n,)."""

    @abstractmethod
    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """Log-likelihood times survey weight, (S, b) at a time, one column per distinct row."""

    @abstractmethod
    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        """Data block of the program under weights `alpha` (n,), censored at `cap` if given, a
        number M for [-M, M]; `dispersion` spreads the sampler's starting points."""

    @abstractmethod
    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        """What must have converged, shape (chains, draws, *dims) each, whatever the labels."""

    @abstractmethod
    def replicate(
        self, draws: Draws, draw: int, rng: np.random.Generator, given: pd.DataFrame | None = None
    ) -> pd.DataFrame:
        """The synthesized columns alone, drawn anew from draw `draw`, on the table's index, by the
        predictors of `given`, the table with columns that were synthesized before."""

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.table)

    @property
    def program(self) -> StanProgram:
        """The Stan program that is sampled."""
        return self.source if self.survey is None else with_large_weights(self.source)

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns the model reads and leaves as they are."""
        weights = () if self.survey is None else (self.survey.column,)
        return tuple(dict.fromkeys((*self.reads, *weights)))

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What depends on all records, e.g. the coding of a term poly(x, 2)."""
        return () if self.survey is None else self.survey.data_dependent

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences on this model that a charge must state among what it assumes."""
        return () if self.survey is None else self.survey.assumptions

    @property
    def outcome(self) -> FloatArray:
        """Sensitive values of the (first) synthesized column, shape (n,)."""
        return self.numbers_of(self.table[self.synthesized[0]])

    def numbers_of(self, column: pd.Series) -> FloatArray:
        """Values of that column, the data's or a replicate's, as numbers, shape (n,)."""
        return column.to_numpy(dtype=np.float64)

    @property
    def design_columns(self) -> tuple[str, ...]:
        """Names of the columns that the predictors are coded as."""
        return () if self.matrix is None else self.matrix.columns

    @property
    def density_above_one(self) -> bool:
        """True if a log-likelihood above 0 is possible (continuous outcomes)."""
        return bool(self.model.density_above_one)

    @property
    def decimals_given(self) -> bool:
        """True if the number of decimals of released values does not depend on the data."""
        return self.model.given_decimals is not None

    @cached_property
    def decimals(self) -> int | None:
        """Number of decimals of released values; None for all that floating point has."""
        given: int | None = self.model.given_decimals
        return decimals_of(self.outcome) if given is None else given

    def log_lik(self, draws: Draws) -> LogLik:
        """Log-likelihood of the records, times survey weight, computed when it is asked for."""
        return LogLik.of_draws(self, draws, self.log_lik_blocks, self.row_of)

    def with_survey(self, survey: SurveyWeights) -> BoundModel:
        """The model under survey weights."""
        return replace(self, survey=survey)

    def under_survey(
        self, alpha: FloatArray, cap: float | Cap | None
    ) -> tuple[FloatArray, Cap | None]:
        """Weights of the program, and a cap whose center is that of the weighted terms."""
        clip = None if cap is None else Cap.of(cap)
        if self.survey is None:
            return alpha, clip
        if clip is not None and clip.reference is not None:
            clip = replace(clip, reference=clip.reference / self.survey.weight)
        return alpha * self.survey.weight, clip


def with_survey_weights(bound: Any, column: str) -> Any:
    """A bound model, fitted to the population by a column of survey weights of its table."""
    if column in bound.synthesized:
        raise InvalidInput(
            f"survey weights {column!r} must not be synthesized by the model that they weight"
        )
    return bound.with_survey(SurveyWeights.read(bound.table, column))
