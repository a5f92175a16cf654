"""What every mechanism answers, whether or not it fits a model."""

from __future__ import annotations

from typing import Any, Protocol

import pandas as pd

from pyhybrid.core.checks import check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.session import FitProgress
from pyhybrid.releases.release import Release

__all__ = ["Mechanism", "check_no_fit", "check_unit_of_noise"]


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

    @property
    def undecided(self) -> dict[str, str]:
        """Reason by column why what a model reads needs the owner's decision to be published."""

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
        leave_one_out: int | None = None,
    ) -> Release:
        """Synthetic data with their charge; see `PseudoPosteriorMechanism.release`.

        Raises
        ------
        InvalidInput
            For a setting that the mechanism has no use for.
        """


def check_no_fit(
    name: str,
    *,
    engine: str | Engine,
    settings: SamplerSettings | None,
    rule: ConvergenceRule | None,
    on_not_converged: str,
    leave_one_out: int | None,
    seed: int | None,
) -> None:
    """Refuse settings of chains, and a seed, given to a mechanism with noise in place of a fit."""
    if (engine, settings, rule, on_not_converged, leave_one_out) != (
        "auto",
        None,
        None,
        "raise",
        None,
    ):
        raise InvalidInput(
            f"{name} fits no model: give no engine, settings, rule, on_not_converged or "
            "leave_one_out (--engine, --chains, --warmup, --draws, --adapt-delta, "
            "--on-not-converged, --leave-one-out)"
        )
    if seed is not None:
        raise InvalidInput(
            f"seed must not be given to {name}: noise from OpenDP cannot be seeded, as "
            "whoever could reproduce it could subtract it"
        )


def check_unit_of_noise(unit: str | None, rows_per_unit: int | None) -> None:
    """Refuse a unit of privacy without the rows that it can have, which scale the noise."""
    if (unit is None) != (rows_per_unit is None):
        raise InvalidInput(
            "unit and rows_per_unit must be given together: noise for a unit is scaled by the "
            "rows that it can have at most, which are never counted in the data"
        )
    if rows_per_unit is not None:
        check_count(rows_per_unit, "rows_per_unit")
