"""What a mechanism needs of a model: two protocols, met by regressions and users' programs alike.

A `Model` is a description; `bind` joins it to a table. The bound model is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, no_such_attribute
from pyhybrid.engines.base import Draws, FirstTry, StanProgram
from pyhybrid.models.columns.form import OutcomeLevels
from pyhybrid.models.formula.design import Matrix
from pyhybrid.models.grid import GridForm
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.log_lik import LogLik

_RELEASED = "a mechanism fits it and releases, e.g. ph.LipschitzWeighted(model).release(df)"
_RIGHT_CALLS = dict.fromkeys(("fit", "release", "synthesize", "sample", "predict"), _RELEASED)


class Model(Protocol):
    """A synthesizer: a likelihood, a prior and a way to draw replicates."""

    @property
    def name(self) -> str:
        """Name of the model, as on the command line and in records."""

    def bind(self, df: pd.DataFrame) -> BoundModel:
        """Check `df` and join the model to it; raises InvalidInput."""

    def describe(self) -> dict[str, Any]:
        """Public settings of the model, as plain JSON types."""


class Block(Protocol):
    """A model joined to the records at the positions `at` (k,); `name` is the suffix of its
    variables."""

    @property
    def name(self) -> str: ...

    @property
    def bound(self) -> BoundModel: ...

    @property
    def at(self) -> npt.NDArray[np.intp]: ...


class BoundModel(Protocol):
    """A model joined to n confidential records."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def program(self) -> StanProgram:
        """The Stan program that is sampled."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Models of parts of the records that are sampled one after the other; empty for a model
        that is sampled as one."""

    @property
    def synthesized(self) -> tuple[str, ...]:
        """Columns that a replicate replaces."""

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns the model reads and leaves as they are."""

    @property
    def table(self) -> pd.DataFrame:
        """The confidential table."""

    @property
    def outcome(self) -> FloatArray:
        """Sensitive values of the (first) synthesized column, shape (n,)."""

    def numbers_of(self, column: pd.Series) -> FloatArray:
        """Values of that column, the data's or a replicate's, as numbers, shape (n,)."""

    @property
    def levels(self) -> OutcomeLevels | None:
        """Levels whose places those numbers are; None of an outcome of numbers."""

    @property
    def density_above_one(self) -> bool:
        """True if a log-likelihood above 0 is possible (continuous outcomes)."""

    @property
    def design_columns(self) -> tuple[str, ...]:
        """Names of the columns that the predictors are coded as."""

    @property
    def matrix(self) -> Matrix | None:
        """Predictors of all records as they are coded; None of models without."""

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        """Names of the variables that the likelihood reads."""

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Terms of the formula whose coding depends on all records, e.g. poly(x, 2)."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Sentences on this model that a charge must state among what it assumes."""

    @property
    def decimals(self) -> int | None:
        """Number of decimals of released values; None for all that floating point has."""

    @property
    def decimals_given(self) -> bool:
        """True if that number does not depend on the data."""

    @property
    def first_try(self) -> FirstTry | None:
        """Settings of a first try, for programs whose parameters have about the same scale in the
        posterior without a cap; None for others."""

    @property
    def takes_center(self) -> bool:
        """True if the program clips terms less a center; see `pyhybrid.privacy.censoring.Cap`."""

    @property
    def grid_form(self) -> GridForm | None:
        """How the parameters lie on a grid, if the posterior can be sampled exactly."""

    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        """Data block of the program under weights `alpha` (n,), censored at `cap` if given.

        A number stands for `Cap` [-M, M] without center and units. `dispersion` spreads the
        sampler's starting points; it does not change the posterior.
        """

    def log_lik(self, draws: Draws) -> LogLik:
        """Unweighted log-likelihood of the records at `draws`, computed when it is asked for."""

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        """What must have converged, shape (chains, draws, *dims) each: all that the likelihood
        reads, in a form that does not depend on labels."""

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The synthesized columns alone, drawn anew from draw `draw`, on the table's index.

        `given` has the rows of the table, some columns synthesized before and without those that
        are synthesized later; predictors are read from it, and from the table if it is omitted.
        """


class ReleasedByMechanism:
    """A model that answers those who call it as they would call one of other packages."""

    if not TYPE_CHECKING:  # to type checkers, what is not declared stays an error

        def __getattr__(self, name: str) -> Any:
            raise no_such_attribute(self, name, _RIGHT_CALLS)
