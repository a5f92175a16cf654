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
from dataclasses import replace
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


Steps = list[tuple[Array, float]]
"""Counts of one database in each step, in records, and the scale of their noise."""
Seen = dict[tuple[tuple[int, int], ...], Steps]
"""From the records of a database to its steps."""


@pytest.mark.long
@pytest.mark.parametrize("relation", ["replace", "remove"])
@pytest.mark.parametrize("form", _FORMS)
def test_losses_of_noisy_marginals_are_attained_and_the_broken_ones_are_caught(
    form: str, relation: str
) -> None:
    mechanism = _mechanism(relation, **_FORMS[form])
    seen = _seen(lambda df: _steps(mechanism, df), relation)
    controls = {
        name: _largest_loss(broken, mechanism) for name, broken in _broken(mechanism, seen).items()
    }
    assert _largest_loss(seen, mechanism) == pytest.approx(1.0)
    assert min(controls.values()) > 1.3
    if mechanism.delta is None:
        assert controls["noise / 2"] == pytest.approx(2.0)
    if form == "pure":
        assert controls["noise of one table"] == pytest.approx(3.0)
    assert controls.get("levels read", math.inf) == math.inf


def _seen(run: Callable[[pd.DataFrame], Steps], relation: str) -> Seen:
    """All databases of two records, and those with a record less where `relation` has them."""
    sizes = (1, 2) if relation == "remove" else (2,)
    databases = [own for n in sizes for own in itertools.product(_RECORDS, repeat=n)]
    return {
        own: run(pd.DataFrame(own, columns=["y", "z"]).assign(x=_PUBLIC[: len(own)]))
        for own in databases
    }


def _largest_loss(seen: Seen, mechanism: NoisyMarginals) -> float:
    """Over all databases that differ by one record: the second, or one more."""
    size = 2 if mechanism.relation == "replace" else 1
    return max(
        _loss(seen[one], seen[other], mechanism.delta)
        for one, other in itertools.permutations(seen, 2)
        if (len(one), len(other)) == (2, size) and one[0] == other[0]
    )


def _loss(one: Steps, other: Steps, delta: float | None) -> float:
    """Of all steps: pure losses add, and rho does."""
    if [counts.shape for counts, _ in one] != [counts.shape for counts, _ in other]:
        return math.inf  # what comes out tells which database it was
    moved = [(a - b) / min(s, t) for (a, s), (b, t) in zip(one, other, strict=True)]
    if delta is None:
        return float(sum(np.abs(own).sum() for own in moved))
    return epsilon_of_zcdp(float(sum(own @ own for own in moved)) / 2, delta)


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
) -> Steps:
    """Counts of each step as asked for, with the scale of `noise`; many bins are cut mid-way."""
    measuring, steps = mechanism._counted(df), []

    def asked(tables: Sequence[IntArray], **options: Any) -> NoisyTables:
        counts = np.concatenate([own.ravel() for own in tables])
        steps.append((counts, noise(tables, **options).scale))
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

    def read(df: pd.DataFrame) -> Steps:
        levels = {name: {"levels": [*df[name].unique().tolist(), 9]} for name in ("y", "z")}
        domain: dict[str, Any] = {**levels, "x": mechanism.domain["x"]}
        return _steps(replace(mechanism, domain=domain), df)

    relation = mechanism.relation
    other, run = "levels read", read
    if mechanism.most_bins is not None:
        other, run = "a step not charged", lambda df: _steps(mechanism, df, not_charged)
    return {
        "noise / 2": {
            own: [(counts, scale / 2) for counts, scale in steps] for own, steps in seen.items()
        },
        "noise of one table": _seen(lambda df: _steps(mechanism, df, of_one), relation),
        other: _seen(run, relation),
    }
