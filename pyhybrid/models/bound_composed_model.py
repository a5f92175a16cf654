"""A composed Stan program joined to a table."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.checks import FloatArray
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.engines.programs import parameter_names
from pyhybrid.errors import EngineUnavailable, InvalidInput, SamplingError
from pyhybrid.models.cap_data import cap_data
from pyhybrid.models.composed_text import OURS, REPLICATE, ComposedText
from pyhybrid.models.decimals import decimals_of, in_form_of
from pyhybrid.models.design import Design, row_label
from pyhybrid.models.replicates import one_draw
from pyhybrid.models.stan_checks import check_yielded, monitored_of
from pyhybrid.models.stan_text import Declared
from pyhybrid.privacy.cap import Cap
from pyhybrid.privacy.log_lik import LogLik

__all__ = ["BoundComposedModel"]

_BLOCK_ELEMENTS = 2_000_000
_NO_FROZEN = ("n_frozen", "farthest", "steep")


class Composed(Protocol):
    """What this module needs to know of a `pyhybrid.ComposedModel`."""

    outcome: str
    levels: Mapping[str, Sequence[Hashable]]
    data: Mapping[str, Any]
    rows: Mapping[str, Any]
    predictors: tuple[str, ...]
    by_record: bool
    density_above_one: bool
    monitored: tuple[str, ...] | None
    decimals: int | None

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def text(self) -> ComposedText:
        """The parts of the program."""

    @property
    def entry(self) -> str:
        """Name of the outcome in the program."""

    @property
    def from_columns(self) -> dict[str, str]:
        """Columns of entries of a record."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundComposedModel:
    """A composed model joined to a table. Confidential.

    `guarded` if densities of log_lik do not fail.
    """

    model: Any
    table: pd.DataFrame
    design: Design | None
    guarded: bool
    _log_lik: WeakKeyDictionary[Draws, FloatArray] = field(default_factory=WeakKeyDictionary)

    def __reduce__(self) -> tuple[Any, ...]:
        return _bound, (self.model, self.table, self.design, self.guarded)

    def __repr__(self) -> str:
        return f"<{self.model.name} {self.program.name!r} bound to {self.n} records>"

    @property
    def _own(self) -> Composed:
        own: Composed = self.model
        return own

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.table)

    @cached_property
    def program(self) -> StanProgram:
        """The composed program."""
        return self._own.text.program(guard=self.guarded)

    @property
    def synthesized(self) -> tuple[str, ...]:
        """The outcome's column."""
        return (self._own.outcome,)

    @property
    def predictors(self) -> tuple[str, ...]:
        """Columns that the formula and the entries of a record read."""
        coded = () if self.design is None else self.design.predictors
        return tuple(
            dict.fromkeys((*coded, *self._own.from_columns.values(), *self._own.predictors))
        )

    @property
    def outcome(self) -> FloatArray:
        """Sensitive values, shape (n,)."""
        return self.numbers_of(self.table[self._own.outcome])

    def numbers_of(self, column: pd.Series) -> FloatArray:
        """Values of the outcome, the data's or a replicate's, as numbers, shape (n,)."""
        return column.to_numpy(dtype=np.float64)

    @property
    def density_above_one(self) -> bool:
        """What the user says; terms above 0 then count as 0."""
        return self._own.density_above_one

    @property
    def design_columns(self) -> tuple[str, ...]:
        """Columns of the formula's design, and those of entries of a record."""
        coded = () if self.design is None else self.design.columns
        return tuple(
            dict.fromkeys((*coded, *self._own.from_columns.values(), *self._own.predictors))
        )

    @property
    def likelihood_parameters(self) -> tuple[str, ...]:
        """All parameters of the program."""
        return parameter_names(self.program)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Terms of the formula whose coding depends on all records, and rows that may."""
        found = () if self.design is None else self.design.data_dependent
        if self._own.rows and not self._own.by_record:
            found = (*found, "rows= of the program, which are not said to be by record")
        return found

    @property
    def never_strict(self) -> tuple[str, ...]:
        """Why a cap does not bound log_lik for every record and parameter; empty if it does."""
        if not self.guarded:
            return ("log_lik calls densities of several numbers, which can fail",)
        return self._own.text.why_not_total

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is so by the form of the program, and what the user says of it."""
        said = [
            "A program of the user's own, composed by pyhybrid: the outcome is not in scope in its "
            "prior and its replicates, and log_lik of a record is a function of that record, the "
            "parameters and constants.",
            "Constants in the program's text are known without the records.",
        ]
        public = [own.name for own in self._own.text.constants]
        if public:
            said.append(f"The user states that these are public: {', '.join(public)}.")
        if self._own.rows and self._own.by_record:
            said.append(
                "The user states that each row of these is a function of the columns of its own "
                f"record that are left as they are: {', '.join(self._own.rows)}."
            )
        if self.never_strict:
            said.append(
                "The charge is not strict, as log_lik may fail for some records and parameters, "
                f"which no cap bounds: {'; '.join(self.never_strict)}."
            )
        return tuple(said)

    @property
    def decimals_given(self) -> bool:
        """True if the user gave the number of decimals of released values."""
        return self._own.decimals is not None

    @property
    def decimals(self) -> int | None:
        """What the user gave, or what the outcomes have."""
        return decimals_of(self.outcome) if self._own.decimals is None else self._own.decimals

    @property
    def row_of(self) -> npt.NDArray[np.intp]:
        """Each record is a row of its own."""
        return np.arange(self.n)

    @property
    def first_try(self) -> None:
        """None: nothing is known of how its parameters lie."""
        return None

    @property
    def takes_center(self) -> bool:
        """True: pyhybrid writes the clipping."""
        return True

    @property
    def grid_form(self) -> None:
        """None: its parameters are not known to lie on a grid."""
        return None

    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        """Data block; see `pyhybrid.models.base.BoundModel`. `dispersion` has no effect."""
        clip = cap_data(None if cap is None else Cap.of(cap), self.row_of)
        ours = {name: value for name, value in clip.items() if name not in _NO_FROZEN}
        own = next(each for each in self._own.text.record if each.name == self._own.entry)
        outcome = _numbers(self.table[self._own.outcome], own)
        made = {**self._entries(self.table), own.name: outcome, "weights": alpha, **ours}
        return {**self._constants, **{OURS + name: value for name, value in made.items()}}

    @property
    def _constants(self) -> dict[str, Any]:
        K = {} if self.design is None else {"K": self.design.X.shape[1]}
        names = {own.name for own in self._own.text.constants}
        return {name: v for name, v in {**K, **self._own.data}.items() if name in names}

    def _entries(self, table: pd.DataFrame) -> dict[str, Any]:
        """What a record has beside its outcome, an array each, and the number of records."""
        made: dict[str, Any] = {"n": len(table)}
        columns, own = self._own.from_columns, self._own
        for each in own.text.record:
            if each.name in own.rows:
                rows = np.asarray(own.rows[each.name])
                ones = (1,) * (each.dims + 1 - rows.ndim)
                made[each.name] = rows.reshape(len(rows), *ones, *rows.shape[1:])
            elif each.name in columns:
                column = table[columns[each.name]]
                made[each.name] = _numbers(column, each, own.levels.get(columns[each.name]))
            elif each.name != own.entry:
                assert self.design is not None
                made[each.name] = self.design.matrix_of(table)
        return made

    def check_takes_data(self) -> None:
        """Raise InvalidInput if entries are of another type than declared, or out of bounds."""
        try:
            ProgramAtPoints(self.program, self.stan_data(np.ones(self.n)))
        except EngineUnavailable:
            return

    def log_lik(self, draws: Draws) -> LogLik:
        """Unweighted log-likelihood, one column per record."""
        return LogLik(make=lambda: self.log_lik_blocks(draws), row_of=self.row_of)

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        """Unweighted log-likelihood, (S, b) at a time; of draws that hold parameters alone, such as
        those of a calibration, it is computed once."""
        if "log_lik" in draws.variables:
            flat = draws.flat("log_lik")
        else:
            if draws not in self._log_lik:
                at = ProgramAtPoints(self.program, self.stan_data(np.ones(self.n)))
                self._log_lik[draws] = at.quantities(at.unconstrained(draws))["log_lik"]
            flat = self._log_lik[draws]
        above = self._own.density_above_one
        check_yielded(self.program, flat, (draws.n_draws, self.n), density_above_one=above)
        size = max(1, _BLOCK_ELEMENTS // draws.n_draws)
        for start in range(0, self.n, size):
            yield flat[:, start : start + size]

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        """Parameters, or what the user named, and the sum of log_lik."""
        return monitored_of(draws, self._own.monitored, self.likelihood_parameters)

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The outcome drawn anew, by a program that has no data of the outcome; see
        `pyhybrid.models.base.BoundModel`.

        Raises
        ------
        InvalidInput
            If `given` has a column synthesized that `rows` may hold the true values of.
        """
        table = self.table if given is None else given
        self._check_rows(table)
        program = self._own.text.replicates(self._own.entry)
        entries = {OURS + name: value for name, value in self._entries(table).items()}
        at = ProgramAtPoints(program, {**self._constants, **entries})
        points = at.unconstrained(one_draw(draws, draw))
        made = at.quantities(points, seed=int(rng.integers(1, 2**31)))[REPLICATE][0]
        if not np.isfinite(made).all():
            raise SamplingError(f"a replicate is not finite: that of draw {draw + 1}")
        like, decimals = self.table[self._own.outcome], self.decimals
        rounded = made if decimals is None else np.round(made, decimals)
        return in_form_of(rounded, like, self._own.decimals).to_frame()

    def _check_rows(self, table: pd.DataFrame) -> None:
        if table is self.table or not self._own.rows:
            return
        for name in table.columns:
            if name != self._own.outcome and not table[name].equals(self.table[name]):
                raise InvalidInput(
                    f"entries must be columns where {name!r} is synthesized before: rows "
                    f"{next(iter(self._own.rows))!r} may hold the true column"
                )


def _numbers(
    column: pd.Series, own: Declared, levels: Sequence[Hashable] | None = None
) -> npt.NDArray[Any]:
    """Values of a column as an entry of each record, each by itself: the place of a level, a whole
    number, or a real one."""
    if levels is not None:
        place = {level: at for at, level in enumerate(levels, start=1)}
        found = np.array([place.get(value, 0) for value in column], dtype=np.float64)
        good, what = found > 0, "one of the levels declared"
    else:
        if not pd.api.types.is_numeric_dtype(column.dtype):
            raise InvalidInput(
                f"column {column.name!r} must be numeric to be entry {own.name!r}: found "
                f"{column.dtype}; give its levels in levels= for places from 1"
            )
        found = column.to_numpy(dtype=np.float64, na_value=np.nan)
        good, what = np.isfinite(found), "a finite number"
        if own.is_int:
            good, what = good & (np.round(found) == found), "a whole number"
    wrong = np.flatnonzero(~good)
    if wrong.size:
        where = row_label(column.index, int(wrong[0]))
        raise InvalidInput(f"entry {own.name!r} must be {what}: {where} is not")
    made = found.astype(np.int64) if own.is_int else found
    return made.reshape(-1, *(1,) * own.dims)


def _bound(
    model: Any, table: pd.DataFrame, design: Design | None, guarded: bool
) -> BoundComposedModel:
    """Another process's copy, without what was computed from draws."""
    return BoundComposedModel(model=model, table=table, design=design, guarded=guarded)
