"""What a description or a draft of types looks at: some rows, and what ends and levels the whole
table has.

Neither is part of a release: they are for the owner, who confirms a draft by what is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.fitting.disclosive_columns import names_persons, repeated_identifiers
from pyhybrid.sources.source import Source, load_library

_ROWS = 20_000
_FEWEST = 10  # persons
_LEVELS = 1001  # one more than a column can have
_LIKE = {"text": object, "logical": bool}


@dataclass(frozen=True, kw_only=True)
class LookedAt:
    """Values of each column: of rows by chance, before them the ends of numbers, the levels of text
    and a missing value, where the whole table has them; columns `unread`, of types that have no
    cells; of all `n` rows how many values are `missing`; columns that identify persons with several
    rows each, `repeated`. Confidential."""

    columns: Mapping[str, pd.Series]
    unread: tuple[str, ...]
    n: int
    missing: Mapping[str, int]
    repeated: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """As many values of each column as all columns have."""
        short = min(map(len, self.columns.values()), default=0)
        made: pd.DataFrame = pd.DataFrame({n: own[:short] for n, own in self.columns.items()})
        return made


def columns_to_look_at(source: Source, names: Sequence[str]) -> LookedAt:
    """Look at these columns of a source."""
    known = [name for name in names if source.columns[name] in ("number", "text", "logical")]
    table, ibis = source.table, load_library("ibis")
    ends: dict[str, Any] = {"rows": table.count()}
    for place, name in enumerate(known):
        own = _plain(source, name)
        ends[f"gone{place}"] = ibis.ifelse(own.isnull(), 1, 0).sum()
        if source.columns[name] == "number":
            present = own.nullif(ibis.literal("nan").cast("float64"))
            ends |= {f"low{place}": present.min(), f"high{place}": present.max()}
        if names_persons(name):  # among some rows each may have one
            ends[f"each{place}"] = own.nunique()
    ((n, *found),) = source.ask(table.agg(**ends))
    told = dict(zip([*ends][1:], found, strict=True))
    made: dict[str, pd.Series] = {}
    looked_at: dict[str, pd.Series] = {}
    gone = {name: int(told[f"gone{place}"] or 0) for place, name in enumerate(known)}
    unread = tuple(name for name in names if name not in known)
    if not known:
        return LookedAt(columns=made, unread=unread, n=int(n), missing=gone)
    share = min(1.0, _ROWS / max(int(n), 1))
    some = table if share == 1 else table.filter(ibis.random() < share)
    picked = some.select(**{f"c{p}": _plain(source, name) for p, name in enumerate(known)})
    rows = source.ask(picked.limit(2 * _ROWS))
    for place, name in enumerate(known):
        kind, held = source.columns[name], [row[place] for row in rows]
        more = [told[end] for end in (f"low{place}", f"high{place}") if told.get(end) is not None]
        more += [None] if gone[name] else []
        if kind == "text":
            each = table.select(own=table[name]).distinct().limit(_LEVELS)
            more += [own for (own,) in source.ask(each)]
        made[name] = _series(name, kind, [*more, *held])
        looked_at[name] = made[name][len(more) :].reset_index(drop=True)
    seen = repeated_identifiers(pd.DataFrame(looked_at))
    several = [name for place, name in enumerate(known)
               if _FEWEST <= told.get(f"each{place}", 0) < n - gone[name]]  # fmt: skip
    return LookedAt(columns=made, unread=unread, n=int(n), missing=gone,
                    repeated=tuple(dict.fromkeys([*seen, *several])))  # fmt: skip


def _plain(source: Source, name: str) -> Any:
    own = source.table[name]
    return own.cast("float64") if source.columns[name] == "number" else own


def _series(name: str, kind: str, values: Sequence[Any]) -> pd.Series:
    """Numbers as whole ones where they are."""
    if kind != "number":
        made: pd.Series = pd.Series(values, name=name, dtype=object)
        return made if made.isna().any() else made.astype(_LIKE[kind])
    y = np.array([np.nan if own is None else own for own in values], dtype=np.float64)
    whole = bool((y == np.floor(y)).all()) and bool((np.abs(y) < 2**53).all())
    return pd.Series(y.astype(np.int64) if whole else y, name=name)
