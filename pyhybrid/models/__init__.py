"""Models (synthesizers): a likelihood, a prior, a Stan program and a way to draw replicates."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
