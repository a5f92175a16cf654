"""Measures of utility and disclosure risk on data frames, for synthetic data from anywhere.

Every function takes the data, one synthetic set or a sequence of m, and reconciles columns, dtypes,
category levels and missing values first (`measures.reconcile`). All results are confidential:
functions of the data.
"""

import lazy_loader

from pyhybrid.measures.estimates import estimates as estimates

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
