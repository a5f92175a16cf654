"""What chains find against what is so, in Monte Carlo standard errors of the chains."""

from collections.abc import Iterable, Mapping
from typing import Any

import arviz
import numpy as np

_ERRORS = 5
_OF = {"mean": np.mean, "sd": np.std}


def assert_near(values: Any, expected: Any, *, method: str = "mean", apart: float = 0.0) -> None:
    """The mean or sd of draws (chains, draws) is within 5 standard errors of `expected`, a number
    or other draws, but for `apart`, which is known to lie between them."""
    error, target = float(arviz.mcse(values, method=method)), expected
    if np.ndim(expected):
        error = float(np.hypot(error, arviz.mcse(expected, method=method)))
        target = _OF[method](expected)
    found = _OF[method](values)
    assert abs(found - target) < _ERRORS * error + apart, (method, found, target, error)


def assert_draws_near(
    one: Mapping[str, Any], two: Mapping[str, Any], names: Iterable[str], powers: Any = (1,)
) -> None:
    """So is each element of these variables of two fits, and its powers; constants are in both."""
    for name in names:
        assert one[name].shape == two[name].shape
        for place in np.ndindex(one[name].shape[2:]):
            a, b = (each[name][(..., *place)] for each in (one, two))
            if np.ptp(a) == 0:
                assert np.ptp(b) == 0, (name, place)
                continue
            for power in powers:
                assert_near(a**power, b**power)


def assert_below(values: Any, limit: float) -> None:
    """The mean of draws (chains, draws) is below `limit`, but for 5 standard errors."""
    values = np.asarray(values, dtype=float)
    assert values.mean() - _ERRORS * float(arviz.mcse(values)) < limit, values.mean()
