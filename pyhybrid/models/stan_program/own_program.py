"""Stan programs of the user's own, whole and composed: what they have in common."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_flag
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import parameter_names
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import check_decimals, decimals_of, in_form_of
from pyhybrid.models.formula.design import Design, read_design
from pyhybrid.models.stan_program.checks import check_yielded
from pyhybrid.models.stan_program.printed import modern_arrays
from pyhybrid.privacy.log_lik import LogLik

_BLOCK_ELEMENTS = 2_000_000


@dataclass(frozen=True, eq=False)
class OwnProgram:
    """A program of the user's with what the user says of it: parameters as in `pyhybrid.StanModel`
    and `pyhybrid.ComposedModel`."""

    program: str | os.PathLike[str]
    _: KW_ONLY
    outcome: str
    formula: str | None = None
    predictors: tuple[str, ...] = ()
    by_record: bool = False
    density_above_one: bool = True
    monitored: tuple[str, ...] | None = None
    decimals: int | None = None
    exposure: ClassVar[str]
    """Remedy in place of an offset, for messages."""

    def __post_init__(self) -> None:
        for name in ("by_record", "density_above_one"):
            check_flag(getattr(self, name), name)
        self._check_names("predictors")
        check_decimals(self.decimals)

    def _check_names(self, name: str) -> None:
        """Keep a field as a tuple of names; InvalidInput for other things."""
        names = getattr(self, name)
        if isinstance(names, str) or not all(isinstance(each, str) for each in names):
            raise InvalidInput(f"{name} must be a tuple of names: found {names!r}")
        object.__setattr__(self, name, tuple(names))

    @property
    def name(self) -> str:
        return type(self).__name__

    @cached_property
    def source(self) -> StanProgram:
        """Program that the user gave, as text or as a file, which is read once; arrays as current
        Stan declares them."""
        text = os.fspath(self.program)
        if "{" in text:
            return StanProgram(name="user_program", text=modern_arrays(text))
        path = Path(text)
        try:
            text = modern_arrays(path.read_text(encoding="utf-8"))
            return StanProgram(name=path.stem, text=text)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidInput(f"program must be a readable Stan file: {text}: {reason}") from None

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Numbers of the decimals given, of the outcome's column, if they are."""
        return {} if self.decimals is None else {self.outcome: Form(decimals=self.decimals)}

    def describe(self) -> dict[str, Any]:
        """Public settings: the program by name and hash, no data."""
        return {
            "model": self.name,
            "program": self.source.name,
            "program_sha256": self.source.sha256,
            "outcome": self.outcome,
            "formula": self.formula,
            "density_above_one": self.density_above_one,
            "decimals": self.decimals,
        }

    def design_of(self, df: pd.DataFrame) -> Design:
        """The design of the formula, or of none, and a check of the names of columns."""
        design = read_design(self.formula or f"`{self.outcome}` ~ 1", df)
        if design.outcome != self.outcome:
            raise InvalidInput(
                f"formula must have the outcome {self.outcome!r} on its left: found "
                f"{design.outcome!r}"
            )
        if design.has_offset:
            raise InvalidInput(
                f"formula gives a program its design matrix X alone: found offset() in "
                f"{self.formula!r}; {self.exposure}"
            )
        unknown = [name for name in self.predictors if name not in df.columns]
        if unknown:
            raise InvalidInput(f"predictors must be columns of the data: {unknown[0]!r} is not")
        if self.outcome in self.predictors:
            raise InvalidInput(f"outcome {self.outcome!r} must not be among the predictors")
        return design


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundProgram:
    """A user's program joined to a table, a `BoundModel`. Confidential."""

    model: OwnProgram
    table: pd.DataFrame
    design: Design | None = None
    weighted: bool = False  # the program's log_lik is
    _log_lik: WeakKeyDictionary[Draws, FloatArray] = field(default_factory=WeakKeyDictionary)
    first_try: ClassVar[None] = None  # nothing is known of how its parameters lie,
    grid_form: ClassVar[None] = None  # nor that they lie on a grid
    takes_center: ClassVar[bool] = False  # a whole program clips terms as they are

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process's copy, without what was computed from draws."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}
        return partial(type(self), **given), ()

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
    def read_columns(self) -> tuple[str, ...]:
        """Columns that the program reads, beside those of the formula."""
        return self.model.predictors

    @property
    def n(self) -> int:
        return len(self.table)

    @property
    def synthesized(self) -> tuple[str, ...]:
        return (self.model.outcome,)

    @property
    def predictors(self) -> tuple[str, ...]:
        coded = () if self.design is None else self.design.predictors
        return tuple(dict.fromkeys((*coded, *self.read_columns)))

    @property
    def design_columns(self) -> tuple[str, ...]:
        coded = () if self.design is None else self.design.columns
        return tuple(dict.fromkeys((*coded, *self.read_columns)))

    @property
    def outcome(self) -> FloatArray:
        return self.numbers_of(self.table[self.model.outcome])

    def numbers_of(self, column: pd.Series) -> FloatArray:
        return column.to_numpy(dtype=np.float64)

    @property
    def density_above_one(self) -> bool:
        return bool(self.model.density_above_one)

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        return parameter_names(self.program)

    @property
    def decimals_given(self) -> bool:
        return self.model.decimals is not None

    @property
    def decimals(self) -> int | None:
        given = self.model.decimals
        return decimals_of(self.outcome) if given is None else given

    @property
    def row_of(self) -> npt.NDArray[np.intp]:
        """Each record is a row of its own."""
        return np.arange(self.n)

    def log_lik(self, draws: Draws) -> LogLik:
        return LogLik.of_draws(self, draws, self.log_lik_blocks, self.row_of)

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """Unweighted log-likelihood, (S, b) at a time: views of what the engine returned; where
        that is weighted, or absent as in the frozen draws of a calibration, computed once per
        fit."""
        if "log_lik" not in draws.variables or self.weighted:
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

    def monitored(self, draws: Draws) -> dict[str, FloatArray]:
        """Parameters, or what the user named, and the sum of log_lik."""
        names = self.model.monitored
        if names is None:
            names = tuple(n for n in self.likelihood_parameters if n in draws.variables)
        unknown = [name for name in names if name not in draws.variables]
        if unknown:
            raise InvalidInput(f"monitored must be variables of the program: {unknown[0]!r} is not")
        total = draws.variables["log_lik"].sum(axis=2)
        return {**{name: draws.variables[name] for name in names}, "sum of log_lik": total}

    def synthesized_before(self, table: pd.DataFrame) -> list[str]:
        """Columns beside the outcome whose values in `table` are not the confidential ones."""
        if table is self.table:
            return []
        others = (name for name in table.columns if name != self.model.outcome)
        return [name for name in others if not table[name].equals(self.table[name])]

    def released(self, replicate: FloatArray, said: str) -> pd.DataFrame:
        """A replicate (n,), called `said`, in the form of what is released; it must be finite."""
        if not np.isfinite(replicate).all():
            raise SamplingError(f"a replicate is not finite: {said}")
        like, decimals = self.table[self.model.outcome], self.decimals
        rounded = replicate if decimals is None else np.round(replicate, decimals)
        return in_form_of(rounded, like, self.model.decimals).to_frame()


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


