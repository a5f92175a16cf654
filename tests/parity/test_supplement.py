"""The R that the papers print, sourced as it is, beside the functions of this package.

The script belongs to the paper: it is read where it lies beside the checkout, and never shipped.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from tests.refusals import refuses

PRINTED = Path(__file__).resolve().parents[3] / "shared" / "supplement" / "supplement_1.R"


@pytest.fixture
def printed() -> str:
    if not PRINTED.is_file():
        pytest.skip("the supplement's script is not beside this checkout: it is not ours to ship")
    return str(PRINTED)


def _log_lik(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    y = rng.negative_binomial(2, 0.02, 40)
    draws = rng.normal(np.log(100), 0.1, 60)
    return ph.Poisson("y ~ 1").log_lik(
        {"beta": draws[:, None]}, y.astype(float), np.ones((40, 1)), 0
    )


@pytest.mark.parametrize(("seed", "how"), [
    (1, {}), (2, {"draw_quantile": 0.95}), (3, {"scale": 0.8, "shift": 0.1}),
    (4, {"scale": 1.4, "shift": -0.2, "draw_quantile": 0.5}),
])  # fmt: skip
def test_bounds_and_weights_are_those_of_the_printed_script(
    r: Callable[..., Any], printed: str, seed: int, how: dict[str, float]
) -> None:
    log_lik = _log_lik(seed)
    theirs = r("run_supplement", file=printed, log_lik_unweighted=log_lik, **how)
    # The script's weights never read the quantile: it is of the bound alone.
    alpha = ph.lipschitz_weights(log_lik, **{k: how[k] for k in ("scale", "shift") if k in how})
    bounds = ph.lipschitz_bounds(log_lik)
    np.testing.assert_allclose(theirs["by_record"], bounds.by_record, rtol=1e-10)
    np.testing.assert_allclose(theirs["weights"], alpha, rtol=1e-10, atol=1e-12)
    quantile = how.get("draw_quantile", 1.0)
    weighted = ph.lipschitz_bounds(log_lik, alpha, draw_quantile=quantile)
    everywhere = ph.lipschitz_bounds(log_lik, alpha)
    np.testing.assert_allclose(theirs["by_record_weighted"], everywhere.by_record, rtol=1e-9)
    np.testing.assert_allclose(theirs["bound"], weighted.overall, rtol=1e-10)


def test_weights_of_another_scale_are_told_apart(r: Callable[..., Any], printed: str) -> None:
    log_lik = _log_lik(1)
    theirs = r("run_supplement", file=printed, log_lik_unweighted=log_lik, scale=0.9)
    assert np.abs(theirs["weights"] - ph.lipschitz_weights(log_lik)).max() > 0.05


def test_another_script_is_refused(r: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "other.R").write_text("weights <- 1\n")
    for file, words in ((tmp_path / "other.R", "it did not"), (tmp_path / "none.R", "path of")):
        refuses(words, r, "run_supplement", file=str(file), log_lik_unweighted=_log_lik(1))


def test_the_script_is_nowhere_in_the_project(printed: str) -> None:
    """Lines of the paper's code that are more than a word are in no file of ours."""
    lines = {line.strip() for line in Path(printed).read_text().splitlines() if len(line) > 40}
    root = Path(ph.__file__).parent.parent
    paths = [*root.glob("R/*.R"), *root.rglob("pyhybrid/**/*.py"), *root.glob("stan/**/*.stan")]
    for path in paths:
        assert not lines & {line.strip() for line in path.read_text().splitlines()}, path
