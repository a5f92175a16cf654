"""A release that is changed afterwards: post-processing of released values, at no charge.

What is done works on synthetic values, public settings and columns that are published as they are;
it writes itself into the release's public settings (see `pyhybrid.releases.postprocess`). A ledger
takes a release once, as it is then: change it before it is entered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.releases.postprocess import AFTERWARDS, afterwards_of
from pyhybrid.releases.record import ReleaseRecord
from pyhybrid.releases.release import Release

__all__ = ["changed_release", "check_columns", "check_synthesized", "step_of"]


def changed_release(
    release: Release,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    what: str,
    own: Mapping[str, Any],
    *,
    reads: Sequence[str],
    derived: Sequence[str] = (),
) -> Release:
    """The release after a change of every set, which its public settings name as `what`.

    `reads` are the columns that the change looks at; those of them that were not synthesized have
    to stay. `derived` are columns that now hold functions of synthetic values. Settings that say
    nothing (None, empty) are left out of `own`.
    """
    known = {*release.synthesized, *derived}
    kept = list(dict.fromkeys(name for name in reads if name not in known))
    said = {k: v for k, v in {**own, "reads": kept}.items() if v is not None and v not in ([], {})}
    settings = {**release.settings, AFTERWARDS: [*afterwards_of(release.settings), {what: said}]}
    made = replace(
        release,
        synthetic=[change(table) for table in release.synthetic],
        settings=settings,
        synthesized=tuple(dict.fromkeys([*release.synthesized, *derived])),
        exposed={name: why for name, why in release.exposed.items() if name not in derived},
    )
    return made.sealed()


def step_of(release: Release, column: str) -> ReleaseRecord | None:
    """What replaced the column: the release, or a step of it; None of one that was derived."""
    for each in release.parts or (release,):
        if column in each.synthesized:
            return each
    return None


def check_columns(names: Sequence[str], columns: Sequence[str]) -> None:
    """Raise InvalidInput for a name that no column of the sets has."""
    for name in names:
        if name not in columns:
            raise InvalidInput(
                f"{name!r} must be a column of the synthetic sets: it is not"
                f"{did_you_mean(name, columns)}"
            )


def check_synthesized(release: Release, names: Sequence[str]) -> None:
    """Raise InvalidInput for a column that is as in the data, and would be changed."""
    check_columns(names, list(release.synthetic[0].columns))
    for name in names:
        if name not in release.synthesized:
            raise InvalidInput(
                f"{name!r} must be a synthesized column to be changed: it is as in the data"
            )
