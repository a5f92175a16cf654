"""A user's Stan program joined to a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.checks import FloatArray
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.engines.programs import declared_names
from pyhybrid.errors import InvalidInput, SamplingError
from pyhybrid.models.decimals import decimals_of
from pyhybrid.models.design import Design
from pyhybrid.models.regression import in_form_of
from pyhybrid.models.stan_checks import check_log_lik, unchecked_facts
from pyhybrid.privacy.cap import Cap
from pyhybrid.privacy.log_lik import LogLik

if TYPE_CHECKING:
    from pyhybrid.models.stan_model import StanModel

__all__ = ["BoundStanModel"]

_BLOCK_ELEMENTS = 2_000_000
_NO_CAP = 1e300


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundStanModel:
    """A user's model joined to a table; `checked` if its weights were. Confidential."""

    model: StanModel
    table: pd.DataFrame
    design: Design | None = None
    checked: bool = True
    _log_lik: WeakKeyDictionary[Draws, FloatArray] = field(default_factory=WeakKeyDictionary)

    def __reduce__(self) -> tuple[Any, ...]:
        return _bound, (self.model, self.table, self.design, self.checked)

    def __repr__(self) -> str:
        return f"<{self.model.name} {self.program.name!r} bound to {self.n} records>"

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.table)

    @property
    def program(self) -> StanProgram:
        """The user's program."""
        return self.model.source

    @property
    def synthesized(self) -> tuple[str, ...]:
        """The outcome's column."""
        return (self.model.outcome,)

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns that the formula reads, or the user says the program reads."""
        return self.model.predictors if self.design is None else self.design.predictors

    @property
    def outcome(self) -> FloatArray:
        """Sensitive values, shape (n,)."""
        return self.table[self.model.outcome].to_numpy(dtype=np.float64)

    @property
    def density_above_one(self) -> bool:
        """What the user says, or the safe assumption."""
        return self.model.density_above_one

    @property
    def design_columns(self) -> tuple[str, ...]:
        """Columns of the formula's design, or those that the user says the program reads."""
        return self.model.predictors if self.design is None else self.design.columns

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        """All parameters of the program."""
        return declared_names(self.program, "parameters")

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What may look at all records: the program's data, unless the user says otherwise."""
        coded = () if self.design is None else self.design.data_dependent
        return coded if self.model.by_record else (*coded, "the data of the Stan program")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the user says of the program, and what was not checked."""
        own = self.model
        return unchecked_facts(
            density_above_one=own.density_above_one, by_record=own.by_record, checked=self.checked
        )

    @property
    def decimals_given(self) -> bool:
        """True if the user gave the number of decimals of released values."""
        return self.model.decimals is not None

    @property
    def decimals(self) -> int | None:
        """What the user gave, or what the outcomes have."""
        return decimals_of(self.outcome) if self.model.decimals is None else self.model.decimals

    @property
    def row_of(self) -> npt.NDArray[np.intp]:
        """Each record is a row of its own."""
        return np.arange(self.n)

    @property
    def takes_cap(self) -> bool:
        """True if the program can censor."""
        return "cap" in declared_names(self.program, "data")

    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        """Data block; see `pyhybrid.models.base.BoundModel`. `dispersion` has no effect.

        Raises
        ------
        InvalidInput
            If a cap is given that the program does not take, or one with a center or units.
        """
        if isinstance(cap, Cap):
            if not cap.is_plain:
                raise InvalidInput(
                    "a user's program is censored at [-cap, cap], record by record: found a cap "
                    "with a center, units or unequal ends; take a built-in model for those"
                )
            cap = cap.above
        if cap is not None and not self.takes_cap:
            raise InvalidInput(
                f"censoring needs a program that takes a cap: {self.program.name!r} declares none; "
                "add 'int<lower=0, upper=1> use_cap; real<lower=0> cap;' to its data block and "
                "clip each weighted term with fmax(-cap, fmin(cap, ...)), or choose another "
                "mechanism"
            )
        return self._data_of(self.table, alpha, cap)

    def data_of_outcome(self, outcome: Any) -> dict[str, Any]:
        """Data block with all weights 1 for other outcomes (n,); the table is left as it is."""
        return self._data_of(self.table.assign(**{self.model.outcome: outcome}), np.ones(self.n))

    def _data_of(
        self, table: pd.DataFrame, alpha: FloatArray, cap: float | None = None
    ) -> dict[str, Any]:
        given = self.model.data(table) if callable(self.model.data) else self.model.data
        if not isinstance(given, Mapping):
            raise InvalidInput(f"data(df) must return a mapping: found {type(given).__name__}")
        declared = declared_names(self.program, "data")
        if self.design is not None:
            X = self.design.X if table is self.table else self.design.matrix_of(table)
            coded = {"K": X.shape[1], "X": X}
            given = {name: coded[name] for name in declared if name in coded} | dict(given)
        own = {
            "n": len(table),
            "y": table[self.model.outcome].to_numpy(),
            "use_cap": int(cap is not None),
            "cap": cap if cap is not None else (0.0 if "use_cap" in declared else _NO_CAP),
        }
        known = {name: own[name] for name in declared if name in own}
        return {**known, **given, "weights": alpha} | {
            name: known[name] for name in ("use_cap", "cap") if name in known
        }

    def log_lik(self, draws: Draws) -> LogLik:
        """Unweighted log-likelihood, one column per record."""
        return LogLik(make=lambda: self.log_lik_blocks(draws), row_of=self.row_of)

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """Unweighted log-likelihood, (S, b) at a time: views of what the engine returned.

        Where that is weighted, or absent as in the frozen draws of a calibration, it is computed
        at the draws, once per fit.
        """
        if "log_lik" not in draws.variables or self.model.log_lik_weighted:
            if draws not in self._log_lik:
                at = ProgramAtPoints(self.program, self._data_of(self.table, np.ones(self.n)))
                self._log_lik[draws] = at.quantities(at.unconstrained(draws))["log_lik"]
            flat = self._log_lik[draws]
        else:
            flat = draws.flat("log_lik")
        above = self.model.density_above_one
        check_log_lik(self.program, flat, (draws.n_draws, self.n), density_above_one=above)
        size = max(1, _BLOCK_ELEMENTS // draws.n_draws)
        for start in range(0, self.n, size):
            yield flat[:, start : start + size]

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        """Parameters, or what the user named, and the sum of log_lik."""
        names = self.model.monitored
        if names is None:
            names = tuple(name for name in self.likelihood_parameters if name in draws.variables)
        unknown = [name for name in names if name not in draws.variables]
        if unknown:
            raise InvalidInput(f"monitored must be variables of the program: {unknown[0]!r} is not")
        total = draws.variables["log_lik"].sum(axis=2)
        return {**{name: draws.variables[name] for name in names}, "sum of log_lik": total}

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The outcome drawn anew; see `pyhybrid.models.base.BoundModel`."""
        table = self.table if given is None else given
        how = self.model.predict
        if isinstance(how, str):
            values, said = self._generated(how, draws, draw, rng, table), how
        else:
            parameters = {
                name: draws.flat(name)[draw] for name in draws.variables if name != "log_lik"
            }
            known = table.drop(columns=self.model.outcome)
            values, said = how(parameters, known, rng), "predict(parameters, df, rng)"
        try:
            made = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(f"{said} must return numbers: found {type(values)}") from None
        if made.shape != (self.n,):
            raise InvalidInput(f"{said} must have shape ({self.n},): found {made.shape}")
        if not np.isfinite(made).all():
            raise SamplingError(f"a replicate is not finite: {said} of draw {draw + 1}")
        like, decimals = self.table[self.model.outcome], self.decimals
        rounded = made if decimals is None else np.round(made, decimals)
        return in_form_of(rounded, like, self.model.decimals).to_frame()

    def _generated(
        self, name: str, draws: Draws, draw: int, rng: np.random.Generator, table: pd.DataFrame
    ) -> FloatArray:
        """The generated quantity at one draw, with random numbers of its own."""
        if name not in draws.variables:
            raise InvalidInput(
                f"predict must be a variable of program {self.program.name!r}: {name!r} is not"
            )
        data = self._data_of(table, np.ones(self.n))
        at = ProgramAtPoints(self.program, data)
        point = at.unconstrained(_one_draw(draws, draw))
        return np.asarray(at.quantities(point, seed=int(rng.integers(1, 2**31)))[name][0])


def _bound(
    model: StanModel, table: pd.DataFrame, design: Design | None, checked: bool
) -> BoundStanModel:
    """Another process's copy, without what was computed from draws."""
    return BoundStanModel(model=model, table=table, design=design, checked=checked)


def _one_draw(draws: Draws, draw: int) -> Draws:
    """The fit reduced to one draw."""
    place = np.unravel_index(draw, draws.divergent.shape)
    return replace(
        draws,
        variables={name: values[place][None, None] for name, values in draws.variables.items()},
        divergent=draws.divergent[place][None, None],
        treedepth=draws.treedepth[place][None, None],
        energy=draws.energy[place][None, None],
    )
