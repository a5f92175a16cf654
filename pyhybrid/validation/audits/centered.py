"""Exact audit of centered censoring: the posteriors that a calibration draws from, enumerated.

A small calibration is made, its mechanism fits every database of three records, and the posteriors
of neighbors are compared over the whole grid, with the excess that moves every center. Four
mechanisms are broken on purpose, and each must be caught: a center that is computed from the
records themselves, an excess of the records themselves, ten times one that is added after clipping
(where it goes with the number of records), and a cap that is charged by half of its interval, as
one without a center may be for discrete outcomes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from pyhybrid.core.checks import FloatArray
from pyhybrid.fitting.exact import exact_posterior
from pyhybrid.mechanisms.censored.calibration import Calibration, calibrate
from pyhybrid.mechanisms.censored.center import Center
from pyhybrid.models import Beta, NegativeBinomial, NormalRegression, Poisson
from pyhybrid.models.families.regression import RegressionModel, frozen_rows
from pyhybrid.models.grid import GridForm, ParameterGrid
from pyhybrid.validation.audits.finding import EXACT, AuditFinding

__all__ = ["centered_audits"]

_EPSILON = 1.0
_RECORDS = 150
_POINTS = {1: 200, 2: 24}  # of an axis, by the number of axes
_COUNTS = (0.0, 1.0, 4.0, 30.0)
OWN_CENTER = "a center from all records"
OWN_EXCESS = "an excess of the records released"
AFTER = "ten excesses added after clipping"
HALF = "charged M in the place of 2 M"
_TIMES = 2  # M is charged for a cap of this many
_BROKEN = {
    "remove": (OWN_CENTER, OWN_EXCESS, AFTER, HALF),
    "replace": (OWN_CENTER, OWN_EXCESS, HALF),
}
_LogPosterior = Callable[[Sequence[float]], FloatArray]


def centered_audits(options: dict[str, Any]) -> list[AuditFinding]:
    """Every model that has a grid, both relations; `options` go to `pyhybrid.calibrate`."""
    rng = np.random.default_rng(1)
    rates = rng.gamma(1.0, 3.0, _RECORDS)
    cases: list[tuple[RegressionModel, Any, tuple[float, ...]]] = [
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
    frozen = calibrate(
        model,
        reference,
        epsilon=_EPSILON,
        relation=relation,
        n_draws=50,
        holds_no_released_record=True,
        **options,
    )
    losses = {
        broken: _largest_loss(_posterior(frozen, broken), support, relation)
        for broken in (None, *_BROKEN[relation])
    }
    seen = min(_BROKEN[relation], key=lambda broken: losses[broken])  # all must be caught
    return AuditFinding(
        mechanism=f"Censored from a center, exact, {model.name}",
        relation=relation,
        method=EXACT,
        epsilon=_EPSILON,
        loss=losses[None],
        control=seen,
        control_loss=losses[seen],
    )


def _largest_loss(posterior: _LogPosterior, support: tuple[float, ...], relation: str) -> float:
    """Over all databases of three records, two of them unlike, and all of their neighbors."""
    worst = 0.0
    for rest in itertools.combinations(support, 2):
        own = np.array([posterior((*rest, value)) for value in support])
        if relation == "remove":
            worst = max(worst, float(np.abs(own - posterior(rest)).max()))
        else:
            worst = max(worst, float(np.ptp(own, axis=0).max()))
    return worst


def _posterior(frozen: Calibration, broken: str | None) -> _LogPosterior:
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

    kept: list[FloatArray] = []  # the excess of the calibration is that of every database

    def log_posterior(values: Sequence[float]) -> FloatArray:
        bound = model.bind(pd.DataFrame({"y": values}))
        alpha, used = frozen.weights(bound), center
        if broken == OWN_CENTER:
            used = replace(center, parameters=_own_center(center, form, values))
        if broken == OWN_EXCESS:
            used = replace(center, frozen=frozen_rows(bound.design, alpha, center.log_lik(bound)))
        cap = used.cap(bound, _TIMES * frozen.cap if broken == HALF else frozen.cap)
        if not (kept and used.frozen is center.frozen):
            excess = used.excess_on(bound, form, grid, cap)
            assert excess is not None
            kept[:] = [excess]
        excess = kept[0]
        after = broken == AFTER
        found = exact_posterior(bound, form, grid, alpha, cap, None if after else excess)
        total = found.log_density + 10 * bound.n * excess if after else found.log_density
        return np.asarray(total - logsumexp(total))

    return log_posterior


def _own_center(center: Center, form: GridForm, values: Sequence[float]) -> dict[str, FloatArray]:
    """The control: theta_ref that follows the mean of the records that are released."""
    at = form.coordinates({name: own[None] for name, own in center.parameters.items()})
    first = form.axes[0].name
    wave = np.cos(40 * np.mean(values)) * center.region * center.sd[first] / 2
    moved = form.parameters({**at, first: at[first] + wave})
    return {name: own[0] for name, own in moved.items()}
