"""Weights handed in by the user."""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_alpha, check_vector
from pyhybrid.fitting.session import FitSession
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.hypothetical_records import WeightsWith


@dataclass(frozen=True, eq=False)
class GivenWeights(PseudoPosteriorMechanism):
    """Synthesis under weights that were made elsewhere.

    Parameters
    ----------
    alpha : array_like, shape (n,)
        Record weights in [0, 1], in the order of the rows. Confidential; never shown.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

    _: KW_ONLY
    alpha: Any = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        vector = check_vector(self.alpha, "alpha")
        object.__setattr__(self, "alpha", np.array(check_alpha(vector, vector.size)))

    def describe(self) -> dict[str, Any]:
        """Public settings: everything but the weights."""
        settings = super().describe()
        del settings["alpha"]
        return settings

    def private_settings(self) -> dict[str, Any]:
        """A hash of the weights."""
        return {"alpha": hashlib.sha256(self.alpha.tobytes()).hexdigest()}

    def weights(self, session: FitSession) -> FloatArray:
        """The weights given, shape (n,); there must be one for each record."""
        return check_alpha(self.alpha, session.bound.n)

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """Weights of 1 for records that none was given for."""
        return WeightsWith.held(self.alpha, np.ones(possible.n))
