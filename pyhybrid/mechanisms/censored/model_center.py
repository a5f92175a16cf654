"""A center at a given theta, with rows that the model itself draws there: no record is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.censored.calibration_files import frozen_draws
from pyhybrid.mechanisms.censored.center import Center
from pyhybrid.models.families.regression import BoundRegression, frozen_rows
from pyhybrid.privacy.frozen_rows import FrozenRows

__all__ = ["center_of_model"]

_DRAWN = 10_000  # rows at most that the model draws
_STEP = 1e-3  # of coordinates, for the information at a point
_ANYWHERE = 1e6  # standard deviations: no region


def center_of_model(
    bound: BoundRegression,
    values: Mapping[str, FloatArray],
    weight: float,
    known: float,
    region: float,
    rng: np.random.Generator,
) -> Center:
    """A center at `values`, with rows that the model draws there, and their spread.

    Parameters
    ----------
    weight : float
        Of the rows.
    known : float
        Number of records that `values` were drawn from; 0 if they are a guess: without a region.
    """
    frozen = _rows_of_model(bound, values, weight, rng)
    form = bound.grid_form
    sd: dict[str, float] = {}
    if form is not None and known:
        provenance: Any = None
        at = {n: float(own[0]) for n, own in form.coordinates(_as_draws(values)).items()}
        names = list(at)
        points = {n: np.array([at[n] + _STEP * sign * (n == moved)
                               for moved in names for sign in (1, -1)]) for n in names}  # fmt: skip
        draws = frozen_draws(form.parameters(points), provenance)
        rows = bound.frozen_log_lik(frozen, draws)
        f = np.hstack(list(rows.make()))[:, rows.row_of]
        slopes = (f[0::2] - f[1::2]) / (2 * _STEP)
        covariance = np.linalg.inv(slopes @ slopes.T / frozen.n * known)
        sd = {n: float(np.sqrt(covariance[i, i])) for i, n in enumerate(names)}
    reach = region * np.sqrt(frozen.n / known) if known else _ANYWHERE
    return Center(
        parameters={name: np.asarray(own, dtype=np.float64) for name, own in values.items()},
        sd=sd,
        region=region if sd else float(reach),
        public=True,
        frozen=frozen,
    )


def _rows_of_model(
    bound: BoundRegression,
    values: Mapping[str, FloatArray],
    weight: float,
    rng: np.random.Generator,
) -> FrozenRows:
    """Outcomes that the model draws at the predictors of the records, which are public."""
    design = bound.design
    if bound.predictors and bound.n <= _DRAWN:
        places = np.arange(bound.n)
    elif bound.predictors:
        places = np.sort(rng.choice(bound.n, _DRAWN, replace=False))
    else:
        places = np.zeros(_DRAWN, dtype=np.intp)  # one row is as good as another
    X, offset = design.X[places], design.offset[places]
    y = bound.model.draw_outcome(dict(values), X, rng, offset)
    y = np.clip(y, *_LIMITS.get(bound.program.name, (-np.inf, np.inf)))
    drawn = replace(design, y=y, X=X, offset=offset)
    f = bound.model.log_lik(_as_draws(values), y, X, offset)[0]
    if not np.isfinite(f).all():
        raise InvalidInput("start must be a parameter at which the model can draw outcomes")
    return frozen_rows(drawn, np.full(y.size, weight), f)


_LIMITS = dict.fromkeys(("beta", "beta_regression"), (1e-10, 1 - 1e-10))


def _as_draws(values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    return {name: np.asarray(own, dtype=np.float64)[None] for name, own in values.items()}
