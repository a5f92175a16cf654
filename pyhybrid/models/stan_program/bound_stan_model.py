"""A user's Stan program joined to a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.engines.programs import declared_names, with_large_weights
from pyhybrid.models.columns.surrogate_values import OtherValues, references
from pyhybrid.models.formula.design import Design
from pyhybrid.models.stan_program.bound_program import BoundProgram
from pyhybrid.models.stan_program.data_leak_checks import NotChecked, check_reads, one_split
from pyhybrid.models.stan_program.own_program import OwnProgram
from pyhybrid.models.stan_program.replicates import Replicates, one_draw
from pyhybrid.models.stan_program.stan_checks import check_acts_at, unchecked_facts
from pyhybrid.models.stan_program.stan_data import Replaced, data_block, kinds_of
from pyhybrid.privacy.censoring import Cap

__all__ = ["BoundStanModel"]

_BLOCK_ELEMENTS = 2_000_000
_DRAWS_CHECKED = 6


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundStanModel(BoundProgram):
    """A user's model joined to a table. Confidential.

    `checked` if what the program does and reads was.
    """

    model: OwnProgram
    checked: bool = True
    _seen: WeakKeyDictionary[Draws, bool] = field(default_factory=WeakKeyDictionary)
    _tried: set[tuple[bytes, float | None]] = field(default_factory=set)

    def __reduce__(self) -> tuple[Any, ...]:
        return _bound, (self.model, self.table, self.design, self.checked)

    @property
    def program(self) -> StanProgram:
        """The user's program."""
        return self.model.source

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """What may look at all records: the program's data, too."""
        found = () if self.design is None else self.design.data_dependent
        if not self.checked:
            found = (*found, "what the Stan program reads, which was not checked")
        return (*found, "the data of the Stan program")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the user says of the program, and what was not checked."""
        own = self.model
        return unchecked_facts(
            density_above_one=own.density_above_one,
            checked=self.checked,
            public=own.public,
            in_python=callable(own.data) or callable(own.predict),
        )

    @property
    def takes_center(self) -> bool:
        """False: a user's program clips terms as they are."""
        return False

    @property
    def weights_log_lik(self) -> bool:
        """What the user says."""
        return self.model.log_lik_weighted

    def data_of_ones(self) -> dict[str, Any]:
        """Data block with all weights 1, unchecked."""
        return self.data_at(np.ones(self.n), None)

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
            If a cap is given that the program does not take, or one with a center or units; if the
        program does at these weights and cap what it does at no others.
        """
        if isinstance(cap, Cap):
            if not cap.is_plain:
                raise InvalidInput(
                    "a whole program is censored at [-cap, cap], record by record: found one with "
                    "a center, units or unequal ends; a composed program takes those "
                    "(ph.ComposedModel)"
                )
            cap = cap.above
        if cap is not None and not self.takes_cap:
            raise InvalidInput(
                f"censoring needs a program that takes a cap: {self.program.name!r} declares none; "
                "add 'int<lower=0, upper=1> use_cap; real<lower=0> cap;' to its data block and "
                "clip each weighted term with fmax(-cap, fmin(cap, ...)), or choose another "
                "mechanism"
            )
        if self.checked and (alpha.tobytes(), cap) not in self._tried:
            check_acts_at(
                with_large_weights(self.program), self.data_at, self.others(), alpha, cap,
                weighted=self.model.log_lik_weighted,
            )  # fmt: skip
            self._tried.add((alpha.tobytes(), cap))
        return self.data_at(alpha, cap)

    def data_at(
        self, alpha: FloatArray, cap: float | None, other: OtherValues | None = None
    ) -> dict[str, Any]:
        """Data block at weights and a cap, unchecked, with other values in the place of
        confidential ones if they are given."""
        replaced = None if other is None else Replaced(other=other)
        return self._data_of(self.table, alpha, cap, replaced)

    def data_with(
        self,
        other: OtherValues | None,
        *,
        weights: float = 1.0,
        records: npt.NDArray[np.bool_] | None = None,
        rest: bool = True,
    ) -> dict[str, Any]:
        """Data block with other values in place of confidential ones; see `stan_reads.Readable`."""
        how = Replaced(other=other, records=records, rest=rest)
        return self._data_of(self.table, np.full(self.n, weights), replaced=how)

    @property
    def has_rest(self) -> bool:
        """True if a data mapping holds entries that are neither public nor one per record."""
        data, public = self.model.data, (*self.model.public, "n")
        return isinstance(data, Mapping) and any(
            np.shape(value)[:1] != (self.n,) for name, value in data.items() if name not in public
        )

    def part(self, places: npt.NDArray[np.intp]) -> BoundStanModel:
        """The same model with these records alone."""
        return replace(self, table=self.table.iloc[places])

    def others(self) -> Iterator[OtherValues]:
        """References of other values that suit the kinds of numbers here."""
        return references(kinds_of(self.model, self.table))

    def _data_of(
        self,
        table: pd.DataFrame,
        alpha: FloatArray,
        cap: float | None = None,
        replaced: Replaced | None = None,
    ) -> dict[str, Any]:
        return data_block(
            self.model, table, self.design, predictors=self.predictors, alpha=alpha, cap=cap,
            replaced=replaced,
        )  # fmt: skip

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The outcome drawn anew; see `pyhybrid.models.base.BoundModel`.

        The program, or the function in Python, gets one draw of the parameters and data in which
        other values stand in the place of the confidential outcome.

        Raises
        ------
        InvalidInput
            If the program reads what it must not at the draws, or `given` has a column synthesized
            that a data mapping may hold the true values of.
        """
        self.check_draws(draws)
        table = self.table if given is None else given
        self._check_mapping(table)
        made = self.replicates.one(draws, draw, rng, table)
        return self.released(made, f"{self.replicates.said} of draw {draw + 1}")

    @property
    def replicates(self) -> Replicates:
        """How replicates of the outcome are made."""
        return Replicates(
            program=self.program, how=self.model.predict, outcome=self.model.outcome, n=self.n,
            data_of=self._replaced, others=self.others, trusted=not self.checked,
        )  # fmt: skip

    def _replaced(self, table: pd.DataFrame, other: OtherValues | None) -> dict[str, Any]:
        return self._data_of(table, np.ones(self.n), replaced=Replaced(other=other, differ=False))

    def check_draws(self, draws: Draws) -> None:
        """Raise InvalidInput if the program reads what it must not at draws that it was fitted to:
        random points need not come where the posterior lies."""
        if not self.checked or draws in self._seen:
            return
        at = ProgramAtPoints(self.program, self.data_with(None))
        places = np.unique(np.linspace(0, draws.n_draws - 1, _DRAWS_CHECKED).astype(int))
        points = np.concatenate([at.unconstrained(one_draw(draws, int(p))) for p in places])
        name = self.model.predict if isinstance(self.model.predict, str) else None
        try:
            check_reads(
                self,
                at,
                points,
                predict=name if name in draws.variables else None,  # refused below, by its name
                weighted=self.model.log_lik_weighted,
                n_references=1,
                splits=one_split(self.n),
            )
        except NotChecked as error:
            raise InvalidInput(
                f"what program {self.program.name!r} reads was not checked at its draws: {error}"
            ) from None
        self._seen[draws] = True

    def _check_mapping(self, table: pd.DataFrame) -> None:
        """A mapping has no synthetic version: beside columns synthesized before it may hold only
        what has not one value per record, or the outcome, which is replaced."""
        if table is self.table or not isinstance(self.model.data, Mapping):
            return
        before = [
            name
            for name in table.columns
            if name != self.model.outcome and not table[name].equals(self.table[name])
        ]
        public = [
            name
            for name, value in self.model.data.items()
            if name in self.model.public and self.n in np.shape(value)
        ]
        if before and public:
            raise InvalidInput(
                f"data must be a function of the table where {before[0]!r} is synthesized before: "
                f"entry {public[0]!r} of the mapping has one value per record, and may hold the "
                "true column"
            )


def _bound(
    model: OwnProgram, table: pd.DataFrame, design: Design | None, checked: bool
) -> BoundStanModel:
    """Another process's copy, without what was computed from draws."""
    return BoundStanModel(model=model, table=table, design=design, checked=checked)
