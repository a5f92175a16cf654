"""Mechanisms: how record weights come from the data, one class each.

================== ================================ ==========================================
name               weights                          guarantee
================== ================================ ==========================================
Unweighted         1                                asymptotic local, usually a large epsilon
LipschitzWeighted  fall with the Lipschitz bound    asymptotic local
CountWeighted      fall as fewer records are near   asymptotic local
ScalarWeighted     one weight for all records       asymptotic local
Truncated          another's, 0 beyond a cap        asymptotic local, contracts faster
Censored           another's, terms clipped at M    strict, given record-indexed weights
ClippedScores      none: scores clipped, noisy      strict, the default of a column by formula
GivenWeights       given by the user                asymptotic local
PerturbedHistogram no model: noisy counts in bins   strict
NoisyMarginals     no Stan: noisy two-way tables    strict
================== ================================ ==========================================
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
