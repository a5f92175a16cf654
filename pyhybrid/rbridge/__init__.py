"""R from Python: the only importer of rpy2, and only inside functions.

Nothing here is active until it is called: importing pyhybrid neither starts R nor needs it. Values
are converted by `to_r` and `from_r` alone, on rpy2's low-level interface; no converter is ever
activated, so that other users of rpy2 in the same process see no change.

R's locale, its signal handler and its console are kept away from the Python process.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
