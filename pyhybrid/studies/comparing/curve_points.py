"""One point of the risk-utility curve: LW, and SW at the same epsilon, with their utilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import SamplingError
from pyhybrid.engines import ConvergenceRule, Draws, Engine, SamplerSettings, WarmStart
from pyhybrid.fitting.session import FitProgress, FitSession, PosteriorFit, open_session
from pyhybrid.measures.arrays.estimates import STATISTICS, avg_ecdf, max_ecdf, summaries
from pyhybrid.mechanisms import GivenWeights
from pyhybrid.mechanisms.accounting.charge import charge_of_fit
from pyhybrid.mechanisms.accounting.loss_account import account_of_fit
from pyhybrid.models.base import Model
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.local_account import WeightsWithoutRecords
from pyhybrid.privacy.weight_sensitivity import lipschitz_without, scalar_without
from pyhybrid.studies.comparing.outcome import present

__all__ = [
    "NEAR",
    "CurveSettings",
    "Point",
    "PointTask",
    "charge_at",
    "point_rows",
    "scalar_fit",
    "table_row",
]

NEAR: Mapping[str, float] = {"lipschitz": 0.98, "gaussian": 0.95, "range": 0.95}
"""A scalar weight is near enough if its epsilon is within (0.98, 1] of the Lipschitz weights'.

Deviations and ranges of few thousand draws differ by several per cent from fit to fit."""

_MOST_REFITS = 10
_INSIDE = (0.1, 0.9)  # no step ends nearer to one of two ends
_POWER = 2.0  # deviation and range of w f grow as the root of w: those of f as w^(-1/2)

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveSettings:
    """What all points share, in a form that other processes can be sent."""

    model: Model
    df: pd.DataFrame
    n_synthetic: int
    engine: str | Engine
    settings: SamplerSettings
    rule: ConvergenceRule
    on_not_converged: str
    accounting: str
    delta: float

    def session(self, entropy: int, progress: FitProgress | None = None) -> FitSession:
        return open_session(
            self.model.bind(self.df),
            seed=entropy,
            engine=self.engine,
            settings=self.settings,
            rule=self.rule,
            on_not_converged=self.on_not_converged,
            progress=progress,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PointTask:
    """One point: its weights (n,), the unweighted fit's bounds f (n,), overall bound and epsilon,
    from which the scalar search starts, and state, from which its fit starts as the mechanism's."""

    common: CurveSettings
    entropy: int
    point: Point
    alpha: FloatArray
    reference: Draws
    unweighted_bound: float
    unweighted_epsilon: float
    start: WarmStart


def point_rows(task: PointTask) -> list[dict[str, Any]]:
    """The rows of LW and SW at one point; runs in any process."""
    common = task.common
    session = common.session(task.entropy)
    scale, shift = task.point
    label = f"LW at scale {scale:g}, shift {shift:g}"
    cold = (task.alpha == 1).all()
    vector = session.fit(task.alpha, label=label, warm_start=None if cold else task.start)
    reference = session.bound.log_lik(task.reference)
    moving = lipschitz_without(reference, scale=scale, shift=shift)
    own = charge_at(session, common, vector, moving)

    def charged(fit: PosteriorFit) -> PrivacyCharge:
        target = float(fit.alpha[0]) * task.unweighted_bound
        moving = scalar_without(reference, target_bound=target)
        return charge_at(session, common, fit, moving)

    if common.accounting == "lipschitz":
        scalar, refits = scalar_fit(session, vector, task.unweighted_bound)
    else:
        scalar, refits = scalar_fit(
            session,
            vector,
            task.unweighted_epsilon,
            target=own.epsilon,
            cost=lambda fit: charged(fit).epsilon,
            power=_POWER,
            near=NEAR[common.accounting],
        )
    return [
        table_row(session, common, "LW", task.point, vector, own, own, 0),
        table_row(session, common, "SW", task.point, scalar, charged(scalar), own, refits),
    ]


def charge_at(
    session: FitSession,
    common: CurveSettings,
    fit: PosteriorFit,
    without: WeightsWithoutRecords | None,
) -> PrivacyCharge:
    """Charge of one draw of `fit`, whose weights change as `without` says when a record leaves."""
    return charge_of_fit(
        "risk_utility_curve",
        fit,
        session.bound,
        n_synthetic=1,
        n_draws_released=1,
        relation="remove",
        safety_factor=1.0,
        account=account_of_fit(session, fit, without),
        accounting=common.accounting,
        delta=common.delta,
    )


