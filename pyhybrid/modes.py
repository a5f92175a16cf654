"""Looking for other modes of a censored posterior.

Where many terms are clipped the censored log-likelihood is flat, and a chain that starts there may
stay: a posterior of one good mode can hold chains elsewhere. Chains from dispersed starts show it.

References
----------
[C25] sec. 4: published counts of censored records spread widely between single-chain runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pyhybrid.fitting import FitSession, PosteriorFit

__all__ = ["ModeCheck", "look_for_modes"]

_DISPERSION = 25.0
_CHAINS, _WARMUP, _DRAWS = 8, 500, 100
_FAR = 10.0


@dataclass(frozen=True, kw_only=True)
class ModeCheck:
    """What chains from dispersed starts found. Confidential.

    Attributes
    ----------
    n_chains, n_elsewhere : int
        Chains started, and those that ended away from the fit.
    log_density_gap : float
        Mean log density of the chains that agree with the fit minus that of the others, nats: above
        0 the others are in a lesser mode. NaN if there are no others, or none that agree.
    """

    n_chains: int
    n_elsewhere: int
    log_density_gap: float


def look_for_modes(session: FitSession, fit: PosteriorFit) -> ModeCheck:
    """Run 8 short chains from starts 25 times as dispersed and see where they end.

    A chain is elsewhere if the mean of some monitored quantity is more than 10 posterior standard
    deviations from the fit's.
    """
    bound = session.bound
    settings = replace(session.settings, chains=_CHAINS, warmup=_WARMUP, draws=_DRAWS)
    draws = session.engine.sample(
        bound.program,
        bound.stan_data(fit.alpha, cap=fit.cap, dispersion=_DISPERSION),
        seed=session.streams.engine_seed("modes"),
        settings=settings,
    )
    here, there = bound.monitored(fit.draws), bound.monitored(draws)
    elsewhere = np.zeros(draws.n_chains, dtype=bool)
    for name, values in here.items():
        mean, spread = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
        distance = np.abs(there[name].mean(axis=1) - mean)
        elsewhere |= (distance > _FAR * spread).reshape(draws.n_chains, -1).any(axis=1)
    # Energy is minus the log density plus a kinetic part of the same mean for every chain.
    energy = draws.energy.mean(axis=1)
    both = elsewhere.any() and not elsewhere.all()
    gap = float(energy[elsewhere].mean() - energy[~elsewhere].mean()) if both else float("nan")
    return ModeCheck(n_chains=draws.n_chains, n_elsewhere=int(elsewhere.sum()), log_density_gap=gap)
