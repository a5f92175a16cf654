"""Group intercepts, terms (1 | g): where the sampler looks for their spread.

The intercepts of the levels of a group are columns of indicators, with coefficients N(0, tau^2) and
tau ~ half-t_3. They are standardized like all coefficients
(`pyhybrid.models.families.regression`), given
tau: what the data say about a level decides how far its coefficient is centered, so that neither
the many records of one level nor the few of another leave a funnel. No record is in two levels:
the last term's columns share no information, and only what they share with the others is passed on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from pyhybrid.core.checks import FloatArray

_USUAL_SCALE = 2.5  # of the other coefficients, for a rough guess of tau
_LOG_TAU = (-5.0, 4.0)
_ROUNDS = 2  # over the terms
_WIDTH = 0.1  # of log tau, for its curvature
_SPREADS = (0.05, 1.0)  # smallest and largest standard deviation of log tau that is believed


def grouped_hints(
    hints: dict[str, Any], group: npt.NDArray[np.intp], prior_scale: float
) -> dict[str, Any]:
    """Hints as stan/blocks/coefficients_data.stan takes them: with the quadratic of
    `pyhybrid.models.initialization.quadratic`, which term (1 | g) each column of the design
    belongs to (K,), 0 for the first ones, of none, and the prior scale of tau."""
    n_terms = int(group[-1])
    n_apart = int((group == n_terms).sum()) if n_terms else 0
    root, apart_root = _arranged(hints["information_root"], n_apart)
    center, spread = np.zeros(n_terms), np.ones(n_terms)
    if n_terms:
        center, spread = _log_tau(root, apart_root, hints["score"], group, prior_scale)
    return {
        **hints,
        "n_group_terms": n_terms,
        "n_grouped": int((group > 0).sum()),
        "group_term": group[group > 0],
        "n_apart": n_apart,
        "information_root": root,
        "apart_root": apart_root,
        "center_tau": center,
        "spread_tau": spread,
    }


def _arranged(root: FloatArray, n_apart: int) -> tuple[FloatArray, FloatArray]:
    """[T, F] and r of R R' = [T, F; 0, diag(r)] [T, F; 0, diag(r)]', for R (K, K) with n_apart last
    rows that are orthogonal to each other; shapes (K - n_apart, K) and (n_apart,)."""
    if n_apart == 0:
        return root, np.zeros(0)
    first = root.shape[0] - n_apart
    triangle: FloatArray = np.asarray(np.linalg.qr(np.roll(root, n_apart, axis=0).T, mode="r")).T
    sizes = np.diag(triangle)[:n_apart]
    across = triangle[n_apart:, :n_apart] * np.where(sizes < 0, -1.0, 1.0)
    return np.hstack([triangle[n_apart:, n_apart:], across[:, :n_apart]])[:first], np.abs(sizes)


def _log_tau(
    root: FloatArray,
    apart_root: FloatArray,
    score: FloatArray,
    group: npt.NDArray[np.intp],
    prior_scale: float,
) -> tuple[FloatArray, FloatArray]:
    """Mode and standard deviation of log tau, shape (n_terms,) each, one term after the other, were
    the log-likelihood the quadratic."""
    n_terms = int(group[-1])
    center, spread = np.zeros(n_terms), np.ones(n_terms)

    def loss(log_tau: float, term: int) -> float:
        tried = np.append(np.log(_USUAL_SCALE), center)
        tried[term + 1] = log_tau
        prior = log_tau - 2 * float(np.log1p((np.exp(log_tau) / prior_scale) ** 2 / 3))
        return -prior - _log_evidence(root, apart_root, score, np.exp(tried)[group])

    for _ in range(_ROUNDS if n_terms > 1 else 1):
        for term in range(n_terms):
            mode = scipy.optimize.minimize_scalar(
                loss, bounds=_LOG_TAU, args=(term,), method="bounded"
            ).x
            around = [loss(mode + step, term) for step in (-_WIDTH, 0.0, _WIDTH)]
            bend = (around[0] - 2 * around[1] + around[2]) / _WIDTH**2
            center[term] = mode
            spread[term] = np.clip(1 / np.sqrt(max(bend, 1e-10)), *_SPREADS)
    return center, spread


def _log_evidence(
    root: FloatArray, apart_root: FloatArray, score: FloatArray, scale: FloatArray
) -> float:
    """log of the integral of exp(quadratic) over coefficients N(0, diag(scale)^2); as in
    stan/functions/coefficients.stan."""
    first = root.shape[0]
    toward, apart = scale * score, scale[first:] * apart_root
    stretch = np.sqrt(1 + apart**2)
    across = scale[:first, None] * root[:, first:]
    plain = scale[:first, None] * root[:, :first]
    information = np.eye(first) + plain @ plain.T + (across / stretch**2) @ across.T
    lower = np.linalg.cholesky(information)
    last = toward[first:] / stretch
    rest = np.linalg.solve(lower, toward[:first] - across @ (apart / stretch * last))
    size = float(last @ last + rest @ rest)
    return size / 2 - float(np.log(stretch).sum() + np.log(np.diag(lower)).sum())
