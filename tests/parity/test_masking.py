"""Mask densities and closed forms: Python and live R give the same numbers and refusals."""

from typing import Any

import numpy as np
import pytest

from tests.parity.golden import assert_same, in_python
from tests.refusals import refuses


def _both(r: Any, function: str, **arguments: Any) -> Any:
    value = in_python(function, arguments)
    assert_same(r(function, **arguments), value)
    return value


@pytest.mark.parametrize("seed", range(6))
def test_densities_and_closed_forms(seed: int, r: Any) -> None:
    rng = np.random.default_rng(seed)
    n, copies, levels = int(rng.integers(2, 20)), int(rng.integers(2, 6)), int(rng.integers(2, 6))
    x, w = rng.normal(size=n), rng.normal(size=(n, copies))
    s2, a = float(rng.gamma(2)), float(rng.gamma(3))
    _both(r, "gaussian_mask_log_density", w=w, x=x, variance=s2)
    codes = rng.integers(0, levels, n).astype(float)
    _both(r, "mixture_mask_log_density", w=rng.normal(size=n), x=codes, separation=a)
    _both(r, "mixture_mask_log_density", w=rng.normal(size=(n, levels)), x=codes, separation=a)
    matrix = rng.dirichlet(np.ones(levels), levels)
    seen = rng.integers(0, levels, n).astype(float)
    _both(r, "misclassification_log_density", w=seen, x=codes, matrix=matrix)
    variance = rng.gamma(2, size=n)
    _both(r, "masked_normal", mean=x, variance=variance, w=w, mask_variance=s2)
    logs = rng.normal(0, 3, (n, levels))
    _both(
        r, "masked_level_probabilities", prior=rng.dirichlet(np.ones(levels), n), log_density=logs
    )


TWO = np.array([0.0, 1.0])


@pytest.mark.parametrize(("function", "arguments", "message"), [
    ("gaussian_mask_log_density", {"w": np.ones((2, 2)), "x": TWO, "variance": 0.0},
        "variance must be above 0: found 0"),
    ("gaussian_mask_log_density", {"w": np.ones((3, 2)), "x": TWO, "variance": 1.0},
        "w must have one row for each of 2 records: found shape (3, 2)"),
    ("mixture_mask_log_density", {"w": TWO, "x": TWO, "separation": -1.0},
        "separation must be above 0: found -1"),
    ("misclassification_log_density",
        {"w": np.array([2.0, 0.0]), "x": TWO, "matrix": np.eye(2)},
        "codes must be whole numbers from 0 to 1"),
    ("masked_normal", {"mean": np.zeros(2), "variance": np.eye(2)[0], "w": np.ones((2, 2)),
        "mask_variance": 1.0}, "variance must be above 0 in every record"),
    ("masked_level_probabilities", {"prior": np.zeros((2, 2)), "log_density": np.zeros((2, 2))},
        "each record must have a level with positive prior and density"),
])  # fmt: skip
def test_refusals(function: str, arguments: dict[str, Any], message: str, r: Any) -> None:
    assert message in refuses("", in_python, function, arguments)
    assert message in refuses("", r, function, **arguments)
