"""The mechanisms by their weights: of 1, given, or by a map of the papers."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_alpha,
    check_choice,
    check_count,
    check_finite,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import BudgetExceeded, InvalidInput, SamplingError
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import ConvergenceRule, Draws, SamplerSettings
from pyhybrid.fitting.replicates import simulated, without_bias
from pyhybrid.fitting.session import FitOptions, FitSession, PosteriorFit
from pyhybrid.mechanisms.accounting.loss_account import risk_draws
from pyhybrid.mechanisms.mechanism import SHOWN_IF_SET, MechanismSettings
from pyhybrid.mechanisms.weighted.base import Accounts, PseudoPosteriorMechanism
from pyhybrid.models.base import BoundModel
from pyhybrid.models.composite.survey_weighted import without_survey
from pyhybrid.models.families.bernoulli import BoundLevels
from pyhybrid.models.families.coefficients import LinearModel
from pyhybrid.models.families.levels import (
    BoundManyLevels,
    Categorical,
    LevelModel,
)
from pyhybrid.models.families.regression import BoundRegression, single_models
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import mu_of_epsilon, mu_of_release
from pyhybrid.privacy.count_risk import count_without, pairwise_risk, radius_risk
from pyhybrid.privacy.hypothetical_records import WeightsWith, weights_with
from pyhybrid.privacy.local_account import WeightsWithoutRecords
from pyhybrid.privacy.weight_sensitivity import (
    WeightsWithout,
    budget_maps,
    budget_without,
    risk_weights_without,
    scalar_map,
    truncate_map,
    weights_without,
)
from pyhybrid.privacy.weights import (
    BUDGET_ROUNDS,
    RISKS,
    count_weights,
    risk_of,
    scalar_weights,
    truncate_weights,
    weights_from_lipschitz,
)
from pyhybrid.running.tasks import named_progress

_FEWEST_CORRECTED, _SIMULATED = 1_000, 2  # units, of fewer a bias is lost in noise; tables
_SHORT = SamplerSettings(chains=2, warmup=300, draws=250)
_LENIENT = ConvergenceRule(rhat=1.1, ess_per_chain=15.0, divergent_share=0.1)
_FEWEST_LEFT = 5  # records that public weights leave to a coefficient, as a rule of thumb asks
_SURE = 0.8  # advised epsilons came out up to 24 % dearer than on half the draws
_LARGEST_NAMED = 100.0  # epsilon that a message advises


@dataclass(frozen=True)
class Unweighted(PseudoPosteriorMechanism):
    """All weights 1: the baseline; its epsilon is usually large and grows with n ([S22] sec. 2).

    Parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

    def weights(self, session: FitSession) -> FloatArray:
        """Weights of 1, shape (n,)."""
        return np.ones(session.bound.n)

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """Weights of 1."""
        return WeightsWith.held(np.ones(session.bound.n), np.ones(possible.n))


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
        """A hash of the weights."""
        return {"alpha": hashlib.sha256(self.alpha.tobytes()).hexdigest()}

    def weights(self, session: FitSession) -> FloatArray:
        """The weights given, shape (n,); there must be one for each record."""
        return check_alpha(self.alpha, session.bound.n)

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """Weights of 1 for records that none was given for."""
        return WeightsWith.held(self.alpha, np.ones(possible.n))


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

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

    starts_from_unweighted: ClassVar[bool] = True
    scale: float = 1.0
    shift: float = 0.0
    transform: str = "linear"
    threshold: float | None = None
    risk: str = field(default="size", metadata=SHOWN_IF_SET)

    def __post_init__(self) -> None:
        super().__post_init__()
        # The map's own checks, on one record, before anything is fitted.
        self._weights_of([1.0])
        check_choice(self.risk, "risk", RISKS)

    def weights(self, session: FitSession) -> FloatArray:
        """Lipschitz weights from the session's unweighted fit, shape (n,)."""
        f = self._risks(session)
        return self._weights_of(session.once(f))[session.owner]

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """The map without each record, whose absence also moves the risks of the others."""
        return self.map_without(
            session, self._risks(session), lambda _, risks: self._weights_of(risks), risk=self.risk
        )

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """The map of all records with one more, which moves the risks of the others."""
        return self.map_joined(
            session, possible, self._risks(session), self._weights_of, risk=self.risk
        )

    def _risks(self, session: FitSession) -> FloatArray:
        """f of every record, or of its unit, shape (n,)."""
        fit = self.unweighted(session)
        if self.risk == "size":
            return fit.bounds.by_record
        kept = np.flatnonzero(fit.bounds.kept_draws)
        risks = session.risks_at(fit.draws, fit.alpha, self.risk, kept)
        # Infinite where the record is unbounded in any draw, kept or not.
        return np.where(np.isfinite(fit.bounds.by_record), risks, np.inf)

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
        Of the ball, above 0: a share of the value or in its unit; see `pyhybrid.radius_risk`.
    kind : {"relative", "absolute"}
    pattern : tuple of str, default ()
        Columns of the data that an intruder knows: risk is counted among records that share them.
    pairwise : bool, default False
        Use `pyhybrid.arrays.pairwise_risk` in place of the radius risk.

    Other parameters as in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`.
    """

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
        """Count weights of the sensitive values, shape (n,); needs no fit."""
        return self._weights_of(session, np.arange(session.bound.n))

    def _weights_of(self, session: FitSession, rows: npt.NDArray[np.intp]) -> FloatArray:
        """Weights of some rows, counted among themselves."""
        measure, known = pairwise_risk if self.pairwise else radius_risk, self._known(session)
        risk = measure(
            np.nan_to_num(session.bound.outcome[rows]),
            radius=self.radius,
            kind=self.kind,
            pattern=None if known is None else known[rows],
        )
        alpha = count_weights(risk, scale=self.scale, shift=self.shift)
        return alpha if session.units is None else session.units.at(rows).lowest(alpha)

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """Counts without each record, or unit."""
        if self.pairwise or session.units is not None:
            of = session.owner

            def weigh(kept: npt.NDArray[np.intp]) -> FloatArray:
                rows = np.flatnonzero(np.isin(of, kept))
                return self._weights_of(session, rows)[np.unique(of[rows], return_index=True)[1]]

            return weights_without(weigh, int(of.max()) + 1)
        return count_without(
            np.nan_to_num(session.bound.outcome),
            radius=self.radius,
            kind=self.kind,
            pattern=self._known(session),
            scale=self.scale,
            shift=self.shift,
        )

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """Counts with one more record; none for pairwise risk, patterns and missing values."""
        if self.pairwise or self._known(session) is not None:
            return super().joined(session, possible)
        return weights_with(
            lambda y: count_weights(
                radius_risk(y, radius=self.radius, kind=self.kind),
                scale=self.scale,
                shift=self.shift,
            ),
            session.bound.outcome,
            possible.outcome,
            moves=lambda y: 1 + np.abs(y - np.median(session.bound.outcome)),
        )

    def reads(self) -> dict[str, tuple[str, ...]]:
        """The pattern, and the unit if there is one."""
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
        """The same weight for all n records, from the session's unweighted fit."""
        unweighted = self.unweighted(session).bounds.overall
        if not np.isfinite(unweighted):
            raise SamplingError("a scalar weight needs a finite unweighted bound: it is infinite")
        return scalar_weights(
            session.bound.n,
            target_bound=self._bound(session.bound.density_above_one),
            unweighted_bound=unweighted,
        )

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """The weight without each record, whose absence moves the unweighted bound."""
        bounds = self.unweighted(session).bounds
        target = self._bound(session.bound.density_above_one)
        if self.draw_quantile < 1:  # the overall bound is then a quantile, above the largest kept
            target *= bounds.by_record.max() / bounds.overall
        return self.map_without(session, bounds.by_record, scalar_map(target))

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """The weight with one more record, which lowers it if its bound is the largest."""
        target = self._bound(session.bound.density_above_one)

        def weigh(values: FloatArray) -> FloatArray:
            top = float(values.max())
            if not np.isfinite(top):
                raise SamplingError(
                    "a scalar weight needs finite bounds of possible records: some are infinite; "
                    "narrow the support"
                )
            return scalar_weights(values.size, target_bound=target, unweighted_bound=top)

        return self.map_joined(session, possible, self.unweighted(session).bounds.by_record, weigh)

    def _bound(self, density_above_one: bool) -> float:
        return self.bound_of(self.target_bound, self.target_epsilon, density_above_one)


@dataclass(frozen=True)
class BudgetWeighted(PseudoPosteriorMechanism):
    """Weights by budget: a record loses weight only if it would disclose too much.

    Public weights, from the predictors alone, limit the influence of usual records. Weights of
    `pyhybrid.arrays.budget_weights` are then computed four times, each time from draws of the fit
    under the weights before: in the first a record may still weigh too much, and move the weights
    of others. The charge counts the influence of each record on the weights of the others.

    Weights that follow outcomes bias estimates: where large counts lose weight, the mean falls. A
    parametric bootstrap [ET93] estimates that bias from 1,000 records or units on: tables are
    simulated from the released draws, then from corrected ones, and estimates with such weights
    compared with those without; draws move as far as these agree. It reads no outcome but by the
    released draws, so it costs nothing. Mixtures, programs of one's own, tables read as distinct
    rows, and models with survey weights, which may not be published, are not corrected.

    Parameters
    ----------
    epsilon : float, default 1
        Most that all released draws together may cost at `delta`, above 0, nats; mu is split over
        them.
    n_draws : int, default 1
        Draws that `epsilon` is for; a release sets it to the number that it draws.
    model, relation, unit, delta, design
        As in `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism`; its other settings keep
        their defaults.

    Raises
    ------
    BudgetExceeded
        By a release, before anything is drawn, if it would cost more than `epsilon`, or if the
        public weights leave less than 5 records for each coefficient and the scale; the message
        names an epsilon that is enough.
    """

    starts_from_unweighted: ClassVar[bool] = True
    epsilon: float = 1.0
    n_draws: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.epsilon, "epsilon")
        check_count(self.n_draws, "n_draws")
        taken = {"model", "relation", "unit", "delta", "design"}
        for setting in fields(MechanismSettings):
            if setting.name not in taken and getattr(self, setting.name) != setting.default:
                raise InvalidInput(
                    f"{self.name} takes no {setting.name}: its weights follow from epsilon alone; "
                    "for other settings take LipschitzWeighted (--mechanism lipschitz)"
                )

    def for_draws(self, n_draws: int) -> BudgetWeighted:
        """The same budget, split over so many draws."""
        return replace(self, n_draws=n_draws)

    def weights(self, session: FitSession) -> FloatArray:
        """Weights of the last round, shape (n,)."""
        return self.recomputed(session).alpha[session.owner]

    def recomputed(self, session: FitSession) -> WeightsWithout:
        """All rounds with and without each record."""
        bound, owner, near = session.bound, session.owner, self.unweighted(session).draws
        (here, there), leverage, weights = self._public(session, self._n_parameters(session))
        for number, share in enumerate(BUDGET_ROUNDS, 1):
            alpha, label = weights.alpha[owner], f"weights {number} of {len(BUDGET_ROUNDS)}"
            # The unweighted fit alone is always there: computed again, weights are the same.
            few = session if (alpha == 1).all() else session.with_share_of_draws(share)
            fit = few.fit(alpha, label=label, warm_start=near.warm_start())
            near, kept = fit.draws, np.flatnonzero(fit.bounds.kept_draws)
            risks = session.once(session.risks_at(near, np.ones(bound.n), "depth", kept))
            draws = risk_draws(session, fit, "depth", weights)
            weights = risk_weights_without(draws, risks, here, leverage, one_less=there)
        return weights

    def correction(
        self, session: FitSession, given: Sequence[pd.DataFrame] | None
    ) -> Callable[[Draws, Streams], Draws] | None:
        """Released draws less the bias of the weights; see the class."""
        models = [getattr(each, "model", None) for each in single_models(session.bound)]
        known = all(isinstance(each, LinearModel | LevelModel) for each in models)
        if session.n_units < _FEWEST_CORRECTED or not known or self.undecided:  # not published
            return None
        return partial(self._corrected, session, given)

    def _corrected(
        self,
        session: FitSession,
        given: Sequence[pd.DataFrame] | None,
        released: Draws,
        streams: Streams,
    ) -> Draws:
        how: dict[str, Any] = {"engine": session.engine, "settings": _SHORT, "rule": _LENIENT}
        pairs: list[tuple[Draws, Draws]] = []
        corrected, names = released, session.bound.likelihood_parameters
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of tables that are not released
                for number in range(_SIMULATED):
                    label = f"bias of the weights, simulated table {number + 1} of {_SIMULATED}"
                    told = named_progress(session.progress, label)
                    own = streams.child(f"table {number + 1}")
                    table = simulated(session.bound, corrected, number, own, given)
                    fits = FitOptions(**how, progress=told).session(self.bind(table), own)
                    fits = fits.by_unit(self.unit)
                    pairs.append((self.fit(fits).fit.draws, self.unweighted(fits).draws))
                    corrected = without_bias(released, pairs, names)
            return corrected
        except (InvalidInput, SamplingError, np.linalg.LinAlgError) as error:
            message = f"released draws keep the bias of their weights: {error}"
            warnings.warn(f"{', '.join(session.bound.synthesized)}: {message}", stacklevel=2)
            return released

    def check_records(self, session: FitSession) -> None:
        """Refuse too few records by predictors, and by how many parameters the model has."""
        p = self._n_parameters(session)
        weights = self._public(session, p)[2]
        if self._leaves_enough(session, weights, p):
            return
        left, k = _left(session, weights), _coefficients(session.bound, p)
        advice = "fewer predictors"
        for factor in np.geomspace(1.1, 50, 40):
            wider = replace(self, epsilon=math.ceil(self.epsilon * factor * 10) / 10)
            if wider._leaves_enough(session, wider._public(session, p)[2], p):
                advice = f"at least an epsilon of {wider.epsilon:g}, or fewer predictors"
                break
        raise BudgetExceeded(
            f"too few {self._whose()} for epsilon = {self.epsilon:g}: its weights leave the "
            f"information of {left:.2g} of {session.n_units:,} for {k} coefficients; take {advice}"
        )

    def _n_parameters(self, session: FitSession) -> int:
        """Of the likelihood, of a program of one's own by its draws."""
        if known := getattr(without_survey(session.bound), "n_parameters", 0):
            return int(known)
        near = self.unweighted(session).draws
        names = [n for n in session.bound.likelihood_parameters if n in near.variables]
        return max(1, sum(int(near.flat(name)[0].size) for name in names))

    def _public(self, session: FitSession, p: int) -> tuple[Any, WeightsWithout, WeightsWithout]:
        """Maps of n records and of one less, leverages and public weights; p parameters."""
        mu = mu_of_epsilon(self.epsilon, self.delta)
        mu /= mu_of_release(1.0, n_draws_released=self.n_draws, relation=self.relation)
        bound, parts = session.bound, single_models(session.bound)
        others = [part for part in parts if not isinstance(part, BoundLevels)]
        outcomes = "amounts" if all(part.density_above_one for part in others) else "counts"
        how: Any = {"mu": mu, "n_parameters": p, "outcomes": outcomes if others else "levels"}
        maps = budget_maps(n=session.n_units, **how)
        unit = None if session.units is None else session.owner
        how.update(unit=unit, n_parts=_regressions(bound))
        return maps, *budget_without(_predictors(bound), **how)

    def _leaves_enough(self, session: FitSession, weights: WeightsWithout, p: int) -> bool:
        """True if public weights leave some records to each coefficient and the scale."""
        return _left(session, weights) >= _FEWEST_LEFT * (1 + _coefficients(session.bound, p))

    def _whose(self) -> str:
        return "records" if self.unit is None else f"units of {self.unit}"

    def _check_charge(self, session: FitSession, charge: PrivacyCharge) -> None:
        if charge.epsilon > self.epsilon:
            raise BudgetExceeded(
                f"a release must cost at most epsilon = {self.epsilon:g}: with these "
                f"{session.n_units:,} {self._whose()} it would cost {charge.epsilon:.3g}"
                f"{self._enough(session, charge)}"
            )

    def _enough(self, session: FitSession, charge: PrivacyCharge) -> str:
        """What no weights would cost, or an epsilon that is enough, tried on these fits."""
        released = {"n_synthetic": charge.n_synthetic, "n_draws_released": charge.n_draws_released}
        unweighted = Unweighted(
            self.model, relation=self.relation, unit=self.unit, delta=self.delta, design=self.design
        )
        least = unweighted.charge_of(session, unweighted.fit(session), **released).epsilon
        if least <= self.epsilon:
            return (
                f"; without weights it costs {least:.3g}: take Unweighted (--mechanism unweighted, "
                "without --epsilon)"
            )
        likely = [1.5 * least, *(factor * charge.epsilon for factor in (1.2, 2.0, 4.0))]
        for at in sorted(each for each in likely if each < _LARGEST_NAMED):
            wider = replace(self, epsilon=math.ceil(at * 10) / 10)
            told = named_progress(session.progress, f"trying epsilon {wider.epsilon:g}")
            tried = replace(session.with_share_of_draws(0.5), progress=told)
            cost = wider.charge_of(tried, wider.fit(tried), **released).epsilon
            if cost <= _SURE * wider.epsilon:  # other draws charge other numbers
                return f"; an epsilon of {wider.epsilon:g} is enough, and costs about {cost:.3g}"
        return (
            "; take fewer predictors, another model, or noisy counts (no --formula)"
            f" (without weights it would cost {least:.3g})"
        )


def _predictors(bound: BoundModel) -> FloatArray:
    """The design matrix; no column for other models, all of whose records are taken as alike."""
    return bound.X


def _regressions(bound: BoundModel) -> int:
    """How many on the design matrix a model is made of: its parts, and all levels of a Categorical
    but one."""
    parts = single_models(bound)
    levels = (each for each in parts if isinstance(each, BoundManyLevels))
    own = (each.n_levels for each in levels if isinstance(each.model, Categorical))
    return len(parts) + sum(n_levels - 2 for n_levels in own)


def _coefficients(bound: BoundModel, p: int) -> int:
    """Of the design matrix, or of other models all of their p likelihood parameters but one."""
    regression = isinstance(without_survey(bound), BoundRegression)
    return _predictors(bound).shape[1] if regression else p - 1


def _left(session: FitSession, weights: WeightsWithout) -> float:
    """Sum of public weights over records or units."""
    return float(weights.alpha.sum())


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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_capped()

    def describe(self) -> dict[str, Any]:
        """Public settings, with those of the inner mechanism."""
        return {**super().describe(), "inner": self._inner().describe()}

    def weights(self, session: FitSession) -> FloatArray:
        """Truncated weights, shape (n,)."""
        f = self.unweighted(session).bounds.by_record
        cap = self._size(session.bound)
        return truncate_weights(self._inner().final_weights(session), f, cap=cap)

    def recomputed(self, session: FitSession) -> WeightsWithoutRecords | None:
        """Those of the inner mechanism, each cut by its own risk; None if they are not known."""
        base = self._inner().final_recomputed(session)
        if base is None:
            return None
        cut, risks = truncate_map(self._size(session.bound)), self.unweighted(session).bounds
        return self.map_without(session, risks.by_record, cut, before=base.general())

    def joined(self, session: FitSession, possible: BoundModel) -> WeightsWith:
        """Those of the inner mechanism, each cut by itself."""
        inner, cap = self._inner(), self._size(session.bound)
        if inner.reweighting is not False:
            return super().joined(session, possible)
        f = self.unweighted(session).bounds.by_record
        possible_risks = risk_of(self.possible_terms(session, possible), "size")
        return inner.joined(session, possible).mapped(
            lambda alpha: truncate_weights(alpha, f, cap=cap),
            lambda alpha: truncate_weights(alpha, possible_risks, cap=cap),
        )

    def _charge(
        self, bound: BoundModel, fit: PosteriorFit, accounts: Accounts, **released: int
    ) -> PrivacyCharge:
        charge = super()._charge(bound, fit, accounts, **released)
        return replace(charge, cap=self._size(bound))
