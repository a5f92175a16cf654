"""The account of a fit: range and deviation of what each record, or unit, adds to a draw."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.fitting.record_risk import told_by
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.privacy.count_risk import CountWithout
from pyhybrid.privacy.local_account import LocalAccount, WeightsWithoutRecords, local_account
from pyhybrid.privacy.log_lik import LogLik, unit_terms
from pyhybrid.privacy.weight_sensitivity import (
    RiskDraws,
    WeightsWithout,
    constant_weights,
    rescaled_without,
    reweight_map,
    risk_weights_without,
)

__all__ = [
    "account_of_fit",
    "by_unit",
    "known_without",
    "log_lik_by_unit",
    "risk_draws",
    "risks_joined",
    "stepped",
]

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
    kept, alpha = np.flatnonzero(fit.bounds.kept_draws), fit.alpha
    whole = kept.size == fit.draws.n_draws
    log_lik = session.bound.log_lik(fit.draws)
    if not whole:
        log_lik = log_lik.at(kept)
    n_draws = kept.size
    if session.units is not None:
        shared = _shared(session, alpha)
        log_lik, thinned = log_lik_by_unit(
            session, log_lik, n_draws, np.ones(alpha.size) if shared else alpha
        )
        n_draws, whole = thinned, whole and thinned == n_draws
        alpha = alpha[session.units.first] if shared else np.ones(session.units.n)
    without = known_without(session, fit, without)
    chains = fit.draws.n_chains if whole else 1
    return local_account(log_lik, alpha, n_draws=n_draws, chains=chains, without=without)


def risks_joined(
    draws: RiskDraws, risks: FloatArray, possible: LogLik, own: FloatArray
) -> tuple[FloatArray, Callable[[int], tuple[FloatArray, float]]]:
    """How far each possible record moves the draws, (H,), and the risks with it: (n,) and its own.

    Parameters
    ----------
    draws : RiskDraws
        That `risks` (n,) were read from.
    possible : LogLik
        Of the possible records at these draws; `own` (H,) are their risks.
    """
    matrix = RiskDraws(
        log_lik=possible.at(draws.chosen),
        risk=draws.risk,
        weights=constant_weights(np.ones(possible.n)),
        thinned=False,
    )

    def joined(h: int) -> tuple[FloatArray, float]:
        ratio = matrix.by_row[:, matrix.log_lik.row_of[[h]]]
        moved = matrix.risks_under(own, ratio)[h, 0]
        return draws.risks_under(risks, ratio)[:, 0], float(moved)

    return matrix.leverage, joined


def known_without(
    session: FitSession, fit: PosteriorFit, without: WeightsWithoutRecords | None
) -> WeightsWithoutRecords | None:
    """`without` if it is of the weights of `fit`, with survey weights that are normalized by their
    sum; None for units whose records have weights of their own."""
    if not _shared(session, fit.alpha):
        return None
    alpha = by_unit(session, fit.alpha)
    if without is not None and not _same(without.alpha, alpha):
        without = None
    rescale = getattr(session.bound, "scale_without", None)
    if rescale is None:
        return without
    factors = rescale(np.arange(alpha.size) if session.units is None else session.units.of)
    if (factors == 1).all():
        return without
    base = constant_weights(alpha) if without is None else without
    return rescaled_without(base.general() if isinstance(base, CountWithout) else base, factors)  # type: ignore[arg-type]


def log_lik_by_unit(
    session: FitSession, log_lik: LogLik, n_draws: int, alpha: FloatArray | None = None
) -> tuple[LogLik, int]:
    """Terms of the session's units under `alpha` (n,), 1 if omitted, and at how many draws.

    Without units, the log-likelihood as it is.
    """
    if session.units is None:
        return log_lik, n_draws
    units, most = session.units, max(100, _TERMS_OF_UNITS // session.units.n)
    if n_draws > most:
        thinned = np.unique(np.linspace(0, n_draws - 1, most).astype(np.intp))
        log_lik, n_draws = log_lik.at(thinned), thinned.size
    own = np.ones(units.of.size) if alpha is None else alpha
    return LogLik.of(unit_terms(log_lik, own, units.of)), n_draws


def risk_draws(
    session: FitSession, fit: PosteriorFit, risk: str, weights: WeightsWithout | None = None
) -> RiskDraws:
    """The kept draws of `fit`, which risks were read from; of weights 1 if `weights` is omitted."""
    kept = np.flatnonzero(fit.bounds.kept_draws)
    log_lik, _ = log_lik_by_unit(session, session.bound.log_lik(fit.draws).at(kept), kept.size)
    own = constant_weights(np.ones(log_lik.n)) if weights is None else weights
    return RiskDraws(log_lik=log_lik, risk=risk, weights=own)


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
        return constant_weights(by_unit(session, path.start.alpha))
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
    draws = risk_draws(session, start, risk, base)
    for k in tried:
        found = risk_weights_without(draws, largest, reweight_map(k), base)
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
