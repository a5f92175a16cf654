"""Audits of noise as it runs: primitives and perturbed histograms on two neighboring databases.

Each pair of databases is one that attains the stated epsilon, or nearly, and each score tells the
two apart. OpenDP's noise has no seed. The control is the same mechanism with less noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.mechanisms import NoisyMarginals, PerturbedHistogram
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.primitives import (
    dp_kmeans,
    exponential_mechanism,
    laplace_counts,
    laplace_histogram,
    laplace_mean,
    laplace_sum,
    randomized_response,
)
from pyhybrid.privacy.epsilon_audit import audit_epsilon
from pyhybrid.validation.audits.finding import EPSILON, AuditFinding

__all__ = ["NOISE", "NoiseCase", "noise_audit", "released_shares", "share_in_first_bin"]

_CANDIDATES = 6
Score = Callable[[Any, float, int], FloatArray]
"""From a database, an epsilon and a number of runs to one score per run."""


@dataclass(frozen=True, kw_only=True)
class NoiseCase:
    """A mechanism, two neighboring databases, and the score of its outputs.

    Attributes
    ----------
    share : float
        Of the runs that are asked for: a run of whole releases takes longer.
    control_times : float
        The control runs at this many times epsilon, that is with so many times less noise.
    """

    mechanism: str
    relation: str
    databases: tuple[Any, Any]
    score: Score
    share: float = 1.0
    epsilon: float = EPSILON
    control_times: float = 2.0


def noise_audit(case: NoiseCase, *, runs: int, confidence: float) -> AuditFinding:
    """Lower confidence bounds on the loss of one case, and of it with half the noise."""
    n = max(8, int(case.share * runs))

    def bound(epsilon: float) -> float:
        one, other = (case.score(database, epsilon, n) for database in case.databases)
        return audit_epsilon(one, other, confidence=confidence).lower_bound

    return AuditFinding(
        mechanism=case.mechanism,
        relation=case.relation,
        method="sampled",
        epsilon=case.epsilon,
        loss=bound(case.epsilon),
        control=f"noise / {case.control_times:g}",
        control_loss=bound(case.control_times * case.epsilon),
    )


def _repeated(run: Callable[[Any, float], float]) -> Score:
    return lambda database, epsilon, n: np.array([run(database, epsilon) for _ in range(n)])


def _response(answer: bool, epsilon: float, runs: int) -> FloatArray:
    """Every person is a run."""
    return np.asarray(
        randomized_response(np.full(runs, answer), epsilon=epsilon).value, dtype=np.float64
    )


def _counts(relation: str) -> Score:
    def run(codes: list[int], epsilon: float) -> float:
        c = laplace_counts(codes, n_categories=2, epsilon=epsilon, relation=relation).value
        # Count 0 is there (and, for a replacement, count 1 is not).
        return float(c[0] if relation == "remove" else min(c[0], 1 - c[1]))

    return _repeated(run)


def _histogram(values: list[float], epsilon: float) -> float:
    return float(laplace_histogram(values, lower=0, upper=1, n_bins=2, epsilon=epsilon).value[0])


def _sum(relation: str) -> Score:
    def run(values: list[float], epsilon: float) -> float:
        how: Any = {"lower": 0, "upper": 1, "epsilon": epsilon, "relation": relation}
        return float(laplace_sum(values, **how).value)

    return _repeated(run)


def _mean(values: list[float], epsilon: float) -> float:
    return float(laplace_mean(values, lower=0, upper=1, epsilon=epsilon).value)


def _choice(scores: list[float], epsilon: float) -> float:
    """1 if the first candidate was chosen."""
    found = exponential_mechanism(scores, sensitivity=1, epsilon=epsilon, relation="replace")
    return float(found.value == 0)


def _centers(rows: list[list[float]], epsilon: float) -> float:
    """Which of two corners the one row is in, by noisy counts and by noisy sums."""
    found = dp_kmeans(rows, n_clusters=2, n_rounds=1, epsilon=epsilon, start=[[1.0], [-1.0]])
    counts, sums = found.counts, found.counts * found.value[:, 0]
    by_counts = abs(counts[0]) + abs(counts[1] - 1) - abs(counts[0] - 1) - abs(counts[1])
    filled = counts >= 1  # the center of an empty cluster tells nothing of its sum
    by_sum = np.where(filled, np.abs(sums) - np.abs(sums - [1, -1]), 0.0)
    other = np.where(filled, np.abs(sums) - np.abs(sums - [1, -1]), 0.0)
    return float(by_counts + by_sum[0] - other[1])


def released_shares(own_bin: int, epsilon: float, runs: int) -> FloatArray:
    """Share of the first bin in `runs` noisy histograms of one record."""
    mechanism = PerturbedHistogram(column="y", lower=0, upper=1, n_bins=2, epsilon=epsilon)
    return np.array([mechanism._noisy_shares(np.array([own_bin]))[0] for _ in range(runs)])


def share_in_first_bin(value: int, epsilon: float, runs: int) -> FloatArray:
    """Over whole releases of many sets from one histogram: the share of values in the first bin."""
    df = pd.DataFrame({"y": [value]})
    mechanism = PerturbedHistogram(column="y", lower=0, upper=1, n_bins=2, epsilon=epsilon)
    return np.array(
        [
            np.mean([t["y"].iloc[0] < 0.5 for t in mechanism.release(df, n_synthetic=5).synthetic])
            for _ in range(runs)
        ]
    )


def _tables(answer: int, epsilon: float, runs: int) -> FloatArray:
    """The noisy table of one record's answer, as in `_counts`."""
    domain = {"y": ColumnDomain(levels=(0, 1))}
    mechanism = NoisyMarginals(domain=domain, epsilon=epsilon)
    df = pd.DataFrame({"y": [answer]})
    measuring = mechanism._measuring(df)
    found = [measuring.of(df).answers[-1].tables()[0].ravel() for _ in range(runs)]
    return np.array([min(cells[0], 1 - cells[1]) for cells in found])


