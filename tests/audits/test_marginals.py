"""Audits of noisy marginals: attained exactly, each broken mechanism caught."""

import math

import pytest

from pyhybrid.validation.audits.noise import marginals_audits
from tests.conftest import require_opendp


@pytest.mark.long
def test_the_loss_is_attained_and_the_broken_ones_are_caught() -> None:
    require_opendp()
    found = marginals_audits()
    assert all(each.passed for each in found)
    assert len({each.mechanism for each in found}) == 6
    for each in found:
        if "private choice" in each.mechanism:  # choices tell less than their epsilon
            assert 0.9 < each.loss < 1 + 1e-9 < 1.05 < each.control_loss
            continue
        assert each.loss == pytest.approx(1.0)
        if "Gaussian" not in each.mechanism and each.control == "noise / 2":
            assert each.control_loss == pytest.approx(2.0)
        elif each.mechanism == "NoisyMarginals" and each.control == "noise of one table":
            assert each.control_loss == pytest.approx(3.0)
        elif each.control == "levels read":
            assert each.control_loss == math.inf
        assert each.control_loss > 1.3
