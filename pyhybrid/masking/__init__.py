"""Masking by data augmentation (DA-MI) [J22], [JC]: quasi-identifiers replaced by targeted multiple
imputation. **Not differentially private**: a `RiskStatement` stands where others have an epsilon.
"""

from __future__ import annotations

from pyhybrid.masking.comparators import CartSynthesis, ParametricSynthesis
from pyhybrid.masking.imputation import (
    GibbsSettings,
    MaskedFit,
    MaskedImputation,
    masked_utility,
)
from pyhybrid.masking.masks import (
    GaussianMask,
    MisclassificationMask,
    MixtureMask,
    RiskSubgroups,
    gaussian_mask_log_density,
    masked_level_probabilities,
    masked_normal,
    masks_by_type,
    misclassification_log_density,
    mixture_mask_log_density,
    risk_subgroups,
)
from pyhybrid.masking.release import MaskedRelease, RiskStatement

__all__ = [
    "CartSynthesis",
    "GaussianMask",
    "GibbsSettings",
    "MaskedFit",
    "MaskedImputation",
    "MaskedRelease",
    "MisclassificationMask",
    "MixtureMask",
    "ParametricSynthesis",
    "RiskStatement",
    "RiskSubgroups",
    "gaussian_mask_log_density",
    "masked_level_probabilities",
    "masked_normal",
    "masked_utility",
    "masks_by_type",
    "misclassification_log_density",
    "mixture_mask_log_density",
    "risk_subgroups",
]
