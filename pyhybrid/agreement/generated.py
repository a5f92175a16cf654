"""Tables to compare the languages on where the user gives none; simulated, not confidential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.errors import InvalidInput
from pyhybrid.models import MODELS, Model
from pyhybrid.validation import check_choice

__all__ = ["generated_table"]

_RECORDS = 300
_FORMULA = "y ~ age + region"

# The outcome given its mean (n,).
_OUTCOMES: Mapping[str, Callable[[np.random.Generator, Any], Any]] = {
    "negative_binomial": lambda rng, mu: rng.negative_binomial(3, 3 / (3 + mu)),
    "poisson": lambda rng, mu: rng.poisson(mu),
}


def generated_table(model: str, rng: np.random.Generator) -> tuple[pd.DataFrame, Model]:
    """A table of 300 records that the model `model` fits, and that model.

    Raises
    ------
    InvalidInput
        For an unknown model, or one without generated data.
    """
    make = MODELS[check_choice(model, "model", MODELS)]
    if model not in _OUTCOMES:
        raise InvalidInput(
            f"model {model!r} has no generated data: give a table and a formula, or one of "
            f"{', '.join(_OUTCOMES)}"
        )
    age = rng.uniform(-1, 1, _RECORDS).round(2)
    region = rng.choice(["north", "east", "west"], _RECORDS)
    mu = np.exp(3 + 0.5 * age + 0.3 * (region == "west"))
    table = pd.DataFrame({"y": _OUTCOMES[model](rng, mu), "age": age, "region": region})
    return table, make(_FORMULA)
