"""The account of a fit: range and deviation of what each record, or unit, adds to a draw."""

from __future__ import annotations

import numpy as np

from pyhybrid.checks import FloatArray
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession, PosteriorFit
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
        shared = np.array_equal(alpha[units.first][units.of], alpha)
        terms = unit_terms(log_lik, np.ones(alpha.size) if shared else alpha, units.of)
        log_lik = LogLik.of(terms)
        alpha = alpha[units.first] if shared else np.ones(units.n)
    chains = fit.draws.n_chains if whole else 1
    return local_account(log_lik, alpha, n_draws=n_draws, chains=chains, without=without)


def by_unit(session: FitSession, f: FloatArray) -> FloatArray:
    """Values of the units (k,), each once, from values (n,) that the records of a unit share."""
    return f if session.units is None else f[session.units.first]


def stepped(
    session: FitSession, path: Reweighted, base: WeightsWithoutRecords | None
) -> WeightsWithoutRecords | None:
    """`base` after the re-weighting of `path`; None if that took more than one step.

    The step is repeated without each record at the same k and on the same draws [V25 eq. 2.1].
    """
    rounds = [step for step in path.steps if step.accepted]
    start, fit = path.start, path.fit
    if fit is start:
        return base
    if not rounds or {step.round for step in rounds} != {1}:
        return None
    if base is None:
        weights = by_unit(session, start.alpha)
        base = WeightsWithout(
            alpha=weights, movers=np.zeros(0, dtype=np.intp), without=lambda _: weights.copy()
        )
    if not isinstance(base, WeightsWithout):
        return None
    weighted = by_unit(session, start.bounds.by_record)
    alpha = by_unit(session, start.alpha)
    largest = np.divide(weighted, alpha, out=np.zeros(alpha.size), where=alpha > 0)
    for step in rounds:
        found = reweight_without(base, largest, k=step.k)
        if np.allclose(found.alpha, by_unit(session, fit.alpha), rtol=1e-9, atol=1e-12):
            return found
    return None
