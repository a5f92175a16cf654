"""A model in a Stan program of the user's own."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded_points import ProgramAtPoints, check_compiles
from pyhybrid.engines.programs import declared_names
from pyhybrid.errors import EngineUnavailable, InvalidInput, SamplingError
from pyhybrid.models.design import read_design
from pyhybrid.models.proportions import decimals_of
from pyhybrid.models.regression import in_dtype_of
from pyhybrid.models.stan_checks import (
    check_declares,
    check_log_lik,
    check_predicts,
    check_weights_act,
    unchecked_facts,
)
from pyhybrid.validation import FloatArray, check_flag

__all__ = ["BoundStanModel", "StanModel"]

_BLOCK_ELEMENTS = 2_000_000
_NO_CAP = 1e300
DataOfTable = Callable[[pd.DataFrame], Mapping[str, Any]]
Predictor = Callable[[dict[str, FloatArray], pd.DataFrame, np.random.Generator], Any]


@dataclass(frozen=True, eq=False)
class StanModel:
    """A user's own Stan program as a synthesizer, under every mechanism.

    The program declares ``weights``, one per record, in its data block and multiplies each record's
    log-likelihood by its weight; ``log_lik`` in its generated quantities is the same
    log-likelihood, one value per record in the order of the table, not weighted. Whether the
    weights act so is checked at random points when a table is bound.

    Parameters
    ----------
    program : str or path
        A ``.stan`` file, or the program's text.
    outcome : str
        The sensitive column that replicates replace.
    data : mapping or callable
        The rest of the data block, or a function of the table that returns it. ``weights`` comes
        from pyhybrid; so do ``n`` and ``y`` (the outcome), where the program declares them and
        `data` does not give them, and ``cap`` and ``use_cap``.
    predict : str or callable
        How a replicate of the outcome is made: the name of a generated quantity with one value per
        record, or ``predict(parameters, df, rng)``, which gets the variables of one draw by name
        and the table without its outcome, and returns an array of shape (n,). Neither may read the
        confidential outcome, which no epsilon would cover: a generated quantity that moves when
        outcomes change places is refused.
    log_lik_weighted : bool, default False
        True for programs whose log_lik is already weighted, as the published ones and brms's: it is
        then never read from the fit, where a record of weight 0 has left no trace, but computed at
        the same draws with all weights 1, which needs stanli and S x n numbers of memory.
    density_above_one : bool, default True
        False for discrete outcomes, whose log-likelihood is never above 0: under relation "replace"
        they cost half as much. A wrong False is an understatement of epsilon: a log_lik above 0 is
        then refused.
    by_record : bool, default False
        True states that log_lik[i], and all data that it reads, are functions of record i alone. A
        strict guarantee needs that; it cannot be checked from outside.
    predictors : tuple of str
        Columns the program reads and leaves as they are, for the record.
    monitored : tuple of str, optional
        Variables that must have converged; the program's parameters if omitted. Give variables
        that do not depend on labels where components can change names. The sum of log_lik is
        monitored in any case.

    Notes
    -----
    Censoring needs ``cap`` in the data block, with the term of record i as
    ``fmax(-cap, fmin(cap, weights[i] * f_i))``, and, to be told when there is none, ``int
    use_cap``; a program without ``use_cap`` gets a cap of 1e300 then. The clipping is checked like
    the weights. Generated quantities that predict are drawn anew for every replicate, whichever
    engine sampled. Starting points are Stan's own, also where other modes are looked for.
    """

    program: str | os.PathLike[str]
    _: KW_ONLY
    outcome: str
    predict: str | Predictor
    data: Mapping[str, Any] | DataOfTable = field(default_factory=dict, repr=False)
    log_lik_weighted: bool = False
    density_above_one: bool = True
    by_record: bool = False
    predictors: tuple[str, ...] = ()
    monitored: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("log_lik_weighted", "density_above_one", "by_record"):
            check_flag(getattr(self, name), name)
        if not (callable(self.data) or isinstance(self.data, Mapping)):
            raise InvalidInput(
                "data must be a mapping or a function of the table: found "
                f"{type(self.data).__name__}"
            )
        if not (callable(self.predict) or isinstance(self.predict, str)):
            raise InvalidInput(
                "predict must name a generated quantity, or be a function of (parameters, df, "
                f"rng): found {type(self.predict).__name__}"
            )
        check_declares(self.source)

    @property
    def name(self) -> str:
        """Name of the model."""
        return type(self).__name__

    @cached_property
    def source(self) -> StanProgram:
        """The program; its text is read once."""
        text = os.fspath(self.program)
        if "{" in text:
            return StanProgram(name="user_program", text=text)
        path = Path(text)
        try:
            return StanProgram(name=path.stem, text=path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidInput(f"program must be a readable Stan file: {text}: {reason}") from None

    def describe(self) -> dict[str, Any]:
        """Public settings: the program by name and hash, no data."""
        how = self.predict
        return {
            "model": self.name,
            "program": self.source.name,
            "program_sha256": self.source.sha256,
            "outcome": self.outcome,
            "predict": how if isinstance(how, str) else getattr(how, "__qualname__", "a function"),
            "log_lik_weighted": self.log_lik_weighted,
            "density_above_one": self.density_above_one,
            "by_record": self.by_record,
        }

    def bind(self, df: pd.DataFrame) -> BoundStanModel:
        """Check `df` and the program on it, and join them.

        Raises
        ------
        InvalidInput
            For an outcome that is missing or not numeric, predictors that are no columns, a program
            that does not compile (with the compiler's message), does not take the data, whose
            log_lik has another length, whose weights or cap do not act as they should, or whose
            replicates read the outcome.
        """
        read_design(f"`{self.outcome}` ~ 1", df)
        unknown = [name for name in self.predictors if name not in df.columns]
        if unknown:
            raise InvalidInput(f"predictors must be columns of the data: {unknown[0]!r} is not")
        bound = BoundStanModel(model=self, table=df)
        try:
            check_compiles(self.source)
            check_weights_act(
                self.source,
                lambda alpha, cap: bound.stan_data(alpha, cap=cap),
                bound.n,
                weighted=self.log_lik_weighted,
                capped=bound.takes_cap,
            )
            if isinstance(self.predict, str):
                values = df[self.outcome].to_numpy()
                check_predicts(self.source, self.predict, bound.data_of_outcome, values)
        except EngineUnavailable as error:
            warnings.warn(
                f"whether the weights of program {self.source.name!r} act was not checked: {error}",
                stacklevel=2,
            )
            return replace(bound, checked=False)
        return bound


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundStanModel:
    """A user's model joined to a table; `checked` if its weights were. Confidential."""

    model: StanModel
    table: pd.DataFrame
    checked: bool = True
    _log_lik: WeakKeyDictionary[Draws, FloatArray] = field(default_factory=WeakKeyDictionary)

    def __reduce__(self) -> tuple[Any, ...]:
        return _bound, (self.model, self.table, self.checked)

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
        """Columns that the user says the program reads."""
        return self.model.predictors

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
        """The columns that the user says the program reads."""
        return self.model.predictors

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        """All parameters of the program."""
        return declared_names(self.program, "parameters")

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What may look at all records: the program's data, unless the user says otherwise."""
        return () if self.model.by_record else ("the data of the Stan program",)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the user says of the program, and what was not checked."""
        own = self.model
        return unchecked_facts(
            density_above_one=own.density_above_one, by_record=own.by_record, checked=self.checked
        )

    @property
    def row_of(self) -> npt.NDArray[np.intp]:
        """Each record is a row of its own."""
        return np.arange(self.n)

    @property
    def takes_cap(self) -> bool:
        """True if the program can censor."""
        return "cap" in declared_names(self.program, "data")

    def stan_data(
        self, alpha: FloatArray, *, cap: float | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        """Data block; see `pyhybrid.models.base.BoundModel`. `dispersion` has no effect.

        Raises
        ------
        InvalidInput
            If a cap is given that the program does not take.
        """
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
        """The table with its outcome drawn anew; see `pyhybrid.models.base.BoundModel`."""
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
        decimals = decimals_of(self.outcome)
        rounded = made if decimals is None else np.round(made, decimals)
        synthetic: pd.DataFrame = table.copy()
        synthetic.attrs = {}  # notes on the confidential table would be published with it
        like = self.table[self.model.outcome]
        synthetic[self.model.outcome] = in_dtype_of(rounded, like)
        return synthetic

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


def _bound(model: StanModel, table: pd.DataFrame, checked: bool) -> BoundStanModel:
    """Another process's copy, without what was computed from draws."""
    return BoundStanModel(model=model, table=table, checked=checked)


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
