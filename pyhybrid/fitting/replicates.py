"""Synthetic data sets from posterior draws.

m draws are chosen at random without replacement among those that may be released, and for each
one every record's outcome is drawn anew from p(. | x_i, theta). Simulation from a released draw is
post-processing: it costs nothing beyond the draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Draws
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.models.formula.values import with_columns


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenDraws:
    """Draws of which those at `positions` (k,) are released, and the name of random streams for
    what is simulated from them."""

    draws: Draws
    positions: npt.NDArray[np.intp]
    stream: str


def choose_draws(
    session: FitSession, fit: PosteriorFit, stream: str, n_draws: int, *, relation: str = "remove"
) -> ChosenDraws:
    """Draws to release: of `fit` at random, none that a release from the session took before; of
    an exact posterior, drawn for this release at the price of `relation`."""
    before = session.store.released.setdefault(stream, [])
    name = f"{stream}/release {len(before) + 1}" if before else stream
    if fit.exact is not None:
        draws = fit.exact.released_draws(n_draws, relation=relation)
        before.append(np.empty(0, dtype=np.intp))
        return ChosenDraws(draws=draws, positions=np.arange(n_draws), stream=name)
    available = np.flatnonzero(fit.bounds.kept_draws)
    for positions in before:
        available = np.setdiff1d(available, positions, assume_unique=True)
    if n_draws > available.size:
        why = " that were not released before" if before else ""
        raise InvalidInput(
            f"n_synthetic must be at most the number of kept draws{why}, {available.size}: "
            f"found {n_draws}"
        )
    rng = session.streams.generator(f"{name}/draws")
    before.append(rng.choice(available, size=n_draws, replace=False))
    return ChosenDraws(draws=fit.draws, positions=before[-1], stream=name)


def synthesize(
    session: FitSession,
    chosen: ChosenDraws,
    n_synthetic: int,
    given: Sequence[pd.DataFrame] | None = None,
) -> list[pd.DataFrame]:
    """The synthesized columns of `n_synthetic` sets, each with a random stream of its own; beside
    the columns of the `given` tables, if other ones were synthesized before."""
    columns, report = [], session.steps_of("synthetic data")
    for place in range(n_synthetic):
        rng = session.streams.generator(f"{chosen.stream}/replicate {place + 1}")
        draw = int(chosen.positions[place % chosen.positions.size])
        table = None if given is None else given[place]
        columns.append(session.bound.replicate(chosen.draws, draw, rng, table))
        if report is not None:
            report(place + 1, n_synthetic)
    return columns


def joined(table: pd.DataFrame, columns: pd.DataFrame) -> pd.DataFrame:
    """`table` with `columns` in the place of its own, and without notes (`attrs`) on it. What is
    not replaced is shared with `table` where pandas copies on write (from 3.0)."""
    whole = with_columns(table, columns)
    whole.attrs = {}  # notes on the confidential table would be published with it
    return whole


def in_one_dtype(tables: Sequence[pd.DataFrame], columns: Sequence[str]) -> list[pd.DataFrame]:
    """The tables with each column in one dtype, as files of a release have one schema: whole
    numbers beside missing ones become floats; what numpy has no number for becomes objects."""
    alike = list(tables)
    for name in columns:
        kinds = {table[name].dtype for table in alike}
        if len(kinds) > 1:
            common: Any = np.dtype(object)
            if all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):
                common = np.result_type(*kinds)  # type: ignore[arg-type]
            elif all(map(pd.api.types.is_integer_dtype, kinds)):
                common = "Int64"
            alike = [with_columns(table, {name: table[name].astype(common)}) for table in alike]
    return alike
