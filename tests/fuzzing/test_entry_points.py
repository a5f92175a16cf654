"""Any table, any options, any file: a valid result or a typed error, and nothing left on disk.

Some hundreds of cases of each entry point; `python -m benchmarks.fuzz` makes as many as wanted.
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import pyhybrid as ph
from pyhybrid.models.families import normal_mixture
from tests.fuzzing.engine import RANDOM_DRAWS
from tests.fuzzing.entry_points import ENTRY_POINTS
from tests.fuzzing.outcomes import attempted
from tests.fuzzing.releases import MECHANISMS, check_release, check_release_case, release_cases
from tests.fuzzing.tables import Recipe
from tests.refusals import fails

_CPU = 1200  # milliseconds for an entry point
SAME: Any = {"database": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@pytest.mark.long
@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_any_case_gives_a_result_or_a_typed_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where chains of mixtures start, which the stand-in engine does not read, took half the time.
    monkeypatch.setattr(normal_mixture, "_SHORT", 3)
    monkeypatch.setattr(normal_mixture, "_LONG", 6)
    entry, valid = ENTRY_POINTS[name], []

    @settings(
        max_examples=min(300, _CPU // entry.cost), phases=[Phase.generate, Phase.shrink], **SAME
    )
    @given(entry.cases)
    def check(case: Any) -> None:
        valid.append(entry.check(case))

    check()
    assert any(valid)
    assert not all(valid)


@pytest.mark.samples
@settings(max_examples=20, phases=[Phase.generate], **SAME)
@given(st.sampled_from(sorted(MECHANISMS)).flatmap(lambda name: release_cases(name, plain=True)))
def test_the_embedded_engine_meets_the_same_tables(case: Any) -> None:
    short = ph.engines.SamplerSettings(chains=2, warmup=60, draws=40)
    check_release_case(case, engine="embedded", settings=short)


def test_the_checks_see_a_release_that_is_wrong() -> None:
    recipe = Recipe(
        n=20, kinds=("counts", "text"), names=("y", "x"), index="range", poison=(), seed=1
    )
    df = recipe.table()
    release = ph.Unweighted(ph.Poisson("y ~ 1")).release(df, **RANDOM_DRAWS)
    check_release(release, df)
    release.synthetic[0].loc[3, "x"] = "not as it was"
    fails(AssertionError, "", check_release, release, df)


def test_anything_but_a_typed_error_is_a_failure() -> None:
    fails(KeyError, "", attempted, lambda: {}["x"])
    assert isinstance(attempted(lambda: ph.Poisson("y").bind(None)), ph.InvalidInput)
