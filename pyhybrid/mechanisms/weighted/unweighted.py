"""Unweighted synthesis: the plain posterior, charged for what it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.fitting.session import FitSession
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.hypothetical_records import WeightsWith


@dataclass(frozen=True)
class Unweighted(PseudoPosteriorMechanism):
    """All weights 1: the baseline whose epsilon is usually large and grows with n.

    Parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.

    References
    ----------
    [S22] sec. 2.
    """

    def weights(self, session: FitSession) -> FloatArray:
        """Weights of 1, shape (n,)."""
        return np.ones(session.bound.n)

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """Weights of 1."""
        return WeightsWith.held(np.ones(session.bound.n), np.ones(possible.n))
