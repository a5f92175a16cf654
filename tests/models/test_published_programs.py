"""The papers' own parametrizations, written plainly, as a `StanModel` beside the built-in models.

Same posterior: means of the likelihood's parameters within 5 Monte Carlo standard errors; same
log-likelihood: at the same draws, to the last digits; so the bounds differ by what chains do.
"""

from __future__ import annotations

from pathlib import Path

import arviz
import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.models import Model

pytestmark = pytest.mark.samples

HERE = Path(__file__).parent / "published"
SETTINGS = SamplerSettings(chains=2, warmup=400, draws=500, parallel_chains=1)


def _counts() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    z = rng.integers(0, 3, 150)
    y = rng.negative_binomial(4, 4 / (4 + np.exp(2 + 0.3 * z)))
    return pd.DataFrame({"y": y, "z": z.astype(float)})


def _shares() -> pd.DataFrame:
    return pd.DataFrame({"y": np.random.default_rng(6).beta(0.5, 3, 150).clip(1e-6, 1 - 1e-6)})


def published_negative_binomial() -> ph.StanModel:
    return ph.StanModel(
        program=HERE / "negative_binomial.stan",
        outcome="y",
        data={},
        formula="y ~ z",
        predict="y_rep",
        log_lik_weighted=True,
        density_above_one=False,
        decimals=0,
    )


def published_beta() -> ph.StanModel:
    return ph.StanModel(
        program=HERE / "beta.stan", outcome="y", data={}, predict="y_rep", decimals=15
    )


def _session(model: Model, table: pd.DataFrame, seed: int = 1) -> FitSession:
    return open_session(
        model.bind(table), seed=seed, engine="embedded", settings=SETTINGS, on_not_converged="warn"
    )


def _mean_and_error(draws: FloatArray) -> tuple[float, float]:
    """Of draws, shape (chains, draws): posterior mean and its Monte Carlo standard error."""
    return float(draws.mean()), float(arviz.mcse(draws))


@pytest.mark.parametrize(
    ("built_in", "published", "table", "names", "weights"),
    [
        (
            ph.NegativeBinomial("y ~ z"),
            published_negative_binomial(),
            _counts(),
            {"beta": 0, "reciprocal_phi": None},
            np.linspace(0.2, 1, 150),
        ),
        (ph.Beta("y ~ 1"), published_beta(), _shares(), {"phi": None, "lambda": None}, None),
    ],
    ids=["negative binomial", "beta"],
)
def test_the_published_program_and_the_built_in_one_agree(
    built_in: Model,
    published: ph.StanModel,
    table: pd.DataFrame,
    names: dict[str, int | None],
    weights: FloatArray | None,
) -> None:
    alpha = np.ones(len(table)) if weights is None else weights
    fits = [_session(model, table).fit(alpha, label="fit") for model in (built_in, published)]
    for name, place in names.items():
        found = [
            _mean_and_error(f.draws.variables[name][(..., *(() if place is None else (place,)))])
            for f in fits
        ]
        (ours, our_error), (theirs, their_error) = found
        assert abs(ours - theirs) < 5 * np.hypot(our_error, their_error), (name, found)
    told = [model.bind(table).log_lik(fits[1].draws) for model in (built_in, published)]
    by_record = [np.concatenate(list(each.make()), axis=1)[:, each.row_of] for each in told]
    np.testing.assert_allclose(by_record[0], by_record[1], rtol=1e-9, atol=1e-9)


def test_halved_weights_in_the_program_are_seen() -> None:
    """The control: a program that weights twice is refused, or moves the posterior."""
    text = (
        (HERE / "negative_binomial.stan")
        .read_text()
        .replace("target += weights[i] *", "target += weights[i] * weights[i] *")
    )
    twice = ph.StanModel(
        program=text, outcome="y", data={}, formula="y ~ z", predict="y_rep", log_lik_weighted=True,
        density_above_one=False, decimals=0,
    )  # fmt: skip
    with pytest.raises(ph.InvalidInput):
        twice.bind(_counts())
