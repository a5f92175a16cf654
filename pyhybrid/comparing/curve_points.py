"""One point of the risk-utility curve: LW, and SW at the same bound, with their utilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.checks import FloatArray
from pyhybrid.comparing.outcome import present
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings, WarmStart
from pyhybrid.errors import SamplingError
from pyhybrid.fitting.session import FitProgress, FitSession, PosteriorFit, open_session
from pyhybrid.measures.arrays.estimates import STATISTICS, avg_ecdf, max_ecdf, summaries
from pyhybrid.mechanisms import GivenWeights
from pyhybrid.models.base import Model
from pyhybrid.privacy.epsilon import epsilon_of_bound

__all__ = ["NEAR", "CurveSettings", "Point", "PointTask", "point_rows", "scalar_fit", "table_row"]

NEAR = 0.98
"""A scalar weight is near enough if its bound is within (0.98, 1] of the Lipschitz weights'."""

_AIM = 0.99
_MOST_REFITS = 10

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
    """One point: its weights (n,), and the unweighted fit's bound, from which the scalar search
    starts, and state, from which its fit starts as the mechanism's does."""

    common: CurveSettings
    entropy: int
    point: Point
    alpha: FloatArray
    unweighted_bound: float
    start: WarmStart


def point_rows(task: PointTask) -> list[dict[str, Any]]:
    """The rows of LW and SW at one point; runs in any process."""
    session = task.common.session(task.entropy)
    label = f"LW at scale {task.point[0]:g}, shift {task.point[1]:g}"
    cold = (task.alpha == 1).all()
    vector = session.fit(task.alpha, label=label, warm_start=None if cold else task.start)
    scalar, refits = scalar_fit(session, vector, task.unweighted_bound)
    return [
        table_row(session, task.common, "LW", task.point, vector, vector, 0),
        table_row(session, task.common, "SW", task.point, scalar, vector, refits),
    ]


def scalar_fit(
    session: FitSession, vector: PosteriorFit, unweighted_bound: float
) -> tuple[PosteriorFit, int]:
    """Scalar-weighted fit whose bound is near that of `vector` and not above it; refits made.

    The bound is nearly proportional to the weight, so that each refit scales it; a step that
    leaves the bracket bisects it. All refits start from the same state: with one seed, the bound is
    then a smooth function of the weight (from unlike states it jumps by several per cent).
    """
    target = vector.bounds.overall
    low, high, best = 0.0, 1.0, None
    weight, start = min(1.0, target / unweighted_bound), vector.draws.warm_start()
    for refit in range(1, _MOST_REFITS + 1):
        fit = session.fit(
            np.full(session.bound.n, weight),
            label=f"scalar weight {weight:.4g}",
            warm_start=start,
        )
        found = fit.bounds.overall
        if found <= target:
            best = fit if best is None or found > best.bounds.overall else best
            if found > NEAR * target or weight >= 1:
                return best, refit
            low = weight
        else:
            high = weight
        scaled = weight * _AIM * target / found
        weight = scaled if low < scaled < high else (low + high) / 2
    if best is None:
        raise SamplingError(
            f"no scalar weight with a bound of at most {target:.4g} was found in {_MOST_REFITS} "
            "refits: give more draws"
        )
    return best, _MOST_REFITS


def table_row(
    session: FitSession,
    common: CurveSettings,
    name: str,
    point: Point | None,
    fit: PosteriorFit,
    vector: PosteriorFit,
    refits: int,
) -> dict[str, Any]:
    """One row of the table as plain JSON values."""
    m, bound = common.n_synthetic, fit.bounds.overall
    release = GivenWeights(common.model, alpha=fit.alpha).release_from(
        session, n_synthetic=m, n_draws_released=m
    )
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
        "lipschitz_bound": bound,
        "epsilon": epsilon_of_bound(bound),
        "bound_ratio": bound / vector.bounds.overall,
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
