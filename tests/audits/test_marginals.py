"""Noisy marginals, exactly: tables that are counted on every pair of neighbors of two records.

Discrete Laplace noise of scale b on whole numbers has the privacy loss ||change||_1 / b, exactly,
for the change of all cells together; Gaussian noise of scale sigma is rho-zCDP with rho =
||change||_2^2 / (2 sigma^2), whose epsilon at delta is what is compared. What changes is read off
the mechanism's own tables, b and sigma off the noise that it really takes. Of a release in two
steps (`most_bins`) each step is counted on the bins that noise may lead to: merged or not.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid.mechanisms import ColumnDomain, NoisyMarginals
from pyhybrid.mechanisms.marginals import measure
from pyhybrid.primitives.tables import IntArray, NoisyTables, noisy_tables
from pyhybrid.privacy.conversions import epsilon_of_zcdp
from tests.audits.enumeration import EPSILON, Array

pytestmark = pytest.mark.usefixtures("opendp")
_DELTA = 1e-6
_PUBLIC = (0, 2)  # predictors of the two records
_RECORDS = [*itertools.product((0, 1), (0, 1))]
"""Every (y, z) that a record can have."""
_FORMS: dict[str, dict[str, Any]] = {
    "pure": {},
    "Gaussian": {"delta": _DELTA},
    "two steps": {"most_bins": 2},
    "two steps, Gaussian": {"most_bins": 2, "delta": _DELTA},
}


@dataclass(frozen=True, kw_only=True)
class _Step:
    """Counts of one database in one step, in records, and the scale of their noise."""

    counts: Array
    scale: float
    delta: float


Run = Callable[[pd.DataFrame], Sequence[_Step]]
Seen = dict[tuple[tuple[int, int], ...], Sequence[_Step]]
"""From the records of a database to its steps."""


@pytest.mark.long
@pytest.mark.parametrize("relation", ["replace", "remove"])
@pytest.mark.parametrize("form", _FORMS)
def test_losses_of_noisy_marginals_are_attained_and_the_broken_ones_are_caught(
    form: str, relation: str
) -> None:
    mechanism = _mechanism(relation, **_FORMS[form])
    seen = _seen(lambda df: _steps(mechanism, df), relation)
    found = _largest_loss(seen, relation)
    controls = {
        name: _largest_loss(broken, relation) for name, broken in _broken(mechanism, seen).items()
    }
    assert found == pytest.approx(1.0)
    assert min(controls.values()) > 1.3
    if mechanism.delta is None:
        assert controls["noise / 2"] == pytest.approx(2.0)
    if form == "pure":
        assert controls["noise of one table"] == pytest.approx(3.0)
    assert controls.get("levels read", math.inf) == math.inf


def _seen(run: Run, relation: str) -> Seen:
    """All databases of two records, and those with a record less where `relation` has them."""
    databases = [*itertools.product(_RECORDS, repeat=2)]
    if relation == "remove":
        databases += [(record,) for record in _RECORDS]
    return {records: run(_database(records)) for records in databases}


def _largest_loss(seen: Seen, relation: str) -> float:
    """Over all databases that differ by one record."""
    worst = 0.0
    for one, other in itertools.product(seen, repeat=2):
        replaced = one[0] == other[0] and len(one) == len(other) == 2
        removed = one[:1] == other and len(one) == 2
        if replaced if relation == "replace" else removed:
            worst = max(worst, _loss(seen[one], seen[other]))
    return worst


def _loss(one: Sequence[_Step], other: Sequence[_Step]) -> float:
    """Of all steps: pure losses add, and rho does."""
    pure = rho = delta = 0.0
    if [step.counts.shape for step in one] != [step.counts.shape for step in other]:
        return math.inf  # what comes out tells which database it was
    for a, b in zip(one, other, strict=True):
        change, scale, delta = a.counts - b.counts, min(a.scale, b.scale), a.delta
        if delta:
            rho += float(change @ change) / (2 * scale**2)
        else:
            pure += float(np.abs(change).sum()) / scale
    return pure + (epsilon_of_zcdp(rho, delta) if rho else 0.0)


def _database(records: tuple[tuple[int, int], ...]) -> pd.DataFrame:
    y, z = ([record[place] for record in records] for place in (0, 1))
    table: pd.DataFrame = pd.DataFrame({"y": y, "z": z, "x": _PUBLIC[: len(records)]})
    return table


def _mechanism(relation: str, **changes: Any) -> NoisyMarginals:
    """Tables of y and x, z and x, z and y. Of a
    release in two steps y has four bins, of which a record is in the outer ones."""
    y: Any = {"bins": [0, 0.25, 0.5, 0.75, 1]} if "most_bins" in changes else (0, 1)
    options: dict[str, Any] = {
        "domain": {"y": y, "z": (0, 1), "x": {"bins": [0, 1, 2]}},
        "given": ["x"],
        "epsilon": EPSILON,
        "relation": relation,
    }
    return NoisyMarginals(**{**options, **changes})


def _steps(
    mechanism: NoisyMarginals, df: pd.DataFrame, noise: Callable[..., NoisyTables] = noisy_tables
) -> list[_Step]:
    """Counts of each step as they are asked for, with the scale of `noise`; columns of many bins
    are cut in the middle: a cut that noise can lead to."""
    measuring, steps = mechanism._counted(df), []

    def asked(tables: Sequence[IntArray], **options: Any) -> NoisyTables:
        answer, counts = noise(tables, **options), np.concatenate([own.ravel() for own in tables])
        steps.append(_Step(counts=counts, scale=answer.scale, delta=answer.charge.delta))
        return noisy_tables(tables, **options)

    def merged(domain: ColumnDomain, *_: Any) -> ColumnDomain:
        return replace(domain, bins=domain.bins[::2])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "noisy_tables", asked)
        patch.setattr(measure, "merged_domain", merged)
        measuring.all_tables()
    return steps


def _broken(mechanism: NoisyMarginals, seen: Seen) -> dict[str, Seen]:
    """Controls: other runs, or the steps that were `seen` of the mechanism with half the noise."""

    def of_one(tables: Sequence[IntArray], **options: Any) -> NoisyTables:
        """Noise that is scaled for one table, added to all of them."""
        return noisy_tables(tables[:1], **options)

    def not_charged(tables: Sequence[IntArray], **options: Any) -> NoisyTables:
        """Each step at the whole price."""
        return noisy_tables(tables, **{**options, "price": mechanism._price})

    def read(df: pd.DataFrame) -> list[_Step]:
        levels = {name: {"levels": [*df[name].unique().tolist(), 9]} for name in ("y", "z")}
        domain: dict[str, Any] = {**levels, "x": mechanism.domain["x"]}
        return _steps(replace(mechanism, domain=domain), df)

    relation = mechanism.relation
    other, run = "levels read", read
    if mechanism.most_bins is not None:
        other, run = "a step not charged", lambda df: _steps(mechanism, df, not_charged)
    return {
        "noise / 2": {
            records: [replace(step, scale=step.scale / 2) for step in steps]
            for records, steps in seen.items()
        },
        "noise of one table": _seen(lambda df: _steps(mechanism, df, of_one), relation),
        other: _seen(run, relation),
    }
