"""The workflow in R alone: its weights, bound and charge are Python's on the same draws."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Draws, SamplerSettings
from pyhybrid.fitting.session import open_session
from pyhybrid.rbridge import session as session_in_r
from pyhybrid.running.files import cache_folder
from tests.parity.test_supplement import PRINTED

RNG = np.random.default_rng(4)
X = np.resize([0, 1], 80)
TABLE = pd.DataFrame({"y": RNG.negative_binomial(2, 2 / (2 + np.exp(2.5 + 0.3 * X))), "x": X})
SHORT = {"chains": 2, "iter_warmup": 100, "iter_sampling": 60, "seed": 3}


def _log_lik(fit: dict[str, Any]) -> Any:
    """Of a published negative binomial fit, chain after chain, by Python's model."""
    draws = {name: np.concatenate(list(fit["draws"][name])) for name in ("beta", "phi")}
    design = np.column_stack([np.ones(len(X)), X])
    return ph.NegativeBinomial("y ~ x").log_lik(draws, TABLE["y"].to_numpy(float), design)


_made: dict[str, Any] = {}


@pytest.fixture
def release(r: Callable[..., Any], rstan: None) -> dict[str, Any]:
    """Once; its program may be compiled already, as the tests of the page for R's users have it."""
    if not _made:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of chains this short
            _made.update(r(
                "pseudo_posterior", formula="y ~ x", data=TABLE, n_synthetic=2, relation="replace",
                program="published/negative_binomial", delta=1e-5, on_not_converged="warn",
                cache_folder=str(cache_folder() / "rstan"), **SHORT,
            ))  # fmt: skip
    return _made


def test_weights_bound_and_charges_are_pythons(release: dict[str, Any]) -> None:
    before, after = _log_lik(release["unweighted"]), _log_lik(release["weighted"])
    alpha = ph.lipschitz_weights(before)
    np.testing.assert_allclose(release["alpha"], alpha, rtol=1e-8, atol=1e-10)
    bound = ph.lipschitz_bounds(after, alpha).overall
    mu = ph.gaussian_mu(after, alpha, chains=2).upper
    expected = {
        "lipschitz": ph.arrays.epsilon_of_bound(bound, n_draws_released=2, relation="replace"),
        "range": ph.arrays.epsilon_of_range(
            ph.loss_ranges(after, alpha).overall, n_draws_released=2, relation="replace"
        ),
        "gaussian": ph.epsilon_of_mu(
            ph.arrays.mu_of_release(mu, n_draws_released=2, relation="replace"), 1e-5
        ),
    }
    for name, epsilon in expected.items():
        assert release["epsilon"][name] == pytest.approx(epsilon, abs=0.011), name  # rounded up


def test_the_printed_script_gives_the_same_on_these_fits(
    release: dict[str, Any], r: Callable[..., Any]
) -> None:
    if not Path(PRINTED).is_file():
        pytest.skip("the supplement's script is not beside this checkout: it is not ours to ship")
    theirs = r(
        "run_supplement", file=str(PRINTED), log_lik_unweighted=_log_lik(release["unweighted"]),
        log_lik_weighted=np.asarray(release["weighted"]["log_lik"]),
    )  # fmt: skip
    np.testing.assert_allclose(theirs["weights"], release["alpha"], rtol=1e-7, atol=1e-9)
    assert theirs["bound"] == pytest.approx(release["bounds"]["overall"], rel=1e-9)


def test_synthetic_sets_have_the_datas_columns(release: dict[str, Any]) -> None:
    assert len(release["synthetic"]) == 2
    for made in release["synthetic"]:
        frame = pd.DataFrame(made)
        assert frame["x"].tolist() == X.tolist()
        assert (np.asarray(frame["y"]) >= 0).all()
        assert 0.3 < frame["y"].mean() / TABLE["y"].mean() < 3


