"""No message holds a value of the data: rows, columns and terms are named instead."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core import checks
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.censored.calibration import calibrate
from tests.fits import fit_options

SECRET = "Ostrowsky"
NUMBER = 7654.3219
Y = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
DF = pd.DataFrame({"y": Y, "x": np.arange(12.0), "town": ["a", "b", SECRET] * 4})
OTHER = DF.assign(town=["a", "b", "c"] * 4)
FAST = fit_options(chains=2, warmup=100, draws=50, seed=1)


def _calibration() -> Any:
    rule = {"rule": ph.engines.ConvergenceRule(rhat=10.0, ess_per_chain=0.1)}
    return calibrate(
        ph.Poisson("y ~ town"), DF, epsilon=4, n_draws=20, holds_no_released_record=True, **FAST,
        **rule,
    )  # fmt: skip


REFUSED: dict[str, Callable[[], Any]] = {
    "weights": lambda: checks.check_alpha([0.5, NUMBER], 2),
    "bounds": lambda: checks.check_nonnegative_vector([0.5, -NUMBER], "f"),
    "risk": lambda: ph.count_weights([0.2, NUMBER]),
    "levels of a set": lambda: ph.measures.utility_summary(OTHER, [DF]),
    "levels of a calibration": lambda: _calibration().weights(ph.Poisson("y ~ town").bind(OTHER)),
    "an analyst's model": lambda: ph.measures.model_utility(DF, [DF], "y ~ x + float(town[2])"),
    "terms of a set": lambda: ph.measures.model_utility(
        DF, [DF[DF["town"] != SECRET]], "y ~ C(town)", model="ols"
    ),
    "outcome": lambda: ph.Poisson("y ~ 1").bind(DF.assign(y=[NUMBER, *Y[1:]])),
    "outcome of the default": lambda: ph.models.DefaultModel("y ~ 1").bind(
        DF.assign(y=[NUMBER, *Y[1:]])
    ),
    "beyond an upper end": lambda: ph.Poisson("y ~ 1", upper=9).bind(DF.assign(y=[7654, *Y[1:]])),
    "outside of bounds": lambda: ph.Beta("y ~ 1", upper=9.0).bind(DF.assign(y=[NUMBER, *Y[1:]])),
    "a level without a design": lambda: ph.Poisson("y ~ x:town + town:x").bind(
        DF.assign(x=[np.inf] * 12)
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_no_message_holds_a_value(what: str) -> None:
    with pytest.raises(InvalidInput) as found:
        REFUSED[what]()
    message = str(found.value)
    assert SECRET not in message
    assert not re.search(r"7654|7\.65", message), message


def test_a_message_with_a_value_would_be_found() -> None:
    """Negative control: what these messages said before."""
    assert SECRET in f"column 'town' must have the categories of the data: {SECRET!r}"
    assert re.search(r"7654|7\.65", f"record 1 has weight {NUMBER:g}")
