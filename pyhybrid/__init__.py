"""Synthetic microdata from Bayesian models with a formal privacy guarantee.

The names of this module are the public interface. Importing it does no work: each name is loaded
from its module when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "AttributeRisk": "measures",
    "Beta": "models",
    "BetaRegression": "models",
    "BudgetExceeded": "errors",
    "Calibration": "calibration",
    "Censored": "mechanisms",
    "ColumnUtility": "measures",
    "Combined": "combining",
    "Comparison": "comparison",
    "CountWeighted": "mechanisms",
    "EngineUnavailable": "errors",
    "EpsilonAudit": "auditing",
    "Estimates": "utility",
    "GaussianMask": "masking",
    "GibbsSettings": "masking",
    "GivenWeights": "mechanisms",
    "InvalidInput": "errors",
    "Ledger": "ledger",
    "LedgerEntry": "ledger",
    "LipschitzBounds": "risk",
    "LipschitzWeighted": "mechanisms",
    "MaskedImputation": "masking",
    "MaskedRelease": "masking",
    "MatchingRisk": "disclosure",
    "MisclassificationMask": "masking",
    "MixtureMask": "masking",
    "MixtureRegression": "models",
    "ModelUtility": "measures",
    "NegativeBinomial": "models",
    "NormalRegression": "models",
    "NotConverged": "errors",
    "PerturbedHistogram": "mechanisms",
    "Poisson": "models",
    "Pooled": "measures",
    "PrivacyCharge": "accounting",
    "PropensityUtility": "measures",
    "PyhybridError": "errors",
    "Release": "release",
    "ReplicatedUniques": "measures",
    "Reweighting": "reweighting",
    "RiskStatement": "masking",
    "RiskSubgroups": "masking",
    "RiskSummary": "measures",
    "RiskUtilityCurve": "curve",
    "SamplerSettings": "engines",
    "SamplingError": "errors",
    "SaveFailed": "errors",
    "ScalarWeighted": "mechanisms",
    "SequentialSynthesis": "sequential",
    "TableDistance": "contingency",
    "TableUtility": "measures",
    "STUDIES": "studies",
    "StudyResult": "studies",
    "Truncated": "mechanisms",
    "Unweighted": "mechanisms",
    "UtilitySummary": "measures",
    "Validation": "agreement",
    "attribute_risk": "measures",
    "audit_epsilon": "auditing",
    "avg_ecdf": "utility",
    "calibrate": "calibration",
    "censor": "weights",
    "column_utility": "measures",
    "combine_fully_synthetic": "combining",
    "combine_multiple_imputation": "combining",
    "combine_nested": "combining",
    "combine_partially_synthetic": "combining",
    "compare": "comparison",
    "compose": "accounting",
    "compose_charges": "accounting",
    "count_weights": "weights",
    "dp_kmeans": "primitives",
    "epsilon_lower_bound": "auditing",
    "epsilon_of_bound": "accounting",
    "estimates": "utility",
    "exponential_mechanism": "primitives",
    "gaussian_mask_log_density": "masking",
    "histogram_counts": "histogram",
    "interval_overlap": "overlap",
    "laplace_counts": "primitives",
    "laplace_histogram": "primitives",
    "laplace_mean": "primitives",
    "laplace_sum": "primitives",
    "lipschitz_bounds": "risk",
    "lipschitz_weights": "weights",
    "masked_level_probabilities": "masking",
    "masked_normal": "masking",
    "masks_by_type": "masking",
    "match_counts": "disclosure",
    "matching_risk": "measures",
    "max_ecdf": "utility",
    "misclassification_log_density": "masking",
    "mixture_mask_log_density": "masking",
    "model_utility": "measures",
    "pairwise_risk": "risk",
    "perturbed_probabilities": "histogram",
    "pmse": "propensity",
    "load_study": "studies",
    "pool": "measures",
    "propensity_utility": "measures",
    "radius_risk": "risk",
    "randomized_response": "primitives",
    "replicated_uniques": "measures",
    "reweight": "weights",
    "risk_subgroups": "masking",
    "run_study": "studies",
    "risk_summary": "measures",
    "risk_utility_curve": "curve",
    "scalar_weights": "weights",
    "solve_scale": "solve",
    "solve_shift": "solve",
    "specks": "propensity",
    "standardised_difference": "overlap",
    "table_distance": "contingency",
    "table_utility": "measures",
    "truncate_weights": "weights",
    "utility_summary": "measures",
    "validate": "agreement",
    "weights_from_lipschitz": "weights",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pyhybrid' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"pyhybrid.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