def _case(
    mechanism: str, relation: str, databases: tuple[Any, Any], score: Score, **options: float
) -> NoiseCase:
    return NoiseCase(
        mechanism=mechanism, relation=relation, databases=databases, score=score, **options
    )


_FAVORED = [1.0] + [0.0] * _CANDIDATES, [0.0] + [1.0] * _CANDIDATES
_SLOW = {"share": 0.4, "control_times": 3}
_RELEASES = {"share": 0.25, "epsilon": 2.0, "control_times": 3}
# What these two show is only a part of their noise: a weaker control would not be seen.
_CHOICE = {"share": 0.5, "control_times": 4}
_CLUSTERS = {"share": 0.35, "control_times": 6}
NOISE = (
    _case("randomized_response", "replace", (True, False), _response),
    _case("laplace_counts", "remove", ([0], []), _counts("remove")),
    _case("laplace_counts", "replace", ([0], [1]), _counts("replace")),
    _case("laplace_histogram", "remove", ([0.25, 0.75], [0.75]), _repeated(_histogram)),
    _case("laplace_sum", "remove", ([1, 1], [1]), _sum("remove"), **_SLOW),
    _case("laplace_sum", "replace", ([1], [0]), _sum("replace"), **_SLOW),
    _case("laplace_mean", "replace", ([1], [0]), _repeated(_mean), **_SLOW),
    _case("exponential_mechanism", "replace", _FAVORED, _repeated(_choice), **_CHOICE),
    _case("dp_kmeans", "replace", ([[1.0]], [[-1.0]]), _repeated(_centers), **_CLUSTERS),
    _case("NoisyMarginals, its tables", "replace", (0, 1), _tables),
    _case("PerturbedHistogram, its shares", "replace", (0, 1), released_shares),
    _case("PerturbedHistogram, whole releases", "replace", (0, 1), share_in_first_bin, **_RELEASES),
)
"""Every mechanism whose noise comes from OpenDP."""
