"""Bounds, weights, accounting and composition on arrays: what the papers define, without a model.

NumPy and SciPy only; shapes are (draws, records). All raise `InvalidInput` for an argument that is
not as its description says. The R package has the same names, but for classes, `compose_charges`,
`range_of_censoring` and `refit_of`.
"""

from __future__ import annotations

from pyhybrid import privacy

__all__, __dir__, __getattr__ = privacy.__all__, privacy.__dir__, privacy.__getattr__
