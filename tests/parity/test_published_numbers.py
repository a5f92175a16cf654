"""Numbers that the printed R script and Stan program gave, stored: this package gives the same.

`tests/golden/published/make_published.py` makes them anew from the paper in hand.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import load_program
from tests.golden.published.make_published import of_beta
from tests.refusals import fails

FOLDER = Path(__file__).parents[1] / "golden" / "published"
CASES = json.loads((FOLDER / "script.json").read_text())
PROGRAM = json.loads((FOLDER / "program.json").read_text())


def _python(name: str, **arguments: Any) -> Any:
    value = getattr(ph, name)(**arguments)
    return value if isinstance(value, np.ndarray) else vars(value)


def _check(call: Callable[..., Any], case: dict[str, Any]) -> None:
    """The weights of the script read all draws, its `thresh` is of the bound alone."""
    log_lik, how = np.array(case["log_lik"]), case["how"]
    weights = {name: how[name] for name in ("scale", "shift") if name in how}
    alpha = np.asarray(call("lipschitz_weights", log_lik=log_lik, **weights))
    np.testing.assert_allclose(alpha, case["weights"], rtol=1e-12, atol=1e-14)
    quantile = {"draw_quantile": how.get("draw_quantile", 1.0)}
    for stored, field, given in (
        ("by_record", "by_record", {}), ("by_record_weighted", "by_record", {"alpha": alpha}),
        ("bound", "overall", {"alpha": alpha, **quantile}),
    ):  # fmt: skip
        found = call("lipschitz_bounds", log_lik=log_lik, **given)[field]
        np.testing.assert_allclose(found, case[stored], rtol=1e-12)


each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["how"]))


@each_case
def test_bounds_and_weights_are_those_that_the_printed_script_gave(case: dict[str, Any]) -> None:
    _check(_python, case)


@each_case
def test_so_are_those_of_the_r_package(r: Callable[..., Any], case: dict[str, Any]) -> None:
    _check(r, case)


def test_a_term_that_is_too_large_by_a_millionth_is_seen() -> None:
    larger = np.array(CASES[0]["log_lik"]) * (1 + 1e-6)
    fails(AssertionError, "", _check, _python, {**CASES[0], "log_lik": larger})


def test_our_copy_of_the_program_and_python_have_the_printed_density_and_log_lik() -> None:
    data, points = PROGRAM["data"], np.array(PROGRAM["points"])
    at = ProgramAtPoints(load_program("published/negative_binomial"), data)
    apart = at.log_density(points) - PROGRAM["log_density"]
    np.testing.assert_allclose(apart, apart[0], atol=1e-11)
    np.testing.assert_allclose(at.quantities(points)["log_lik"], PROGRAM["log_lik"], rtol=1e-12)
    X, y = np.array(data["X"]), np.array(data["y"], dtype=float)
    bound = ph.NegativeBinomial("y ~ x").bind(pd.DataFrame({"y": data["y"], "x": X[:, 1]}))
    np.testing.assert_array_equal(bound.matrix.X, X)
    parameters = {"beta": points[:, :2], "phi": 1 / points[:, -1]}
    ours = bound.model.log_lik(parameters, y, X, 0) * data["weights"]
    np.testing.assert_allclose(ours, PROGRAM["log_lik"], rtol=1e-12)


def test_our_copy_of_the_beta_program_has_the_density_of_its_formulas(tmp_path: Path) -> None:
    """As [C25]'s own is not at hand: by SciPy, clipped at M, with the priors and the Jacobian."""
    (tmp_path / "beta.stan").write_text(load_program("published/beta").text)
    made = of_beta(str(tmp_path / "beta.stan"))
    data, points = made["data"], np.array(made["points"])
    phi, above = special.expit(points[:, :1]), np.exp(points[:, 1:])
    first, second = (0.1 + above) * phi, (0.1 + above) * (1 - phi)
    terms = np.array(data["alpha"]) * stats.beta.logpdf(data["outcome"], first, second)
    clipped = terms.clip(-data["M"], data["M"])
    np.testing.assert_allclose(made["log_lik_noM"], terms, rtol=1e-11)
    np.testing.assert_allclose(made["log_lik"], clipped, rtol=1e-11)
    prior = -2.5 * np.log(0.1 + above) + np.log(above) + np.log(phi * (1 - phi))
    apart = made["log_density"] - clipped.sum(axis=1) - prior[:, 0]
    np.testing.assert_allclose(apart, apart[0], atol=1e-10)
