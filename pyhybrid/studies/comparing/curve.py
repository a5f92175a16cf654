"""The risk-utility curve: Lipschitz weights against scalar weights at equal epsilon.

Over a grid of (scale, shift) the Lipschitz-weighted posterior (LW) is fitted, and beside each point
a scalar-weighted one (SW, the exponential mechanism) whose refit costs the same by the accounting
that is asked for. What a vector of weights gains is the distance between the curves at one epsilon.

Every point is computed on the confidential data: choosing a point by looking at the curve is not
covered by any guarantee.

References
----------
[S22] sec. 5, fig. 7: utility against the bound over (c, g), LW beside the exponential mechanism.
[C25] sec. 4.3: max- and avg-ECDF.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_count, check_finite, number_of
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.engines import (
    ConvergenceRule,
    Engine,
    SamplerSettings,
    WarmStart,
    resolve_engine,
)
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitProgress, FitSession, PosteriorFit, open_session
from pyhybrid.measures.arrays.estimates import STATISTICS, avg_ecdf, max_ecdf, summaries
from pyhybrid.mechanisms import GivenWeights
from pyhybrid.models.base import BoundModel, Model
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import check_delta
from pyhybrid.privacy.refits import ACCOUNTINGS
from pyhybrid.privacy.weights import weights_from_lipschitz
from pyhybrid.running.resumable import FinishedParts, fingerprint, open_parts
from pyhybrid.running.tasks import finished_tasks
from pyhybrid.studies.comparing.comparison import levels_of_outcome, present

NOT_COVERED = (
    "Every point was computed on the confidential data. A scale and shift chosen by looking at "
    "this curve are a choice that no epsilon here covers; nothing of the curve may be published."
)

_UNWEIGHTED = "unweighted"
NEAR: Mapping[str, float] = {"lipschitz": 0.98, "gaussian": 0.95, "range": 0.95}
"""A scalar weight is near enough if its epsilon is within (0.98, 1] of the Lipschitz weights'.

