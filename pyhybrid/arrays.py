"""Bounds, weights, accounting and composition on arrays: what the papers define, without a model.

NumPy and SciPy only; shapes are (draws, records). All raise `InvalidInput` for an argument that is
not as its description says. The R package has the same names, but for classes, `compose_charges`,
`range_of_censoring` and `refit_of`.
"""

from __future__ import annotations

from pyhybrid.privacy.bounds import (
    LipschitzBounds,
    LossRanges,
    gaussian_mu,
    lipschitz_bounds,
    loss_ranges,
)
from pyhybrid.privacy.censoring import (
    censor,
    center_and_censor,
    epsilon_of_censoring,
    frozen_excess,
    range_of_censoring,
)
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose, compose_charges
from pyhybrid.privacy.conversions import (
    compose_mu,
    delta_of_mu,
    epsilon_of_bound,
    epsilon_of_mu,
    epsilon_of_range,
    epsilon_of_rho,
    mu_of_epsilon,
    mu_of_release,
    rho_of_range,
)
from pyhybrid.privacy.count_risk import pairwise_risk, radius_risk
from pyhybrid.privacy.histogram import histogram_counts, perturbed_probabilities
from pyhybrid.privacy.refits import Refit, refit_of, sole_informants
from pyhybrid.privacy.scores import ScoringDesign, clip_scores, scoring_design, scoring_step
from pyhybrid.privacy.weights import (
    count_weights,
    lipschitz_weights,
    reweight,
    scalar_weights,
    truncate_weights,
    weights_from_lipschitz,
)

__all__ = [
    "LipschitzBounds",
    "LossRanges",
    "PrivacyCharge",
    "Refit",
    "ScoringDesign",
    "censor",
    "center_and_censor",
    "clip_scores",
    "compose",
    "compose_charges",
    "compose_mu",
    "count_weights",
    "delta_of_mu",
    "epsilon_of_bound",
    "epsilon_of_censoring",
    "epsilon_of_mu",
    "epsilon_of_range",
    "epsilon_of_rho",
    "frozen_excess",
    "gaussian_mu",
    "histogram_counts",
    "lipschitz_bounds",
    "lipschitz_weights",
    "loss_ranges",
    "mu_of_epsilon",
    "mu_of_release",
    "pairwise_risk",
    "perturbed_probabilities",
    "radius_risk",
    "range_of_censoring",
    "refit_of",
    "reweight",
    "rho_of_range",
    "scalar_weights",
    "scoring_design",
    "scoring_step",
    "sole_informants",
    "truncate_weights",
    "weights_from_lipschitz",
]
