"""Masking by data augmentation (DA-MI) [J22], [JC]: quasi-identifiers replaced by targeted multiple
imputation. **Not differentially private**: a `RiskStatement` stands where others have an epsilon.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
