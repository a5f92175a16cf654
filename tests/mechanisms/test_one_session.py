"""Several releases from one session: each takes other draws of theta and other random numbers."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.fitting.replicates import choose_draws
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.mechanisms.weighted import base
from pyhybrid.models.families.regression import BoundRegression
from tests.fits import ANY_DRAWS, fit_options
from tests.refusals import refuses

pytestmark = pytest.mark.samples
MODEL = ph.Poisson("y ~ 1")
OPTIONS = fit_options(chains=2, warmup=150, draws=60, rule=ANY_DRAWS)


def counts() -> pd.DataFrame:
    return pd.DataFrame({"y": np.random.default_rng(1).poisson(40, 50)})


def opened(seed: int | None = 1) -> FitSession:
    return open_session(MODEL.bind(counts()), seed=seed, **OPTIONS)


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the posterior draws that replicates are made from, in order."""
    found: list[int] = []
    replicate = BoundRegression.replicate

    def noted(self: Any, draws: Any, draw: int, *given: Any) -> pd.DataFrame:
        found.append(draw)
        return replicate(self, draws, draw, *given)

    monkeypatch.setattr(BoundRegression, "replicate", noted)
    return found


def released(session: FitSession, mechanism: Any = None, m: int = 2) -> list[pd.DataFrame]:
    mechanism = mechanism or ph.Unweighted(MODEL)
    made = mechanism.release_from(session, n_synthetic=m, n_draws_released=m, refits=0)
    return list(made.synthetic)


@pytest.mark.parametrize("seed", [1, None])
def test_releases_of_one_session_differ_and_repeat_with_the_seed(
    seed: Any, draws: list[int]
) -> None:
    """The first is that of a release without a session."""
    one, two = opened(seed), opened(seed)
    first, again = ([t for _ in range(3) for t in released(own)] for own in (one, two))
    assert len(set(draws[:6])) == 6, "six draws of theta, none of them twice"
    assert len({tuple(table["y"]) for table in first}) == 6
    assert one.n_fits == 1, "the fit is made once"
    whole = ph.Unweighted(MODEL).release(counts(), n_synthetic=2, seed=seed, refits=0, **OPTIONS)
    same = [a.equals(b) for a, b in zip(first * 2, [*again, *whole.synthetic], strict=False)]
    assert set(same) == {seed is not None}
    assert (draws[:6] == draws[6:12]) == (seed is not None)


def test_the_check_sees_releases_that_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the memory three releases are one: the hole itself."""

    def forgetful(session: FitSession, *args: Any, **options: Any) -> Any:
        session.store.released.clear()
        return choose_draws(session, *args, **options)

    monkeypatch.setattr(base, "choose_draws", forgetful)
    session = opened()
    assert len({tuple(released(session)[0]["y"]) for _ in range(3)}) == 1


def test_all_draws_can_be_released_once_and_other_settings_do_not_count(draws: list[int]) -> None:
    session = opened()
    for _ in range(3):
        released(session, m=40)
    assert sorted(draws) == list(range(120))
    refuses("kept draws that were not released before, 0: found 1", released, session, m=1)
    session, other = opened(), opened()
    released(session)
    weighted = ph.GivenWeights(MODEL, alpha=np.full(50, 0.5))
    assert released(session, weighted)[0].equals(released(other, weighted)[0])
