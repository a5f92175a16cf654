"""Replicates of the outcome by a user's program or function, made without the confidential outcome.

What no check can see, such as a reading in one draw of a million, cannot happen here: the program
runs on data in which other values stand in the place of the outcome, and a function in Python gets
the parameters of one draw, what the program computes of them and those data, and the other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import EngineUnavailable, InvalidInput, SamplingError
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import parameter_names
from pyhybrid.models.columns.surrogate_values import OtherValues
from pyhybrid.models.stan_program.stan_data import handed_over

__all__ = ["Replicates", "one_draw"]


@dataclass(frozen=True, kw_only=True)
class Replicates:
    """How replicates are made.

    Attributes
    ----------
    program : StanProgram
    how : str or callable
        The generated quantity, or the function of (parameters, df, rng).
    outcome : str
        Name of the confidential column.
    n : int
        Number of records.
    data_of : callable
        Data block of a table with other values in the place of its outcome, or, for None, with its
        own.
    others : callable
        References of other values.
    trusted : bool
        True if the program was not checked, by the user's choice: the true data are used where it
        takes no others.
    """

    program: StanProgram
    how: Any
    outcome: str
    n: int
    data_of: Callable[[pd.DataFrame, OtherValues | None], Mapping[str, Any]]
    others: Callable[[], Iterator[OtherValues]]
    trusted: bool = False

    @property
    def said(self) -> str:
        """What makes replicates, for messages."""
        return self.how if isinstance(self.how, str) else "predict(parameters, df, rng)"

    def one(
        self, draws: Draws, draw: int, rng: np.random.Generator, table: pd.DataFrame
    ) -> FloatArray:
        """One replicate of the outcome, shape (n,), at draw `draw`."""
        if isinstance(self.how, str) and self.how not in draws.variables:
            raise InvalidInput(
                f"predict must be a variable of program {self.program.name!r}: {self.how!r} is not"
            )
        single, seed = one_draw(draws, draw), int(rng.integers(1, 2**31))
        try:
            found = self._quantities(single, seed, table)
        except EngineUnavailable:
            if isinstance(self.how, str):
                raise
            names = [name for name in parameter_names(self.program) if name in draws.variables]
            found = {name: single.flat(name) for name in names}
        if isinstance(self.how, str):
            return self.as_column(found[self.how][0])
        kept = [name for name in draws.variables if name != "log_lik" and name in found]
        return self.called({name: found[name][0] for name in kept}, table, rng)

    def called(
        self, parameters: dict[str, FloatArray], table: pd.DataFrame, rng: np.random.Generator
    ) -> FloatArray:
        """What the function in Python returns, shape (n,)."""
        columns = tuple(name for name in table.columns if name != self.outcome)
        return self.as_column(self.how(parameters, handed_over(table, columns), rng))

    def as_column(self, values: Any) -> FloatArray:
        """`values` as floats (n,); they may be infinite."""
        try:
            made = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(f"{self.said} must return numbers: found {type(values)}") from None
        if made.shape != (self.n,):
            raise InvalidInput(f"{self.said} must have shape ({self.n},): found {made.shape}")
        return made

    def _quantities(self, single: Draws, seed: int, table: pd.DataFrame) -> dict[str, FloatArray]:
        """The program's variables at one draw, by the first other values that it takes."""
        own = ProgramAtPoints(self.program, self.data_of(table, None))  # or the reason why not
        for other in self.others():
            try:
                at = ProgramAtPoints(self.program, self.data_of(table, other))
                return at.quantities(at.unconstrained(single), seed=seed)
            except (InvalidInput, SamplingError, RuntimeError, ValueError):
                continue
        if not self.trusted:
            raise SamplingError(
                f"program {self.program.name!r} failed to make a replicate from data without the "
                "confidential outcome"
            )
        return own.quantities(own.unconstrained(single), seed=seed)


def one_draw(draws: Draws, draw: int) -> Draws:
    """The fit reduced to one draw."""
    place = np.unravel_index(draw, draws.divergent.shape)
    return replace(
        draws,
        variables={name: values[place][None, None] for name, values in draws.variables.items()},
        divergent=draws.divergent[place][None, None],
        treedepth=draws.treedepth[place][None, None],
        energy=draws.energy[place][None, None],
    )
