"""A Stan program composed of what a user says of one record, and the same joined to a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import EngineUnavailable, InvalidInput
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints, check_compiles
from pyhybrid.models.families.regression import cap_data
from pyhybrid.models.formula.values import first_row
from pyhybrid.models.stan_program.checks import is_copy
from pyhybrid.models.stan_program.composed_text import OURS, REPLICATE, ComposedText
from pyhybrid.models.stan_program.own_program import BoundProgram, OwnProgram, one_draw
from pyhybrid.models.stan_program.stan_text import Declared
from pyhybrid.models.stan_program.text_rules import PROBES
from pyhybrid.privacy.censoring import Cap

_DESIGN, _N_COLUMNS = "X", "K"
_NO_FROZEN = ("n_frozen", "farthest", "steep")


@dataclass(frozen=True, eq=False)
class ComposedModel(OwnProgram):
    """A user's Stan program that can be strict: pyhybrid writes it around one record.

    The user declares the entries of one record, the parameters and their prior, the log-likelihood
    of one record and how its outcome is drawn anew; pyhybrid adds the records, weights, cap, center
    and the sum. The outcome is not in scope in the prior, and log_lik is a function of one record:
    what epsilon does not cover cannot be written. See the example for the form.

    Parameters
    ----------
    program : str or path
        A file, or the text, with the blocks ``data`` (constants), ``record`` (what one record has),
        ``parameters``, ``transformed parameters``, ``prior``, ``log_lik``, ``replicate``,
        ``generated quantities`` and ``functions``; see
        `pyhybrid.models.stan_program.composed_text`. The bodies
        of ``log_lik`` and ``replicate`` end in ``return``.
    outcome : str
        The sensitive column that replicates replace.
    columns : mapping of str to str
        Columns of entries of ``record`` that have another name; the outcome's entry is of the name
        of its column, or ``y``, if it is not here.
    levels : mapping of str to sequence
        Levels, by column, of text or categories whose entry is an ``int``: a value is the place of
        its level, from 1. Declared: never read from the data.
    data : mapping
        Constants of the block ``data``. They are public, and known without the table.
    formula : str, optional
        As in R, with the outcome on its left: ``row_vector[K] X;`` in ``record`` is then the
        record's row of the design matrix, and ``int K;`` in ``data`` its length.
    rows : mapping of str to array
        Entries of ``record`` that are no columns: arrays with one value, vector or matrix per
        record of the table, in its order. Public, as columns that are left as they are.
    predictors : tuple of str
        Columns that `rows` were made of; those of entries and of a formula are known.
    by_record : bool, default False
        True states that each row of `rows` is a function of its own record's other columns: without
        that a charge with `rows` is not strict.
    density_above_one : bool, default True
        False for discrete outcomes; see `pyhybrid.StanModel`. The posterior then counts no term
        above 0.
    monitored : tuple of str, optional
        Variables that must have converged; the parameters if omitted.
    decimals : int, optional
        Number of decimals of released values; see `pyhybrid.StanModel`.

    Notes
    -----
    Stan's functions raise errors for arguments that they do not take, which acts on the posterior
    as a likelihood of 0, whatever the cap. So a strict charge needs a log_lik that has a value for
    every record and parameter: it decides (``if``, ``?``) by data alone, compares nothing else,
    calls functions that take every number, and raises numbers alone to a power by ``^`` and divides
    by them alone. Densities of single numbers return minus infinity where Stan has an error;
    others, such as those of vectors, make the charge local, which says why.

    Examples
    --------
    >>> model = ph.ComposedModel('''
    ... record { int<lower=0> visits; }
    ... parameters { real<lower=0> rate; }
    ... prior { rate ~ gamma(2, 1); }
    ... log_lik { return poisson_lpmf(visits | rate); }
    ... replicate { return poisson_rng(rate); }
    ... ''', outcome="visits", density_above_one=False, decimals=0)
    >>> ph.Censored(model, epsilon=1, inner=ph.Unweighted(model)).release(df)
    """

    _: KW_ONLY
    columns: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Sequence[Hashable]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    rows: Mapping[str, Any] = field(default_factory=dict, repr=False)
    exposure: ClassVar[str] = "an exposure is an entry of block 'record'"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("columns", "levels", "data", "rows"):
            if not isinstance(getattr(self, name), Mapping):
                raise InvalidInput(
                    f"{name} must be a mapping: found {type(getattr(self, name)).__name__}"
                )
        self.text.check_scope(self.entry)
        entries = {entry.name for entry in self.text.record}
        for what, given in (("columns", self.columns), ("rows", self.rows)):
            unknown = [name for name in given if name not in entries]
            if unknown:
                raise InvalidInput(
                    f"{what} must name entries of block 'record': {unknown[0]!r} is none"
                )
        needed = {constant.name for constant in self.text.constants}
        made = {_N_COLUMNS} if self.formula is not None else set()
        missing, unknown = (
            sorted(needed - self.data.keys() - made),
            sorted(self.data.keys() - needed),
        )
        if missing or unknown:
            what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is none of them"
            raise InvalidInput(
                f"data must hold the constants of block 'data', and nothing else: {what}"
            )

    @cached_property
    def text(self) -> ComposedText:
        """The parts of the program."""
        discrete = not self.density_above_one
        return ComposedText(name=self.source.name, text=self.source.text, discrete=discrete)

    @cached_property
    def entry(self) -> str:
        """Name of the outcome in the program."""
        names = [entry.name for entry in self.text.record if entry.name not in self.rows]
        named = [name for name in names if self.columns.get(name, name) == self.outcome]
        outcomes = named or [name for name in names if name == "y" and name not in self.columns]
        if len(outcomes) != 1:
            raise InvalidInput(
                f"block 'record' must have one entry of the outcome {self.outcome!r}: it has "
                f"{len(outcomes)}; give it that name, or 'y', or name it in columns="
            )
        return outcomes[0]

    @property
    def from_columns(self) -> dict[str, str]:
        """Columns of entries of a record, by the names of these; not the outcome's, nor X."""
        names = [entry.name for entry in self.text.record]
        others = {self.entry, *self.rows, *((_DESIGN,) if self.reads_design else ())}
        return {name: self.columns.get(name, name) for name in names if name not in others}

    @property
    def reads_design(self) -> bool:
        """True if an entry of a record is its row of the formula's design."""
        names = {entry.name for entry in self.text.record}
        return self.formula is not None and _DESIGN in names - self.columns.keys()

    def describe(self) -> dict[str, Any]:
        given = {
            "columns": dict(self.columns),
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "rows": list(self.rows),
            "by_record": self.by_record,
            "public": [constant.name for constant in self.text.constants],
        }
        composed = {"program_sha256": self.text.program().sha256}
        named = {name: value for name, value in given.items() if value}
        return {**super().describe(), **composed, **named}

    def bind(self, df: pd.DataFrame) -> BoundComposedModel:
        """Check `df` and the program on it, and join them.

        Raises
        ------
        InvalidInput
            For an outcome that is missing or not numeric, entries that are no columns or of another
            type, a formula that cannot be evaluated, or a program that does not compile.
        """
        design, columns = self.design_of(df), self.from_columns
        for entry, column in columns.items():
            if column not in df.columns:
                raise InvalidInput(
                    f"entry {entry!r} of block 'record' must be a column: {column!r} is none; name "
                    "its column in columns="
                )
        if design.predictors and not self.reads_design:
            raise InvalidInput(
                f"formula has predictors, {', '.join(design.predictors)}, which block 'record' "
                "must read: add 'row_vector[K] X;' to it and 'int K;' to block 'data', or name "
                "them as entries and leave the formula out"
            )
        if self.outcome in columns.values():
            raise InvalidInput(f"one entry alone must be the outcome {self.outcome!r}")
        self._check_rows(df)
        coding = None if self.formula is None else design
        bound = BoundComposedModel(model=self, table=df, design=coding, guarded=self._guarded())
        with suppress(EngineUnavailable):  # types and bounds of entries
            ProgramAtPoints(bound.program, bound.data_of_ones())
        return bound

    def _guarded(self) -> bool:
        """True if the program compiles with densities that do not fail, or stanli is missing."""
        try:
            check_compiles(self.text.program())
        except EngineUnavailable:
            return True
        except InvalidInput:
            check_compiles(self.text.program(guard=False))  # densities of vectors, or a mistake
            guarded = False
        else:
            guarded = True
        check_compiles(self.text.replicates(self.entry))
        return guarded

    def _check_rows(self, df: pd.DataFrame) -> None:
        outcome = df[self.outcome].to_numpy(dtype=np.float64)
        for name, given in self.rows.items():
            values = np.asarray(given)
            if values.shape[:1] != (len(df),):
                raise InvalidInput(
                    f"rows must have one entry per record, {len(df)}: {name!r} has shape "
                    f"{values.shape}"
                )
            if any(is_copy(part.astype(float), outcome) for part in values.reshape(len(df), -1).T):
                raise InvalidInput(
                    f"rows must not hold the confidential outcome: {name!r} is a function of it"
                )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundComposedModel(BoundProgram):
    """A composed model joined to a table; `guarded`: log_lik does not fail. Confidential."""

    model: ComposedModel
    guarded: bool
    takes_center: ClassVar[bool] = True  # pyhybrid writes the clipping

    @cached_property
    def program(self) -> StanProgram:
        return self.model.text.program(guard=self.guarded)

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Columns that entries of a record read, and those that rows were made of."""
        return (*self.model.from_columns.values(), *self.model.predictors)

    @property
    def data_dependent(self) -> tuple[str, ...]:
        terms = () if self.design is None else self.design.data_dependent
        if self.model.rows and not self.model.by_record:
            return (*terms, "rows= of the program, which are not said to be by record")
        return terms

    @cached_property
    def never_strict(self) -> tuple[str, ...]:
        """Why a cap does not bound log_lik for every record and parameter; empty if it does."""
        if not self.guarded:
            return ("log_lik calls densities of several numbers, which can fail",)
        text, broken = self.model.text, []
        for what in PROBES:
            try:
                check_compiles(text.program(probe=what))
            except (InvalidInput, EngineUnavailable):
                broken.append(f"log_lik {what}")
        return (*text.why_not_total, *broken)

    @property
    def assumptions(self) -> tuple[str, ...]:
        said = [
            "A program of the user's own, composed by pyhybrid: the outcome is not in scope in its "
            "prior and its replicates, and log_lik of a record is a function of that record, the "
            "parameters and constants.",
            "Constants in the program's text are known without the records.",
        ]
        public = [constant.name for constant in self.model.text.constants]
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

    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        clip = cap_data(None if cap is None else Cap.of(cap), self.row_of)
        ours = {name: value for name, value in clip.items() if name not in _NO_FROZEN}
        entry = next(entry for entry in self.model.text.record if entry.name == self.model.entry)
        outcome = _numbers(self.table[self.model.outcome], entry)
        return self._prefixed(self.table, {entry.name: outcome, "weights": alpha, **ours})

    def data_of_ones(self) -> dict[str, Any]:
        return self.stan_data(np.ones(self.n))

    def _prefixed(self, table: pd.DataFrame, more: Mapping[str, Any]) -> dict[str, Any]:
        """Constants, and what a record has beside its outcome, an array each, with `more`."""
        model, columns = self.model, self.model.from_columns
        values: dict[str, Any] = {"n": len(table)}
        for entry in model.text.record:
            name = entry.name
            if name in model.rows:
                rows = np.asarray(model.rows[name])
                ones = (1,) * (entry.dims + 1 - rows.ndim)
                values[name] = rows.reshape(len(rows), *ones, *rows.shape[1:])
            elif name in columns:
                levels = model.levels.get(columns[name])
                values[name] = _numbers(table[columns[name]], entry, levels)
            elif name != model.entry:
                assert self.design is not None
                values[name] = self.design.matrix_of(table)
        K = {} if self.design is None else {_N_COLUMNS: self.design.X.shape[1]}
        names = {constant.name for constant in model.text.constants}
        constants = {name: v for name, v in {**K, **model.data}.items() if name in names}
        return constants | {OURS + name: value for name, value in {**values, **more}.items()}

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The outcome drawn anew, by a program that has no data of the outcome; see
        `pyhybrid.models.base.BoundModel`. A column synthesized in `given` that `rows` may hold the
        true values of raises InvalidInput."""
        table = self.table if given is None else given
        before = self.synthesized_before(table) if self.model.rows else []
        if before:
            raise InvalidInput(
                f"entries must be columns where {before[0]!r} is synthesized before: rows "
                f"{next(iter(self.model.rows))!r} may hold the true column"
            )
        program = self.model.text.replicates(self.model.entry)
        at = ProgramAtPoints(program, self._prefixed(table, {}))
        points = at.unconstrained(one_draw(draws, draw))
        made = at.quantities(points, seed=int(rng.integers(1, 2**31)))[REPLICATE][0]
        return self.released(made, f"that of draw {draw + 1}")


def _numbers(
    column: pd.Series, entry: Declared, levels: Sequence[Hashable] | None = None
) -> npt.NDArray[Any]:
    """Values of a column as an entry of each record, each by itself: the place of a level, a whole
    number, or a real one."""
    if levels is not None:
        place = {level: at for at, level in enumerate(levels, start=1)}
        values = np.array([place.get(value, 0) for value in column], dtype=np.float64)
        good, what = values > 0, "one of the levels declared"
    else:
        if not pd.api.types.is_numeric_dtype(column.dtype):
            raise InvalidInput(
                f"column {column.name!r} must be numeric to be entry {entry.name!r}: found "
                f"{column.dtype}; give its levels in levels= for places from 1"
            )
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        good, what = np.isfinite(values), "a finite number"
        if entry.is_int:
            good, what = good & (np.round(values) == values), "a whole number"
    if not good.all():
        where = first_row(column.index, ~good)
        raise InvalidInput(f"entry {entry.name!r} must be {what}: {where} is not")
    typed = values.astype(np.int64) if entry.is_int else values
    return typed.reshape(-1, *(1,) * entry.dims)
