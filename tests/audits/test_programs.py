"""The Stan programs themselves: their log density with a record and without it, at many points.

At any parameters the unnormalized log posterior of two neighboring databases differs by the
clipped terms of the record in question. The loss between the two posteriors is at most the range
of that difference over the parameters, and the range is what is measured here, by the program that
releases draw from.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.privacy.censoring import Cap, FrozenRows
from pyhybrid.privacy.conversions import bound_of_epsilon
from tests.audits.enumeration import EPSILON, RELATIONS, ROUNDING, Array

_TIMES = 4.0
_BELOW = 0.7  # share of the interval below the center
_POINTS, _SPREAD = 300, 3.0
_LARGEST = 1e6  # log density: of larger ones, rounding alone is more than is allowed for
_REGION = 3.0
_CAP = {"use_cap", "cap_below", "cap_above", "reference", "n_units", "unit", "n_frozen", "farthest",
        "steep"}  # fmt: skip
_ROWS = _CAP | {
    "n", "K", "y", "frequency", "weights", "X", "offsets", "emit_log_lik", "n_levels",
    "total_weight", "sum_log", "sum_log1m",
}  # fmt: skip
"""Data that a program reads of the records; the rest of its data is location and scale of the
reparametrization."""
_OF_JOINT = {"n_terms", "by_term", "at_zero"}


def _table(*outcomes: float) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame({"y": outcomes, "x": [0.0, 1.0, 0.5, 1.0]})
    return table


_COUNTS = _table(0, 3, 4, 40), 7
_SHARES = _table(0.001, 0.3, 0.4, 0.99), 0.6
_REAL = _table(-0.02, 0.01, 0.0, 0.03), 0.25
_TWO, _THREE = (_table(0, 1, 1, 0), 1), (_table(0, 1, 2, 0), 1)
_POSITIVE = _table(0.1, 0.6, 6.1, 0.1), 8.5


CASES: list[tuple[Any, tuple[pd.DataFrame, float]]] = [
    (ph.Poisson("y ~ x"), _COUNTS),
    (ph.NegativeBinomial("y ~ x"), _COUNTS),
    (ph.Beta("y ~ 1"), _SHARES),
    (ph.BetaRegression("y ~ x"), _SHARES),
    (ph.NormalRegression("y ~ x"), _REAL),
    (ph.Bernoulli("y ~ x"), _TWO),
    (ph.Categorical("y ~ x", levels=(0, 1, 2)), _THREE),
    (ph.Ordinal("y ~ x", levels=(0, 1, 2)), _THREE),
    (ph.MixtureRegression("y ~ x", n_components=2), _REAL),
    (ph.Gamma("y ~ x", upper=9), _POSITIVE),
]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("model", "case"), CASES, ids=lambda own: getattr(own, "name", ""))
def test_programs_keep_to_their_cap(model: Any, case: Any, relation: str) -> None:
    """Clipped at M, and between unequal ends about a center with an excess; control: four caps."""
    table, other = case
    bound = model.bind(table)
    near = [model.bind(neighbor) for neighbor in _neighbors(table, other, relation)]
    for centered in (False, True):
        assert lost(bound, near, relation, 1.0, centered=centered) <= EPSILON * ROUNDING
        assert lost(bound, near, relation, _TIMES, centered=centered) > EPSILON * ROUNDING


def test_every_program_has_its_case() -> None:
    named = {model.bind(case[0]).program.name for model, case in CASES}
    assert named == set(ph.engines.program_names())


@pytest.mark.parametrize("model", [CASES[0], CASES[-1]], ids=["poisson", "gamma"])
def test_a_program_that_does_not_clip_is_caught(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_clip(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*given: Any, **named: Any) -> Any:
            program = make(*given, **named)
            text = program.text.replace("fmax(-cap_below, fmin(cap_above, ", "(1 * (")
            assert text != program.text
            return replace(program, text=text)

        return made

    place = "pyhybrid.models.families.regression.load_program"
    monkeypatch.setattr(place, without_clip(ph.engines.load_program))
    own, (table, other) = model
    bound, near = own.bind(table), [own.bind(each) for each in _neighbors(table, other, "remove")]
    assert lost(bound, near, "remove", 1.0, centered=False) > EPSILON * ROUNDING


def lost(bound: Any, near: list[Any], relation: str, times: float, *, centered: bool) -> float:
    """Over neighbors, the range at random points of the difference of both log densities."""
    frozen = None  # rows of any records, the same for every neighbor
    if centered:
        frozen = bound.frozen(np.ones(bound.n), _center_of(bound.table), np.arange(bound.n))
    cap = partial(_cap, relation=relation, times=times, centered=centered, frozen=frozen)
    data = bound.stan_data(np.ones(bound.n), cap=cap(bound))
    one = ProgramAtPoints(bound.program, data)
    size = (_POINTS, one.n_unconstrained)
    points: Array = np.random.default_rng(1).normal(scale=_SPREAD, size=size)
    log_density = one.log_density(points)
    # The same map from unconstrained points to parameters for all.
    fixed = {name: value for name, value in data.items() if not _of_records(name, data)}
    largest = 0.0
    for neighbor in near:
        held = {**neighbor.stan_data(np.ones(neighbor.n), cap=cap(neighbor)), **fixed}
        difference = log_density - ProgramAtPoints(bound.program, held).log_density(points)
        finite = np.isfinite(difference) & (np.abs(log_density) < _LARGEST)
        largest = max(largest, float(np.ptp(difference[finite])))
    return largest


def _neighbors(table: pd.DataFrame, other: float, relation: str) -> Iterator[pd.DataFrame]:
    """The table without each of its records, or with another outcome in each."""
    for row in range(len(table)):
        if relation == "remove":
            yield table.drop(index=row)
        else:
            yield table.assign(y=table["y"].where(table.index != row, other))


def _cap(
    bound: Any, *, relation: str, times: float, centered: bool, frozen: FrozenRows | None
) -> float | Cap:
    """Cap that costs `times` epsilon: M, or unequal ends about a center of each record alone."""
    if not centered:
        signs = bound.density_above_one
        return times * bound_of_epsilon(EPSILON, relation=relation, density_above_one=signs)
    span = times * EPSILON / (2 if relation == "replace" else 1)
    ends: Any = {"below": _BELOW * span, "above": (1 - _BELOW) * span}
    return Cap(**ends, reference=_center_of(bound.table), frozen=frozen, region=_REGION)


def _center_of(table: pd.DataFrame) -> Array:
    """A center that is a function of each record alone."""
    y, x = (table[name].to_numpy(dtype=np.float64) for name in ("y", "x"))
    return np.asarray(-0.5 - np.abs(y) / 4 + x / 10)


def _of_records(name: str, data: Mapping[str, Any]) -> bool:
    """True if a program, or a part of a joint one, reads that of the records."""
    parts = [key.removeprefix("row_") for key in data if key.startswith("row_")]
    ends = [f"_{part}" for part in parts if name.endswith(f"_{part}")]
    plain = name.removesuffix(ends[0]) if ends else name
    return name in _OF_JOINT or plain in _ROWS or plain == "row"
