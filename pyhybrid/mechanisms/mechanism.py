"""What every mechanism answers, whether or not it fits a model; those that release noisy counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pandas as pd

from pyhybrid.core.checks import (
    check_count,
    check_draws_released,
    check_names,
    did_you_mean,
    not_a_frame,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.fitting.session import FitOptions, FitProgress, FitSession
from pyhybrid.models.columns.form import Form
from pyhybrid.primitives.noise import NoiseProvenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.record import Confidential, Origin, ReleaseRecord
from pyhybrid.releases.release import Release

REFITS = 10
"""Refits without a record that a local release is charged by."""
SHOWN_IF_SET = {"shown": "if set"}
"""Of a setting that is described where it is not the default, as names of random streams stay."""


class Mechanism(ABC):
    """One interface, one release path: a row of `pyhybrid.mechanisms`, or a sequence of them."""

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return type(self).__name__

    @property
    @abstractmethod
    def synthesizes(self) -> tuple[str, ...]:
        """Columns that a release replaces, in the order of synthesis."""

    @property
    @abstractmethod
    def relation(self) -> str:
        """Neighboring databases of the charge."""

    @property
    def delta_of_charge(self) -> float | None:
        """Delta that a local release is counted at; None if it is not counted at one."""
        return None

    @property
    def undecided(self) -> dict[str, str]:
        """Reason by column why what a model reads needs the owner's decision to be published."""
        return {}

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Public settings."""

    def forms(self, df: pd.DataFrame) -> Mapping[str, Form]:
        """Declared form of columns, by their names, where a charge may be strict."""
        return {}

    @bar_in_notebooks
    def release(
        self,
        df: Any,
        *,
        n_synthetic: int = 1,
        n_draws_released: int | None = None,
        seed: int | None = None,
        engine: str | Engine = "auto",
        settings: SamplerSettings | None = None,
        rule: ConvergenceRule | None = None,
        on_not_converged: str = "raise",
        progress: FitProgress | None = None,
        refits: int = REFITS,
    ) -> Release:
        """Fit, bound, charge and synthesize; of noise: count, add noise, charge and draw.

        Parameters
        ----------
        df : DataFrame
            Confidential records. Not modified.
        n_synthetic : int, default 1
            m, the number of synthetic data sets. Honest intervals from `NoisyMarginals` need many:
            20 or more.
        n_draws_released : int, optional
            Posterior draws the sets are simulated from: `n_synthetic` (the default; the sets then
            vary as the posterior does, at m times the price of one) or 1 (all sets from one draw,
            at its price). Of a mechanism of noise any number of sets costs what one costs.
        seed, engine, settings, rule, on_not_converged, progress
            See `pyhybrid.fitting.session.FitOptions`. A mechanism of noise refuses all but
            `progress`: it fits no model, and takes its noise from the operating system.
        refits : int, default 10
            Of a local release, how many full refits without a record, or unit, are made to see what
            it tells: half of them without those of largest deviation, half without those that
            would have it under weights of 1; the largest loss is charged. An even number; 0 takes
            the weights as fixed, as the papers do, and the charge says so.

        Raises
        ------
        InvalidInput
            For data or arguments that do not meet what is stated, and a setting that the mechanism
            has no use for.
        EngineUnavailable, SamplingError
            If no engine can run, or the one chosen fails; if OpenDP is not installed.
        NotConverged
            If the chains do not converge.
        """
        m = check_count(n_synthetic, "n_synthetic")
        released = self._draws_released(n_draws_released, m)  # before anything is fitted
        options = FitOptions(
            seed=seed,
            engine=engine,
            settings=settings,
            rule=rule,
            on_not_converged=on_not_converged,
            progress=progress,
        )
        return self._release(df, m, released, options, refits)

    def _draws_released(self, n_draws_released: int | None, m: int) -> int:
        return check_draws_released(n_draws_released, m)

    @abstractmethod
    def _release(
        self, df: pd.DataFrame, m: int, n_draws_released: int, options: FitOptions, refits: int
    ) -> Release:
        """See `release`."""


def check_unit_of_noise(unit: str | None, rows_per_unit: int | None) -> None:
    """Refuse a unit of privacy without the rows that it can have, which scale the noise."""
    if (unit is None) != (rows_per_unit is None):
        raise InvalidInput(
            "unit and rows_per_unit must be given together: noise for a unit is scaled by the "
            "rows that it can have at most, which are never counted in the data"
        )
    if rows_per_unit is not None:
        check_count(rows_per_unit, "rows_per_unit")


def check_columns(df: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a table without rows, with two columns of one name, or without one of `columns`."""
    if not isinstance(df, pd.DataFrame):
        raise not_a_frame(df)
    if not len(df):
        raise InvalidInput("data must have rows: found none")
    check_names(df.columns, df.index.names)
    for column in columns:
        if column not in df.columns:
            raise InvalidInput(
                f"column {column!r} must be in the data, once: found "
                f"{', '.join(str(c) for c in df.columns[:20])}"
                f"{did_you_mean(column, df.columns)}"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """Tables, and what a mechanism says of the column that it made of them. No release yet."""

    record: ReleaseRecord
    tables: list[pd.DataFrame]


def refuse_options_of_chains(name: str, options: FitOptions) -> None:
    """Refuse what only a sampler reads."""
    if options != FitOptions(seed=options.seed, progress=options.progress):
        raise InvalidInput(
            f"{name} fits no model: give no engine, settings, rule or on_not_converged"
        )
    if options.seed is not None:
        raise InvalidInput(
            f"seed must not be given to {name}: noise from OpenDP cannot be seeded, as whoever "
            "could reproduce it could subtract it"
        )


class NoiseMechanism(Mechanism):
    """Base of the mechanisms that release noisy counts, and fit no model by chains. All sets come
    from one noisy answer, at its price."""

    epsilon: float

    def _draws_released(self, n_draws_released: int | None, m: int) -> int:
        if n_draws_released not in (None, 1, m):
            raise InvalidInput(
                f"n_draws_released must be left out: found {n_draws_released!r}; the data are "
                "looked at once, and any number of sets costs what one costs"
            )
        return 1

    @abstractmethod
    def _made(self, df: pd.DataFrame, m: int, progress: FitProgress | None) -> Made:
        """m tables and their record."""

    def _release(
        self, df: pd.DataFrame, m: int, n_draws_released: int, options: FitOptions, refits: int
    ) -> Release:
        refuse_options_of_chains(self.name, options)
        made = self._made(df, m, options.progress)
        return Release.of(made.record, made.tables, origin=self.origin(df))

    def release_from(self, session: FitSession, *, n_synthetic: int, **_: int) -> Release:
        """Release the session's table; no fit of it is of use."""
        return self.release(session.bound.table, n_synthetic=n_synthetic, progress=session.progress)

    def origin(self, df: pd.DataFrame) -> Origin:
        """What the owner's report of a release of `df` needs. Confidential."""
        return Origin(data=df)

    def _record(
        self,
        df: pd.DataFrame,
        charge: PrivacyCharge,
        random: Streams,
        predictors: tuple[str, ...] = (),
        **noise: str,
    ) -> ReleaseRecord:
        """The record of a release; `noise` as of `NoiseProvenance`."""
        return ReleaseRecord(
            charge=charge,
            diagnostics=None,
            settings=self.describe(),
            synthesized=self.synthesizes,
            predictors=predictors,
            provenance=NoiseProvenance(library="OpenDP", version=version("opendp"), **noise),
            seeded=False,
            exposed=exposed_columns(df, self.synthesizes),
            confidential=Confidential(labels=df.index, entropy=random.entropy),
        )
