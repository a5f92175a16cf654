"""Engines: one Stan program, several ways to run it.

======== ==================================== =========================================
name     what it is                           role
======== ==================================== =========================================
cmdstan  CmdStan through cmdstanpy            the reference; first choice of "auto"
embedded stanli, Stan in one wheel            runs where nothing can be compiled
rstan    rstan in R, through rpy2             the papers' own workflow, for validation
======== ==================================== =========================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
