"""Cross-language validation on this machine: array functions, log-likelihoods, posteriors.

====================== ===============================================================
part                   what is held against what
====================== ===============================================================
table                  outcome and design matrix: formulaic against R's model.matrix
array functions        Python's against R's of the same name, on generated input
same draws             numpy's log-likelihood, bounds and weights against Stan's and R's
posterior means        of the engines, in Monte Carlo standard errors
====================== ===============================================================
"""

from __future__ import annotations

from pyhybrid.validation.agreement.run import validate
from pyhybrid.validation.agreement.validation import Row, Validation

__all__ = ["Row", "Validation", "validate"]
