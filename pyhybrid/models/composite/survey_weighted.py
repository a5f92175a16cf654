"""Any model under survey weights: a record's term is its log-likelihood times its survey weight.

The pseudo posterior of a survey weights record i by w_i, which averages 1, so that the model is
fitted to the population and not to those who were sampled [H22]. Privacy weights come on top: the
weight in the program is alpha_i w_i. What a record tells is alpha_i w_i f_i: bounds, ranges, risk
and caps are of that product.

Weights are taken as they are in the table, so that a term is a function of its own record alone.
Weights that were normalized by their sum, or calibrated so that they sum to a total, all move when
one record leaves: they average exactly 1, by which they are known, and no charge is then strict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import Draws, FirstTry, StanProgram
from pyhybrid.engines.programs import with_large_weights
from pyhybrid.measures.survey import survey_weights
from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.columns.form import Form, OutcomeLevels, forms_of
from pyhybrid.models.formula.design import Matrix
from pyhybrid.models.grid import GridForm
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.log_lik import LogLik

_MEAN = (0.8, 1.25)  # of weights: normalized by a public number they average nearly 1
_EXACTLY = 1e-6  # so near to 1 they do by no chance
_OWN = "Survey weights of records are functions of these records and of public numbers alone."


@dataclass(frozen=True)
class SurveyWeighted:
    """A model that is fitted to the population by a column of survey weights.

    Replicates are of the sampled records, drawn from the population's model: estimates from the
    synthetic set are of the population, without weights. Every mechanism with ``design=`` makes
    one of its model.

    Parameters
    ----------
    model : Model
        Any model; a `StanModel` must declare weights that may be above 1.
    weights : str
        Column of survey weights, above 0, that average about 1: design weights divided by the
        public number N / n of members of the population per record. A weight should be a function
        of its own record and of public numbers, which charges state; see the module for weights
        that were normalized or calibrated on the sample.
    """

    model: Model
    weights: str

    def __post_init__(self) -> None:
        if not isinstance(self.weights, str):
            raise InvalidInput(f"survey weights must be the name of a column: {self.weights!r}")

    @property
    def name(self) -> str:
        """That of the model."""
        return self.model.name

    def describe(self) -> dict[str, Any]:
        """Public settings of the model, and the column of weights."""
        return {**self.model.describe(), "design": self.weights}

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Those of the model."""
        return forms_of(self.model, df)

    def bind(self, df: pd.DataFrame) -> BoundModel:
        """Check `df` and join model and weights to it."""
        inner, name = self.model.bind(df), self.weights
        if name in inner.synthesized:
            raise InvalidInput(
                f"survey weights {name!r} must not be synthesized by the model that they weight"
            )
        if name not in df.columns:
            raise InvalidInput(
                f"survey weights {name!r} must be a column of the data{did_you_mean(name, df)}"
            )
        weight = survey_weights(df[name], name)
        if not _MEAN[0] <= weight.mean() <= _MEAN[1]:
            raise InvalidInput(
                f"survey weights {name!r} must average about 1: divide them by a public number, "
                "the members of the population for each record (N / n)"
            )
        return _BoundSurvey(model=self, inner=inner, weight=weight)


def weight_columns_to_approve(model: Any) -> dict[str, str]:
    """Reason by column why survey weights that stay in the file need the owner's decision."""
    if not isinstance(model, SurveyWeighted):
        return {}
    return {
        model.weights: "its survey weights may disclose the outcome: synthesize them "
        "together with it, or leave them out"
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class _BoundSurvey:
    """A bound model with the survey weight of each record, shape (n,). Confidential."""

    model: SurveyWeighted
    inner: BoundModel
    weight: FloatArray = field(repr=False)

    def __repr__(self) -> str:
        return f"<{self.model.name} of {self.inner.n} records with survey weights>"

    @property
    def _of_sample(self) -> bool:
        """True of weights that were normalized or calibrated so that they average 1."""
        return bool(abs(self.weight.mean() - 1) < _EXACTLY and np.ptp(self.weight) > 0)

    @property
    def program(self) -> StanProgram:
        """The model's program; weights may be above 1 in it."""
        return with_large_weights(self.inner.program)

    @property
    def blocks(self) -> tuple[Any, ...]:
        """Those of the model, under the same weights."""
        return tuple(
            replace(b, bound=replace(self, inner=b.bound, weight=self.weight[b.at]))  # type: ignore[type-var]
            for b in self.inner.blocks
        )

    @property
    def predictors(self) -> tuple[str, ...]:
        """Those of the model, and the column of weights."""
        return tuple(dict.fromkeys((*self.inner.predictors, self.model.weights)))

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What is computed from all records: terms of the formula, and weights that were normalized
        or calibrated on the sample."""
        weights = f"survey weights {self.model.weights}, whose mean over the sample is 1"
        return (*self.inner.data_dependent, *([weights] if self._of_sample else []))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the model, and what survey weights do to the guarantee."""
        return (
            *self.inner.assumptions,
            f"A record's term is its log-likelihood times its survey weight ({self.model.weights})"
            ": a record of a large weight tells more, and is charged for it.",
            *([] if self._of_sample else [_OWN]),
        )

    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        """Data under weights alpha_i w_i; a center is that of w_i f_i."""
        clip = cap
        if isinstance(cap, Cap) and cap.reference is not None:
            clip = replace(cap, reference=cap.reference / self.weight)
        return self.inner.stan_data(alpha * self.weight, cap=clip, dispersion=dispersion)

    def log_lik(self, draws: Draws) -> LogLik:
        """w_i f_i of the records: one column for each distinct row and weight."""
        unweighted = self.inner.log_lik(draws)
        pairs, row_of = np.unique(
            np.column_stack([unweighted.row_of.astype(np.float64), self.weight]),
            axis=0,
            return_inverse=True,
        )
        rows, weight = pairs[:, 0].astype(np.intp), pairs[:, 1]

        def make() -> Iterator[FloatArray]:
            for span, block in unweighted.blocks():  # pairs are in the order of rows
                here = slice(*np.searchsorted(rows, [span.start, span.stop]))
                yield block[:, rows[here] - span.start] * weight[here]

        return LogLik(make=make, row_of=np.asarray(row_of, dtype=np.intp).reshape(-1))

    # What follows is the model's own.

    @property
    def n(self) -> int:
        return self.inner.n

    @property
    def synthesized(self) -> tuple[str, ...]:
        return self.inner.synthesized

    @property
    def table(self) -> pd.DataFrame:
        return self.inner.table

    @property
    def outcome(self) -> FloatArray:
        return self.inner.outcome

    def numbers_of(self, column: pd.Series) -> FloatArray:
        return self.inner.numbers_of(column)

    @property
    def levels(self) -> OutcomeLevels | None:
        return self.inner.levels

    @property
    def density_above_one(self) -> bool:
        return self.inner.density_above_one

    @property
    def design_columns(self) -> tuple[str, ...]:
        return self.inner.design_columns

    @property
    def matrix(self) -> Matrix | None:
        return self.inner.matrix

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        return self.inner.likelihood_parameters

    @property
    def decimals(self) -> int | None:
        return self.inner.decimals

    @property
    def decimals_given(self) -> bool:
        return self.inner.decimals_given

    @property
    def first_try(self) -> FirstTry | None:
        return self.inner.first_try

    @property
    def takes_center(self) -> bool:
        return self.inner.takes_center

    @property
    def grid_form(self) -> GridForm | None:
        return self.inner.grid_form

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        return self.inner.monitored(draws)

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        return self.inner.replicate(draws, draw, rng, given)
