"""Exact audit of the Stan programs: their log density with a record and without it.

At any parameters the unnormalized log posterior of two neighboring databases differs by the
clipped terms of the record in question. The loss between the two posteriors is at most the range
of that difference over the parameters, and the range is what is measured here, at many points, by
the program that releases draw from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.audits.finding import EXACT, AuditFinding
from pyhybrid.checks import FloatArray
from pyhybrid.engines.embedded_points import ProgramAtPoints
from pyhybrid.models import (
    Bernoulli,
    Beta,
    BetaBinomial,
    BetaRegression,
    Categorical,
    Gamma,
    LogNormal,
    MixtureRegression,
    NegativeBinomial,
    NormalRegression,
    Ordinal,
    Poisson,
    TwoPart,
    ZeroInflated,
)
from pyhybrid.models.cap_data import frozen_rows
from pyhybrid.privacy.cap import Cap
from pyhybrid.privacy.epsilon import bound_of_epsilon

__all__ = ["program_audits"]

_EPSILON = 1.0
_TIMES = 4.0
_BELOW = 0.7  # share of the interval below the center
_POINTS, _SPREAD = 300, 3.0
_REGION = 3.0
_CAP = {"use_cap", "cap_below", "cap_above", "reference", "n_units", "unit", "n_frozen", "farthest",
        "steep"}  # fmt: skip
_RECORDS = {
    "n",
    "K",
    "y",
    "frequency",
    "weights",
    "X",
    "offsets",
    "emit_log_lik",
    "n_levels",
} | _CAP
_SUMS = {"total_weight", "sum_log", "sum_log1m"}
_ROWS = _RECORDS | _SUMS
"""What a program reads of the records; the rest of its data is location and scale of the
reparametrization."""
_OF_JOINT = {"n_terms", "by_term", "at_zero"}

_COUNTS = pd.DataFrame({"y": [0, 3, 4, 40], "x": [0.0, 1.0, 0.5, 1.0]})
_SHARES = pd.DataFrame({"y": [0.001, 0.3, 0.4, 0.99], "x": [0.0, 1.0, 0.5, 1.0]})
_REAL = pd.DataFrame({"y": [-0.02, 0.01, 0.0, 0.03], "x": [0.0, 1.0, 0.5, 1.0]})
_TWO = pd.DataFrame({"y": [0, 1, 1, 0], "x": [0.0, 1.0, 0.5, 1.0]})
_AMOUNTS = pd.DataFrame({"y": [0.0, 0.5, 6.0, 0.0], "x": [0.0, 1.0, 0.5, 1.0]})
_THREE = pd.DataFrame({"y": [0, 1, 2, 0], "x": [0.0, 1.0, 0.5, 1.0]})
_OTHER = {"two": 1, "counts": 7, "shares": 0.6, "real": 0.25}


def program_audits() -> list[AuditFinding]:
    """Every built-in model under both relations; raises EngineUnavailable without stanli."""
    cases: list[tuple[Any, pd.DataFrame, float]] = [
        (Poisson("y ~ x"), _COUNTS, _OTHER["counts"]),
        (NegativeBinomial("y ~ x"), _COUNTS, _OTHER["counts"]),
        (Beta("y ~ 1"), _SHARES, _OTHER["shares"]),
        (BetaRegression("y ~ x"), _SHARES, _OTHER["shares"]),
        (NormalRegression("y ~ x"), _REAL, _OTHER["real"]),
        (Bernoulli("y ~ x"), _TWO, _OTHER["two"]),
        (BetaBinomial("y ~ x", upper=50), _COUNTS, _OTHER["counts"]),
        (Categorical("y ~ x", levels=(0, 1, 2)), _THREE, _OTHER["two"]),
        (Ordinal("y ~ x", levels=(0, 1, 2)), _THREE, _OTHER["two"]),
        (MixtureRegression("y ~ x", n_components=2), _REAL, _OTHER["real"]),
        (Gamma("y ~ x", upper=9), _AMOUNTS.assign(y=_AMOUNTS["y"] + 0.1), 8.5),
        (
            TwoPart(zero=Bernoulli("y ~ x"), positive=LogNormal("y ~ x", upper=9)),
            _AMOUNTS,
            8.5,
        ),
        (ZeroInflated(Poisson("y ~ x")), _COUNTS, _OTHER["counts"]),
    ]
    return [
        _audit(model, table, other, relation, centered=centered)
        for model, table, other in cases
        for relation in ("remove", "replace")
        for centered in (False, True)
    ]


@dataclass(frozen=True, kw_only=True)
class _Neighbors:
    """A model with two tables that differ in one record."""

    model: Any
    table: pd.DataFrame
    neighbor: pd.DataFrame


def _audit(
    model: Any, table: pd.DataFrame, other: float, relation: str, *, centered: bool
) -> AuditFinding:
    losses = {1.0: 0.0, _TIMES: 0.0}
    for row in range(len(table)):
        neighbor = table.drop(index=row)
        if relation == "replace":
            neighbor = table.copy()
            neighbor.loc[row, "y"] = other
        pair = _Neighbors(model=model, table=table, neighbor=neighbor)
        for times in losses:
            losses[times] = max(losses[times], _range(pair, relation, times, centered=centered))
    name = f"Censored, stan/{model.bind(table).program.name}.stan, {model.name}"
    return AuditFinding(
        mechanism=f"{name}, centered, excess, unequal ends" if centered else name,
        relation=relation,
        method=EXACT,
        epsilon=_EPSILON,
        loss=losses[1.0],
        control=f"clipped at {_TIMES:g} caps",
        control_loss=losses[_TIMES],
    )


def _cap(
    pair: _Neighbors, table: pd.DataFrame, relation: str, times: float, *, centered: bool
) -> float | Cap:
    """What costs `times` epsilon: M, or unequal ends about a center made of each own record, moved
    by the excess of frozen rows."""
    if not centered:
        signs = pair.model.bind(table).density_above_one
        return times * bound_of_epsilon(_EPSILON, relation=relation, density_above_one=signs)
    span = times * _EPSILON / (2 if relation == "replace" else 1)
    reference = pair.table  # of any records, the same for every neighbor
    design = getattr(pair.model.bind(reference), "design", None)  # joint programs take none
    frozen = (
        None
        if design is None
        else frozen_rows(design, np.ones(len(reference)), _center_of(reference))
    )
    return Cap(
        below=_BELOW * span,
        above=(1 - _BELOW) * span,
        reference=_center_of(table),
        frozen=frozen,
        region=_REGION,
    )


def _center_of(table: pd.DataFrame) -> FloatArray:
    """A center that is a function of each record alone."""
    y, x = (table[name].to_numpy(dtype=np.float64) for name in ("y", "x"))
    return np.asarray(-0.5 - np.abs(y) / 4 + x / 10)


def _range(pair: _Neighbors, relation: str, times: float, *, centered: bool) -> float:
    """Range over random points of the difference of the two log densities, nats."""
    own, other = (
        _data(pair.model, table, _cap(pair, table, relation, times, centered=centered))
        for table in (pair.table, pair.neighbor)
    )
    # The same map from unconstrained points to parameters for both.
    held = {**other, **{name: value for name, value in own.items() if not _of_records(name, own)}}
    one = ProgramAtPoints(_program(pair), own)
    two = ProgramAtPoints(_program(pair), held)
    points: FloatArray = np.random.default_rng(1).normal(
        scale=_SPREAD, size=(_POINTS, one.n_unconstrained)
    )
    difference = one.log_density(points) - two.log_density(points)
    return float(np.ptp(difference[np.isfinite(difference)]))


def _of_records(name: str, data: Mapping[str, Any]) -> bool:
    """Whether a program, or a part of a joint one, reads that of the records."""
    parts = [own.removeprefix("row_") for own in data if own.startswith("row_")]
    ends = [f"_{part}" for part in parts if name.endswith(f"_{part}")]
    plain = name.removesuffix(ends[0]) if ends else name
    return name in _OF_JOINT or plain in _ROWS or plain == "row"


def _data(model: Any, table: pd.DataFrame, cap: float | Cap) -> Mapping[str, Any]:
    data: Mapping[str, Any] = model.bind(table).stan_data(np.ones(len(table)), cap=cap)
    return data


def _program(pair: _Neighbors) -> Any:
    return pair.model.bind(pair.table).program
