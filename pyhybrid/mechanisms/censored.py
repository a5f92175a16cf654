"""Censored synthesis (Censor_w, Censor_uw): every record's term is clipped at a cap."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from pyhybrid.checks import FloatArray, check_positive
from pyhybrid.errors import InvalidInput, NotConverged
from pyhybrid.fitting.modes import look_for_modes
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.mechanisms.base import PseudoPosteriorMechanism, check_same_unit
from pyhybrid.mechanisms.calibration import Calibration
from pyhybrid.mechanisms.charge_of_fit import charge_of_censored_fit, released_by_record
from pyhybrid.mechanisms.lipschitz_weighted import LipschitzWeighted
from pyhybrid.mechanisms.unweighted import Unweighted
from pyhybrid.models.base import BoundModel, Model
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import bound_of_epsilon
from pyhybrid.privacy.local_account import LocalAccount

__all__ = ["Censored"]

_NEGLIGIBLE_GAP = 30.0  # nats: such a mode holds none of the posterior's mass


@dataclass(frozen=True)
class Censored(PseudoPosteriorMechanism):
    r"""Release from the posterior with terms :math:`\max(-M, \min(M, \alpha_i f_i))`.

    The bound never exceeds M, for any parameters and any n. The charge is strict if each weight is
    a function of its own record: with `Unweighted` inside, or with a frozen `Calibration` of other
    records. Weights from the same database depend weakly on all records; the charge then says so
    and stays local. It falls back to local, too, if the calibration was made from the records
    released (more of them coincide than chance explains), if the chains did not converge and the
    release was made anyway, and if other modes were found: a strict ledger then refuses it.

    Parameters
    ----------
    epsilon : float, optional
        Of one released draw, nats, above 0. M is epsilon / 2; epsilon / 4 under relation "replace"
        for outcomes whose density can exceed 1.
    cap : float, optional
        M itself, nats, above 0. Exactly one of the two, or a calibration that holds M.
    inner : PseudoPosteriorMechanism, optional
        Whose weights are used, over the same model; `LipschitzWeighted` if omitted.
    calibration : Calibration, optional
        Frozen reference draws, extremes, scale, shift, cap and model; excludes `inner`.
    check_modes : bool, default True
        Look for other modes with short chains from dispersed starts; their number is in the
        release's diagnostics. Warns of modes whose log density is lower by less than 30 nats;
        NotConverged if one is higher, or if no such chain finds the fit.

    Other parameters as in `pyhybrid.mechanisms.base.PseudoPosteriorMechanism`; the model may be
    left to the calibration.

    References
    ----------
    [C25] sec. 3 and 4.5.
    """

    model: Model = None  # type: ignore[assignment]
    _: KW_ONLY
    epsilon: float | None = None
    cap: float | None = None
    inner: PseudoPosteriorMechanism | None = None
    calibration: Calibration | None = field(default=None, repr=False)
    check_modes: bool = True

    def __post_init__(self) -> None:
        if self.model is None and self.calibration is not None:
            object.__setattr__(self, "model", self.calibration.model)
        super().__post_init__()
        if self.reweighting is not False or self.draw_quantile != 1:
            raise InvalidInput(
                "a censored mechanism keeps all draws and re-weights nothing: re-weight the inner "
                "mechanism, and leave draw_quantile at 1"
            )
        if self.calibration is not None:
            self._check_calibration(self.calibration)
        elif (self.cap is None) == (self.epsilon is None):
            raise InvalidInput("exactly one of cap and epsilon must be given")
        for name in ("cap", "epsilon"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)
        if self.inner is not None and self.inner.model != self.model:
            raise InvalidInput("inner must be a mechanism over the same model")
        check_same_unit(self, self.inner)

    def _check_calibration(self, calibration: Calibration) -> None:
        if self.unit is not None:
            raise InvalidInput(
                "a calibration holds weights of single records: give no unit, or weights of 1 "
                "(inner=Unweighted(model, unit=...)) in its place"
            )
        if self.inner is not None or self.cap is not None or self.epsilon is not None:
            raise InvalidInput("a calibration holds weights and cap: give no inner, cap or epsilon")
        if self.model != calibration.model or self.relation != calibration.relation:
            raise InvalidInput(
                f"calibration must be for this model and relation: it is for {calibration.model} "
                f"and {calibration.relation!r}"
            )

    def describe(self) -> dict[str, Any]:
        """Public settings, with those of the inner mechanism or of the calibration."""
        settings = super().describe()
        calibration = settings.pop("calibration")
        for unused in ("accounting", "delta"):  # the cap is charged
            del settings[unused]
        if calibration is None:
            return {**settings, "inner": self._inner().describe()}
        return {**settings, "calibration": calibration.describe()}

    def reads(self) -> dict[str, tuple[str, ...]]:
        """What the inner mechanism reads."""
        return {**super().reads(), **self._inner().reads()}

    def weights(self, session: FitSession) -> FloatArray:
        """Weights of the inner mechanism, or from the calibration record by record, shape (n,)."""
        if self.calibration is not None:
            return self.calibration.weights(session.bound)
        return self._inner().final_weights(session)

    def fit(self, session: FitSession) -> Reweighted:
        """The censored fit."""
        session = session.by_unit(self.unit)
        cap = self._cap(session.bound.density_above_one)
        fit = session.fit(self.weights(session), label=f"{self.name} fit", cap=cap)
        if self.check_modes:
            fit = self._with_modes(session, fit)
        return Reweighted(start=fit, fit=fit, steps=())

    def is_strict(self, bound: BoundModel) -> bool:
        """True unless weights or predictors are computed from the records of `bound` together."""
        by_record = self.record_indexed and released_by_record(bound)
        return by_record and self._shared(bound) is False

    @property
    def record_indexed(self) -> bool:
        """True if each weight is a function of its own record alone."""
        inner = self._inner()
        plain = type(inner) is Unweighted and inner.reweighting is False
        return self.calibration is not None or plain

    def private_settings(self) -> dict[str, Any]:
        """What tells calibrations apart that are described alike."""
        if self.calibration is None:
            return self._inner().private_settings()
        return {"lowest": self.calibration.lowest, "highest": self.calibration.highest}

    def _with_modes(self, session: FitSession, fit: PosteriorFit) -> PosteriorFit:
        found, problems = look_for_modes(session, fit), fit.diagnostics.problems
        if found.n_elsewhere and not found.log_density_gap > _NEGLIGIBLE_GAP:
            gap = found.log_density_gap
            message = (
                f"{found.n_elsewhere} of {found.n_chains} chains from dispersed starts ended in "
                "another mode of the censored posterior, its log-likelihood "
                f"{'lower' if gap > 0 else 'higher'} by {abs(gap):.1f} nats"
            )
            if not found.log_density_gap > 0:
                message += (
                    ": the fit may have missed the main mode; raise epsilon, give more warm-up, or "
                    "on_not_converged='warn' to release all the same with that in the charge"
                )
                if session.on_not_converged == "raise":
                    raise NotConverged(message)
                problems = (*fit.diagnostics.problems, message)
            warnings.warn(message, stacklevel=2)
        seen = replace(fit.diagnostics, n_elsewhere=found.n_elsewhere, problems=problems)
        return replace(fit, diagnostics=seen)

    def _charge(
        self,
        bound: BoundModel,
        fit: PosteriorFit,
        account: LocalAccount | None,
        n_synthetic: int,
        n_draws_released: int,
    ) -> PrivacyCharge:
        shared = self._shared(bound)
        if shared is not False:
            told = "was made from" if shared else "has no digests to tell whether it was made from"
            warnings.warn(
                f"the calibration {told} records that are released here: the charge is asymptotic "
                "local, and a strict ledger refuses it; calibrate on other records",
                stacklevel=2,
            )
        return charge_of_censored_fit(
            self.name,
            fit,
            bound,
            n_synthetic=n_synthetic,
            n_draws_released=n_draws_released,
            relation=self.relation,
            safety_factor=self.safety_factor,
            record_indexed=self.record_indexed,
            calibrated=self.calibration is not None,
            unit=self.unit,
            shared=shared,
        )

    def _account(self, session: FitSession, path: Reweighted) -> LocalAccount | None:
        """None: the cap is charged, strict or not."""
        return None

    def _shared(self, bound: BoundModel) -> bool | None:
        """Whether the calibration was made from the records of `bound`; None if it cannot tell."""
        return False if self.calibration is None else self.calibration.shared_with(bound)

    def _inner(self) -> PseudoPosteriorMechanism:
        return self.inner or LipschitzWeighted(self.model, unit=self.unit)

    def _cap(self, density_above_one: bool) -> float:
        if self.calibration is not None:
            return self.calibration.cap
        if self.cap is not None:
            return self.cap
        assert self.epsilon is not None
        return bound_of_epsilon(
            self.epsilon,
            relation=self.relation,
            density_above_one=density_above_one,
            safety_factor=self.safety_factor,
        )
