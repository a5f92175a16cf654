"""Public names of mechanisms, loaded when they are first used."""

from .censored.calibration import Calibration as Calibration
from .censored.censored import Censored as Censored
from .clipped_scores import ClippedScores as ClippedScores
from .epsilon_search import meet_epsilon as meet_epsilon
from .marginals.domain import ColumnDomain as ColumnDomain
from .marginals.noisy_marginals import NoisyMarginals as NoisyMarginals
from .names import MECHANISMS as MECHANISMS
from .names import MODEL_FREE as MODEL_FREE
from .names import Reweighting as Reweighting
from .perturbed_histogram import PerturbedHistogram as PerturbedHistogram
from .weighted.base import PseudoPosteriorMechanism as PseudoPosteriorMechanism
from .weighted.weight_maps import CountWeighted as CountWeighted
from .weighted.weight_maps import GivenWeights as GivenWeights
from .weighted.weight_maps import LipschitzWeighted as LipschitzWeighted
from .weighted.weight_maps import ScalarWeighted as ScalarWeighted
from .weighted.weight_maps import Truncated as Truncated
from .weighted.weight_maps import Unweighted as Unweighted

__all__: list[str]
