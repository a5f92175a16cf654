"""Public names of masking, loaded when they are first used."""

from .comparators import CartSynthesis as CartSynthesis
from .comparators import ParametricSynthesis as ParametricSynthesis
from .imputation import GibbsSettings as GibbsSettings
from .imputation import MaskedFit as MaskedFit
from .imputation import MaskedImputation as MaskedImputation
from .imputation import masked_utility as masked_utility
from .masks import GaussianMask as GaussianMask
from .masks import MisclassificationMask as MisclassificationMask
from .masks import MixtureMask as MixtureMask
from .masks import RiskSubgroups as RiskSubgroups
from .masks import gaussian_mask_log_density as gaussian_mask_log_density
from .masks import masked_level_probabilities as masked_level_probabilities
from .masks import masked_normal as masked_normal
from .masks import masks_by_type as masks_by_type
from .masks import misclassification_log_density as misclassification_log_density
from .masks import mixture_mask_log_density as mixture_mask_log_density
from .masks import risk_subgroups as risk_subgroups
from .release import MaskedRelease as MaskedRelease
from .release import RiskStatement as RiskStatement

__all__: list[str]
