"""A Stan program composed of what a user says of one record."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_flag
from pyhybrid.core.errors import EngineUnavailable, InvalidInput
from pyhybrid.engines.embedded_points import check_compiles
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import check_decimals
from pyhybrid.models.formula.design import Design, read_design
from pyhybrid.models.stan_program.bound_composed_model import BoundComposedModel
from pyhybrid.models.stan_program.composed_text import ComposedText
from pyhybrid.models.stan_program.own_program import check_columns, checked_names, program_text
from pyhybrid.models.stan_program.python_parts import is_copy
from pyhybrid.models.stan_program.stan_text import Declared

__all__ = ["ComposedModel"]

_DESIGN, _N_COLUMNS = "X", "K"


@dataclass(frozen=True, eq=False)
class ComposedModel:
    """A Stan program of the user's own that can be strict: pyhybrid writes it around one record.

    The user says what one record has, the parameters and their prior, the log-likelihood of one
    record and how its outcome is drawn anew; pyhybrid writes the records, weights, cap, center and
    the sum around them. In the prior the outcome is not in scope, and log_lik is a function of its
    own record: what an epsilon does not cover cannot be written. See the example for the form.

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
    every record and parameter: it decides (``if``, ``?``) by data alone, compares nothing else, and
    calls functions that take every number. Densities of single numbers return minus infinity where
    Stan has an error; others, such as those of vectors, make the charge local, which says why.

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

    program: str | os.PathLike[str]
    _: KW_ONLY
    outcome: str
    columns: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Sequence[Hashable]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    formula: str | None = None
    rows: Mapping[str, Any] = field(default_factory=dict, repr=False)
    predictors: tuple[str, ...] = ()
    by_record: bool = False
    density_above_one: bool = True
    monitored: tuple[str, ...] | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        for name in ("by_record", "density_above_one"):
            check_flag(getattr(self, name), name)
        for name in ("columns", "levels", "data", "rows"):
            if not isinstance(getattr(self, name), Mapping):
                raise InvalidInput(
                    f"{name} must be a mapping: found {type(getattr(self, name)).__name__}"
                )
        object.__setattr__(self, "predictors", checked_names(self.predictors, "predictors"))
        check_decimals(self.decimals)
        self.text.check_scope(self.entry)
        self._check_entries()

    @property
    def name(self) -> str:
        """Name of the model."""
        return type(self).__name__

    @cached_property
    def text(self) -> ComposedText:
        """The parts of the program; its file is read once."""
        name, text = program_text(self.program)
        return ComposedText(name=name, text=text, discrete=not self.density_above_one)

    @cached_property
    def entry(self) -> str:
        """Name of the outcome in the program."""
        names = [own.name for own in self.text.record if own.name not in self.rows]
        named = [name for name in names if self.columns.get(name, name) == self.outcome]
        found = named or [name for name in names if name == "y" and name not in self.columns]
        if len(found) != 1:
            raise InvalidInput(
                f"block 'record' must have one entry of the outcome {self.outcome!r}: it has "
                f"{len(found)}; give it that name, or 'y', or name it in columns="
            )
        return found[0]

    @property
    def from_columns(self) -> dict[str, str]:
        """Columns of entries of a record, by the names of these; not the outcome's, nor X."""
        return {
            own.name: self.columns.get(own.name, own.name)
            for own in self.text.record
            if own.name not in (self.entry, *self.rows) and not self._is_design(own)
        }

    def _is_design(self, own: Declared) -> bool:
        return self.formula is not None and own.name == _DESIGN and _DESIGN not in self.columns

    def _check_entries(self) -> None:
        entries = {own.name for own in self.text.record}
        for what, given in (("columns", self.columns), ("rows", self.rows)):
            unknown = [name for name in given if name not in entries]
            if unknown:
                raise InvalidInput(
                    f"{what} must name entries of block 'record': {unknown[0]!r} is none"
                )
        needed = {own.name for own in self.text.constants}
        made = {_N_COLUMNS} if self.formula is not None else set()
        missing = sorted(needed - self.data.keys() - made)
        unknown = sorted(set(self.data) - needed)
        if missing or unknown:
            what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is none of them"
            raise InvalidInput(
                f"data must hold the constants of block 'data', and nothing else: {what}"
            )

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Numbers of the decimals given, of the outcome's column, if they are."""
        return {} if self.decimals is None else {self.outcome: Form(decimals=self.decimals)}

    def describe(self) -> dict[str, Any]:
        """Public settings: the program by name and hash, no data."""
        public = [own.name for own in self.text.constants]
        given = {
            "columns": dict(self.columns),
            "levels": {name: list(own) for name, own in self.levels.items()},
            "rows": list(self.rows),
            "by_record": self.by_record,
            "public": public,
        }
        return {
            "model": self.name,
            "program": self.text.name,
            "program_sha256": self.text.program().sha256,
            "outcome": self.outcome,
            "formula": self.formula,
            "density_above_one": self.density_above_one,
            "decimals": self.decimals,
            **{name: value for name, value in given.items() if value},
        }

    def bind(self, df: pd.DataFrame) -> BoundComposedModel:
        """Check `df` and the program on it, and join them.

        Raises
        ------
        InvalidInput
            For an outcome that is missing or not numeric, entries that are no columns or of another
            type, a formula that cannot be evaluated, or a program that does not compile.
        """
        design = read_design(self.formula or f"`{self.outcome}` ~ 1", df)
        if design.outcome != self.outcome or design.has_offset:
            raise InvalidInput(
                f"formula must have the outcome {self.outcome!r} on its left and no offset(): an "
                "exposure is an entry of block 'record'"
            )
        used = self.from_columns
        unknown = [(entry, column) for entry, column in used.items() if column not in df.columns]
        if unknown:
            raise InvalidInput(
                f"entry {unknown[0][0]!r} of block 'record' must be a column: {unknown[0][1]!r} is "
                "none; name its column in columns="
            )
        check_columns(self.predictors, self.outcome, df)
        if design.predictors and not any(self._is_design(own) for own in self.text.record):
            raise InvalidInput(
                f"formula has predictors, {', '.join(design.predictors)}, which block 'record' "
                "must read: add 'row_vector[K] X;' to it and 'int K;' to block 'data', or name "
                "them as entries and leave the formula out"
            )
        if self.outcome in used.values():
            raise InvalidInput(f"one entry alone must be the outcome {self.outcome!r}")
        self._check_rows(df)
        coding: Design | None = None if self.formula is None else design
        bound = BoundComposedModel(model=self, table=df, design=coding, guarded=self._guarded())
        bound.check_takes_data()
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
            if any(is_copy(each.astype(float), outcome) for each in values.reshape(len(df), -1).T):
                raise InvalidInput(
                    f"rows must not hold the confidential outcome: {name!r} is a function of it"
                )
