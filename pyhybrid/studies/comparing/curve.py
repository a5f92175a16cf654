"""The risk-utility curve: Lipschitz weights against scalar weights at equal epsilon.

Over a grid of (scale, shift) the Lipschitz-weighted posterior (LW) is fitted, and beside each point
a scalar-weighted one (SW, the exponential mechanism) whose refit has the same Lipschitz bound. What
a vector of weights gains is the distance between the curves at one epsilon.

Every point is computed on the confidential data: choosing a point by looking at the curve is not
covered by any guarantee.

References
----------
[S22] sec. 5, fig. 7: utility against the bound over (c, g), LW beside the exponential mechanism.
[C25] sec. 4.3: max- and avg-ECDF.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_count, check_finite, number_of
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.fitting.replicates import choose_draws, synthesize
from pyhybrid.fitting.session import FitProgress, FitSession, FitStore, PosteriorFit, open_session
from pyhybrid.measures.estimates import STATISTICS, avg_ecdf, max_ecdf, summaries
from pyhybrid.mechanisms import GivenWeights, PseudoPosteriorMechanism
from pyhybrid.mechanisms.epsilon_search import Search
from pyhybrid.models.base import Model
from pyhybrid.privacy.conversions import epsilon_of_bound
from pyhybrid.privacy.weights import weights_from_lipschitz
from pyhybrid.studies.comparing.comparison import present

NOT_COVERED = (
    "Every point was computed on the confidential data. A scale and shift chosen by looking at "
    "this curve are a choice that no epsilon here covers; nothing of the curve may be published."
)
NEAR = 0.98
"""A scalar weight is near enough if its bound is within (0.98, 1] of the Lipschitz weights'."""

_MOST_REFITS = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskUtilityCurve:
    """Points of a risk-utility curve of `n_synthetic` sets each. Confidential.

    Rows of the table: "Unweighted", then "LW" and "SW" for each (scale, shift). Columns: mechanism,
    scale, shift, mean_weight, lipschitz_bound (nats), epsilon (of ONE released draw, nats),
    bound_ratio (to LW at the same point), refits (of the search for the scalar weight), max_ecdf
    and avg_ecdf (means over the sets, 0 is best), error_mean, error_median, error_q15, error_q90
    (absolute differences between data and the average over the sets, unit of the outcome), the
    standard errors over the sets of these six, with _se behind, and converged.
    """

    table: pd.DataFrame
    outcome: str
    n_synthetic: int

    def __repr__(self) -> str:
        return f"<RiskUtilityCurve of {len(self.table)} points on {self.outcome!r}>"


@bar_in_notebooks
def risk_utility_curve(
    model: Model,
    df: Any,
    *,
    scales: float | Sequence[float],
    shifts: float | Sequence[float] = 0.0,
    n_synthetic: int = 20,
    progress: FitProgress | None = None,
    **options: Any,
) -> RiskUtilityCurve:
    """Epsilon and utility over a grid of (scale, shift), LW against SW at equal epsilon.

    One unweighted fit gives the weights of all points. At each point LW is fitted, and scalar
    weights are refitted until their own Lipschitz bound is within 2 % of LW's and not above it.
    Epsilons are the papers', twice the bound: a release by another accounting may cost less.

    Parameters
    ----------
    model : Model
    df : DataFrame
        Confidential records.
    scales, shifts : float or sequence of float
        c and g of `pyhybrid.lipschitz_weights`; all pairs are points.
    n_synthetic : int, default 20
        m, sets at each point.
    progress : callable, optional
        Called with ("curve points", done, total).
    **options
        seed, engine, settings, rule, on_not_converged of `pyhybrid.fitting.session.FitOptions`.
        All points share one seed.

    Raises
    ------
    InvalidInput
        For an empty grid, an outcome of levels (which have no distances), or a point at which all
        weights are 0.
    EngineUnavailable, SamplingError, NotConverged
        If a fit fails.

    References
    ----------
    [S22] sec. 5, fig. 7.
    """
    grid = _checked_grid(scales, shifts)
    m = check_count(n_synthetic, "n_synthetic")
    bound, report = model.bind(df), progress or (lambda *_: None)
    outcome = bound.synthesized[0]
    if bound.levels is not None:
        raise InvalidInput(
            f"a risk-utility curve needs an outcome of numbers: {outcome!r} has levels; take "
            "compare, which shows their shares, or a model of counts"
        )
    session = open_session(bound, progress=progress, **options)
    unweighted = session.unweighted()
    weights = {}
    for scale, shift in grid:
        alpha = weights_from_lipschitz(unweighted.bounds.by_record, scale=scale, shift=shift)
        if not alpha.any():
            raise InvalidInput(
                f"weights must not all be 0: they are at scale {scale:g}, shift {shift:g}; leave "
                "that point out"
            )
        weights[scale, shift] = alpha
    rows = [{"mechanism": "Unweighted", "scale": None, "shift": None,
             **_measures(session, model, m, unweighted)}]  # fmt: skip
    for done, ((scale, shift), alpha) in enumerate(weights.items()):
        report("curve points", done, len(grid))
        # Fits and draws of its own: no point depends on those before it.
        apart = replace(session, store=FitStore(), progress=None)
        start = None if (alpha == 1).all() else unweighted.draws.warm_start()
        label = f"LW at scale {scale:g}, shift {shift:g}"
        vector = apart.fit(alpha, label=label, warm_start=start)
        scalar, refits = scalar_fit(apart, vector)
        for name, fit, made in (("LW", vector, 0), ("SW", scalar, refits)):
            rows.append(
                {"mechanism": name, "scale": scale, "shift": shift,
                 **_measures(apart, model, m, fit),
                 "bound_ratio": fit.bounds.overall / vector.bounds.overall, "refits": made}
            )  # fmt: skip
    report("curve points", len(grid), len(grid))
    table = pd.DataFrame(rows)
    far = int((table["bound_ratio"] < NEAR).sum())
    if far:
        warnings.warn(
            f"{number_of(far, 'scalar weight')} cost more than {1 - NEAR:.0%} less than the "
            "Lipschitz weights they stand beside: see bound_ratio in the table",
            stacklevel=2,
        )
    return RiskUtilityCurve(table=table, outcome=outcome, n_synthetic=m)


