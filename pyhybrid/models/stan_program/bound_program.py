"""What whole and composed programs of the user's have in common once they are joined to a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import SamplingError
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.engines.programs import parameter_names
from pyhybrid.models.columns.support import decimals_of, in_form_of
from pyhybrid.models.formula.design import Design
from pyhybrid.models.stan_program.stan_checks import check_yielded, monitored_of
from pyhybrid.privacy.log_lik import LogLik

__all__ = ["BoundProgram"]

_BLOCK_ELEMENTS = 2_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundProgram:
    """A program of the user's joined to a table. Confidential."""

    model: Any
    table: pd.DataFrame
    design: Design | None = None
    _log_lik: WeakKeyDictionary[Draws, FloatArray] = field(default_factory=WeakKeyDictionary)

    def __repr__(self) -> str:
        return f"<{self.model.name} {self.program.name!r} bound to {self.n} records>"

    @property
    def program(self) -> StanProgram:
        """The program that is sampled."""
        raise NotImplementedError

    def data_of_ones(self) -> dict[str, Any]:
        """Data block with all weights 1, unchecked."""
        raise NotImplementedError

    @property
    def weights_log_lik(self) -> bool:
        """True if the program's log_lik is weighted."""
        return False

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Columns that the program reads, beside those of the formula."""
        own: tuple[str, ...] = self.model.predictors
        return own

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.table)

    @property
    def synthesized(self) -> tuple[str, ...]:
        """The outcome's column."""
        return (self.model.outcome,)

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns that the formula and the program read."""
        coded = () if self.design is None else self.design.predictors
        return tuple(dict.fromkeys((*coded, *self.read_columns)))

    @property
    def design_columns(self) -> tuple[str, ...]:
        """Columns of the formula's design, and those that the program reads."""
        coded = () if self.design is None else self.design.columns
        return tuple(dict.fromkeys((*coded, *self.read_columns)))

    @property
    def outcome(self) -> FloatArray:
        """Sensitive values, shape (n,)."""
        return self.numbers_of(self.table[self.model.outcome])

    def numbers_of(self, column: pd.Series) -> FloatArray:
        """Values of the outcome, the data's or a replicate's, as numbers, shape (n,)."""
        return column.to_numpy(dtype=np.float64)

    @property
    def density_above_one(self) -> bool:
        """What the user says, or the safe assumption."""
        return bool(self.model.density_above_one)

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        """All parameters of the program."""
        return parameter_names(self.program)

    @property
    def decimals_given(self) -> bool:
        """True if the user gave the number of decimals of released values."""
        return self.model.decimals is not None

    @property
    def decimals(self) -> int | None:
        """What the user gave, or what the outcomes have."""
        given: int | None = self.model.decimals
        return decimals_of(self.outcome) if given is None else given

    @property
    def row_of(self) -> npt.NDArray[np.intp]:
        """Each record is a row of its own."""
        return np.arange(self.n)

    @property
    def first_try(self) -> None:
        """None: nothing is known of how its parameters lie."""
        return None

    @property
    def grid_form(self) -> None:
        """None: its parameters are not known to lie on a grid."""
        return None

    def log_lik(self, draws: Draws) -> LogLik:
        """Unweighted log-likelihood, one column per record."""
        return LogLik(make=lambda: self.log_lik_blocks(draws), row_of=self.row_of)

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """Unweighted log-likelihood, (S, b) at a time: views of what the engine returned.

        Where that is weighted, or absent as in the frozen draws of a calibration, it is computed
        at the draws, once per fit.
        """
        if "log_lik" not in draws.variables or self.weights_log_lik:
            if draws not in self._log_lik:
                at = ProgramAtPoints(self.program, self.data_of_ones())
                self._log_lik[draws] = at.quantities(at.unconstrained(draws))["log_lik"]
            flat = self._log_lik[draws]
        else:
            flat = draws.flat("log_lik")
        above = self.density_above_one
        check_yielded(self.program, flat, (draws.n_draws, self.n), density_above_one=above)
        size = max(1, _BLOCK_ELEMENTS // draws.n_draws)
        for start in range(0, self.n, size):
            yield flat[:, start : start + size]

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        """Parameters, or what the user named, and the sum of log_lik."""
        return monitored_of(draws, self.model.monitored, self.likelihood_parameters)

    def released(self, made: FloatArray, said: str) -> pd.DataFrame:
        """A replicate (n,) in the form of what is released.

        Raises
        ------
        SamplingError
            If it is not finite.
        """
        if not np.isfinite(made).all():
            raise SamplingError(f"a replicate is not finite: {said}")
        like, decimals = self.table[self.model.outcome], self.decimals
        rounded = made if decimals is None else np.round(made, decimals)
        return in_form_of(rounded, like, self.model.decimals).to_frame()
