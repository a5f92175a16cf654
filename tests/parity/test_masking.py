"""Mask densities and closed forms: Python and live R refuse in the same words."""

from typing import Any

import numpy as np
import pytest

from tests.parity.golden import in_python
from tests.refusals import refuses

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
