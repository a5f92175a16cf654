"""The rstan engine: seeds, progress, what it leaves behind and what it tells. Its draws against the
other engines': test_models.py."""

import os
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid import rbridge
from pyhybrid.core.errors import EngineUnavailable, SamplingError
from pyhybrid.engines import Engine, SamplerSettings, StanProgram
from pyhybrid.engines import rstan as rstan_module
from pyhybrid.engines.rstan import RStanEngine

pytestmark = [pytest.mark.samples, pytest.mark.needs_r]
SETTINGS = SamplerSettings(chains=4, warmup=600, draws=500, parallel_chains=1)


@cache
def _bound() -> Any:
    rng = np.random.default_rng(5)
    age = rng.uniform(-1, 1, 120)
    table = pd.DataFrame({"y": rng.poisson(np.exp(3 + 0.5 * age)), "age": age})
    return ph.Poisson("y ~ age").bind(table)


def _data() -> dict[str, Any]:
    return dict(_bound().stan_data(np.linspace(0, 1, 120), emit_log_lik=True))


def test_same_seed_same_draws_and_progress_to_the_end(rstan: Engine) -> None:
    seen: list[tuple[int, int]] = []
    short = replace(SETTINGS, chains=2, warmup=100, draws=50)
    program, data = _bound().program, _data()
    one = rstan.sample(
        program, data, seed=3, settings=short, progress=lambda done, of: seen.append((done, of))
    )
    two = rstan.sample(program, data, seed=3, settings=replace(short, parallel_chains=2))
    np.testing.assert_array_equal(one.variables["beta"], two.variables["beta"])
    assert one.divergent.shape == one.energy.shape == (2, 50)
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert seen[-1] == (300, 300)
    warm = rstan.sample(program, data, seed=4, settings=short, warm_start=one.warm_start())
    assert any("takes no inverse metric" in note for note in warm.provenance.notes)
    assert len(one.inv_metric or ()) == 2


def test_nothing_confidential_stays_with_r_also_after_ctrl_c(rstan: Engine) -> None:
    def press(done: int, of: int) -> None:
        raise KeyboardInterrupt

    short = replace(SETTINGS, chains=2, warmup=50, draws=50, parallel_chains=2)
    rstan.sample(_bound().program, _data(), seed=1, settings=short)  # compiled
    ri = rbridge.start_r()
    folder = ri.evalr("tempdir()")[0]
    before = set(os.listdir(folder))
    rstan.sample(_bound().program, _data(), seed=1, settings=short)
    assert set(os.listdir(folder)) == before
    assert list(ri.evalr("ls(globalenv())")) == []
    with pytest.raises(KeyboardInterrupt):
        rstan.sample(_bound().program, _data(), seed=1, settings=SETTINGS, progress=press)
    # An interrupted rstan leaves R's messages diverted into a file of the chains' messages.
    assert list(ri.evalr("sink.number(type = 'message')")) == [2]
    assert set(os.listdir(folder)) == before


def test_what_fails_in_r_is_told_in_rs_words(rstan: Engine) -> None:
    bad = StanProgram(name="bad", text="parameters { real x; }\nmodel { x ~ normal(0, 1) }\n")
    with pytest.raises(SamplingError, match=r"failed on bad: (?s:.)*PARSER EXPECTED: \";\""):
        rstan.sample(bad, {}, seed=1, settings=SETTINGS)
    less = {name: value for name, value in _data().items() if name != "y"}
    with pytest.raises(SamplingError, match=r"variable does not exist(?s:.)*name=y"):
        rstan.sample(_bound().program, less, seed=1, settings=SETTINGS)


@pytest.mark.parametrize(("rstan", "boost", "cause", "remedy"), [
    ("", True, "rstan must be installed", "apt-get install r-cran-rstan"),
    ("2.21.7", False, "Boost headers must be found", "apt-get install libboost-dev"),
])  # fmt: skip
def test_what_rstan_lacks_is_named(
    rstan: str, boost: bool, cause: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rbridge.RStatus(r_version="4.2.2", rstan_version=rstan, boost=boost)
    monkeypatch.setattr(rstan_module.rbridge, "r_status", lambda: found)
    status = RStanEngine().status()
    assert not status.available
    assert cause in status.cause
    assert remedy in status.remedy
    with pytest.raises(EngineUnavailable, match=cause):
        RStanEngine().sample(StanProgram(name="x", text=""), {}, seed=1, settings=SETTINGS)