Deviations and ranges of few thousand draws differ by several per cent from fit to fit."""

_MOST_REFITS = 10
_INSIDE = (0.1, 0.9)  # no step ends nearer to one of two ends
_POWER = 2.0  # deviation and range of w f grow as the root of w: those of f as w^(-1/2)

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskUtilityCurve:
    """Points of a risk-utility curve. Confidential.

    Attributes
    ----------
    table : DataFrame
        Rows: "Unweighted", then "LW" and "SW" for each (scale, shift). Columns: mechanism, scale,
        shift, mean_weight, lipschitz_bound (nats), epsilon (of ONE released draw, nats),
        accounting, delta, mu, epsilon_range and epsilon_lipschitz (by the other accountings),
        bound_ratio and epsilon_ratio (to LW at the same point), refits (of the search for the
        scalar weight), max_ecdf and avg_ecdf (means over the sets, 0 is best),
        error_mean, error_median, error_q15, error_q90 (absolute differences between data and the
        average over the sets, unit of the outcome), the standard errors over the sets of these
        six, under their names with _se behind, and converged.
    outcome : str
        The synthesized column.
    n_synthetic : int
        m, sets at each point.
    points_resumed : int
        Points taken from the results file.
    """

    table: pd.DataFrame
    outcome: str
    n_synthetic: int
    points_resumed: int

    def __repr__(self) -> str:
        return f"<RiskUtilityCurve of {len(self.table)} points on {self.outcome!r}>"


@bar_in_notebooks
def risk_utility_curve(
    model: Model,
    df: Any,
    *,
    scales: Iterable[float],
    shifts: Iterable[float] = (0.0,),
    n_synthetic: int = 20,
    accounting: str = "lipschitz",
    delta: float = 1e-6,
    seed: int | None = None,
    engine: str | Engine = "auto",
    settings: SamplerSettings | None = None,
    rule: ConvergenceRule | None = None,
    on_not_converged: str = "raise",
    workers: int = 1,
    executor: Executor | None = None,
    results: str | os.PathLike[str] | None = None,
    progress: FitProgress | None = None,
) -> RiskUtilityCurve:
    """Epsilon and utility over a grid of (scale, shift), LW against SW at equal epsilon.

    One unweighted fit gives the weights of all points. At each point LW is fitted, and scalar
    weights are refitted until their own epsilon is within 5 % of LW's (2 % by the Lipschitz bound,
    which varies less from fit to fit) and not above it. Epsilons are those of weights that are
    taken as fixed, as published: a release, which refits without single records, costs that or
    more.

    Parameters
    ----------
    model : Model
    df : DataFrame
        Confidential records.
    scales, shifts : iterable of float
        c and g of `pyhybrid.lipschitz_weights`; all pairs are points.
    n_synthetic : int, default 20
        m, sets at each point.
    accounting : {"lipschitz", "range", "gaussian"}, default "lipschitz"
        Of the epsilon that is equal; [S22] has equal bounds, 2 Delta.
    delta : float, default 1e-6
        Of Gaussian accounting, public, below 1 / n.
    seed, engine, settings, rule, on_not_converged
        See `pyhybrid.fitting.session.FitOptions`. All points share one seed.
    workers : int, default 1
        Processes; 1 works in this one. A script that uses more needs the usual
        ``if __name__ == "__main__":``. The results do not depend on the number.
    executor : concurrent.futures.Executor, optional
        Runs the points in place of `workers`.
    results : path, optional
        File for finished points, private (0600). A rerun with the same settings and data skips
        what is in it, and may have another grid.
    progress : callable, optional
        Called with ("curve points", done, total).

    Returns
    -------
    RiskUtilityCurve

    Raises
    ------
    InvalidInput
        For an empty grid, an outcome of levels (which have no distances), a point at which all
        weights are 0, or a results file of another run.
    EngineUnavailable, SamplingError, NotConverged
        If a fit fails; finished points are in `results` then.

    References
    ----------
    [S22] sec. 5, fig. 7.
    """
    grid = _checked_grid(scales, shifts)
    m = check_count(n_synthetic, "n_synthetic")
    check_choice(accounting, "accounting", ACCOUNTINGS)
    check_delta(delta)
    workers = check_count(workers, "workers")
    bound = model.bind(df)
    _check_numbers(bound)
    common = CurveSettings(
        model=model,
        df=df,
        n_synthetic=m,
        engine=engine,
        settings=settings or SamplerSettings(),
        rule=rule or ConvergenceRule(),
        on_not_converged=on_not_converged,
        accounting=accounting,
        delta=delta,
    )
    with open_parts(results, settings=_fingerprint(common, bound), seed=seed) as finished:
        resumed = sum(key in finished.parts for key in map(_key, grid))
        _complete(common, grid, finished, workers, executor, progress)
    rows = [finished.parts[_UNWEIGHTED], *itertools.chain(*(finished.parts[_key(p)] for p in grid))]
    table = pd.DataFrame(rows)
    near = NEAR[accounting]
    far = int((table["epsilon_ratio"] < 0.99 * near).sum())  # epsilons are rounded up
    if far:
        warnings.warn(
            f"{number_of(far, 'scalar weight')} cost more than {1 - near:.0%} less than the "
            "Lipschitz weights they stand beside: see epsilon_ratio in the table",
            stacklevel=2,
        )
    return RiskUtilityCurve(
        table=table,
        outcome=bound.synthesized[0],
        n_synthetic=m,
        points_resumed=resumed,
    )


def _complete(
    common: CurveSettings,
    grid: Sequence[Point],
    finished: FinishedParts,
    workers: int,
    executor: Executor | None,
    progress: FitProgress | None,
) -> None:
    """Add what is missing to `finished`."""
    missing = [point for point in grid if _key(point) not in finished.parts]
    if not missing and _UNWEIGHTED in finished.parts:
        return
    session = common.session(finished.entropy, progress)
    unweighted = session.unweighted()
    weights = {point: _alpha(unweighted, point) for point in missing}
    if _UNWEIGHTED not in finished.parts:
        cost = charge_at(session, common, unweighted)
        row = table_row(session, common, "Unweighted", None, unweighted, cost, cost, 0)
        finished.add(_UNWEIGHTED, row)
    if executor is None and workers > 1:  # chains one after the other where points are parallel
        chains = max(1, (os.cpu_count() or 1) // workers)
        common = replace(common, settings=replace(common.settings, parallel_chains=chains))
    tasks = [
        PointTask(
            common=common,
            entropy=finished.entropy,
            point=point,
            alpha=alpha,
            unweighted_bound=unweighted.bounds.overall,
            unweighted_epsilon=finished.parts[_UNWEIGHTED]["epsilon"],
            start=unweighted.draws.warm_start(),
        )
        for point, alpha in weights.items()
    ]
    ended = finished_tasks(
        point_rows, tasks, "points", workers=workers, executor=executor, progress=progress,
        label="curve points", before=len(grid) - len(missing),
    )  # fmt: skip
    for task, rows in ended:
        finished.add(_key(task.point), rows)


def _alpha(unweighted: PosteriorFit, point: Point) -> FloatArray:
    alpha = weights_from_lipschitz(unweighted.bounds.by_record, scale=point[0], shift=point[1])
    if not alpha.any():
        raise InvalidInput(
            f"weights must not all be 0: they are at scale {point[0]:g}, shift {point[1]:g}; leave "
            "that point out"
        )
    return alpha


def _check_numbers(bound: BoundModel) -> None:
    if levels_of_outcome(bound) is not None:
        raise InvalidInput(
            f"a risk-utility curve needs an outcome of numbers: {bound.synthesized[0]!r} has "
            "levels; take compare, which shows their shares, or a model of counts"
        )


def _checked_grid(scales: Iterable[float], shifts: Iterable[float]) -> list[Point]:
    axes = []
    for name, values in (("scales", scales), ("shifts", shifts)):
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InvalidInput(f"{name} must be a sequence of numbers: found {values!r}")
        axis = [check_finite(value, f"each of {name}") for value in values]
        if not axis:
            raise InvalidInput(f"{name} must hold at least one number: found none")
        axes.append(list(dict.fromkeys(axis)))
    nothing = [scale for scale in axes[0] if scale < 0]
    if nothing:
        raise InvalidInput(f"scales must be >= 0: found {nothing[0]:g}")
    return [(scale, shift) for scale in axes[0] for shift in axes[1]]


def _key(point: Point) -> str:
    return f"{point[0]!r}, {point[1]!r}"


def _fingerprint(common: CurveSettings, bound: BoundModel) -> str:
    """Of all that a point depends on but the seed and the point itself."""
    columns = [*bound.synthesized, *bound.predictors]
    records = pd.util.hash_pandas_object(bound.table[columns], index=False).to_numpy()
    settings: Mapping[str, Any] = {
        **asdict(common.settings),
        "parallel_chains": None,  # changes the time, not the draws
    }
    engine = resolve_engine(common.engine)
    return fingerprint(
        {
            "model": common.model.describe(),
            "program": bound.program.sha256,
            "records": hashlib.sha256(records.tobytes()).hexdigest(),
            "n_synthetic": common.n_synthetic,
            "engine": [engine.name, engine.status().version],
            "settings": settings,
            "rule": asdict(common.rule),
            "on_not_converged": common.on_not_converged,
            "accounting": [common.accounting, common.delta],
        }
    )


# --- One point ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveSettings:
    """Settings that all points share, in a form that other processes can be sent."""

    model: Model
    df: pd.DataFrame
    n_synthetic: int
    engine: str | Engine
    settings: SamplerSettings
    rule: ConvergenceRule
    on_not_converged: str
    accounting: str
    delta: float

    def given(self, alpha: FloatArray) -> GivenWeights:
        """Synthesis with these weights (n,)."""
        return GivenWeights(self.model, alpha=alpha, accounting=self.accounting, delta=self.delta)

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
    charge = charge_at(session, common, vector)

    if common.accounting == "lipschitz":
        scalar, refits = scalar_fit(session, vector, task.unweighted_bound)
    else:
        scalar, refits = scalar_fit(
            session,
            vector,
            task.unweighted_epsilon,
            target=charge.epsilon,
            cost=lambda fit: charge_at(session, common, fit).epsilon,
            power=_POWER,
            near=NEAR[common.accounting],
        )
    return [
        table_row(session, common, "LW", task.point, vector, charge, charge, 0),
        table_row(
            session,
            common,
            "SW",
            task.point,
            scalar,
            charge_at(session, common, scalar),
            charge,
            refits,
        ),
    ]


def charge_at(session: FitSession, common: CurveSettings, fit: PosteriorFit) -> PrivacyCharge:
    """Charge of one draw of `fit`, its weights taken as fixed."""
    return common.given(fit.alpha).charge_of(
        session, Reweighted(start=fit, fit=fit, steps=()), n_synthetic=1, n_draws_released=1
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
    """Scalar-weighted fit whose cost (the Lipschitz bound if omitted) is near that of `vector`, not
    above it; number of refits. All refits start from one state: from unlike ones the cost jumps by
    several per cent."""
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
        spent = fit.bounds.overall if cost is None else cost(fit)
        if spent <= wanted and (best is None or spent > best[0]):
            best = spent, fit
        if best is not None and (best[0] > near * wanted or weight >= 1):
            return best[1], refit
        search.found(spent)
    if best is None:
        raise SamplingError(
            f"no scalar weight that costs at most {wanted:.4g} was found in {_MOST_REFITS} "
            f"refits, down to {weight:.2g}: give more draws, or leave out that scale and shift"
        )
    return best[1], _MOST_REFITS


class _WeightSearch:
    """The next weight to try. While all cost too much steps double at least: where the posterior is
    nearly the prior, a smaller weight widens it and the cost hardly falls. Between two ends: a line
    in logarithms of both."""

    def __init__(self, *, wanted: float, unweighted: float, power: float, near: float) -> None:
        self.wanted, self.aim, self.power = wanted, (1 + near) / 2 * wanted, power
        self.weight = min(1.0, (wanted / unweighted) ** power)
        self.low: tuple[float, float] | None = None  # weight and cost
        self.high = (1.0, unweighted)
        self.step = 1.0

    def found(self, cost: float) -> None:
        """Set the next weight from what `self.weight` costs."""
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
    assert charge.bound is not None
    assert vector.bound is not None
    mechanism = common.given(fit.alpha)
    release = mechanism.release_from(session, n_synthetic=m, n_draws_released=m, refits=0)
    column, data = session.bound.synthesized[0], present(session.bound.outcome)
    sets = [present(session.bound.numbers_of(values[column])) for values in release.synthetic]
    errors = np.abs(summaries(sets) - summaries(data))
    distances = {
        "max_ecdf": np.array([max_ecdf(data, values) for values in sets]),
        "avg_ecdf": np.array([avg_ecdf(data, values) for values in sets]),
    }
    spread = np.std([summaries([values]) for values in sets], axis=0, ddof=1 if m > 1 else 0)
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
        **{name: float(values.mean()) for name, values in distances.items()},
        **{f"error_{s}": float(e) for s, e in zip(STATISTICS, errors, strict=True)},
        **{f"{name}_se": _standard_error(values) for name, values in distances.items()},
        **{f"error_{s}_se": float(e) / m**0.5 for s, e in zip(STATISTICS, spread, strict=True)},
        "converged": fit.converged,
    }


def _standard_error(values: FloatArray) -> float:
    """Of the mean over the sets; 0 of one set, which says nothing of it."""
    return float(values.std(ddof=1)) / values.size**0.5 if values.size > 1 else 0.0
