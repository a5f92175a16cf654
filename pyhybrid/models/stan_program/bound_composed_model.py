"""A composed Stan program joined to a table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import EngineUnavailable, InvalidInput
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.models.families.regression import cap_data
from pyhybrid.models.formula.design import Design, row_label
from pyhybrid.models.stan_program.bound_program import BoundProgram
from pyhybrid.models.stan_program.composed_text import OURS, REPLICATE, ComposedText
from pyhybrid.models.stan_program.replicates import one_draw
from pyhybrid.models.stan_program.stan_text import Declared
from pyhybrid.privacy.cap import Cap

__all__ = ["BoundComposedModel"]

_BLOCK_ELEMENTS = 2_000_000
_NO_FROZEN = ("n_frozen", "farthest", "steep")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundComposedModel(BoundProgram):
    """A composed model joined to a table. Confidential.

    `guarded` if densities of log_lik do not fail.
    """

    guarded: bool

    def __reduce__(self) -> tuple[Any, ...]:
        return _bound, (self.model, self.table, self.design, self.guarded)

    @cached_property
    def program(self) -> StanProgram:
        """The composed program."""
        text: ComposedText = self.model.text
        return text.program(guard=self.guarded)

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Columns that entries of a record read, and those that rows were made of."""
        return (*self.model.from_columns.values(), *self.model.predictors)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Terms of the formula whose coding depends on all records, and rows that may."""
        found = () if self.design is None else self.design.data_dependent
        if self.model.rows and not self.model.by_record:
            found = (*found, "rows= of the program, which are not said to be by record")
        return found

    @property
    def never_strict(self) -> tuple[str, ...]:
        """Why a cap does not bound log_lik for every record and parameter; empty if it does."""
        if not self.guarded:
            return ("log_lik calls densities of several numbers, which can fail",)
        text: ComposedText = self.model.text
        return text.why_not_total

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is so by the form of the program, and what the user says of it."""
        said = [
            "A program of the user's own, composed by pyhybrid: the outcome is not in scope in its "
            "prior and its replicates, and log_lik of a record is a function of that record, the "
            "parameters and constants.",
            "Constants in the program's text are known without the records.",
        ]
        public = [own.name for own in self.model.text.constants]
        if public:
            said.append(f"The user states that these are public: {', '.join(public)}.")
        if self.model.rows and self.model.by_record:
            said.append(
                "The user states that each row of these is a function of the columns of its own "
                f"record that are left as they are: {', '.join(self.model.rows)}."
            )
        if self.never_strict:
            said.append(
                "The charge is not strict, as log_lik may fail for some records and parameters, "
                f"which no cap bounds: {'; '.join(self.never_strict)}."
            )
        return tuple(said)

    @property
    def takes_center(self) -> bool:
        """True: pyhybrid writes the clipping."""
        return True

    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        """Data block; see `pyhybrid.models.base.BoundModel`. `dispersion` has no effect."""
        clip = cap_data(None if cap is None else Cap.of(cap), self.row_of)
        ours = {name: value for name, value in clip.items() if name not in _NO_FROZEN}
        own = next(each for each in self.model.text.record if each.name == self.model.entry)
        outcome = _numbers(self.table[self.model.outcome], own)
        made = {**self._entries(self.table), own.name: outcome, "weights": alpha, **ours}
        return {**self._constants, **{OURS + name: value for name, value in made.items()}}

    def data_of_ones(self) -> dict[str, Any]:
        """Data block with all weights 1."""
        return self.stan_data(np.ones(self.n))

    @property
    def _constants(self) -> dict[str, Any]:
        K = {} if self.design is None else {"K": self.design.X.shape[1]}
        names = {own.name for own in self.model.text.constants}
        return {name: v for name, v in {**K, **self.model.data}.items() if name in names}

    def _entries(self, table: pd.DataFrame) -> dict[str, Any]:
        """What a record has beside its outcome, an array each, and the number of records."""
        made: dict[str, Any] = {"n": len(table)}
        own, columns = self.model, self.model.from_columns
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
            ProgramAtPoints(self.program, self.data_of_ones())
        except EngineUnavailable:
            return

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
        program = self.model.text.replicates(self.model.entry)
        entries = {OURS + name: value for name, value in self._entries(table).items()}
        at = ProgramAtPoints(program, {**self._constants, **entries})
        points = at.unconstrained(one_draw(draws, draw))
        made = at.quantities(points, seed=int(rng.integers(1, 2**31)))[REPLICATE][0]
        return self.released(made, f"that of draw {draw + 1}")

    def _check_rows(self, table: pd.DataFrame) -> None:
        if table is self.table or not self.model.rows:
            return
        for name in table.columns:
            if name != self.model.outcome and not table[name].equals(self.table[name]):
                raise InvalidInput(
                    f"entries must be columns where {name!r} is synthesized before: rows "
                    f"{next(iter(self.model.rows))!r} may hold the true column"
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
