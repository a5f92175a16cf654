"""What is published of the columns that were not synthesized: decided by name.

Every column that is not synthesized is published, unless it is left out (`drop`) or, if it names
persons or households, replaced by numbers (`ids`). Columns that look like names, identifiers or
free text, or that give a synthesized column away, are refused until one of the three is said of
them (`keep` publishes them as they are).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.models.formula.values import with_columns

_MOST_NAMED = 10


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """Columns by what was decided; the numbers for `ids` keep a person's rows together."""

    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, drop: Any = (), keep: Any = (), ids: Any = ()) -> Decisions:
        """From names or lists of names."""
        return cls(drop=_names(drop, "drop"), keep=_names(keep, "keep"), ids=_names(ids, "ids"))

    def with_these(self, other: Decisions) -> Decisions:
        """Both, each name once."""
        both = asdict(self), asdict(other)
        return Decisions(**{k: tuple(dict.fromkeys(both[0][k] + both[1][k])) for k in both[0]})

    def as_dict(self) -> dict[str, list[str]]:
        """As JSON; empty if nothing was decided."""
        return {name: list(columns) for name, columns in asdict(self).items() if columns}


def check_decided(
    exposed: Mapping[str, str], decisions: Decisions, columns: Iterable[str], own: Iterable[str]
) -> None:
    """Raise InvalidInput for names that are no columns, or columns that need a decision: `exposed`
    are reasons by column (see `pyhybrid.fitting.disclosive_columns.exposed_columns`), `columns` all
    of the table with the names of its index, `own` the synthesized ones."""
    known, synthesized = set(columns), set(own)
    said: dict[str, str] = {}
    for what in ("drop", "keep", "ids"):
        for name in getattr(decisions, what):
            if name not in known:
                raise InvalidInput(
                    f"{what} must name columns of the data: {name!r} is none"
                    f"{did_you_mean(name, known)}"
                )
            if name in synthesized:
                raise InvalidInput(f"{what} must not name synthesized columns: {name!r} is one")
            if said.setdefault(name, what) != what:
                raise InvalidInput(f"{name!r} must be in one of drop, keep and ids: it is in two")
    left = {name: reason for name, reason in exposed.items() if name not in said}
    if left:
        named = "; ".join(f"{n!r}: {reason}" for n, reason in list(left.items())[:_MOST_NAMED])
        more = f"; and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
        raise InvalidInput(
            f"columns that are published must be safe to publish: {named}{more}. Leave them out "
            "(drop), replace their values by numbers (ids), or publish them as they are (keep)"
        )


def decided_tables(
    tables: Sequence[pd.DataFrame], decisions: Decisions, entropy: int
) -> list[pd.DataFrame]:
    """The tables without what is dropped, and with numbers in the place of identifiers; `entropy`
    is the root of their order: the same for all tables, and for the same release saved again."""
    table = tables[0]
    index = [str(name or "index") for name in table.index.names]
    if any(name in decisions.ids for name in index):
        raise InvalidInput("ids must name columns: row labels can be dropped or kept")
    drop = [name for name in table.columns if str(name) in decisions.drop]
    gone = [level for level, name in enumerate(index) if name in decisions.drop]
    replaced = [name for name in table.columns if str(name) in decisions.ids]
    codes = {name: _numbered(table[name], entropy) for name in replaced}
    decided = []
    for table in tables:
        published = with_columns(table.drop(columns=drop), codes)
        decided.append(published.reset_index(level=gone, drop=True) if gone else published)
    return decided


def _numbered(column: pd.Series, entropy: int) -> pd.Series:
    """Values as numbers from 1 in random order; missing ones stay missing."""
    rng = streams(entropy).generator(f"identifiers of {column.name}")
    codes, levels = pd.factorize(column)
    number = np.append(rng.permutation(len(levels)) + 1, 0)[codes]
    numbered: pd.Series = pd.Series(number, index=column.index, name=column.name, dtype="int64")
    return numbered.astype("Int64").mask(codes < 0) if (codes < 0).any() else numbered


def _names(given: Any, what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given or ())
    if not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"{what} must be names of columns: found {names!r}")
    return names
