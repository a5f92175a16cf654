"""What the modules below `pyhybrid.StanModel` need to know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd

from pyhybrid.checks import FloatArray
from pyhybrid.engines.base import StanProgram

__all__ = ["DataOfTable", "OwnProgram", "Predictor"]

DataOfTable = Callable[[pd.DataFrame], Mapping[str, Any]]
Predictor = Callable[[dict[str, FloatArray], pd.DataFrame, np.random.Generator], Any]


class OwnProgram(Protocol):
    """A user's program with what the user says of it; see `pyhybrid.StanModel`."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def source(self) -> StanProgram:
        """The program."""

    @property
    def outcome(self) -> str:
        """The sensitive column."""

    @property
    def predict(self) -> str | Predictor:
        """The generated quantity, or the function, that makes replicates."""

    @property
    def data(self) -> Mapping[str, Any] | DataOfTable:
        """The rest of the data block, or the function that makes it."""

    @property
    def log_lik_weighted(self) -> bool:
        """True if log_lik is weighted."""

    @property
    def density_above_one(self) -> bool:
        """False if the user says that no density exceeds 1."""

    @property
    def by_record(self) -> bool:
        """True if the user says that log_lik reads its own record alone."""

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns beside those of a formula."""

    @property
    def public(self) -> tuple[str, ...]:
        """Names of what is public without being a column."""

    @property
    def decimals(self) -> int | None:
        """Decimals of released values, if they were given."""

    @property
    def monitored(self) -> tuple[str, ...] | None:
        """Variables that must have converged."""
