"""Lipschitz-weighted synthesis (LW): weights fall as the unweighted by-record bound rises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pyhybrid.core.checks import FloatArray, check_choice
from pyhybrid.fitting.session import FitSession
from pyhybrid.mechanisms.accounting.loss_account import risk_draws, risks_joined
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.hypothetical_records import WeightsWith, weights_with
from pyhybrid.privacy.local_account import WeightsWithoutRecords
from pyhybrid.privacy.weight_sensitivity import risk_weights_without
from pyhybrid.privacy.weights import RISKS, risk_of, weights_from_lipschitz


@dataclass(frozen=True)
class LipschitzWeighted(PseudoPosteriorMechanism):
    """The risk-weighted pseudo posterior mechanism with Lipschitz weights.

    An unweighted fit gives f_i = max_s |log p(x_i | theta_s)|, the weights follow by
    `pyhybrid.lipschitz_weights`, and draws are released from a second, weighted fit.

    Parameters
    ----------
    scale, shift : float, default 1 and 0
        c and g; smaller values cost utility and lower epsilon.
    transform, threshold
        Weight map; see `pyhybrid.lipschitz_weights`.
    risk : {"size", "range", "deviation"}
        What f_i is: the papers' size, or how far the log-likelihood moves over the posterior, by
        its range or its deviation, which is what accounting by range or mu charges.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.

    References
    ----------
    [S22] sec. 3; [V25] alg. 2.
    """

    starts_from_unweighted: ClassVar[bool] = True
    scale: float = 1.0
    shift: float = 0.0
    transform: str = "linear"
    threshold: float | None = None
    risk: str = "size"

    def __post_init__(self) -> None:
        super().__post_init__()
        # The map's own checks, on one record, before anything is fitted.
        weights_from_lipschitz([1.0], **self._map())
        check_choice(self.risk, "risk", RISKS)

    def describe(self) -> dict[str, Any]:
        """Public settings; the risk where it is not the papers'."""
        settings = super().describe()
        if self.risk == "size":  # names of random streams stay what they were
            del settings["risk"]
        return settings

    def weights(self, session: FitSession) -> FloatArray:
        """Lipschitz weights from the session's unweighted fit, shape (n,)."""
        f = self._risks(session)
        return self._weights_of(session.once(f))[session.owner]

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """The map without each record, whose absence also moves the risks of the others."""
        fit = session.unweighted(draw_quantile=self.draw_quantile)
        return risk_weights_without(
            risk_draws(session, fit, self.risk),
            session.once(self._risks(session)),
            lambda _, risks: self._weights_of(risks),
        )

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """The map of all records with one more, which moves the risks of the others."""
        fit = session.unweighted(draw_quantile=self.draw_quantile)
        f, log_lik = self._risks(session), possible.log_lik(fit.draws).at(fit.bounds.kept_draws)
        possible_risks = risk_of(log_lik, self.risk)
        leverage, joined = risks_joined(
            risk_draws(session, fit, self.risk), f, log_lik, possible_risks
        )
        return weights_with(
            self._weights_of, f, possible_risks, moves=lambda _: leverage, joined=joined
        )

    def _risks(self, session: FitSession) -> FloatArray:
        """f of every record, or of its unit, shape (n,)."""
        fit = session.unweighted(draw_quantile=self.draw_quantile)
        if self.risk == "size":
            return fit.bounds.by_record
        kept = np.flatnonzero(fit.bounds.kept_draws)
        risks = session.risks_at(fit.draws, fit.alpha, self.risk, kept)
        # Infinite where the record is unbounded in any draw, kept or not.
        return np.where(np.isfinite(fit.bounds.by_record), risks, np.inf)

    def _weights_of(self, f: FloatArray) -> FloatArray:
        return weights_from_lipschitz(f, **self._map())

    def _map(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "shift": self.shift,
            "transform": self.transform,
            "threshold": self.threshold,
        }
