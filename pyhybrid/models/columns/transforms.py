"""Transforms of a continuous outcome, one record at a time, and their inverses.

=========== ======================================= ==========================
name        t(y), v = y / unit                      takes
=========== ======================================= ==========================
identity    v                                       any number
log         log(v)                                  y > 0
signed_log  sign(v) log(1 + abs(v))                 any number
asinh       log(v + sqrt(v^2 + 1))                  any number
=========== ======================================= ==========================

A model's density is that of t(y), not of y: log densities, Lipschitz bounds and epsilon belong to
the transformed scale. The density of y itself would add log t'(y), which no parameter enters: the
posterior is the same, but f_i and with it the bound would change by that term [S22 models log
income in the same way]. `unit` moves the transformed scale and is part of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pyhybrid.core.checks import FloatArray

__all__ = ["LARGEST", "TRANSFORMS", "Transform"]

LARGEST = float(2**53)
"""Beyond this, about 9e15, floating point no longer holds every whole number."""

_Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, kw_only=True)
class Transform:
    """A strictly increasing function of y / unit and its inverse.

    Attributes
    ----------
    forward, inverse : callable
        Arrays to arrays; `inverse` may overflow to infinity.
    positive : bool
        True if only y > 0 is taken.
    """

    forward: _Function
    inverse: _Function
    positive: bool = False


def _same(values: FloatArray) -> FloatArray:
    return values


TRANSFORMS: Mapping[str, Transform] = {
    "identity": Transform(forward=_same, inverse=_same),
    "log": Transform(forward=np.log, inverse=np.exp, positive=True),
    "signed_log": Transform(
        forward=lambda v: np.sign(v) * np.log1p(np.abs(v)),
        inverse=lambda t: np.sign(t) * np.expm1(np.abs(t)),
    ),
    "asinh": Transform(forward=np.arcsinh, inverse=np.sinh),
}
"""Transforms by name."""
