"""Public names of privacy, and of arrays, loaded when they are first used."""

from .bounds import LipschitzBounds as LipschitzBounds
from .bounds import LossRanges as LossRanges
from .bounds import gaussian_mu as gaussian_mu
from .bounds import lipschitz_bounds as lipschitz_bounds
from .bounds import loss_ranges as loss_ranges
from .censoring import censor as censor
from .censoring import center_and_censor as center_and_censor
from .censoring import epsilon_of_censoring as epsilon_of_censoring
from .censoring import frozen_excess as frozen_excess
from .censoring import range_of_censoring as range_of_censoring
from .charge import PrivacyCharge as PrivacyCharge
from .composition import compose as compose
from .composition import compose_charges as compose_charges
from .conversions import compose_mu as compose_mu
from .conversions import delta_of_mu as delta_of_mu
from .conversions import epsilon_of_bound as epsilon_of_bound
from .conversions import epsilon_of_mu as epsilon_of_mu
from .conversions import epsilon_of_range as epsilon_of_range
from .conversions import epsilon_of_rho as epsilon_of_rho
from .conversions import mu_of_epsilon as mu_of_epsilon
from .conversions import mu_of_release as mu_of_release
from .conversions import rho_of_range as rho_of_range
from .count_risk import pairwise_risk as pairwise_risk
from .count_risk import radius_risk as radius_risk
from .histogram import histogram_counts as histogram_counts
from .histogram import perturbed_probabilities as perturbed_probabilities
from .refits import Refit as Refit
from .refits import refit_of as refit_of
from .refits import sole_informants as sole_informants
from .scores import ScoringDesign as ScoringDesign
from .scores import clip_scores as clip_scores
from .scores import scoring_design as scoring_design
from .scores import scoring_step as scoring_step
from .weights import count_weights as count_weights
from .weights import lipschitz_weights as lipschitz_weights
from .weights import reweight as reweight
from .weights import scalar_weights as scalar_weights
from .weights import truncate_weights as truncate_weights
from .weights import weights_from_lipschitz as weights_from_lipschitz

__all__: list[str]
