"""A rough fit of a mixture of normal regressions by EM: where the reparametrization is centered.

Chains that start anywhere would settle in different partitions of the records, and density by
density they would not agree. All chains start around one EM solution, the best of a few
deterministic starts; so R-hat speaks of mixing around that solution. Solutions that no start leads
to stay unseen: a mixture posterior may have more modes than any sampler shows. The hints do not
move the posterior, and a solution of lesser density is left by the chains only if they can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray

__all__ = ["RoughMixture", "rough_mixture"]

_MOST_ROWS = 20_000
_SHORT, _LONG = 20, 200
_TOLERANCE = 1e-6
_SMALLEST_SHARE = 0.1  # of the residual deviation: the floor of a component's deviation, roughly
_PRIOR_RECORDS = 2.0  # that say so


@dataclass(frozen=True, kw_only=True, eq=False)
class RoughMixture:
    """Components by falling proportion; those that the data do not ask for come last, of size 0.

    Attributes
    ----------
    center : ndarray, shape (K, C)
        Coefficients.
    information : ndarray, shape (C, K, K)
        Of the coefficients, given which records are whose.
    sd : ndarray, shape (C,)
    size : ndarray, shape (C,)
        Weight of the records in each component.
    """

    center: FloatArray
    information: FloatArray
    sd: FloatArray
    size: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _State:
    """One EM iterate: coefficients (K, C), precisions of their prior (K,), deviations, proportions,
    degrees of freedom used by the coefficients (C,)."""

    beta: FloatArray
    precision: FloatArray
    sd: FloatArray
    proportion: FloatArray
    used: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Records:
    y: FloatArray
    X: FloatArray
    weight: FloatArray
    sd: FloatArray  # residual deviation of one regression, shape ()


def rough_mixture(
    y: FloatArray, X: FloatArray, weight: FloatArray, n_components: int
) -> RoughMixture:
    """Fit y (d,) on X (d, K) under frequency x record weights (d,)."""
    records = _thinned(y, X, weight)
    one = _m_step(records, np.ones((records.y.size, 1)), np.ones(X.shape[1]))
    residual = records.y - records.X @ one.beta[:, 0]
    records = _Records(y=records.y, X=records.X, weight=records.weight, sd=one.sd[0])
    # From the most components down, while the Bayesian information criterion rises.
    chosen, score = None, -np.inf
    for number in range(n_components, 0, -1):
        starts = _starts(residual, records.weight, number)
        runs = [_em(records, _m_step(records, r, one.precision), _SHORT) for r in starts]
        state, log_lik = _em(records, max(runs, key=lambda run: run[1])[0], _LONG)
        own = log_lik - _penalty(state, float(records.weight.sum()))
        if own <= score:
            break
        chosen, score = state, own
    return _result(records, chosen or one, float(weight.sum()), n_components)


def _penalty(state: _State, total: float) -> float:
    """Half the parameters of each component times the log of its weight, and of the proportions."""
    size = np.maximum(total * state.proportion, 2.0)
    proportions = (size.size - 1) * np.log(max(total, 2.0))
    return float(((state.used + 1) * np.log(size)).sum() + proportions) / 2


def _thinned(y: FloatArray, X: FloatArray, weight: FloatArray) -> _Records:
    """At most 20,000 rows, evenly spaced: a rough fit needs no more."""
    step = -(-y.size // _MOST_ROWS)
    kept = weight[::step]
    scale = weight.sum() / max(float(kept.sum()), 1e-300)
    mean = float(np.average(y, weights=weight)) if weight.any() else 0.0
    sd = np.sqrt(max(float(weight @ (y - mean) ** 2) / max(float(weight.sum()), 1e-300), 1e-20))
    return _Records(y=y[::step], X=X[::step], weight=kept * scale, sd=np.float64(sd))


def _starts(residual: FloatArray, weight: FloatArray, n_components: int) -> list[FloatArray]:
    """Responsibilities (d, C) to start from: bands of the residual, its distance from 0, both."""
    if n_components == 1:
        return [np.ones((residual.size, 1))]

    def bands(values: FloatArray) -> FloatArray:
        order = np.argsort(values, kind="stable")
        share = np.empty(values.size)
        share[order] = np.cumsum(weight[order]) / max(float(weight.sum()), 1e-300)
        own = np.minimum((share * n_components).astype(int), n_components - 1)
        return np.asarray(0.8 * np.eye(n_components)[own] + 0.2 / n_components)

    tail = np.where(residual < np.median(residual), 2.0, 0.5) * np.abs(residual)
    return [bands(residual), bands(np.abs(residual)), bands(tail), bands(tail.max() / 4 - tail)]


def _m_step(records: _Records, share: FloatArray, precision: FloatArray) -> _State:
    """Ridge regressions under responsibilities `share` (d, C)."""
    own = records.weight[:, None] * share
    size = own.sum(axis=0)
    beta = np.empty((records.X.shape[1], share.shape[1]))
    sd, used = np.empty(share.shape[1]), np.empty(share.shape[1])
    for k, w in enumerate(own.T):
        # The prior precision is in units of the component's own residual variance.
        gram = (records.X.T * w) @ records.X + np.diag(precision * records.sd**2)
        beta[:, k] = np.linalg.solve(gram, records.X.T @ (w * records.y))
        squares = float(w @ (records.y - records.X @ beta[:, k]) ** 2)
        floor = _PRIOR_RECORDS * (_SMALLEST_SHARE * records.sd) ** 2
        used[k] = precision.size - records.sd**2 * float(precision @ np.diag(np.linalg.inv(gram)))
        sd[k] = np.sqrt((squares + floor) / (max(size[k] - used[k], 0.0) + _PRIOR_RECORDS))
    # Scales of the coefficients, from the components themselves.
    scale = (0.1 + (beta**2).sum(axis=1)) / (1.0 + share.shape[1])
    return _State(
        beta=beta,
        precision=1 / scale,
        sd=sd,
        proportion=(size + 1) / (size.sum() + share.shape[1]),
        used=used,
    )


def _em(records: _Records, state: _State, iterations: int) -> tuple[_State, float]:
    """The last iterate and its weighted log-likelihood."""
    total, before = max(float(records.weight.sum()), 1e-300), -np.inf
    for _ in range(iterations):
        log_density = _log_density(records, state)
        by_row = logsumexp(log_density, axis=1)
        now = float(records.weight @ by_row) / total
        if abs(now - before) < _TOLERANCE:
            break
        state = _m_step(records, np.exp(log_density - by_row[:, None]), state.precision)
        before = now
    return state, now * total


def _log_density(records: _Records, state: _State) -> FloatArray:
    """log proportion_k + log N(y | X beta_k, sd_k), shape (d, C)."""
    z = (records.y[:, None] - records.X @ state.beta) / state.sd
    return np.asarray(np.log(state.proportion) - np.log(state.sd) - z**2 / 2)


def _result(records: _Records, state: _State, total: float, n_components: int) -> RoughMixture:
    """The components by falling proportion, filled up with empty ones."""
    log_density = _log_density(records, state)
    share = np.exp(log_density - logsumexp(log_density, axis=1)[:, None])
    order, K = np.argsort(-state.proportion, kind="stable"), records.X.shape[1]
    empty = n_components - order.size
    information = np.zeros((n_components, K, K))
    for place, k in enumerate(order):
        weighted = records.X.T * (records.weight * share[:, k])
        information[place] = weighted @ records.X / state.sd[k] ** 2
    return RoughMixture(
        center=np.pad(state.beta[:, order], ((0, 0), (0, empty))),
        information=(information + information.transpose(0, 2, 1)) / 2,
        sd=np.pad(state.sd[order], (0, empty), constant_values=1.0),
        size=np.pad(total * state.proportion[order], (0, empty)),
    )
