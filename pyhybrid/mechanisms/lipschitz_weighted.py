"""Lipschitz-weighted synthesis (LW): weights fall as the unweighted by-record bound rises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pyhybrid.checks import FloatArray
from pyhybrid.fitting.session import FitSession
from pyhybrid.mechanisms.account import by_unit
from pyhybrid.mechanisms.base import PseudoPosteriorMechanism
from pyhybrid.privacy.local_account import WeightsWithoutRecords
from pyhybrid.privacy.recomputed import lipschitz_without
from pyhybrid.privacy.weights import weights_from_lipschitz

__all__ = ["LipschitzWeighted"]


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

    Other parameters as in `pyhybrid.mechanisms.base.PseudoPosteriorMechanism`.

    References
    ----------
    [S22] sec. 3; [V25] alg. 2.
    """

    starts_from_unweighted: ClassVar[bool] = True
    scale: float = 1.0
    shift: float = 0.0
    transform: str = "linear"
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # The map's own checks, on one record, before anything is fitted.
        weights_from_lipschitz([1.0], **self._map())

    def weights(self, session: FitSession) -> FloatArray:
        """Lipschitz weights from the session's unweighted fit, shape (n,)."""
        f = session.unweighted(draw_quantile=self.draw_quantile).bounds.by_record
        return (
            self._weights_of(f)
            if session.units is None
            else session.units.mapped(self._weights_of, f)
        )

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """The map without each record, on the same draws."""
        f = session.unweighted(draw_quantile=self.draw_quantile).bounds.by_record
        return lipschitz_without(by_unit(session, f), **self._map())

    def _weights_of(self, f: FloatArray) -> FloatArray:
        return weights_from_lipschitz(f, **self._map())

    def _map(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            "shift": self.shift,
            "transform": self.transform,
            "threshold": self.threshold,
        }
