"""Censored synthesis (Censor_w, Censor_uw): every record's term is clipped at a cap.

Where many terms are clipped the censored log-likelihood is flat, and a chain that starts there may
stay: a posterior of one good mode can hold chains elsewhere. Chains from dispersed starts show it
([C25] sec. 4: published counts of censored records spread widely between single-chain runs).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting import UNCONFIRMED, facts_of_fit, why_local
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.mechanisms.censored.center import Center, given_center
from pyhybrid.mechanisms.mechanism import SHOWN_IF_SET
from pyhybrid.mechanisms.weighted.weight_maps import CappedMechanism, Unweighted
from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.columns.form import Form, forms_of
from pyhybrid.models.families.two_block import check_one_block
from pyhybrid.models.grid import ParameterGrid
from pyhybrid.privacy.censoring import Cap
from pyhybrid.privacy.charge import PrivacyCharge, Spent
from pyhybrid.privacy.conversions import ASYMPTOTIC_LOCAL, STRICT, epsilon_of_bound
from pyhybrid.privacy.refits import LocalLoss

SAMPLINGS = ("auto", "exact", "chains")
_OF_CALIBRATION = "frozen"
_DISPERSION = 25.0
_CHAINS, _WARMUP, _DRAWS = 8, 250, 50
_CHAINS_OF_REGION, _WARMUP_OF_REGION = 4, 150  # a reference pulls chains in: a third of the work
_DEPTH = 5  # far out nothing but a wide prior pulls: trajectories of 1,023 steps took minutes
_FAR = 10.0


@dataclass(frozen=True)
class Censored(CappedMechanism):
    r"""Release from the posterior with terms :math:`\max(-M, \min(M, \alpha_i (f_i - c_i)))`.

    Removing one record changes the log posterior density by at most 2 M, for any n. With a
    **center** theta_ref, c_i is log p(x_i | theta_ref): clipping starts where a term has moved by
    M, and a strict epsilon of 1 leaves most data nearly as they were. Without one, c_i = 0 is the
    censoring of [C25], which clips terms by their size.

    The charge is strict if each weight is a function of its own record: with `Unweighted` inside,
    or with a frozen `Calibration` of other records, as its owner must confirm. It is local if
    weights come from the same database, on which they all depend weakly, if the chains did not
    converge and the release was made anyway, and if other modes were found.

    Parameters
    ----------
    epsilon : float, optional
        Of one released draw, nats, above 0. M is epsilon / 2; epsilon / 4 under relation "replace"
        with a center, or for outcomes whose density can exceed 1. (Without a center terms of
        discrete outcomes lie in [-M, 0]: leaving a record out costs M, and 2 M are charged.)
    cap : float, optional
        M itself, nats, above 0. Exactly one of the two, or a calibration that holds M.
    inner : PseudoPosteriorMechanism, optional
        Whose weights are used, over the same model; `LipschitzWeighted` if omitted.
    calibration : Calibration, optional
        Frozen reference draws, extremes, scale, shift, cap, center and model; excludes `inner`.
    center : mapping or None, optional
        A public theta_ref: numbers by the names of the likelihood's parameters, such as
        ``{"beta": [1.0], "phi": 0.7}``, chosen without looking at the data. If omitted, the
        calibration's; None is [C25]'s censoring.
    sampling : {"auto", "exact", "chains"}, default "auto"
        "exact": from the posterior on a grid of parameters, by OpenDP's exponential mechanism: no
        chains, no seed. For an intercept alone (Poisson, NegativeBinomial, NormalRegression, under
        the published prior) and Beta. "auto" does so where there is a center, record by record.
    grid : mapping, optional
        ``{coordinate: (lower, upper, size)}`` of exact sampling, public and chosen without looking
        at the data; if omitted, the calibration's region, or a wide grid of the model's.
    check_modes : bool, default True
        Look for other modes with short chains from dispersed starts. Chains that end in another one
        count as chains that have not converged: see `on_not_converged`.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`; the model
    may be left to the calibration.

    References
    ----------
    [C25] sec. 3 and 4.5.

    Examples
    --------
    >>> calibration = ph.calibrate(model, last_year, epsilon=1, holds_no_released_record=True)
    >>> ph.Censored(calibration=calibration).release(this_year).charge.epsilon
    1.0
    """

    model: Model = None  # type: ignore[assignment]
    _: KW_ONLY
    calibration: Calibration | None = field(default=None, repr=False)
    check_modes: bool = True
    center: Mapping[str, float | Sequence[float]] | str | None = field(
        default=_OF_CALIBRATION, metadata=SHOWN_IF_SET
    )
    sampling: str = field(default="auto", metadata=SHOWN_IF_SET)
    grid: Mapping[str, tuple[float, float, int]] | None = field(default=None, metadata=SHOWN_IF_SET)

    def __post_init__(self) -> None:
        if self.calibration is not None and not isinstance(self.calibration, Calibration):
            kind = type(self.calibration).__name__
            raise InvalidInput(
                "calibration must be one of ph.calibrate or ph.mechanisms.Calibration.load(folder)"
                f": found {kind}"
            )
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
        self._check_capped(held=self.calibration is not None)
        check_choice(self.sampling, "sampling", SAMPLINGS)
        if self.center is not None and self.center != _OF_CALIBRATION:
            if self.calibration is not None:
                raise InvalidInput("a calibration holds the center: give no other, or None")
            given_center(self.center)  # type: ignore[arg-type]
        if self.grid is not None and self.sampling == "chains":
            raise InvalidInput("a grid goes with exact sampling: give no sampling='chains'")

    def _check_calibration(self, calibration: Calibration) -> None:
        others = ("unit", "inner", "cap", "epsilon", "design")
        given = [name for name in others if getattr(self, name) is not None]
        if given:
            raise InvalidInput(
                "a calibration holds weights and cap, of single records: give no "
                f"{' or '.join(given)}"
            )
        if self.model != calibration.model or self.relation != calibration.relation:
            raise InvalidInput(
                f"calibration must be for this model and relation: it is for {calibration.model} "
                f"and {calibration.relation!r}"
            )

    def describe(self) -> dict[str, Any]:
        settings = super().describe()
        calibration = settings.pop("calibration")
        for unused in ("accounting", "delta"):  # the cap is charged
            del settings[unused]
        if calibration is None:
            return {**settings, "inner": self._inner().describe()}
        return {**settings, "calibration": calibration.describe()}

    def weights(self, session: FitSession) -> FloatArray:
        if self.calibration is not None:
            return self.calibration.weights(session.bound)
        return self._inner().final_weights(session)

    def bind(self, df: pd.DataFrame) -> BoundModel:
        bound = super().bind(df)
        check_one_block(bound)
        return bound

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Declared form of the outcome; where weights read all records, dtypes are the data's."""
        return forms_of(self.model, df) if self.record_indexed else {}

    def fit(self, session: FitSession, like: Reweighted | None = None) -> Reweighted:
        """The censored fit, which nothing is re-weighted in."""
        session = self.opened(session)
        cap, alpha = self._cap(session.bound), self.weights(session)
        grid = self._grid(session.bound)
        if grid is not None:
            center = self.theta_ref
            excess = None if center is None else center.excess_on(session.bound, grid, cap)
            fit = session.exact_fit(alpha, cap=cap, grid=grid, excess=excess)
            return Reweighted(start=fit, fit=fit)
        fit = session.fit(alpha, label=f"{self.name} fit", cap=cap)
        if self.check_modes:
            assert fit.diagnostics is not None
            elsewhere, problems = look_for_modes(session, fit), fit.diagnostics.problems
            if elsewhere.any():
                message = (
                    f"{elsewhere.sum()} of {elsewhere.size} chains from dispersed starts ended in "
                    "another mode of the censored posterior: raise epsilon, or give more warm-up"
                )
                if session.on_not_converged == "raise":
                    raise NotConverged(message)
                warnings.warn(message, stacklevel=2)
                problems = (*problems, message)
            seen = replace(fit.diagnostics, n_elsewhere=int(elsewhere.sum()), problems=problems)
            fit = replace(fit, diagnostics=seen)
        return Reweighted(start=fit, fit=fit)

    @property
    def theta_ref(self) -> Center | None:
        """The center that terms are clipped from, if any. Confidential if its reference is."""
        if self.center is None:
            return None
        if self.center == _OF_CALIBRATION:
            return None if self.calibration is None else self.calibration.center
        return given_center(self.center)  # type: ignore[arg-type]

    def why_local(self, bound: BoundModel) -> str | None:
        if not self.record_indexed:
            return "weights of single records: a calibration"
        if (reason := why_local(bound)) is not None:
            return reason
        if self._unconfirmed:
            said = UNCONFIRMED.format("no strict release")
            return f"a calibration that can be relied on: {said}"
        return None

    @property
    def record_indexed(self) -> bool:
        """True if each weight is a function of its own record alone."""
        inner = self._inner()
        plain = type(inner) is Unweighted and inner.reweighting is False
        return self.calibration is not None or plain

    def private_settings(self) -> dict[str, Any]:
        """What tells calibrations apart that are described alike."""
        if self.calibration is None:
            return super().private_settings()
        extremes = {"lowest": self.calibration.lowest, "highest": self.calibration.highest}
        center = self.theta_ref
        return extremes if center is None else {**extremes, "center": center.as_dict()}

    def charge(
        self, session: FitSession, path: Reweighted, loss: LocalLoss | None, m: int, n_draws: int
    ) -> PrivacyCharge:
        """The cap is charged, whatever the data: half the length of its interval for a draw, twice
        that where a center gives terms either sign under `replace`.

        Strict if weights and predictors are functions of single records. If they were computed from
        the same database, or may have been (an unconfirmed reference), those of a neighbor differ,
        which the cap does not bound: the charge stays local. So it does if the draws are not known
        to come from the censored posterior: chains that have not converged, or found other modes.
        """
        fit, bound, center = path.fit, session.bound, self.theta_ref
        assert fit.cap is not None
        if self._unconfirmed:
            local = "the charge is asymptotic local, and a strict ledger refuses it"
            warnings.warn(UNCONFIRMED.format(local), stacklevel=2)
        where = None if center is None else "given"
        if center is not None and self.calibration is not None:
            where = "public" if center.public else "reference"
        half = fit.cap.span / 2
        cost: dict[str, Any] = {
            "relation": self.relation,
            "density_above_one": bound.density_above_one or center is not None,
            "safety_factor": self.safety_factor,
        }
        epsilon = epsilon_of_bound(half, **cost, kind=STRICT)
        charge = PrivacyCharge.strict(
            **cost,
            mechanism=self.name,
            epsilon=epsilon,
            loss_range=epsilon,
            n_synthetic=m,
            n_draws_released=n_draws,
            bound=half,
            cap=fit.cap.above,
            converged=fit.converged,
            unit=self.unit,
            facts={
                **facts_of_fit(fit, bound),
                "clipped": True,
                "center": where,
                "exact": None if fit.exact is None else fit.exact.grid.size,
                "fixed_draws": fit.fixed_draws,
                "excess": fit.cap.frozen is not None,
                "unconfirmed": self._unconfirmed,
                "by_record": self.record_indexed,
                "other_reference": self.calibration is not None,
            },
        )
        if self.why_local(bound) is None and fit.converged:
            return charge
        return replace(
            charge,
            kind=ASYMPTOTIC_LOCAL,
            accounts={"pure": Spent(pure=charge.epsilon, rho_of_pure=None)},
            n_draws=int(fit.bounds.kept_draws.size),
        )

    def loss(self, session: FitSession, path: Reweighted, refits: int) -> LocalLoss | None:
        return None

    def refuse(self, session: FitSession, refits: int) -> None:
        """Nothing is refused: the cap holds for a record that alone informs a coefficient, too."""

    @property
    def _unconfirmed(self) -> bool:
        return self.calibration is not None and not self.calibration.holds_no_released_record

    def _cap(self, bound: BoundModel) -> Cap:
        """The clip of this release, record by record."""
        center = self.theta_ref
        if self.calibration is not None:
            self.calibration.check_fits(bound)
        size = None if self.calibration is None else self.calibration.cap
        if center is not None and not bound.takes_center:
            raise InvalidInput(
                "a center needs a built-in model with its default program: others clip terms as "
                "they are; give center=None"
            )
        if size is None:
            size = self._size(bound, either_sign=center is not None)
        return Cap.of(size) if center is None else center.cap(bound, size)

    def _grid(self, bound: BoundModel) -> ParameterGrid | None:
        """The grid of exact sampling; None for chains."""
        grid, center = bound.grid, self.theta_ref
        wanted = self.sampling == "exact" or self.grid is not None
        if self.sampling == "chains" or (not wanted and center is None):
            return None
        if grid is None or self.unit is not None:
            if not wanted:
                return None
            raise InvalidInput(
                "exact sampling needs a model whose parameters lie on a grid (an intercept alone) "
                "and single records: take sampling='chains' for "
                f"{self.model.name}"
            )
        within = None if self.grid is not None or center is None else center.grid(grid)
        return within or grid.with_axes(self.grid)


def look_for_modes(session: FitSession, fit: PosteriorFit) -> npt.NDArray[np.bool_]:
    """Run 8 short chains, 4 within the region of a frozen reference, from starts 25 times as
    dispersed, and say which ended elsewhere: never in the fit's range of some monitored quantity,
    their mean over 10 posterior sds from the fit's."""
    bound, region = session.bound, fit.cap is not None and fit.cap.frozen is not None
    settings = replace(
        session.settings,
        chains=_CHAINS_OF_REGION if region else _CHAINS,
        warmup=_WARMUP_OF_REGION if region else _WARMUP,
        draws=_DRAWS,
        max_treedepth=min(_DEPTH, session.settings.max_treedepth),
    )
    draws = session.engine.sample(
        bound.program,
        bound.stan_data(fit.alpha, cap=fit.cap, dispersion=_DISPERSION),
        seed=session.streams.engine_seed("modes"),
        settings=settings,
        progress=session.steps_of("search for other modes"),
    )
    return chains_elsewhere(bound.monitored(fit.draws), bound.monitored(draws))


def chains_elsewhere(
    here: Mapping[str, FloatArray], there: Mapping[str, FloatArray]
) -> npt.NDArray[np.bool_]:
    """Which chains of `there` (chains, draws, ...) are elsewhere than `here`. The mean alone does
    not tell: one draw far out in the tail of a 1 / phi without an upper end moves it."""
    flags = []
    for name, values in here.items():
        mean, spread = values.mean(axis=(0, 1)), values.std(axis=(0, 1))
        far = np.abs(there[name].mean(axis=1) - mean) > _FAR * spread
        inside = (there[name] >= values.min(axis=(0, 1))) & (there[name] <= values.max(axis=(0, 1)))
        flags.append((far & ~inside.any(axis=1)).reshape(len(far), -1).any(axis=1))
    return np.asarray(np.any(flags, axis=0))
