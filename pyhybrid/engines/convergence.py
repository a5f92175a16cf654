"""Convergence of the chains: without it a bound computed from the draws means nothing.

References
----------
Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), Bayesian Analysis 16:667-718: rank-normalized
split R-hat, bulk and tail effective sample size (computed by ArviZ).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pyhybrid.checks import FloatArray
from pyhybrid.engines.base import Draws

__all__ = ["ConvergenceRule", "Diagnostics", "diagnose", "diagnose_quantities"]


@dataclass(frozen=True, kw_only=True)
class ConvergenceRule:
    """What a fit must meet before a charge is written.

    Attributes
    ----------
    rhat : float, default 1.01
        Largest rank-normalized split R-hat.
    ess_per_chain : float, default 100
        Smallest bulk and tail effective sample size, per chain.
    divergent_share : float, default 0.001
        Largest share of divergent transitions. Trees at their largest depth cost time, not
        correctness: they are reported and do not fail a fit.
    """

    rhat: float = 1.01
    ess_per_chain: float = 100.0
    divergent_share: float = 0.001

    def describe(self) -> str:
        """The rule in words."""
        return (
            f"rank-normalized split R-hat at most {self.rhat:g}, bulk and tail effective sample "
            f"sizes at least {self.ess_per_chain:g} per chain, at most "
            f"{100 * self.divergent_share:g} % of transitions divergent"
        )


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """Worst values over all scalar quantities of a fit.

    Attributes
    ----------
    max_rhat, min_ess_bulk, min_ess_tail : float
        Worst rank-normalized split R-hat, bulk and tail effective sample sizes.
    worst : str
        Quantity with the largest R-hat.
    n_divergent, n_max_treedepth : int
        Transitions after warm-up that diverged, or that reached the largest tree depth.
    n_draws, n_chains : int
    problems : tuple of str
        What fails the rule, in plain words; empty if converged.
    rule : ConvergenceRule
        The rule they were judged by.
    attempts : int
        Fits made: 2 if the first did not converge and was repeated.
    n_elsewhere : int or None
        Chains from dispersed starts that ended in another mode; None if not looked for.
    """

    max_rhat: float
    min_ess_bulk: float
    min_ess_tail: float
    worst: str
    n_divergent: int
    n_max_treedepth: int
    n_draws: int
    n_chains: int
    problems: tuple[str, ...]
    rule: ConvergenceRule
    attempts: int = 1
    n_elsewhere: int | None = None

    @property
    def converged(self) -> bool:
        """True if nothing fails the rule."""
        return not self.problems


def diagnose(
    draws: Draws,
    rule: ConvergenceRule | None = None,
    quantities: Mapping[str, FloatArray] | None = None,
) -> Diagnostics:
    """Compare the worst diagnostics of a fit with a rule.

    Parameters
    ----------
    draws : Draws
        The fit.
    rule : ConvergenceRule, optional
    quantities : mapping of str to ndarray, shape (chains, draws, *dims), optional
        What must have converged; all variables of the fit if omitted. Constant columns (such as
        the first entry of a Cholesky factor) are left out.
    """
    deepest = draws.provenance.settings.max_treedepth
    return diagnose_quantities(
        draws.variables if quantities is None else quantities,
        rule,
        n_chains=draws.n_chains,
        n_draws=draws.n_draws,
        n_divergent=int(draws.divergent.sum()),
        n_max_treedepth=int((draws.treedepth >= deepest).sum()),
    )


def diagnose_quantities(
    quantities: Mapping[str, FloatArray],
    rule: ConvergenceRule | None = None,
    *,
    n_chains: int,
    n_draws: int,
    n_divergent: int = 0,
    n_max_treedepth: int = 0,
) -> Diagnostics:
    """The same for chains of any sampler; parameters as in `diagnose` and `Diagnostics`."""
    rule = rule or ConvergenceRule()
    rhat, bulk, tail, worst = _worst(quantities)
    limit = rule.ess_per_chain * n_chains
    problems = []
    if not rhat <= rule.rhat:
        problems.append(f"R-hat of {worst} is {rhat:.3f}, must be at most {rule.rhat:g}")
    if not bulk >= limit:
        problems.append(f"bulk effective sample size is {bulk:.0f}, must be at least {limit:.0f}")
    if not tail >= limit:
        problems.append(f"tail effective sample size is {tail:.0f}, must be at least {limit:.0f}")
    if n_divergent > rule.divergent_share * n_draws:
        problems.append(f"{n_divergent} of {n_draws} transitions diverged")
    return Diagnostics(
        max_rhat=rhat,
        min_ess_bulk=bulk,
        min_ess_tail=tail,
        worst=worst,
        n_divergent=n_divergent,
        n_max_treedepth=n_max_treedepth,
        n_draws=n_draws,
        n_chains=n_chains,
        problems=tuple(problems),
        rule=rule,
    )


def _worst(quantities: Mapping[str, FloatArray]) -> tuple[float, float, float, str]:
    """Largest R-hat, smallest bulk and tail ESS, and the name of the column with that R-hat."""
    columns = {
        f"{name}[{place}]" if values.ndim > 2 else name: column
        for name, values in quantities.items()
        if values.size
        for place, column in enumerate(np.moveaxis(values.reshape(*values.shape[:2], -1), 2, 0), 1)
    }
    rhat, bulk, tail, worst = 1.0, np.inf, np.inf, ""
    for name, column in columns.items():
        if np.isfinite(column).all() and column.min() == column.max():
            continue
        own_rhat, own_bulk, own_tail = _column(column)
        if not own_rhat <= rhat:
            rhat, worst = own_rhat, name
        bulk, tail = min(bulk, own_bulk), min(tail, own_tail)
    if np.isinf(bulk):  # every column stood still
        rhat = np.inf
    return rhat, bulk, tail, worst or next(iter(columns), "")


def _column(column: FloatArray) -> tuple[float, float, float]:
    if not np.isfinite(column).all():
        return np.inf, 0.0, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its next major version on import
        import arviz
    return (
        float(arviz.rhat(column, method="rank")),
        float(arviz.ess(column, method="bulk")),
        float(arviz.ess(column, method="tail")),
    )
