"""Mechanisms: how record weights come from the data, one class each. The weights and the guarantee
of each are in `docs/pages/guide/mechanisms.md`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.mechanisms.censored.censored import Censored
from pyhybrid.mechanisms.clipped_scores import ClippedScores
from pyhybrid.mechanisms.epsilon_search import meet_epsilon
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.marginals.noisy_marginals import NoisyMarginals
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.mechanisms.weighted.weight_maps import (
    CountWeighted,
    GivenWeights,
    LipschitzWeighted,
    ScalarWeighted,
    Truncated,
    Unweighted,
)

__all__ = [
    "MECHANISMS",
    "MODEL_FREE",
    "Calibration",
    "Censored",
    "ClippedScores",
    "ColumnDomain",
    "CountWeighted",
    "GivenWeights",
    "LipschitzWeighted",
    "NoisyMarginals",
    "PerturbedHistogram",
    "PseudoPosteriorMechanism",
    "Reweighting",
    "ScalarWeighted",
    "Truncated",
    "Unweighted",
    "meet_epsilon",
]

MECHANISMS: Mapping[str, type[PseudoPosteriorMechanism]] = {
    "unweighted": Unweighted,
    "lipschitz": LipschitzWeighted,
    "count": CountWeighted,
    "scalar": ScalarWeighted,
    "truncated": Truncated,
    "censored": Censored,
}
"""Mechanisms by their name on the command line."""

MODEL_FREE: Mapping[str, type[PerturbedHistogram] | type[NoisyMarginals]] = {
    "perturbed_histogram": PerturbedHistogram,
    "noisy_marginals": NoisyMarginals,
}
"""Mechanisms without chains, by their name on the command line."""
