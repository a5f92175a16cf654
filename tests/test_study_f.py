"""Study F [C25 sec. 4] on one database: inside the published ranges. `make bench` runs twenty."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pyhybrid as ph
from benchmarks.study_f import MODEL, PUBLISHED, database
from pyhybrid.fitting import FitSession, open_session


@pytest.fixture(scope="module")
def session() -> FitSession:
    return open_session(MODEL.bind(database(0)), seed=1, engine="embedded")


def _fit(mechanism: Any, session: FitSession) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return mechanism.fit(session).fit


def test_bounds_are_in_the_published_ranges(session: FitSession) -> None:
    assert 7.5 <= _fit(ph.Unweighted(MODEL), session).bounds.overall <= 15
    assert 2 <= _fit(ph.LipschitzWeighted(MODEL), session).bounds.overall <= 3.5
    truncated = _fit(ph.Truncated(MODEL, epsilon=5), session).bounds.overall
    assert truncated <= _fit(ph.LipschitzWeighted(MODEL), session).bounds.overall


@pytest.mark.parametrize("epsilon", [5, 3])
def test_censored_counts_are_in_the_published_ranges(epsilon: int, session: FitSession) -> None:
    mechanism = ph.Censored(MODEL, epsilon=epsilon, inner=ph.Unweighted(MODEL), check_modes=False)
    fit = _fit(mechanism, session)
    low, high = PUBLISHED["Censor_uw"][epsilon][1] or (0, 0)
    assert low <= fit.censored.sum() <= high
    assert fit.bounds.overall == epsilon / 2
