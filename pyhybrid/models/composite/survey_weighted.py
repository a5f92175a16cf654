"""Any model under survey weights: a record's term is its log-likelihood times its design weight.

The pseudo posterior of a survey weights record i by its normalized design weight w_i, so that the
model is fitted to the population and not to those who were sampled. Privacy weights come on top:
the weight in the program is alpha_i w_i. What a record tells is alpha_i w_i f_i: bounds, ranges,
risk and caps are of that product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.programs import with_large_weights
from pyhybrid.measures.survey import SurveyDesign
from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.columns.form import Form, forms_of
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.log_lik import LogLik


@dataclass(frozen=True)
class SurveyWeighted:
    """A model that is fitted to the population by the design weights of a survey.

    Replicates are of the sampled records, drawn from the population's model: estimates from the
    synthetic set are of the population, without weights. Every mechanism with ``design=`` makes
    one of its model.

    Parameters
    ----------
    model : Model
        Any model; a `StanModel` must declare weights that may be above 1.
    design : SurveyDesign
    """

    model: Model
    design: SurveyDesign

    def __post_init__(self) -> None:
        if not isinstance(self.design, SurveyDesign):
            raise InvalidInput(f"design must be a SurveyDesign: found {type(self.design).__name__}")

    @property
    def name(self) -> str:
        """That of the model."""
        return self.model.name

    def describe(self) -> dict[str, Any]:
        """Public settings of the model and the design."""
        return {**self.model.describe(), "design": self.design.describe()}

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Those of the model."""
        return forms_of(self.model, df)

    def bind(self, df: pd.DataFrame) -> BoundModel:
        """Check `df` and join model and design to it."""
        inner = self.model.bind(df)
        taken = sorted(set(self.design.columns) & set(inner.synthesized))
        if taken:
            raise InvalidInput(
                f"survey column {taken[0]!r} must not be synthesized by the model that it weights"
            )
        self.design.check_columns(df)  # strata are for variances, which no release has
        bound = _BoundSurvey(model=self, inner=inner, weight=self.design.normalized(df))
        return cast(BoundModel, bound)


def weights_told(model: Any) -> dict[str, str]:
    """Reason by column why survey weights that stay in the file need the owner's decision."""
    if not isinstance(model, SurveyWeighted):
        return {}
    return {
        model.design.weights: "its survey weights may disclose the outcome: synthesize them "
        "together with it, or leave them out"
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class _BoundSurvey:
    """A bound model with the normalized weight of each record, shape (n,). Confidential."""

    model: SurveyWeighted
    inner: BoundModel
    weight: FloatArray = field(repr=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":  # while a copy is being made
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __repr__(self) -> str:
        return f"<{self.model.name} of {self.inner.n} records with survey weights>"

    @property
    def program(self) -> StanProgram:
        """The model's program; weights may be above 1 in it."""
        return with_large_weights(self.inner.program)

    @property
    def predictors(self) -> tuple[str, ...]:
        """Those of the model, and the columns of the design."""
        return tuple(dict.fromkeys((*self.inner.predictors, *self.model.design.columns)))

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What is computed from all records: terms of the formula, and normalized weights."""
        return (*self.inner.data_dependent, *self.model.design.reads_others)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the model, and what survey weights do to the guarantee."""
        name, largest = self.model.design.weights, self.model.design.largest
        bounded = "" if largest is None else f", no larger than {largest:g}"
        return (
            *self.inner.assumptions,
            f"A record's term is its log-likelihood times its normalized survey weight "
            f"({name}{bounded}): a record of a large weight tells more, and is charged for it.",
        )

    def scale_without(self, unit_of: npt.NDArray[np.intp]) -> FloatArray:
        """Factor of the terms of all others when a unit leaves, (n_units,)."""
        return self.model.design.scale_without(self.inner.table, unit_of)

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
        own = self.inner.log_lik(draws)
        pairs, row_of = np.unique(
            np.column_stack([own.row_of.astype(np.float64), self.weight]),
            axis=0,
            return_inverse=True,
        )
        rows, weight = pairs[:, 0].astype(np.intp), pairs[:, 1]

        def make() -> Iterator[FloatArray]:
            for span, block in own.blocks():  # pairs are in the order of rows
                here = slice(*np.searchsorted(rows, [span.start, span.stop]))
                yield block[:, rows[here] - span.start] * weight[here]

        return LogLik(make=make, row_of=np.asarray(row_of, dtype=np.intp).reshape(-1))