def _checked_grid(scales: Any, shifts: Any) -> list[tuple[float, float]]:
    axes = []
    for name, values in (("scales", scales), ("shifts", shifts)):
        axis = [check_finite(value, f"each of {name}") for value in np.atleast_1d(values)]
        if not axis:
            raise InvalidInput(f"{name} must hold at least one number: found none")
        axes.append(list(dict.fromkeys(axis)))
    if min(axes[0]) < 0:
        raise InvalidInput(f"scales must be >= 0: found {min(axes[0]):g}")
    return [*product(axes[0], axes[1])]


def scalar_fit(session: FitSession, vector: PosteriorFit) -> tuple[PosteriorFit, int]:
    """Scalar-weighted fit whose Lipschitz bound is near that of `vector`, not above it; number of
    refits. All refits start from one state: from unlike ones the bound jumps by several per
    cent."""
    wanted, start = vector.bounds.overall, vector.draws.warm_start()

    def fit_at(weight: float) -> PosteriorFit:
        return session.fit(
            np.full(session.bound.n, weight),
            label=f"scalar weight {weight:.4g}",
            warm_start=None if weight == 1 else start,
        )

    search = Search(
        lambda weight: fit_at(weight).bounds.overall if weight else 0.0,
        limits=(0.0, 1.0), setting="the scalar weight", most=_MOST_REFITS,
    )  # fmt: skip
    try:
        weight = search.largest_within(wanted, (1 - NEAR) * wanted)
    except InvalidInput:
        raise SamplingError(
            f"no scalar weight that costs at most {wanted:.4g} was found in {_MOST_REFITS} "
            f"refits, down to {min(filter(None, search.tried)):.2g}: give more draws, or leave out "
            "that scale and shift"
        ) from None
    return fit_at(weight), sum(0 < tried < 1 for tried in search.tried)


def _measures(
    session: FitSession, model: Model, n_synthetic: int, fit: PosteriorFit
) -> dict[str, Any]:
    """Columns of the table from the fourth on."""
    column, data = session.bound.synthesized[0], present(session.bound.outcome)
    weighted = GivenWeights(model, alpha=fit.alpha, accounting="lipschitz")
    tables = sets_without_charge(session, weighted, fit, n_synthetic)
    sets = [present(session.bound.numbers_of(table[column])) for table in tables]
    distances = {"max_ecdf": max_ecdf, "avg_ecdf": avg_ecdf}
    by_set = pd.DataFrame(
        {name: [distance(data, values) for values in sets] for name, distance in distances.items()}
    )
    errors = [f"error_{statistic}" for statistic in STATISTICS]
    by_set[errors] = [summaries([values]) for values in sets]
    means = {**by_set[[*distances]].mean()}
    means |= zip(errors, np.abs(summaries(sets) - summaries(data)), strict=True)
    return {
        "mean_weight": float(fit.alpha.mean()),
        "lipschitz_bound": fit.bounds.overall,
        "epsilon": epsilon_of_bound(fit.bounds.overall),
        "bound_ratio": 1.0,
        "refits": 0,
        **means,
        **by_set.sem().fillna(0.0).add_suffix("_se"),  # 0 of one set, which says nothing of it
        "converged": fit.converged,
    }


def sets_without_charge(
    session: FitSession, mechanism: PseudoPosteriorMechanism, fit: PosteriorFit, n_synthetic: int
) -> list[pd.DataFrame]:
    """The synthesized columns of the sets that a release of `fit` would have, each from a draw of
    its own; without the charge, which takes longer than all else after the fit."""
    chosen = choose_draws(
        session, fit, mechanism.stream(), n_synthetic, relation=mechanism.relation
    )
    return synthesize(session, chosen, n_synthetic)
