"""Mechanisms by their name on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from pyhybrid.fitting.reweighting import Reweighting as Reweighting
from pyhybrid.mechanisms.censored.censored import Censored
from pyhybrid.mechanisms.marginals.noisy_marginals import NoisyMarginals
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.mechanisms.weighted.weight_maps import (
    CountWeighted,
    LipschitzWeighted,
    ScalarWeighted,
    Truncated,
    Unweighted,
)

MECHANISMS: Mapping[str, type[PseudoPosteriorMechanism]] = {
    "unweighted": Unweighted,
    "lipschitz": LipschitzWeighted,
    "count": CountWeighted,
    "scalar": ScalarWeighted,
    "truncated": Truncated,
    "censored": Censored,
}
"""Those over a model."""

MODEL_FREE: Mapping[str, type[PerturbedHistogram] | type[NoisyMarginals]] = {
    "perturbed_histogram": PerturbedHistogram,
    "noisy_marginals": NoisyMarginals,
}
"""Those without chains."""