def handed_over(table: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """A copy of these columns of `table`, in its order, without row labels and notes."""
    shown: pd.DataFrame = table[[name for name in table.columns if name in columns]].reset_index(
        drop=True
    )
    shown.attrs = {}
    return shown


def plain_numbers(values: pd.Series) -> npt.NDArray[Any]:
    """The outcome as plain integers or floats, whatever pandas keeps it in."""
    whole = pd.api.types.is_integer_dtype(values.dtype)
    return np.asarray(values.to_numpy(dtype=np.int64 if whole else np.float64))


def called_on(
    function: Callable[[pd.DataFrame], Mapping[str, Any]],
    shown: pd.DataFrame,
    table: pd.DataFrame,
    *,
    quiet: bool,
) -> dict[str, Any]:
    """Data that a function makes of the table it is shown; `quiet` on other values."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore" if quiet else None):
            if quiet:
                warnings.simplefilter("ignore")
            given = function(shown)
    except Exception as error:
        if isinstance(error, (KeyError, AttributeError)):
            name = error.name if isinstance(error, AttributeError) else (*error.args, None)[0]
            if name in table.columns and name not in shown.columns:
                raise InvalidInput(
                    "data must read the outcome and declared predictors alone: it reads column "
                    f"{name!r}, which is not among its predictors; name it in predictors="
                ) from None
        if quiet:
            raise InvalidInput("data fails on other values of the outcome") from None
        raise
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"data must return a mapping of names to values: found {type(given).__name__}"
        )
    return dict(given)
