"""The mechanisms by their weights: of 1, given, or by a map of the papers."""

from __future__ import annotations

import hashlib
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import (
    FloatArray,
    check_alpha,
    check_choice,
    check_finite,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession
from pyhybrid.mechanisms.mechanism import SHOWN_IF_SET
from pyhybrid.mechanisms.weighted.base import PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import epsilon_of_bound
from pyhybrid.privacy.count_risk import pairwise_risk, radius_risk
from pyhybrid.privacy.refits import LocalLoss
from pyhybrid.privacy.weights import (
    RISKS,
    count_weights,
    scalar_weights,
    truncate_weights,
    weights_from_lipschitz,
)

_LEAST_WEIGHT = 0.05  # below it posteriors are near the prior, and epsilon rises again


@dataclass(frozen=True)
class Unweighted(PseudoPosteriorMechanism):
    """All weights 1: the baseline; its epsilon is usually large and grows with n ([S22] sec. 2).

    Parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

    def weights(self, session: FitSession) -> FloatArray:
        return np.ones(session.bound.n)


@dataclass(frozen=True, eq=False)
class GivenWeights(PseudoPosteriorMechanism):
    """Synthesis with weights that were computed elsewhere.

    Parameters
    ----------
    alpha : array_like, shape (n,)
        Record weights in [0, 1], in the order of the rows. Confidential; never shown.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

    _: KW_ONLY
    alpha: Any = field(repr=False, metadata={"confidential": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        vector = check_vector(self.alpha, "alpha")
        object.__setattr__(self, "alpha", np.array(check_alpha(vector, vector.size)))

    def private_settings(self) -> dict[str, Any]:
        return {"alpha": hashlib.sha256(self.alpha.tobytes()).hexdigest()}

    def weights(self, session: FitSession) -> FloatArray:
        return check_alpha(self.alpha, session.bound.n)


@dataclass(frozen=True)
class LipschitzWeighted(PseudoPosteriorMechanism):
    """The risk-weighted pseudo posterior mechanism with Lipschitz weights.

    An unweighted fit gives f_i = max_s |log p(x_i | theta_s)|, the weights follow by
    `pyhybrid.lipschitz_weights`, and draws are released from a second, weighted fit ([S22] sec. 3;
    [V25] alg. 2).

    Parameters
    ----------
    scale, shift : float, default 1 and 0
        c and g; smaller values cost utility and lower epsilon.
    transform, threshold
        Weight map; see `pyhybrid.lipschitz_weights`.
    risk : {"size", "range", "deviation"}
        Measure f_i of risk: the papers' size, or how far the log-likelihood moves over the
        posterior, its range or its deviation, as accounting by range or mu charges it.
    weights_over : {"kept", "all"}
        Draws that f_i is over: those that `draw_quantile` keeps, or all, as in the printed script.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

    starts_from_unweighted: ClassVar[bool] = True
    searched: ClassVar[tuple[str, ...]] = ("scale", "shift")
    scale: float = 1.0
    shift: float = 0.0
    transform: str = "linear"
    threshold: float | None = None
    risk: str = field(default="size", metadata=SHOWN_IF_SET)
    weights_over: str = field(default="kept", metadata=SHOWN_IF_SET)

    def __post_init__(self) -> None:
        super().__post_init__()
        # The map's own checks, on one record, before anything is fitted.
        self._weights_of([1.0])
        check_choice(self.risk, "risk", RISKS)
        check_choice(self.weights_over, "weights_over", ("kept", "all"))

    def weights(self, session: FitSession) -> FloatArray:
        fit = session.unweighted() if self.weights_over == "all" else self.unweighted(session)
        f = fit.bounds.by_record  # of every record, or of its unit
        if self.risk != "size":  # infinite where it is unbounded in any draw, kept or not
            f = np.where(np.isfinite(f), session.risks(fit, self.risk), np.inf)
        return session.by_record(self._weights_of(session.once(f)))

    def _weights_of(self, f: Any) -> FloatArray:
        return weights_from_lipschitz(
            f,
            scale=self.scale,
            shift=self.shift,
            transform=self.transform,
            threshold=self.threshold,
        )


@dataclass(frozen=True)
class CountWeighted(PseudoPosteriorMechanism):
    """Weights from the share of records outside a ball around each sensitive value.

    Risk is counted among the records that have a value; records whose value is missing are alike
    and have no risk. With a `unit` every record gets the lowest weight among the records of its
    unit ([H22]; [V25] alg. 3).

    Parameters
    ----------
    scale, shift : float, default 1 and 0
        c and g of clip(c (1 - risk) + g, 0, 1).
    radius : float, default 0.2
        Of the ball, above 0: a share of the value or in its unit; see `pyhybrid.radius_risk`. Of an
        outcome of levels a ball is the level itself.
    kind : {"relative", "absolute"}
    pattern : tuple of str, default ()
        Columns of the data that an intruder knows: risk is counted among records that share them.
    pairwise : bool, default False
        Use `pyhybrid.arrays.pairwise_risk` in place of the radius risk.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

    searched: ClassVar[tuple[str, ...]] = ("scale", "shift")
    scale: float = 1.0
    shift: float = 0.0
    radius: float = 0.2
    kind: str = "relative"
    pattern: tuple[str, ...] = ()
    pairwise: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_finite(self.scale, "scale")
        check_finite(self.shift, "shift")
        check_positive(self.radius, "radius")
        check_choice(self.kind, "kind", ("relative", "absolute"))
        if isinstance(self.pattern, str):
            raise InvalidInput(f"pattern must be a tuple of columns: found {self.pattern!r}")

    def weights(self, session: FitSession) -> FloatArray:
        rows, of_levels = np.flatnonzero(session.present), session.bound.levels is not None
        measure, known = pairwise_risk if self.pairwise else radius_risk, self._known(session)
        risk = measure(
            np.nan_to_num(session.bound.outcome[rows]),
            radius=0.5 if of_levels else self.radius,  # a level is near itself alone
            kind="absolute" if of_levels else self.kind,
            pattern=None if known is None else known[rows],
        )
        alpha = count_weights(risk, scale=self.scale, shift=self.shift)
        if session.units is not None:
            alpha = session.units.at(rows).lowest(alpha)
        weights = np.zeros(session.bound.n)
        weights[rows] = alpha
        return weights

    def reads(self) -> dict[str, tuple[str, ...]]:
        return {**super().reads(), "pattern": self.pattern}

    def _known(self, session: FitSession) -> npt.NDArray[np.object_] | None:
        missing = np.isnan(session.bound.outcome)
        if not self.pattern and not missing.any():
            return None
        table = session.bound.table
        for column in self.pattern:
            if column not in table.columns:
                raise InvalidInput(f"pattern column {column!r} must be in the data: it is not")
            if column in session.bound.synthesized:
                raise InvalidInput(f"pattern column {column!r} must not be synthesized: it is")
        known: npt.NDArray[np.object_] = table[list(self.pattern)].to_numpy(dtype=object)
        return np.column_stack([known, missing.astype(object)]) if missing.any() else known


@dataclass(frozen=True)
class ScalarWeighted(PseudoPosteriorMechanism):
    """One weight for all records, epsilon / (2 Delta) with Delta of the unweighted fit.

    The bound of the refit under that weight is near the target and usually above it; the charge
    states the refit's ([S22] sec. 3.1; [MT07]).

    Parameters
    ----------
    target_epsilon : float, optional
        Wanted epsilon of one released draw by the Lipschitz bound, above 0, nats; by the other
        accountings the same weights cost less.
    target_bound : float, optional
        Wanted bound, above 0, nats, e.g. the bound of another fit, and then confidential; exactly
        one of the two. On the command line it is read from a file: ``target_bound=@FILE``.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

    starts_from_unweighted: ClassVar[bool] = True
    searched: ClassVar[tuple[str, ...]] = ("target_epsilon",)
    target_epsilon: float | None = None
    target_bound: float | None = field(default=None, repr=False, metadata={"confidential": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.target_epsilon is None) == (self.target_bound is None):
            raise InvalidInput("exactly one of target_epsilon and target_bound must be given")
        for name in ("target_epsilon", "target_bound"):
            if getattr(self, name) is not None:
                check_positive(getattr(self, name), name)

    def weights(self, session: FitSession) -> FloatArray:
        unweighted = self.unweighted(session).bounds.overall
        if not np.isfinite(unweighted):
            raise SamplingError("a scalar weight needs a finite unweighted bound: it is infinite")
        return scalar_weights(
            session.bound.n,
            target_bound=self.bound_of(
                self.target_bound, self.target_epsilon, session.bound.density_above_one
            ),
            unweighted_bound=unweighted,
        )

    def at(self, value: float) -> ScalarWeighted:
        return replace(self, target_epsilon=value, target_bound=None)

    def limits(self, session: FitSession, searched: str) -> tuple[float, float]:
        """Up to the epsilon of the unweighted fit."""
        highest = epsilon_of_bound(
            self.unweighted(session).bounds.overall,
            relation=self.relation,
            density_above_one=session.bound.density_above_one,
            safety_factor=self.safety_factor,
        )
        return _LEAST_WEIGHT * highest, highest


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
        inner = self.inner
        if inner is None:
            return
        if inner.model != self.model or inner.design != self.design:
            raise InvalidInput("inner must be a mechanism over the same model and design")
        if inner.unit != self.unit:
            raise InvalidInput(
                f"inner must have the unit of privacy of {self.name}: found {inner.unit!r} and "
                f"{self.unit!r}; give unit= to both"
            )

    def private_settings(self) -> dict[str, Any]:
        return self._inner().private_settings()

    def reads(self) -> dict[str, tuple[str, ...]]:
        return {**super().reads(), **self._inner().reads()}

    def _inner(self) -> PseudoPosteriorMechanism:
        return self.inner or LipschitzWeighted(
            self.model, draw_quantile=self.draw_quantile, unit=self.unit, design=self.design
        )

    def _size(self, bound: BoundModel, *, either_sign: bool = False) -> float:
        """The cap M, nats, given or of epsilon; terms may have `either_sign`."""
        return self.bound_of(self.cap, self.epsilon, bound.density_above_one or either_sign)


@dataclass(frozen=True)
class Truncated(CappedMechanism):
    """The weights of another mechanism, set to 0 where alpha_i f_i exceeds a cap M.

    f_i is the by-record bound of the unweighted fit. Local bounds contract onto M faster than
    without the cap as n grows ([S22] sec. 4.4; [C25] sec. 2.2).

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
    """

    starts_from_unweighted: ClassVar[bool] = True
    searched: ClassVar[tuple[str, ...]] = ("cap",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_capped()

    def at(self, value: float) -> Truncated:
        return replace(self, cap=value, epsilon=None)

    def limits(self, session: FitSession, searched: str) -> tuple[float, float]:
        """From below the smallest bound of a record to the largest one."""
        f = self.unweighted(session).bounds.by_record
        finite = f[np.isfinite(f) & (f > 0)]
        if not finite.size:
            raise InvalidInput("target_epsilon needs finite bounds of the unweighted fit: none is")
        return 1e-3 * float(finite.min()), float(finite.max())

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "inner": self._inner().describe()}

    def weights(self, session: FitSession) -> FloatArray:
        f = self.unweighted(session).bounds.by_record
        cap = self._size(session.bound)
        return truncate_weights(self._inner().final_weights(session), f, cap=cap)

    def charge(
        self, session: FitSession, path: Reweighted, loss: LocalLoss | None, m: int, n_draws: int
    ) -> PrivacyCharge:
        charge = super().charge(session, path, loss, m, n_draws)
        return replace(charge, cap=self._size(session.bound))