def scalar_fit(
    session: FitSession,
    vector: PosteriorFit,
    unweighted: float,
    *,
    target: float | None = None,
    cost: Callable[[PosteriorFit], float] | None = None,
    power: float = 1.0,
    near: float = NEAR["lipschitz"],
) -> tuple[PosteriorFit, int]:
    """Scalar-weighted fit whose cost is near that of `vector` and not above it; refits made.

    The cost, of which `unweighted` is that of weights of 1, is the Lipschitz bound if omitted; the
    target is the bound of `vector` then. Weights are nearly proportional to a `power` of the cost,
    so that the first refits scale them; see `_WeightSearch`. All refits start from the same state:
    with one seed, the cost is then a smooth function of the weight (from unlike states it jumps by
    several per cent).
    """
    wanted = vector.bounds.overall if target is None else target
    start = vector.draws.warm_start()
    best: tuple[float, PosteriorFit] | None = None
    search = _WeightSearch(wanted=wanted, unweighted=unweighted, power=power, near=near)
    for refit in range(1, _MOST_REFITS + 1):
        weight = search.weight
        fit = session.fit(
            np.full(session.bound.n, weight),
            label=f"scalar weight {weight:.4g}",
            warm_start=start,
        )
        found = fit.bounds.overall if cost is None else cost(fit)
        if found <= wanted and (best is None or found > best[0]):
            best = found, fit
        if best is not None and (best[0] > near * wanted or weight >= 1):
            return best[1], refit
        search.found(found)
    if best is None:
        raise SamplingError(
            f"no scalar weight that costs at most {wanted:.4g} was found in {_MOST_REFITS} "
            f"refits, down to {weight:.2g}: give more draws, or leave out that scale and shift"
        )
    return best[1], _MOST_REFITS


class _WeightSearch:
    """The next weight to try, from the costs of those before.

    While all weights cost too much, each step is at least twice as long as the one before (in
    logarithms): where the posterior of few records is nearly the prior, a smaller weight makes it
    wider, the cost hardly falls, and steps by the power alone become shorter and shorter. Between
    two ends the cost is taken for a straight line in logarithms of both.
    """

    def __init__(self, *, wanted: float, unweighted: float, power: float, near: float) -> None:
        self.wanted, self.aim, self.power = wanted, (1 + near) / 2 * wanted, power
        self.weight = min(1.0, (wanted / unweighted) ** power)
        self.low: tuple[float, float] | None = None  # weight and cost
        self.high = (1.0, unweighted)
        self.step = 1.0

    def found(self, cost: float) -> None:
        """What `self.weight` costs: sets the next one."""
        if cost <= self.wanted:
            self.low = self.weight, cost
        else:
            self.high = self.weight, cost
        if self.low is None:
            self.step = min((self.aim / cost) ** self.power, self.step**2)
            self.weight *= self.step
        else:
            self.weight = _between(self.low, self.high, self.aim)


def _between(low: tuple[float, float], high: tuple[float, float], aim: float) -> float:
    """Weight between two at which a cost that is straight in logarithms is `aim`."""
    if low[1] <= 0:
        return (low[0] + high[0]) / 2
    part = np.log(aim / low[1]) / np.log(high[1] / low[1])
    share = float(np.clip(part, *_INSIDE))
    return low[0] * float((high[0] / low[0]) ** share)


def table_row(
    session: FitSession,
    common: CurveSettings,
    name: str,
    point: Point | None,
    fit: PosteriorFit,
    charge: PrivacyCharge,
    vector: PrivacyCharge,
    refits: int,
) -> dict[str, Any]:
    """One row of the table as plain JSON values; `vector` is the charge of LW at the same point."""
    m = common.n_synthetic
    mechanism = GivenWeights(
        common.model, alpha=fit.alpha, accounting=common.accounting, delta=common.delta
    )
    release = mechanism.release_from(session, n_synthetic=m, n_draws_released=m)
    column, data = session.bound.synthesized[0], present(session.bound.outcome)
    sets = [present(session.bound.numbers_of(each[column])) for each in release.synthetic]
    errors = np.abs(summaries(sets) - summaries(data))
    distances = {
        "max_ecdf": np.array([max_ecdf(data, each) for each in sets]),
        "avg_ecdf": np.array([avg_ecdf(data, each) for each in sets]),
    }
    spread = np.std([summaries([each]) for each in sets], axis=0, ddof=1 if m > 1 else 0)
    return {
        "mechanism": name,
        "scale": None if point is None else point[0],
        "shift": None if point is None else point[1],
        "mean_weight": float(fit.alpha.mean()),
        "lipschitz_bound": charge.bound,
        "epsilon": charge.epsilon,
        "accounting": charge.accounting,
        "delta": charge.delta,
        "mu": charge.mu,
        "epsilon_range": charge.epsilon_range,
        "epsilon_lipschitz": charge.epsilon_lipschitz,
        "bound_ratio": charge.bound / vector.bound,
        "epsilon_ratio": charge.epsilon / vector.epsilon,
        "refits": refits,
        **{name: float(each.mean()) for name, each in distances.items()},
        **{f"error_{s}": float(e) for s, e in zip(STATISTICS, errors, strict=True)},
        **{f"{name}_se": _standard_error(each) for name, each in distances.items()},
        **{f"error_{s}_se": float(e) / m**0.5 for s, e in zip(STATISTICS, spread, strict=True)},
        "converged": fit.converged,
    }


def _standard_error(values: FloatArray) -> float:
    """Of the mean over the sets; 0 of one set, which says nothing of it."""
    return float(values.std(ddof=1)) / values.size**0.5 if values.size > 1 else 0.0
