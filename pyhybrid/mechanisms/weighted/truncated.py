"""Truncated weights (Weighted-M, Weighted-e): no weight for records beyond a cap."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

from pyhybrid.core.checks import FloatArray, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting.loss_account import risk_draws
from pyhybrid.mechanisms.weighted.base import Accounts, PseudoPosteriorMechanism
from pyhybrid.mechanisms.weighted.lipschitz_weighted import LipschitzWeighted
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import bound_of_epsilon
from pyhybrid.privacy.count_risk import CountWithout
from pyhybrid.privacy.hypothetical_records import WeightsWith
from pyhybrid.privacy.local_account import WeightsWithoutRecords
from pyhybrid.privacy.weight_sensitivity import WeightsWithout, risk_weights_without, truncate_map
from pyhybrid.privacy.weights import risk_of, truncate_weights


@dataclass(frozen=True)
class CappedMechanism(PseudoPosteriorMechanism):
    """Base of the mechanisms that use the weights of another one, under a cap."""

    _: KW_ONLY
    cap: float | None = None
    epsilon: float | None = None
    inner: PseudoPosteriorMechanism | None = None

    def _check_capped(self, *, held: bool = False) -> None:
        """Check cap, epsilon and inner mechanism; where a cap is `held` none need be given."""
        if not held and (self.cap is None) == (self.epsilon is None):
            raise InvalidInput(
                "exactly one of cap and epsilon must be given, e.g. "
                f"ph.{self.name}(model, epsilon=1)"
            )
        for name in ("cap", "epsilon"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)
        if self.inner is not None and self.inner.model != self.model:
            raise InvalidInput("inner must be a mechanism over the same model")
        if self.inner is not None and self.inner.unit != self.unit:
            raise InvalidInput(
                f"inner must have the unit of privacy of {self.name}: found {self.inner.unit!r} "
                f"and {self.unit!r}; give unit= to both"
            )

    def private_settings(self) -> dict[str, Any]:
        """Those of the inner mechanism: what tells two of them apart names the streams."""
        return self._inner().private_settings()

    def reads(self) -> dict[str, tuple[str, ...]]:
        """What the inner mechanism reads."""
        return {**super().reads(), **self._inner().reads()}

    def _inner(self) -> PseudoPosteriorMechanism:
        return self.inner or LipschitzWeighted(
            self.model, draw_quantile=self.draw_quantile, unit=self.unit
        )

    def _size(self, bound: BoundModel, *, either_sign: bool = False) -> float:
        """The cap M, nats, given or of epsilon; terms may have `either_sign`."""
        if self.cap is not None:
            return self.cap
        assert self.epsilon is not None
        return bound_of_epsilon(
            self.epsilon,
            relation=self.relation,
            density_above_one=bound.density_above_one or either_sign,
            safety_factor=self.safety_factor,
        )


@dataclass(frozen=True)
class Truncated(CappedMechanism):
    """The weights of another mechanism, set to 0 where alpha_i f_i exceeds a cap M.

    f_i is the by-record bound of the unweighted fit. Local bounds contract onto M faster than
    without the cap as n grows.

    Parameters
    ----------
    cap : float, optional
        M in nats, above 0.
    epsilon : float, optional
        Of one released draw by the Lipschitz bound, above 0, nats; M = epsilon / 2. Exactly one of
        the two.
    inner : PseudoPosteriorMechanism, optional
        Whose weights are truncated; `LipschitzWeighted` of the same model if omitted.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.

    References
    ----------
    [S22] sec. 4.4; [C25] sec. 2.2.
    """

    starts_from_unweighted: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_capped()

    def describe(self) -> dict[str, Any]:
        """Public settings, with those of the inner mechanism."""
        return {**super().describe(), "inner": self._inner().describe()}

    def weights(self, session: FitSession) -> FloatArray:
        """Truncated weights, shape (n,)."""
        f = session.unweighted(draw_quantile=self.draw_quantile).bounds.by_record
        cap = self._size(session.bound)
        return truncate_weights(self._inner().final_weights(session), f, cap=cap)

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """Those of the inner mechanism, each cut by its own risk; None if they are not known."""
        base = self._inner().final_recomputed(session)
        if base is None:
            return None
        general = base.general() if isinstance(base, CountWithout) else base
        assert isinstance(general, WeightsWithout)
        fit = session.unweighted(draw_quantile=self.draw_quantile)
        return risk_weights_without(
            risk_draws(session, fit, "size"),
            session.once(fit.bounds.by_record),
            truncate_map(self._size(session.bound)),
            general,
        )

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """Those of the inner mechanism, each cut by itself."""
        inner, cap = self._inner(), self._size(session.bound)
        if inner.reweighting is not False:
            return super().joined(session, possible)
        fit = session.unweighted(draw_quantile=self.draw_quantile)
        f = fit.bounds.by_record
        possible_risks = risk_of(possible.log_lik(fit.draws).at(fit.bounds.kept_draws), "size")
        return inner.joined(session, possible).mapped(
            lambda alpha: truncate_weights(alpha, f, cap=cap),
            lambda alpha: truncate_weights(alpha, possible_risks, cap=cap),
        )

    def _charge(
        self,
        bound: BoundModel,
        fit: PosteriorFit,
        accounts: Accounts,
        n_synthetic: int,
        n_draws_released: int,
    ) -> PrivacyCharge:
        charge = super()._charge(bound, fit, accounts, n_synthetic, n_draws_released)
        return replace(charge, cap=self._size(bound)).sealed()
