"""What the modules below `pyhybrid.StanModel` need to know of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import StanProgram

__all__ = [
    "DataOfTable",
    "OwnProgram",
    "Predictor",
    "check_columns",
    "checked_names",
    "program_text",
]

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


def program_text(program: str | os.PathLike[str]) -> tuple[str, str]:
    """Name and text of a program given as text or as a file.

    Raises
    ------
    InvalidInput
        If the file cannot be read.
    """
    text = os.fspath(program)
    if "{" in text:
        return "user_program", text
    path = Path(text)
    try:
        return path.stem, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"program must be a readable Stan file: {text}: {reason}") from None


def checked_names(values: Any, name: str) -> tuple[str, ...]:
    """Names as a tuple; InvalidInput for other things."""
    if isinstance(values, str) or not all(isinstance(each, str) for each in values):
        raise InvalidInput(f"{name} must be a tuple of names: found {values!r}")
    return tuple(values)


def check_columns(predictors: tuple[str, ...], outcome: str, df: pd.DataFrame) -> None:
    """Raise InvalidInput unless predictors are columns, and not the outcome."""
    unknown = [name for name in predictors if name not in df.columns]
    if unknown:
        raise InvalidInput(f"predictors must be columns of the data: {unknown[0]!r} is not")
    if outcome in predictors:
        raise InvalidInput(f"outcome {outcome!r} must not be among the predictors")
