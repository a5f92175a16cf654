"""What every mechanism answers, whether or not it fits a model."""

from __future__ import annotations

from typing import Any, Protocol

import pandas as pd

from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.session import FitProgress
from pyhybrid.releases.release import Release

__all__ = ["Mechanism"]


class Mechanism(Protocol):
    """One interface, one release path: a row of `pyhybrid.mechanisms`, or a sequence of them."""

    @property
    def name(self) -> str:
        """Name of the mechanism."""

    @property
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces, in the order of synthesis."""

    @property
    def relation(self) -> str:
        """Neighboring databases of the charge."""

    @property
    def delta_of_charge(self) -> float | None:
        """Delta that a local release is counted at; None if it is not counted at one."""

    def describe(self) -> dict[str, Any]:
        """Public settings."""

    def release(
        self,
        df: pd.DataFrame,
        *,
        n_synthetic: int = 1,
        n_draws_released: int | None = None,
        seed: int | None = None,
        engine: str | Engine = "auto",
        settings: SamplerSettings | None = None,
        rule: ConvergenceRule | None = None,
        on_not_converged: str = "raise",
        progress: FitProgress | None = None,
        leave_one_out: int = 0,
    ) -> Release:
        """Synthetic data with their charge; see `PseudoPosteriorMechanism.release`.

        Raises
        ------
        InvalidInput
            For a setting that the mechanism has no use for.
        """
