"""The building blocks of differential privacy, with noise from the OpenDP library.

===================== ======================================== ==================================
primitive             noise                                    neighbors
===================== ======================================== ==================================
`laplace_sum`         Laplace(sensitivity / epsilon)           remove, or replace with n public
`laplace_mean`        Laplace((upper - lower) / (n epsilon))   replace; n is public
`laplace_histogram`   Laplace(1 or 2 / epsilon) on each count  remove: 1; replace: 2
`laplace_counts`      the same, categories instead of bins     remove: 1; replace: 2
`randomized_response` each yes or no kept with probability     replace: one person's answer
                      e^epsilon / (1 + e^epsilon)
`exponential_mechanism` Gumbel(2 sensitivity / epsilon) on     stated with the sensitivity
                      scores; the best wins
`dp_kmeans`           Laplace on cluster counts and sums       replace; n is public
===================== ======================================== ==================================

Each answer carries its charge. Charges of answers from the same data add up (sequential
composition); whatever is computed from an answer alone costs nothing more (post-processing).
Both are kept by the same `pyhybrid.Ledger` that keeps releases of synthetic data.

The noise has no seed: OpenDP takes it from the operating system, in exact integer arithmetic, since
textbook floating-point Laplace noise leaks through its last bits [M12]. Whoever could reproduce the
noise could subtract it.

References
----------
[JC] Jiang (2025), short course on data privacy.
[DR14] Dwork, Roth (2014). The algorithmic foundations of differential privacy, ch. 3.
[M12] Mironov (2012). On significance of the least significant bits for differential privacy.
"""

from __future__ import annotations

from pyhybrid.primitives.kmeans import NoisyCenters, dp_kmeans
from pyhybrid.primitives.laplace import (
    NoisyCounts,
    NoisyNumber,
    laplace_counts,
    laplace_histogram,
    laplace_mean,
    laplace_sum,
)
from pyhybrid.primitives.noise import PrivateAnswer
from pyhybrid.primitives.response import RandomizedResponse, randomized_response
from pyhybrid.primitives.selection import NoisyChoice, exponential_mechanism

__all__ = [
    "NoisyCenters",
    "NoisyChoice",
    "NoisyCounts",
    "NoisyNumber",
    "PrivateAnswer",
    "RandomizedResponse",
    "dp_kmeans",
    "exponential_mechanism",
    "laplace_counts",
    "laplace_histogram",
    "laplace_mean",
    "laplace_sum",
    "randomized_response",
]
