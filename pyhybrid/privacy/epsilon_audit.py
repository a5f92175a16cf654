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
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_count, check_fraction, check_vector
from pyhybrid.core.errors import InvalidInput

_THRESHOLDS = 50


@dataclass(frozen=True, kw_only=True)
class EpsilonAudit:
    """Lower bound of epsilon from two samples of outputs.

    Attributes
    ----------
    lower_bound, confidence : float
        Lower confidence bound on epsilon, nats, >= 0; the probability, at least, that it is not
        above the true epsilon.
    event : str
        The event it was found with, in terms of the outputs.
    shares : tuple of (float, float)
        Frequency of the event under the two databases, the likelier first.
    """

    lower_bound: float
    confidence: float
    event: str
    shares: tuple[float, float]

    def refutes(self, epsilon: float) -> bool:
        """True if the stated `epsilon` is below the bound."""
        return self.lower_bound > epsilon


def epsilon_lower_bound(
    hits: int, runs: int, other_hits: int, other_runs: int, *, confidence: float = 0.99
) -> float:
    """Lower confidence bound on epsilon from how often one event happened under two databases.

    In nats; 0 if the runs show nothing.

    Parameters
    ----------
    hits, runs : int
        The event happened in `hits` of `runs` runs on the database that makes it likely.
    other_hits, other_runs : int
        The same on the neighbor that makes it unlikely.
    confidence : float, default 0.99
        In (0, 1). The event, and which database comes first, must not have been chosen by looking
        at these runs; `audit_epsilon` chooses on others.

    Examples
    --------
    >>> round(epsilon_lower_bound(750, 1000, 250, 1000), 2)   # true value log 3 = 1.099
    0.91
    """
    from scipy import stats  # slow to import

    each = (1 - _check_confidence(confidence)) / 2
    n, m = check_count(runs, "runs"), check_count(other_runs, "other_runs")
    k = check_count(hits, "hits", at_least=0)
    j = check_count(other_hits, "other_hits", at_least=0)
    if k > n or j > m:
        raise InvalidInput("hits must be at most the number of runs")
    low = float(stats.beta.ppf(each, k, n - k + 1)) if k > 0 else 0.0
    high = float(stats.beta.ppf(1 - each, j + 1, m - j)) if j < m else 1.0
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def audit_epsilon(sample: Any, other: Any, *, confidence: float = 0.99) -> EpsilonAudit:
    """Audit a mechanism by a score of its outputs under two neighboring databases.

    Half of each sample chooses the event (score at or above a threshold, or at or below, under
    either database); the other half gives the bound, so that the choice costs no confidence.

    Parameters
    ----------
    sample, other : array_like, shape (n,), (n',)
        One number per independent run on each database, at least 4 each: the output itself or a
        score of it that tells the databases apart. Infinite scores are allowed.
    confidence : float, default 0.99
        In (0, 1).
    """
    x, y = _check_scores(sample, "sample"), _check_scores(other, "other")
    _check_confidence(confidence)
    names = ("the first database", "the second database")
    score, sign, threshold, swapped = _best_event(x[::2], y[::2], confidence)
    one, two = (y[1::2], x[1::2]) if swapped else (x[1::2], y[1::2])
    k, j = int((sign * one >= threshold).sum()), int((sign * two >= threshold).sum())
    bound = epsilon_lower_bound(k, one.size, j, two.size, confidence=confidence)
    relation = ">=" if sign > 0 else "<="
    return EpsilonAudit(
        lower_bound=bound if score > 0 else 0.0,
        confidence=confidence,
        event=f"score {relation} {sign * threshold:g}, likelier under {names[swapped]}",
        shares=(k / one.size, j / two.size),
    )


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


def _check_scores(values: Any, name: str) -> npt.NDArray[np.float64]:
    scores = check_vector(values, name)
    if scores.size < 4 or np.isnan(scores).any():
        raise InvalidInput(f"{name} must have at least 4 scores, none of them NaN")
    return scores


def _check_confidence(confidence: Any) -> float:
    level = check_fraction(confidence, "confidence")
    if level == 1:
        raise InvalidInput("confidence must be below 1")
    return level
