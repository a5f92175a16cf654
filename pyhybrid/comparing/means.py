"""Means of synthetic sets from many draws, and whether re-weighting took them from the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyhybrid.checks import FloatArray
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.releases.release import Release

__all__ = ["means_of", "moved_away", "moved_away_text"]

_DRAWS, _RECORDS_SIMULATED = 100, 5_000_000
_ERRORS = 3.0  # of the simulated means
_MATERIAL = 0.5  # standard errors of the data's own mean: less than that is nobody's loss


def means_of(session: FitSession, fit: PosteriorFit, n_draws: int, column: str) -> FloatArray:
    """Mean of the outcome in sets simulated from draws spread over the kept ones, (n_draws,)."""
    kept = np.flatnonzero(fit.bounds.kept_draws)
    places = np.linspace(0, kept.size - 1, min(n_draws, kept.size)).astype(np.intp)
    rng = session.streams.generator("synthetic means")
    tables = (session.bound.replicate(fit.draws, int(draw), rng) for draw in kept[places])
    return np.array([float(session.bound.numbers_of(table[column]).mean()) for table in tables])


def moved_away(
    session: FitSession, releases: Mapping[str, Release], column: str
) -> tuple[str, ...]:
    """Names of the releases whose re-weighting took the mean further from the data's.

    Further by more than 3 standard errors of the simulated means, and by more than half a standard
    error of the data's own mean. Confidential.
    """
    data = np.asarray(session.bound.outcome, dtype=np.float64)
    own_error = float(data.std()) / np.sqrt(data.size)
    draws = min(_DRAWS, max(20, _RECORDS_SIMULATED // data.size))
    moved = []
    for name, release in releases.items():
        path = release.reweighted
        if path is None or path.fit is path.start:
            continue
        before, after = (means_of(session, fit, draws, column) for fit in (path.start, path.fit))
        further = abs(after.mean() - data.mean()) - abs(before.mean() - data.mean())
        error = np.sqrt(before.var() / before.size + after.var() / after.size)
        if further > max(_ERRORS * error, _MATERIAL * own_error):
            moved.append(name)
    return tuple(moved)


def moved_away_text(names: tuple[str, ...], column: str) -> str:
    """What a data owner is told; which candidates these are is confidential."""
    several = len(names) > 1
    return (
        f"re-weighting took the mean of {column!r} further from the data in {', '.join(names)}: "
        f"{'their' if several else 'its'} weights rise most where records are likely already; "
        "compare with the same mechanism without re-weighting before you choose"
    )
