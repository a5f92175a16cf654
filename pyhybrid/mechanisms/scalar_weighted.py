"""Scalar-weighted synthesis (SW): the exponential mechanism under a log-likelihood utility."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyhybrid.errors import InvalidInput, SamplingError
from pyhybrid.fitting import FitSession
from pyhybrid.mechanisms.base import PseudoPosteriorMechanism
from pyhybrid.validation import FloatArray, check_positive
from pyhybrid.weights import scalar_weights

__all__ = ["ScalarWeighted"]


@dataclass(frozen=True)
class ScalarWeighted(PseudoPosteriorMechanism):
    """One weight for all records, epsilon / (2 Delta) with Delta of the unweighted fit.

    The refit under that weight has a bound of its own, near the target and usually above it; the
    charge states the refit's.

    Parameters
    ----------
    target_epsilon : float, optional
        Wanted epsilon of one released draw, above 0, nats.
    target_bound : float, optional
        Wanted bound, above 0, nats, e.g. the bound of another fit; exactly one of the two.

    Other parameters as in `pyhybrid.mechanisms.base.PseudoPosteriorMechanism`.

    References
    ----------
    [S22] sec. 3.1; [MT07].
    """

    target_epsilon: float | None = None
    target_bound: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.target_epsilon is None) == (self.target_bound is None):
            raise InvalidInput("exactly one of target_epsilon and target_bound must be given")
        self._bound()

    def weights(self, session: FitSession) -> FloatArray:
        """The same weight for all n records, from the session's unweighted fit."""
        unweighted = session.unweighted(draw_quantile=self.draw_quantile).bounds.overall
        if not np.isfinite(unweighted):
            raise SamplingError("a scalar weight needs a finite unweighted bound: it is infinite")
        return scalar_weights(
            session.bound.n, target_bound=self._bound(), unweighted_bound=unweighted
        )

    def _bound(self) -> float:
        if self.target_bound is not None:
            return check_positive(self.target_bound, "target_bound")
        return check_positive(self.target_epsilon, "target_epsilon") / 2