def test_what_it_cannot_do_is_named(r: Callable[..., Any]) -> None:
    for wrong, words in (
        ({"program": "ordinal"}, "program must be one of negative_binomial"),
        ({"delta": 0.1}, "delta must be below 1 / n"),
        ({"program": "published/negative_binomial", "formula": "y ~ offset(x)"}, "no offset"),
    ):
        with pytest.raises(InvalidInput, match=words):
            r("pseudo_posterior", **{"formula": "y ~ x", "data": TABLE, **SHORT, **wrong})


# --- release by release, on the same draws: no sampler --------------------------------------------

_STORED = """
function(pseudo_posterior) function(stored, ...) {
  fits <- stored
  fit <- function(program, data, seed, ...) {
    draws <- fits[[1]]
    fits <<- fits[-1]
    sound <- list(rhat = 1, ess_bulk = 1e6, ess_tail = 1e6, divergences = 0)
    list(draws = draws, diagnostics = sound)
  }
  pseudo_posterior(..., fit = fit)
}
"""
SHARES = TABLE.assign(s=np.random.default_rng(2).beta(2, 5, 80), b=(TABLE["y"] > 10).astype(int))
RELEASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "negative_binomial": (ph.NegativeBinomial("y ~ x"), {}),
    "poisson": (ph.Poisson("y ~ x"), {"transform": "softmax", "relation": "replace"}),
    "bernoulli": (ph.Bernoulli("b ~ x"), {"risk": "deviation", "scale": 0.8, "shift": 0.1}),
    "beta_regression": (ph.BetaRegression("s ~ x"), {"relation": "replace", "scale": 0.7}),
    "published/negative_binomial": (ph.NegativeBinomial("y ~ x", program="published"), {}),
}


def _as_r_has_it(name: str, draws: Draws) -> dict[str, Any]:
    """The mean of each record, under the name that the program gives it, and the size."""
    linear = draws.variables["beta"] @ np.column_stack([np.ones(80), X]).T
    levels = name in ("bernoulli", "beta_regression")
    mean = 1 / (1 + np.exp(-linear)) if levels else np.exp(linear)
    own = {"mu": linear} if name.startswith("published/") else {"mu_record": mean}
    return own | {key: draws.variables[key] for key in ("phi", "lambda") if key in draws.variables}


@pytest.mark.normal_draws
@pytest.mark.parametrize("name", RELEASES)
def test_releases_cost_what_pythons_do(r: Callable[..., Any], name: str) -> None:
    import rpy2.rinterface as ri

    model, how = RELEASES[name]
    short = SamplerSettings(chains=2, warmup=300, draws=200)
    options = {"seed": 1, "engine": "embedded", "settings": short, "on_not_converged": "warn"}
    session = open_session(model.bind(SHARES), **options)
    release = ph.LipschitzWeighted(model, delta=1e-5, **how).release_from(
        session, n_synthetic=2, n_draws_released=2, refits=0
    )
    fits = [session.unweighted(), session.fit(release.confidential.alpha, label="weighted fit")]
    session_in_r.start_r()
    package = session_in_r._package()
    package["from_stored"] = ri.evalr(_STORED.strip())(package["pseudo_posterior"])
    told = r(
        "from_stored", stored=[_as_r_has_it(name, fit.draws) for fit in fits], data=SHARES,
        formula=str(model.formula), program=name, n_synthetic=2, delta=1e-5, seed=1, **how,
    )  # fmt: skip
    np.testing.assert_allclose(told["alpha"], release.confidential.alpha, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        told["bounds"]["by_record"], fits[1].bounds.by_record, rtol=1e-9, atol=1e-9
    )
    after = np.concatenate(list(session.bound.log_lik_blocks(fits[1].draws)), axis=1)
    after, alpha = after[:, session.bound.row_of], release.confidential.alpha
    relation = {"relation": how.get("relation", "remove"), "n_draws_released": 2}
    mu = ph.gaussian_mu(after, alpha, chains=2).upper
    expected = {
        "lipschitz": release.charge.epsilon_published,
        "range": release.charge.epsilon_by("range"),
        "gaussian": ph.epsilon_of_mu(ph.arrays.mu_of_release(mu, **relation), 1e-5),
    }
    for way, epsilon in expected.items():
        assert told["epsilon"][way] == pytest.approx(epsilon, rel=1e-6), way
