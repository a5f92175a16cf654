"""A release with another number of rows than the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import streams
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.households import unit_codes
from pyhybrid.releases.postprocess import afterwards_of, read_afterwards
from pyhybrid.releases.postprocessed import changed_release, check_columns
from pyhybrid.releases.release import Release
from pyhybrid.releases.statement import shaping_columns

__all__ = ["with_rows"]

_MOST_ROWS = 100_000_000  # what memory holds
IntArray = npt.NDArray[np.intp]


def with_rows(
    release: Release,
    n_rows: int,
    *,
    public: Sequence[str] = (),
    unit: str | None = None,
    seed: int | None = None,
) -> Release:
    """The release with another number of rows: the synthesized columns and public ones.

    The same rows are drawn from each synthetic set, without replacement down to fewer rows. More
    rows than there are come with replacement: whole rows then repeat, and standard errors that take
    them for as many independent records are too small. The owner's report compares the sets as they
    were before.

    Parameters
    ----------
    release : Release
    n_rows : int
        At least 2, and at most 10^8.
    public : sequence of str
        Columns that were not synthesized, and are public: they stay. All others are left out.
    unit : str, optional
        Column that says which rows belong together, e.g. the household: whole units are drawn until
        there are `n_rows` rows or more, and numbered from 1. Needed where rows of a household were
        made to agree.
    seed : int, optional

    Returns
    -------
    Release
        Of the same charge, with rows numbered from 0.

    Raises
    ------
    InvalidInput
        If a model, or what was done before, reads a column that was neither synthesized nor is
        named as public: each value was drawn for a record of the data, with its predictors. For
        single rows of households that were made to agree.
    """
    release.check_seal()
    rows = check_count(n_rows, "n_rows", at_least=2)
    if rows > _MOST_ROWS:
        raise InvalidInput(f"n_rows must be at most {_MOST_ROWS:,}: found {rows:g}")
    if isinstance(public, str):
        raise InvalidInput(f"public must be a list of columns: found {public!r}")
    table, named = release.synthetic[0], [*public, *([] if unit is None else [unit])]
    check_columns(named, list(table.columns))
    kept = [c for c in table.columns if c in {*release.synthesized, *named}]
    _check_read(release, kept, unit)
    taken, of = _drawn(table, rows, unit, seed)

    def drawn(own: pd.DataFrame) -> pd.DataFrame:
        new: pd.DataFrame = own[kept].iloc[taken].reset_index(drop=True)
        return new if unit is None else with_columns(new, {unit: of})

    own = {
        "rows": len(taken), "of": len(table), "again": np.unique(taken).size < len(taken),
        "public": [c for c in named if c not in release.synthesized], "unit": unit,
    }  # fmt: skip
    origin = release.origin
    if origin is not None and origin.compared is None:
        origin = replace(origin, compared=tuple(release.synthetic))
    named_as_before = {*kept} - {unit}  # the unit has numbers now
    exposed = {name: why for name, why in release.exposed.items() if name in named_as_before}
    decisions = _decisions(release, kept)
    before = replace(release, origin=origin, exposed=exposed, decisions=decisions)
    return changed_release(before, drawn, "rows", own, reads=[] if unit is None else [unit])


def _decisions(release: Release, kept: Sequence[str]) -> Decisions:
    """What was decided, with the columns that are gone among those left out."""
    was, gone = release.decisions, [c for c in release.synthetic[0].columns if c not in kept]
    return Decisions.of(
        [*was.drop, *gone],
        [name for name in was.keep if name in kept],
        [name for name in was.ids if name in kept],
    )


def _check_read(release: Release, kept: Sequence[str], unit: str | None) -> None:
    """Raise InvalidInput if what shaped the values does not stay beside them."""
    shaped = shaping_columns(release, release.parts)
    read = [name for name in release.predictors if name in shaped]
    read += read_afterwards(release.settings)
    hidden = [c for c in read if c not in kept and c not in release.decisions.drop]
    if hidden:
        raise InvalidInput(
            f"rows can be drawn anew only where no model reads confidential columns: {hidden[0]!r} "
            "is read as it is in the data; synthesize it, too, or name it in public="
        )
    units = {
        own["unit"] for done in afterwards_of(release.settings) for own in done.values()
        if "unit" in own
    }  # fmt: skip
    if units - {unit}:
        raise InvalidInput(
            "rows of households that were made to agree must be drawn together: give "
            f"unit={sorted(units - {unit})[0]!r}"
        )


def _drawn(
    table: pd.DataFrame, rows: int, unit: str | None, seed: int | None
) -> tuple[IntArray, IntArray]:
    """Places of the rows drawn, and the new number of each one's unit, from 1."""
    rng, n = streams(seed).generator("rows"), len(table)
    if unit is None:
        taken = rng.choice(n, size=rows, replace=rows > n)
        return taken, np.arange(1, rows + 1)
    codes = unit_codes(table, unit)
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    units = rng.permutation(sizes.size)
    if rows > n:  # with replacement: enough that any sizes reach the number asked for
        units = rng.integers(sizes.size, size=rows)
    count = int(np.searchsorted(np.cumsum(sizes[units]), rows)) + 1
    units = units[:count]
    taken = np.concatenate([order[starts[u] : starts[u] + sizes[u]] for u in units])
    return taken, np.repeat(np.arange(1, units.size + 1), sizes[units])
