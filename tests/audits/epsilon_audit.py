r"""Empirical audit: a lower confidence bound on epsilon from outputs of two neighboring databases.

Pure differential privacy bounds every event: P(A | x) <= exp(epsilon) P(A | x'). Hence any event
with log P(A | x) / P(A | x') above the stated epsilon refutes it. From n runs on each database the
two probabilities are known to lie beyond their Clopper-Pearson bounds with a stated confidence, and

.. math:: \hat\epsilon = \log \frac{\underline{P}(A \mid x)}{\overline{P}(A \mid x')}

is a lower confidence bound on the true epsilon. Above the stated one, the mechanism is refuted;
below, nothing is proved: a weak event or few runs show little. A bound near the stated epsilon
shows that the audit could have seen a violation.

References
----------
[CP34]; [JUO20]; [D18].
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from pyhybrid.core.checks import FloatArray

_THRESHOLDS = 50


def epsilon_lower_bound(
    hits: int, runs: int, other_hits: int, other_runs: int, *, confidence: float = 0.99
) -> float:
    """Lower confidence bound on epsilon, nats, from how often one event happened in `runs` on the
    database that makes it likely, and in `other_runs` on its neighbor. The event must not have been
    chosen by looking at these runs; `audit_epsilon` chooses on others."""
    side = (1 - confidence) / 2
    low = float(stats.beta.ppf(side, hits, runs - hits + 1)) if hits > 0 else 0.0
    high = 1.0
    if other_hits < other_runs:
        high = float(stats.beta.ppf(1 - side, other_hits + 1, other_runs - other_hits))
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def audit_epsilon(sample: Any, other: Any, *, confidence: float = 0.99) -> float:
    """The bound from one score of each independent run, (n,) and (n',), at least 4, under two
    neighboring databases. Half of each sample chooses the event (score at or above a threshold, or
    at or below, under either database); the other half gives the bound, so that the choice costs no
    confidence."""
    x, y = np.asarray(sample, dtype=np.float64), np.asarray(other, dtype=np.float64)
    score, sign, threshold, swapped = _best_event(x[::2], y[::2], confidence)
    one, two = (y[1::2], x[1::2]) if swapped else (x[1::2], y[1::2])
    k, j = int((sign * one >= threshold).sum()), int((sign * two >= threshold).sum())
    bound = epsilon_lower_bound(k, one.size, j, two.size, confidence=confidence)
    return bound if score > 0 else 0.0


def _best_event(
    x: FloatArray, y: FloatArray, confidence: float
) -> tuple[float, float, float, bool]:
    """Score, sign, threshold and order of databases of the event with the largest bound."""
    best = (0.0, 1.0, math.inf, False)
    for sign in (1.0, -1.0):
        pooled = np.unique(sign * np.concatenate([x, y]))
        places = np.linspace(0, pooled.size - 1, min(pooled.size, _THRESHOLDS)).astype(int)
        for threshold in pooled[places]:
            k, j = (sign * x >= threshold).sum(), (sign * y >= threshold).sum()
            for swapped, (hit, n, miss, m) in enumerate(
                [(k, x.size, j, y.size), (j, y.size, k, x.size)]
            ):
                bound = epsilon_lower_bound(int(hit), n, int(miss), m, confidence=confidence)
                if bound > best[0]:
                    best = (bound, sign, float(threshold), bool(swapped))
    return best
