"""Finite mixtures of normal regressions; program stan/normal_mixture.stan.

Chains that start anywhere would settle in different partitions of the records. All start around one
EM solution, the best of a few deterministic starts: R-hat speaks of mixing around that solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import Draws
from pyhybrid.models.families.amounts import TransformedModel
from pyhybrid.models.families.regression import Hints, Offset, Parameters, Rng
from pyhybrid.models.formula.design import Design

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_EMPTY = 4.0  # -psi(a / C), and what log pi_k moves by either way: chains start with less


@dataclass(frozen=True)
class MixtureRegression(TransformedModel):
    r"""A finite mixture of normal regressions of the transformed outcome.

    :math:`t(y_i) \sim \sum_k \pi_k N(o_i + x_i'\beta_k, \sigma_k^2)` with the component of a record
    summed out: the log-likelihood of a record is that of the whole mixture. Priors: pi ~
    Dirichlet(a/C, ..., a/C), a ~ Gamma(1, 1); beta_k and sigma_k as in `NormalRegression`, the
    scales s and correlations Omega shared by the components. `n_components` may be more than
    needed: the prior empties those that are not.

    Chains start around one EM fit, which does not move the posterior; convergence is judged by
    densities at fixed points, so that a switch of component labels does not count as a failure.
    Partitions of the records that no start leads to are not found, as in any mixture fit.

    Parameters
    ----------
    n_components : int, default 5
        C, at least 1 and at most the number of records.

    Other parameters as in `pyhybrid.models.families.amounts.TransformedModel`. One component is
    `NormalRegression`, which is faster there.

    References
    ----------
    [S22] appendix B and sec. 5.
    """

    _: KW_ONLY
    n_components: int = 5
    program_name: ClassVar[str] = "normal_mixture"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "sigma", "log_proportion")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.n_components, "n_components")

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        super().check_outcome(design, index)
        if self.n_components > design.y.size:
            raise InvalidInput(
                f"n_components must be at most the number of records, {design.y.size}: "
                f"found {self.n_components}"
            )

    @property
    def assumptions(self) -> tuple[str, ...]:  # type: ignore[override]
        said = (
            "All chains of the mixture start around one rough fit: modes of the posterior that "
            "none of them reached are assumed to have no weight."
        )
        return () if self.n_components == 1 else (said,)

    def log_lik(self, at: Parameters, y: FloatArray, X: FloatArray, offset: Offset) -> FloatArray:
        beta, sigma = at["beta"], at["sigma"]  # (S, K, C), (S, C)
        constant = at["log_proportion"] - np.log(sigma) - _HALF_LOG_2PI
        total = None
        for k in range(sigma.shape[1]):
            z = (y - offset - beta[:, :, k] @ X.T) / sigma[:, k, None]
            component = constant[:, k, None] - z**2 / 2
            total = component if total is None else np.logaddexp(total, component)
        return np.asarray(total)

    def draw_outcome(self, at: Parameters, X: FloatArray, offset: Offset, rng: Rng) -> FloatArray:
        """One replicate of t(y), shape (n,): a component for each record, then its normal."""
        proportion = np.exp(at["log_proportion"])
        component = rng.choice(proportion.size, size=X.shape[0], p=proportion / proportion.sum())
        mean = np.einsum("nk,kn->n", X, at["beta"][:, component])
        noise = rng.standard_normal(X.shape[0])
        return np.asarray(mean + offset + at["sigma"][component] * noise)

    def start(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset, n_levels: int = 0
    ) -> Hints:
        hints = rough_mixture(y - offset, X, weight, self.n_components, self.min_sd)
        return {**hints, "n_components": self.n_components}

    def monitored(self, draws: Draws, design: Design) -> Mapping[str, FloatArray]:
        """Log densities at fixed points, which do not depend on the components' labels: seven
        quantiles of the outcome, less the offset, at the mean design and three records', chosen by
        their least-squares means. Shape (chains, draws, 28), nats."""
        y, X = design.y - design.offset, design.X
        points = np.quantile(y, (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98))
        order = np.argsort(X @ np.linalg.lstsq(X, y, rcond=None)[0], kind="stable")
        rows = [order[round(q * (order.size - 1))] for q in (0.05, 0.5, 0.95)]
        at = {name: draws.flat(name) for name in self.parameters}
        densities = [
            self.log_lik(at, points, x[None], 0) for x in np.vstack([X.mean(axis=0), X[rows]])
        ]
        return {"log_density": np.hstack(densities).reshape(*draws.divergent.shape, -1)}


_MOST_ROWS = 20_000
_SHORT, _LONG = 20, 200
_TOLERANCE = 1e-6
_SMALLEST_SHARE = 0.1  # of the residual deviation: the floor of a component's deviation, roughly
_PRIOR_RECORDS = 2.0  # that say so


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    """An EM iterate: coefficients (K, C), precisions of their prior (K,), deviations, proportions,
    degrees of freedom used by the coefficients (C,)."""

    beta: FloatArray
    precision: FloatArray
    sd: FloatArray
    proportion: FloatArray
    used: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Records:
    """Outcomes (d,), predictors (d, K) and weights (d,); `spread` is the outcomes' deviation, later
    that of the residuals of one regression."""

    y: FloatArray
    X: FloatArray
    weight: FloatArray
    spread: float

    @property
    def total(self) -> float:
        return max(float(self.weight.sum()), 1e-300)

    def m_step(self, share: FloatArray, precision: FloatArray) -> _Fit:
        """Ridge regressions under responsibilities `share` (d, C)."""
        y, X, n_components = self.y, self.X, share.shape[1]
        responsibility = self.weight[:, None] * share
        size = responsibility.sum(axis=0)
        # The prior precision is in units of the component's own residual variance.
        prior = np.diag(precision * self.spread**2)
        gram = np.array([(X.T * w) @ X + prior for w in responsibility.T])
        right = np.array([X.T @ (w * y) for w in responsibility.T])
        beta = np.ascontiguousarray(np.linalg.solve(gram, right[..., None])[..., 0].T)
        squares = (responsibility * (y[:, None] - X @ beta) ** 2).sum(axis=0)
        diagonal = np.linalg.inv(gram).diagonal(axis1=1, axis2=2)
        used = precision.size - self.spread**2 * diagonal @ precision
        floor = _PRIOR_RECORDS * (_SMALLEST_SHARE * self.spread) ** 2
        return _Fit(
            beta=beta,
            # scales of the coefficients, from the components themselves
            precision=(1.0 + n_components) / (0.1 + (beta**2).sum(axis=1)),
            sd=np.sqrt((squares + floor) / (np.maximum(size - used, 0.0) + _PRIOR_RECORDS)),
            proportion=(size + 1) / (size.sum() + n_components),
            used=used,
        )

    def e_step(self, fit: _Fit) -> tuple[FloatArray, float]:
        """Responsibilities (d, C) and the weighted log-likelihood, up to a constant."""
        z = (self.y[:, None] - self.X @ fit.beta) / fit.sd
        log_density = np.log(fit.proportion) - np.log(fit.sd) - z**2 / 2
        by_row = np.logaddexp.reduce(log_density, axis=1)
        return np.exp(log_density - by_row[:, None]), float(self.weight @ by_row)

    def em(self, fit: _Fit, iterations: int) -> tuple[_Fit, float]:
        """The last iterate and its weighted log-likelihood."""
        before = -np.inf
        for _ in range(iterations):
            share, log_lik = self.e_step(fit)
            if abs(log_lik - before) < _TOLERANCE * self.total:
                break
            fit, before = self.m_step(share, fit.precision), log_lik
        return fit, log_lik


def rough_mixture(
    y: FloatArray, X: FloatArray, weight: FloatArray, n_components: int, min_sd: float = 0.0
) -> Hints:
    """Fit y (d,) on X (d, K) under frequency x record weights (d,), by at most 20,000 rows:
    location and scale of the components, the largest first, those the data do not ask for last."""
    step = -(-y.size // _MOST_ROWS)
    kept, total = weight[::step], float(weight.sum())
    mean = float(np.average(y, weights=weight)) if total else 0.0
    spread = np.sqrt(max(float(weight @ (y - mean) ** 2) / max(total, 1e-300), 1e-20))
    scaled = kept * (total / max(float(kept.sum()), 1e-300))
    records = _Records(y=y[::step], X=X[::step], weight=scaled, spread=spread)
    one = records.m_step(np.ones((records.y.size, 1)), np.ones(X.shape[1]))
    residual = records.y - records.X @ one.beta[:, 0]
    records = replace(records, spread=float(one.sd[0]))
    # From the most components down, while the Bayesian information criterion rises.
    chosen, score = one, -np.inf
    for number in range(n_components, 0, -1):
        starts = _starts(residual, records.weight, number)
        runs = [records.em(records.m_step(r, one.precision), _SHORT) for r in starts]
        fit, log_lik = records.em(max(runs, key=lambda run: run[1])[0], _LONG)
        # half the parameters of each component times the log of its weight, and of the proportions
        size = np.maximum(records.total * fit.proportion, 2.0)
        penalty = (fit.used + 1) @ np.log(size) + (number - 1) * np.log(max(records.total, 2.0))
        if log_lik - penalty / 2 <= score:
            break
        chosen, score = fit, log_lik - penalty / 2
    share, order = records.e_step(chosen)[0], np.argsort(-chosen.proportion, kind="stable")
    information = np.zeros((n_components, X.shape[1], X.shape[1]))
    for component, k in enumerate(order):
        rows = records.X * (np.sqrt(records.weight * share[:, k]) / chosen.sd[k])[:, None]
        information[component] = rows.T @ rows
    rest = 0, n_components - order.size
    center, sd = np.pad(chosen.beta[:, order], ((0, 0), rest)), np.pad(chosen.sd[order], rest)
    sd[order.size :] = 1.0
    records_of = np.pad(total * chosen.proportion[order], rest)
    empty, size = records_of == 0, np.where(records_of == 0, 1.0, records_of)
    # Where no records are, pi_k follows its prior: log pi_k about psi(a/C) - log(n).
    ratio = np.log(size / size[0]), np.sqrt(1 / size + 1 / size[0])
    return {
        "information": information,
        "score": np.einsum("kij,jk->ik", information, center),
        "center_sigma": np.log(np.maximum(sd - min_sd, 0.1 * sd)),
        "spread_sigma": np.where(empty, 1.0, 1 / np.sqrt(2 * size + 2)),
        "center_ratio": np.where(empty, -_EMPTY - np.log(max(records_of.sum(), 1.0)), ratio[0]),
        "spread_ratio": np.where(empty, _EMPTY / 2, ratio[1]),
    }


def _starts(residual: FloatArray, weight: FloatArray, n_components: int) -> list[FloatArray]:
    """Responsibilities (d, C) to start from: bands of the residual, its distance from 0, both."""
    if n_components == 1:
        return [np.ones((residual.size, 1))]

    def bands(values: FloatArray) -> FloatArray:
        order = np.argsort(values, kind="stable")
        share = np.empty(values.size)
        share[order] = np.cumsum(weight[order]) / max(float(weight.sum()), 1e-300)
        band = np.minimum((share * n_components).astype(int), n_components - 1)
        return np.asarray(0.8 * np.eye(n_components)[band] + 0.2 / n_components)

    tail = np.where(residual < np.median(residual), 2.0, 0.5) * np.abs(residual)
    return [bands(residual), bands(np.abs(residual)), bands(tail), bands(tail.max() / 4 - tail)]
