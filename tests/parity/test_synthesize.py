"""The workflow in R alone: weights, refits and charges are Python's on the same draws."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.fitting.session import open_session
from pyhybrid.models import MODELS
from pyhybrid.rbridge import session as session_in_r

RNG = np.random.default_rng(4)
X = np.resize([0, 1], 80)
Y = RNG.negative_binomial(2, 2 / (2 + np.exp(2.5 + 0.3 * X)))
TABLE = pd.DataFrame(
    {"y": Y, "x": X, "b": (Y > 10).astype(int), "s": RNG.beta(2, 5, 80), "z": RNG.normal(3, 2, 80)}
)

_STORED = Path(__file__).with_name("from_stored.R").read_text("utf-8")
COUNTS, POISSON = ph.NegativeBinomial("y ~ x"), ph.Poisson("y ~ x")
RELEASES: dict[str, tuple[Any, str]] = {
    "LW": (ph.LipschitzWeighted(COUNTS), "lipschitz_weighted()"),
    "LW, softmax, replace": (
        ph.LipschitzWeighted(POISSON, transform="softmax", relation="replace"),
        "lipschitz_weighted(transform = 'softmax')",
    ),
    "LW by deviations": (
        ph.LipschitzWeighted(ph.Bernoulli("b ~ x"), risk="deviation", scale=0.8, shift=0.1),
        "lipschitz_weighted(0.8, 0.1, risk = 'deviation')",
    ),
    "re-weighted": (
        ph.LipschitzWeighted(COUNTS, scale=0.7, reweighting=Reweighting.published()),
        "lipschitz_weighted(0.7, reweight = TRUE)",
    ),
    "CW": (ph.CountWeighted(POISSON, pattern=("x",)), "count_weighted(pattern = 'x')"),
    "SW": (
        ph.ScalarWeighted(ph.BetaRegression("s ~ x"), target_epsilon=6.0, relation="replace"),
        "scalar_weighted(target_epsilon = 6)",
    ),
    "Weighted-e": (
        ph.Truncated(ph.NormalRegression("z ~ x"), epsilon=5.0), "weighted_m(epsilon = 5)",
    ),
    "Unweighted": (ph.Unweighted(ph.Beta("s ~ 1")), "unweighted()"),
    "Censor_w": (ph.Censored(POISSON, epsilon=4.0, check_modes=False), "censored(epsilon = 4)"),
}  # fmt: skip


@pytest.mark.normal_draws
@pytest.mark.parametrize("name", RELEASES)
def test_releases_cost_what_pythons_do(
    r: Callable[..., Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rpy2.rinterface as ri

    python, mechanism = RELEASES[name]
    model = python.model
    family = next(known for known, kind in MODELS.items() if kind is type(model))
    short = SamplerSettings(chains=2, warmup=300, draws=200, max_draws=200)
    fits: list[dict[str, Any]] = []
    sample = EmbeddedEngine.sample

    def recorded(self: EmbeddedEngine, *args: Any, **options: Any) -> Any:
        draws = sample(self, *args, **options)
        fits.append({n: v for n, v in draws.variables.items() if n in _READ})
        return draws

    monkeypatch.setattr(EmbeddedEngine, "sample", recorded)
    session = open_session(
        model.bind(TABLE), seed=1, engine="embedded", settings=short, on_not_converged="warn"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of R-hat: draws are few
        release = python.release_from(session, n_synthetic=2, n_draws_released=2, refits=4)
    package = session_in_r._package()
    package["from_stored"] = ri.evalr(_STORED)(package["synthesize"])
    found = r(
        "from_stored", stored=fits, mechanism=mechanism, data=TABLE, formula=str(model.formula),
        family=family, m=2, refits=4, relation=python.relation, progress=False,
    )  # fmt: skip
    own, charge = release.confidential, release.charge
    assert found["left"] == 0  # as many fits as Python made, in its order
    np.testing.assert_allclose(found["alpha"], own.alpha, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["by_record"], own.lipschitz, rtol=1e-9, atol=1e-9)
    if name == "Censor_w":
        assert found["charge"]["epsilon"] == charge.epsilon
        return
    assert own.loss is not None
    refits = own.loss.refits
    assert np.atleast_1d(found["record"]).tolist() == [refit.record + 1 for refit in refits]
    losses = [refit.loss for refit in refits]
    np.testing.assert_allclose(np.atleast_1d(found["loss"]), losses, rtol=1e-6)
    ways = ("epsilon_published", "epsilon_lipschitz", "epsilon_range")
    expected = {way: getattr(charge, way) for way in ways}
    expected["epsilon_gaussian"] = charge.epsilon_by("gaussian", delta=1e-6)
    for way, epsilon in expected.items():
        assert found["charge"][way] == pytest.approx(epsilon, abs=0.011), way  # rounded up
    for table in found["synthetic"]:
        frame = pd.DataFrame(table)
        assert frame["x"].tolist() == X.tolist()
        outcome = str(model.formula).split(" ")[0]
        assert 0.3 < frame[outcome].mean() / TABLE[outcome].mean() < 3


_READ = ("beta", "phi", "lambda", "sigma")
