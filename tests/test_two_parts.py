"""`make test` and `make test-rest`: what is where; nothing samples or starts R unmarked."""

import ast
from pathlib import Path

import numpy as np
import pytest

from pyhybrid.engines import SamplerSettings, StanProgram, diagnose
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.rbridge import call_r
from tests.conftest import SHORT_FITS

ROOT = Path(__file__).resolve().parent.parent
NORMAL = StanProgram(
    name="two",
    text="""data { real center; }
parameters { real x; real<lower=0> s; }
model { x ~ normal(center, 0.5); s ~ gamma(9, 3); }
generated quantities { real twice = 2 * x; }
""",
)


def test_short_fits_are_about_twenty_tests_that_exist() -> None:
    assert len(SHORT_FITS) <= 25
    for name in SHORT_FITS:
        path, function = name.split("[")[0].split("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_a_test_without_marker_reaches_neither_a_sampler_nor_r() -> None:
    with pytest.raises(pytest.fail.Exception, match="must be marked: samples"):
        EmbeddedEngine().sample(NORMAL, {"center": 1.0}, seed=1, settings=SamplerSettings())
    with pytest.raises(pytest.fail.Exception, match="must be marked: needs_r"):
        call_r("epsilon_of_bound", bound=1.0)


@pytest.mark.normal_draws
def test_normal_draws_converge_and_lie_about_the_mode() -> None:
    settings = SamplerSettings(chains=4, warmup=100, draws=500)
    one, two, other = (
        EmbeddedEngine().sample(NORMAL, {"center": 1.0}, seed=seed, settings=settings)
        for seed in (1, 1, 2)
    )
    assert diagnose(one).converged
    assert one.provenance.engine_version == "normal draws"
    x, s = one.flat("x"), one.flat("s")
    assert abs(x.mean() - 1) < 5 * 0.5 / np.sqrt(2000)
    assert abs(x.std() / 0.5 - 1) < 5 / np.sqrt(4000)
    assert abs(np.log(s).mean() - np.log(3)) < 5 / 3 / np.sqrt(2000)
    np.testing.assert_array_equal(one.flat("twice"), 2 * x)
    np.testing.assert_array_equal(two.flat("s"), s)
    assert (other.flat("s") != s).all()


def test_the_makefile_and_ci_run_each_test_once() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert '-m "not rest"' in makefile
    assert "-m rest\n" in makefile
    ci = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    targets = [line.split()[1] for line in ci if line.startswith("make ")]
    assert targets == ["check", "test", "r-packages", "test-rest"]
