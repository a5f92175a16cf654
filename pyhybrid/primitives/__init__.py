"""The building blocks of differential privacy, with noise from the OpenDP library.

Each answer carries its charge. Charges of answers from the same data add up in the same
`pyhybrid.Ledger` that keeps releases of synthetic data (sequential composition: two answers have
the probability of the first times that of the second given it, and so a ratio between tables of at
most exp(epsilon_1) exp(epsilon_2)); whatever is computed from an answer alone costs nothing more
(post-processing). The noise has no seed: OpenDP takes it from the operating system, in exact
integer arithmetic, since floating-point Laplace noise leaks through its last bits [M12].

References
----------
[JC] Jiang (2025), short course on data privacy.
[DR14] Dwork, Roth (2014). The algorithmic foundations of differential privacy, ch. 3.
[M12] Mironov (2012). On significance of the least significant bits for differential privacy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
