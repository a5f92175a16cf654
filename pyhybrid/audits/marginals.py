"""Audits of noisy marginals: the tables that the mechanism counts, on every pair of neighbors.

Discrete Laplace noise of scale b on whole numbers has the privacy loss ||change||_1 / b, exactly,
for the change of all cells together. What changes is read off the mechanism's own tables, and b
off the noise that it really takes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.audits.finding import EXACT, AuditFinding
from pyhybrid.mechanisms import NoisyMarginals
from pyhybrid.mechanisms.marginals.predictors import PARTS, of_public
from pyhybrid.primitives.tables import cross_counts

__all__ = ["largest_loss", "marginals_audits"]

_EPSILON = 1.0
_PUBLIC = (0, 2)  # predictors of the two records
_RECORDS = [*itertools.product((0, 1), (0, 1))]
"""Every (y, z) that a record can have."""


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """Counts of one database, in records, and the scale of their noise."""

    counts: npt.NDArray[np.float64]
    scale: float


Run = Callable[[pd.DataFrame], _Measured]


def marginals_audits() -> list[AuditFinding]:
    """Both relations, each with mechanisms that were broken on purpose; needs OpenDP."""
    found = []
    for relation in ("replace", "remove"):
        own = largest_loss(_as_it_is(relation), relation)
        for control, run in _broken(relation).items():
            found.append(
                AuditFinding(
                    mechanism="NoisyMarginals",
                    relation=relation,
                    method=EXACT,
                    epsilon=_EPSILON,
                    loss=own,
                    control=control,
                    control_loss=largest_loss(run, relation),
                )
            )
    return found


def largest_loss(run: Run, relation: str) -> float:
    """Over all databases of two records, and all that differ by one of them."""
    seen = {records: run(_database(records)) for records in itertools.product(_RECORDS, repeat=2)}
    seen |= {(record,): run(_database((record,))) for record in _RECORDS}
    worst = 0.0
    for one, other in itertools.product(seen, repeat=2):
        replaced = one[0] == other[0] and len(one) == len(other) == 2
        removed = one[:1] == other and len(one) == 2
        if replaced if relation == "replace" else removed:
            worst = max(worst, _loss(seen[one], seen[other]))
    return worst


def _loss(one: _Measured, other: _Measured) -> float:
    if one.counts.shape != other.counts.shape:  # what comes out tells which database it was
        return math.inf
    return float(np.abs(one.counts - other.counts).sum()) / min(one.scale, other.scale)


def _database(records: tuple[tuple[int, int], ...]) -> pd.DataFrame:
    y, z = ([record[place] for record in records] for place in (0, 1))
    made: pd.DataFrame = pd.DataFrame({"y": y, "z": z, "x": _PUBLIC[: len(records)]})
    return made


def _mechanism(relation: str, **changes: Any) -> NoisyMarginals:
    """Tables of y and x, z and x, z and y; x is shared out between the ends of its range."""
    own: dict[str, Any] = {
        "domain": {"y": (0, 1), "z": (0, 1), "x": {"bins": [0, 1, 2]}},
        "given": ["x"],
        "epsilon": _EPSILON,
        "relation": relation,
    }
    return NoisyMarginals(**{**own, **changes})


def _measured(mechanism: NoisyMarginals, df: pd.DataFrame) -> _Measured:
    public = {"x": of_public(df["x"], mechanism.domain["x"])}
    tables = mechanism._cross_tables(df, public)
    noisy = mechanism._noisy(tables)
    return _Measured(counts=cross_counts(tables, unit=PARTS) / PARTS, scale=noisy.scale)


def _as_it_is(relation: str) -> Run:
    mechanism = _mechanism(relation)
    return lambda df: _measured(mechanism, df)


def _broken(relation: str) -> dict[str, Run]:
    mechanism = _mechanism(relation)

    def halved(df: pd.DataFrame) -> _Measured:
        return _measured(_mechanism(relation, epsilon=2 * _EPSILON), df)

    def not_charged(df: pd.DataFrame) -> _Measured:
        public = {"x": of_public(df["x"], mechanism.domain["x"])}
        tables = mechanism._cross_tables(df, public)
        noisy = mechanism._noisy(tables[1:])
        return _Measured(counts=cross_counts(tables, unit=PARTS) / PARTS, scale=noisy.scale)

    def read(df: pd.DataFrame) -> _Measured:
        levels = {name: {"levels": [*df[name].unique().tolist(), 9]} for name in ("y", "z")}
        own = {**levels, "x": mechanism.domain["x"]}
        return _measured(_mechanism(relation, domain=own), df)

    return {"noise / 2": halved, "a table not charged": not_charged, "levels read": read}
