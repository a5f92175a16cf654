"""The account of a fit: range and deviation of what each record, or unit, adds to a draw."""

from __future__ import annotations

import numpy as np

from pyhybrid.checks import FloatArray
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.fitting.told import told_by
from pyhybrid.privacy.count_recomputed import CountWithout
from pyhybrid.privacy.local_account import LocalAccount, WeightsWithoutRecords, local_account
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.recomputed import WeightsWithout, reweight_without
from pyhybrid.privacy.units import unit_terms

__all__ = ["account_of_fit", "by_unit", "stepped"]

_TERMS_OF_UNITS = 50_000_000  # elements; beyond, the account is made from fewer draws


def account_of_fit(
    session: FitSession, fit: PosteriorFit, without: WeightsWithoutRecords | None
) -> LocalAccount:
    """Range and mu of one draw of `fit`, by record, or by unit if the session has units.

    Parameters
    ----------
    session : FitSession
    fit : PosteriorFit
        Whose kept draws may be released.
    without : WeightsWithoutRecords or None
        How weights change when a record or unit leaves; None if they do not.
    """
    kept = np.flatnonzero(fit.bounds.kept_draws)
    whole = kept.size == fit.draws.n_draws
    log_lik, alpha = session.bound.log_lik(fit.draws), fit.alpha
    if not whole:
        log_lik = log_lik.at(kept)
    n_draws = kept.size
    if session.units is not None:
        units = session.units
        most = max(100, _TERMS_OF_UNITS // units.n)
        if n_draws > most:
            thinned = np.unique(np.linspace(0, n_draws - 1, most).astype(np.intp))
            log_lik, n_draws, whole = log_lik.at(thinned), thinned.size, False
        shared = _shared(session, alpha)
        terms = unit_terms(log_lik, np.ones(alpha.size) if shared else alpha, units.of)
        log_lik = LogLik.of(terms)
        alpha = alpha[units.first] if shared else np.ones(units.n)
    if without is not None and not _same(without.alpha, alpha):
        without = None  # not the weights of this fit: of units whose records have their own
    chains = fit.draws.n_chains if whole else 1
    return local_account(log_lik, alpha, n_draws=n_draws, chains=chains, without=without)


def by_unit(session: FitSession, f: FloatArray) -> FloatArray:
    """Values of the units (k,), each once, from values (n,) that the records of a unit share."""
    return f if session.units is None else f[session.units.first]


def stepped(
    session: FitSession, path: Reweighted, base: WeightsWithoutRecords | None
) -> WeightsWithoutRecords | None:
    """`base` after the re-weighting of `path`; None where it cannot be repeated without a record.

    The steps are repeated at the same k and on the same draws [V25 eq. 2.1]. `base` None stands for
    weights that do not change.
    """
    if path.fit is path.start:
        return base
    if not _shared(session, path.start.alpha):
        return None  # a unit has no weight of its own
    found = _as_general(session, path, base)
    results = [*path.rounds[1:], path.fit]
    for number, (start, result) in enumerate(zip(path.rounds, results, strict=True), 1):
        if found is None:
            return None
        steps = {step.k for step in path.steps if step.round == number and step.accepted}
        found = _step(session, found, start, result, steps, path.risk)
    return found


def _as_general(
    session: FitSession, path: Reweighted, base: WeightsWithoutRecords | None
) -> WeightsWithout | None:
    if base is None:
        weights = by_unit(session, path.start.alpha)
        return WeightsWithout(
            alpha=weights, movers=np.zeros(0, dtype=np.intp), without=lambda _: weights.copy()
        )
    if isinstance(base, CountWithout):
        return base.general()
    return base if isinstance(base, WeightsWithout) else None


def _step(
    session: FitSession,
    base: WeightsWithout,
    start: PosteriorFit,
    result: PosteriorFit,
    tried: set[float],
    risk: str,
) -> WeightsWithout | None:
    """One application of the formula to the weights of `start`, at the k that gave `result`."""
    told = told_by(session, start, risk).by_record
    weighted, alpha = by_unit(session, told), by_unit(session, start.alpha)
    largest = np.divide(weighted, alpha, out=np.zeros(alpha.size), where=alpha > 0)
    if not np.isfinite(largest).all():
        return None
    for k in tried:
        found = reweight_without(base, largest, k=k)
        if _same(found.alpha, by_unit(session, result.alpha)):
            return found
    return None


def _shared(session: FitSession, alpha: FloatArray) -> bool:
    """Whether the records of each unit share a weight; true for units of one record."""
    return session.units is None or np.array_equal(
        alpha[session.units.first][session.units.of], alpha
    )


def _same(alpha: FloatArray, other: FloatArray) -> bool:
    return alpha.shape == other.shape and np.allclose(alpha, other, rtol=1e-9, atol=1e-12)
