"""Effective number of draws: against ArviZ and a process whose correlation is known."""

import numpy as np
import pytest

from pyhybrid.core.checks import FloatArray
from pyhybrid.engines.convergence import effective_draws

CHAINS = 4


def _chains(seed: int, correlation: float, length: int = 500, columns: int = 20) -> FloatArray:
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(CHAINS, length, columns))
    for t in range(1, length):
        steps[:, t] = correlation * steps[:, t - 1] + np.sqrt(1 - correlation**2) * steps[:, t]
    return steps.reshape(CHAINS * length, columns)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95, -0.5])
def test_the_value_of_arviz_up_to_the_number_of_draws(correlation: float) -> None:
    import arviz

    values = _chains(1, correlation, columns=8)
    found = effective_draws(values, CHAINS)
    for column, own in zip(values.T, found, strict=True):
        expected = float(arviz.ess(column.reshape(CHAINS, -1), method="mean"))
        assert own == pytest.approx(min(expected, column.size), rel=0.03)


def test_a_process_of_known_correlation() -> None:
    found = effective_draws(_chains(2, 0.8, length=4000), CHAINS)
    exact = 4 * 4000 * (1 - 0.8) / (1 + 0.8)
    assert found.mean() == pytest.approx(exact, rel=0.1)
    values = _chains(3, 0.0)  # a chain that is elsewhere counts for little
    values[:500] += 10
    assert effective_draws(values, CHAINS).max() < 20
    assert effective_draws(np.sort(values, axis=0), 1).max() < 20  # and one that drifts


def test_constants() -> None:
    assert effective_draws(np.full((40, 2), 0.1), 4).tolist() == [40, 40]
