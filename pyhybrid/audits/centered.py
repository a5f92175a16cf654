"""Exact audit of centered censoring: the posteriors that a calibration draws from, enumerated.

A small calibration is made, its mechanism fits every database of three records, and the posteriors
of neighbors are compared over the whole grid, with the excess that each record adds. Two controls
are broken: a center that is computed from the records themselves, and a cap that is charged by half
of its interval, as one without a center may be for discrete outcomes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.audits.finding import EXACT, AuditFinding
from pyhybrid.checks import FloatArray
from pyhybrid.fitting.exact import exact_posterior
from pyhybrid.mechanisms.calibration import Calibration, calibrate
from pyhybrid.mechanisms.center import Center, log_lik_at
from pyhybrid.models import Beta, NegativeBinomial, NormalRegression, Poisson
from pyhybrid.models.grid import ParameterGrid
from pyhybrid.models.regression import RegressionModel
from pyhybrid.privacy.cap import Cap

__all__ = ["centered_audits"]

_EPSILON = 1.0
_RECORDS = 150
_POINTS = {1: 200, 2: 24}  # of an axis, by the number of axes
_COUNTS = (0.0, 1.0, 4.0, 30.0)
_LogPosterior = Callable[[Sequence[float]], FloatArray]


def centered_audits(options: dict[str, Any]) -> list[AuditFinding]:
    """Every model that has a grid, both relations; `options` go to `pyhybrid.calibrate`."""
    rng = np.random.default_rng(1)
    rates = rng.gamma(1.0, 3.0, _RECORDS)
    cases: list[tuple[RegressionModel, npt.NDArray[Any], tuple[float, ...]]] = [
        (Poisson("y ~ 1"), rng.poisson(3, _RECORDS), _COUNTS),
        (NegativeBinomial("y ~ 1"), rng.poisson(rates), _COUNTS),
        (Beta("y ~ 1", decimals=4), rng.beta(1.0, 3.0, _RECORDS), (0.001, 0.2, 0.5, 0.99)),
        (NormalRegression("y ~ 1", decimals=4, min_sd=0.1), rng.normal(0.5, 1.0, _RECORDS),
         (-3.0, 0.0, 0.6, 9.0)),
    ]  # fmt: skip
    return [
        _audit(model, pd.DataFrame({"y": values}), support, relation, options)
        for model, values, support in cases
        for relation in ("remove", "replace")
    ]


def _audit(
    model: RegressionModel,
    reference: pd.DataFrame,
    support: tuple[float, ...],
    relation: str,
    options: dict[str, Any],
) -> AuditFinding:
    frozen = calibrate(model, reference, epsilon=_EPSILON, relation=relation, n_draws=50, **options)
    double = replace(frozen, cap=2 * frozen.cap)  # of which M was charged in the place of 2 M
    honest, half = (
        _largest_loss(frozen, support, relation),
        _largest_loss(double, support, relation),
    )
    moved = _largest_loss(frozen, support, relation, own_center=True)
    worse = "a center from all records" if moved > half else "charged M in the place of 2 M"
    return AuditFinding(
        mechanism=f"Censored from a center, exact, {model.name}",
        relation=relation,
        method=EXACT,
        epsilon=_EPSILON,
        loss=honest,
        control=worse,
        control_loss=max(half, moved),
    )


def _largest_loss(
    frozen: Calibration, support: tuple[float, ...], relation: str, *, own_center: bool = False
) -> float:
    """Over all databases of three records, two of them unlike, and all of their neighbors."""
    posterior = _posterior(frozen, own_center=own_center)
    worst = 0.0
    for rest in itertools.combinations(support, 2):
        own = np.array([posterior((*rest, value)) for value in support])
        if relation == "remove":
            worst = max(worst, float(np.abs(own - posterior(rest)).max()))
        else:
            worst = max(worst, float(np.ptp(own, axis=0).max()))
    return worst


def _posterior(frozen: Calibration, *, own_center: bool) -> _LogPosterior:
    """Normalized log posterior of a database on a coarse grid of the calibration's region."""
    center, model = frozen.center, frozen.model
    assert center is not None
    assert isinstance(model, RegressionModel)
    form = model.grid_form(("Intercept",))
    assert form is not None
    fine = center.grid(form)
    assert fine is not None
    size = _POINTS[len(fine.axes)]
    grid = ParameterGrid(axes=tuple(replace(axis, size=size) for axis in fine.axes))
    excess = center.excess_on(form, grid)

    def log_posterior(values: Sequence[float]) -> FloatArray:
        bound = model.bind(pd.DataFrame({"y": values}))
        at = _own_center(center, values) if own_center else center.parameters
        cap = Cap(below=frozen.cap, above=frozen.cap, reference=log_lik_at(bound, at))
        found = exact_posterior(bound, form, grid, frozen.weights(bound), cap, excess)
        return np.asarray(found.log_density - logsumexp(found.log_density))

    return log_posterior


def _own_center(center: Center, values: Sequence[float]) -> dict[str, FloatArray]:
    """The control: theta_ref that follows the mean of the records that are released."""
    moved = float(np.tanh(np.mean(values))) / 2
    return {name: own + moved if name == "beta" else own for name, own in center.parameters.items()}
