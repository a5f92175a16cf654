"""Means (of levels: shares) of synthetic sets, and whether re-weighting took them from the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.releases.release import Release
from pyhybrid.studies.comparing.outcome import outcome_of

__all__ = ["means_of", "moved_away", "moved_away_text"]

_DRAWS, _RECORDS_SIMULATED = 100, 5_000_000
_ERRORS = 3.0  # of the simulated means
_MATERIAL = 0.5  # standard errors of the data's own mean: less than that is nobody's loss


def means_of(session: FitSession, fit: PosteriorFit, n_draws: int, column: str) -> FloatArray:
    """Mean of the outcome, or shares of its levels, in sets simulated from draws spread over the
    kept ones, shape (n_draws, k)."""
    kept = np.flatnonzero(fit.bounds.kept_draws)
    places = np.linspace(0, kept.size - 1, min(n_draws, kept.size)).astype(np.intp)
    rng = session.streams.generator("synthetic means")
    tables = (session.bound.replicate(fit.draws, int(draw), rng) for draw in kept[places])
    outcome = outcome_of(session.bound)
    return np.array([outcome.averaged(table[column]) for table in tables])


def moved_away(
    session: FitSession, releases: Mapping[str, Release], column: str
) -> tuple[str, ...]:
    """Names of the releases whose re-weighting took the mean, or a share, further from the data's.

    Further by more than 3 standard errors of the simulated means, and by more than half a standard
    error of the data's own mean. Confidential.
    """
    outcome, n = outcome_of(session.bound), session.bound.n
    target = outcome.averaged(session.bound.table[column])
    own_error = outcome.spread() / np.sqrt(n)
    draws = min(_DRAWS, max(20, _RECORDS_SIMULATED // n))
    moved = []
    for name, release in releases.items():
        path = release.reweighted
        if path is None or path.fit is path.start:
            continue
        before, after = (means_of(session, fit, draws, column) for fit in (path.start, path.fit))
        further = abs(after.mean(axis=0) - target) - abs(before.mean(axis=0) - target)
        error = np.sqrt(before.var(axis=0) / len(before) + after.var(axis=0) / len(after))
        if (further > np.maximum(_ERRORS * error, _MATERIAL * own_error)).any():
            moved.append(name)
    return tuple(moved)


def moved_away_text(names: tuple[str, ...], column: str, *, levels: bool = False) -> str:
    """What a data owner is told; which candidates these are is confidential."""
    several = len(names) > 1
    return (
        f"re-weighting took the {'shares' if levels else 'mean'} of {column!r} further from the "
        f"data in {', '.join(names)}: "
        f"{'their' if several else 'its'} weights rise most where records are likely already; "
        "compare with the same mechanism without re-weighting before you choose"
    )
