"""Convergence of the chains: without it a bound computed from the draws means nothing.

References
----------
Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), Bayesian Analysis 16:667-718: rank-normalized
split R-hat, bulk and tail effective sample size, by ArviZ, which is imported once there are chains.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.engines.base import Draws


@dataclass(frozen=True, kw_only=True)
class ConvergenceRule:
    """Limits that a fit must meet before a charge is written.

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
    """Worst values over all scalar quantities of a fit, `worst` being the one with the largest
    R-hat; transitions after warm-up that diverged, or reached the largest tree depth; `problems`,
    what fails the `rule` in plain words; the fits made (`attempts`); and the chains from dispersed
    starts that ended in another mode (`n_elsewhere`, None if not looked for)."""

    max_rhat: float
    min_ess_bulk: float
    min_ess_tail: float
    worst: str
    n_divergent: int = 0
    n_max_treedepth: int = 0
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


def worst_of(blocks: Mapping[str, Diagnostics]) -> Diagnostics:
    """The worst of blocks that were sampled one after the other, each named in its problems."""
    every = list(blocks.values())
    name, worst = max(blocks.items(), key=lambda item: item[1].max_rhat)
    return replace(
        worst,
        min_ess_bulk=min(block.min_ess_bulk for block in every),
        min_ess_tail=min(block.min_ess_tail for block in every),
        worst=f"{worst.worst} of {name}",
        n_divergent=max(block.n_divergent for block in every),
        n_max_treedepth=max(block.n_max_treedepth for block in every),
        n_draws=min(block.n_draws for block in every),
        problems=tuple(f"{n}: {text}" for n, block in blocks.items() for text in block.problems),
        attempts=max(block.attempts for block in every),
    )


def diagnose(
    draws: Draws,
    rule: ConvergenceRule | None = None,
    quantities: Mapping[str, FloatArray] | None = None,
) -> Diagnostics:
    """Compare a fit with a rule, by its worst column: of `quantities`, shape (chains, draws, *dims)
    each, or of all variables. Constant ones, as in Cholesky factors, are left out."""
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
    quantities: Mapping[str, FloatArray], rule: ConvergenceRule | None = None, **counts: int
) -> Diagnostics:
    """The same for chains of any sampler; `counts` are n_chains, n_draws, n_divergent and
    n_max_treedepth of `Diagnostics`."""
    rule = rule or ConvergenceRule()
    rhat, bulk, tail, worst = _worst(quantities)
    limit, n_divergent = rule.ess_per_chain * counts["n_chains"], counts.get("n_divergent", 0)
    problems = []
    if not rhat <= rule.rhat:
        problems.append(f"R-hat of {worst} is {rhat:.3f}, must be at most {rule.rhat:g}")
    if not bulk >= limit:
        problems.append(f"bulk effective sample size is {bulk:.0f}, must be at least {limit:.0f}")
    if not tail >= limit:
        problems.append(f"tail effective sample size is {tail:.0f}, must be at least {limit:.0f}")
    if n_divergent > rule.divergent_share * counts["n_draws"]:
        problems.append(f"{n_divergent} of {counts['n_draws']} transitions diverged")
    return Diagnostics(
        max_rhat=rhat,
        min_ess_bulk=bulk,
        min_ess_tail=tail,
        worst=worst,
        problems=tuple(problems),
        rule=rule,
        **counts,
    )


def _worst(quantities: Mapping[str, FloatArray]) -> tuple[float, float, float, str]:
    """Largest R-hat, smallest bulk and tail ESS, and the name of the column with that R-hat."""
    rhat, bulk, tail, worst = 1.0, np.inf, np.inf, ""
    for name, values in quantities.items():
        columns = values.reshape(*values.shape[:2], -1)
        finite = np.isfinite(columns).all(axis=(0, 1))
        still = finite & (columns.min(axis=(0, 1)) == columns.max(axis=(0, 1)))
        if still.all():  # also of a variable without elements
            continue
        by_column = _by_column(np.where(finite, columns, 0.0))
        by_column[:, still] = [[1.0], [np.inf], [np.inf]]
        lost = ~finite | np.isnan(by_column).any(axis=0)  # as where only a middle draw differs
        by_column[:, lost] = [[np.inf], [0.0], [0.0]]
        worst_column = int(np.argmax(by_column[0]))
        if not by_column[0, worst_column] <= rhat:
            rhat, worst = float(by_column[0, worst_column]), _label(name, values, worst_column)
        bulk, tail = min(bulk, float(by_column[1].min())), min(tail, float(by_column[2].min()))
    if np.isinf(bulk):  # every column stood still
        rhat = np.inf
    first = next((_label(name, v, 0) for name, v in quantities.items() if v.size), "")
    return rhat, bulk, tail, worst or first


def _label(name: str, values: FloatArray, column: int) -> str:
    return f"{name}[{column + 1}]" if values.ndim > 2 else name


def _by_column(columns: FloatArray) -> FloatArray:
    """R-hat, bulk and tail effective sample size of finite columns (chains, draws, b): (3, b)."""
    arviz, every = _arviz(), np.moveaxis(columns, 2, 0)
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing moves within the halves
        rhat = [arviz.rhat(one) for one in every]
    sizes = [[arviz.ess(one, method=method) for one in every] for method in ("bulk", "tail")]
    return np.stack([rhat, *np.minimum(sizes, every[0].size)])


def effective_draws(values: FloatArray, chains: int) -> FloatArray:
    """Effective draws for the mean of each column, (S, b) to (b,): at most S, without the credit
    that alternating draws could claim. Halved chains, so that one that drifts disagrees with
    itself."""
    arviz = _arviz()
    found = [arviz.ess(one.reshape(chains, -1), method="mean") for one in values.T]
    return np.minimum(found, float(len(values)))


def _arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its next version once a day
        import arviz
    return arviz
