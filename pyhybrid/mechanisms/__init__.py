"""Mechanisms: how record weights come from the data, one class each. The weights and the guarantee
of each are in `docs/pages/guide/mechanisms.md`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
