"""Bounds, weights, accounting and composition on arrays: what the papers define, without a model.

NumPy and SciPy only; shapes are (draws, records). All raise `InvalidInput` for an argument that is
not as its description says. The same names exist in the R package.
"""

from __future__ import annotations

from pyhybrid.privacy.bounds import LipschitzBounds, LossRanges, lipschitz_bounds, loss_ranges
from pyhybrid.privacy.censoring import (
    cap_of_epsilon,
    censor,
    center_and_censor,
    epsilon_of_censoring,
    frozen_excess,
    range_of_censoring,
)
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose, compose_charges
from pyhybrid.privacy.conversions import (
    RangeEpsilon,
    compose_mu,
    delta_of_mu,
    epsilon_of_bound,
    epsilon_of_mu,
    epsilon_of_range,
    epsilon_of_rho,
    mu_of_epsilon,
    mu_of_release,
    range_epsilon,
    rho_of_epsilon,
    rho_of_range,
)
from pyhybrid.privacy.count_risk import CountWithout, count_without, pairwise_risk, radius_risk
from pyhybrid.privacy.epsilon_audit import EpsilonAudit, audit_epsilon, epsilon_lower_bound
from pyhybrid.privacy.gaussian_limit import GaussianLimit, GaussianMu, gaussian_limit, gaussian_mu
from pyhybrid.privacy.histogram import histogram_counts, perturbed_probabilities
from pyhybrid.privacy.hypothetical_records import PossibleRecords, possible_records
from pyhybrid.privacy.leave_one_out import (
    LeaveOneOutLoss,
    RefitLoss,
    leave_one_out_loss,
    refit_loss,
)
from pyhybrid.privacy.scores import ScoringDesign, clip_scores, scoring_design, scoring_step
from pyhybrid.privacy.weight_sensitivity import (
    WeightsWithout,
    lipschitz_without,
    recomputed_terms,
    reweight_without,
    scalar_without,
    scale_without,
    truncate_without,
)
from pyhybrid.privacy.weights import (
    budget_leverage,
    budget_risk,
    budget_weights,
    count_weights,
    lipschitz_weights,
    reweight,
    scalar_weights,
    truncate_weights,
    weights_from_lipschitz,
)

__all__ = [
    "CountWithout",
    "EpsilonAudit",
    "GaussianLimit",
    "GaussianMu",
    "LeaveOneOutLoss",
    "LipschitzBounds",
    "LossRanges",
    "PossibleRecords",
    "PrivacyCharge",
    "RangeEpsilon",
    "RefitLoss",
    "ScoringDesign",
    "WeightsWithout",
    "audit_epsilon",
    "budget_leverage",
    "budget_risk",
    "budget_weights",
    "cap_of_epsilon",
    "censor",
    "center_and_censor",
    "clip_scores",
    "compose",
    "compose_charges",
    "compose_mu",
    "count_weights",
    "count_without",
    "delta_of_mu",
    "epsilon_lower_bound",
    "epsilon_of_bound",
    "epsilon_of_censoring",
    "epsilon_of_mu",
    "epsilon_of_range",
    "epsilon_of_rho",
    "frozen_excess",
    "gaussian_limit",
    "gaussian_mu",
    "histogram_counts",
    "leave_one_out_loss",
    "lipschitz_bounds",
    "lipschitz_weights",
    "lipschitz_without",
    "loss_ranges",
    "mu_of_epsilon",
    "mu_of_release",
    "pairwise_risk",
    "perturbed_probabilities",
    "possible_records",
    "radius_risk",
    "range_epsilon",
    "range_of_censoring",
    "recomputed_terms",
    "refit_loss",
    "reweight",
    "reweight_without",
    "rho_of_epsilon",
    "rho_of_range",
    "scalar_weights",
    "scalar_without",
    "scale_without",
    "scoring_design",
    "scoring_step",
    "truncate_weights",
    "truncate_without",
    "weights_from_lipschitz",
]
