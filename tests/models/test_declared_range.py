"""Declared ends of a model hold for what is drawn."""

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.models.registry import within
from tests.fits import fit_options
from tests.fuzzing.engine import RandomDraws
from tests.refusals import refuses

N = 200
SHORT = fit_options(chains=4, warmup=20, draws=400, engine=RandomDraws())
RNG = np.random.default_rng(6)
DATA = pd.DataFrame({"age": np.linspace(0, 1, N), "visits": np.minimum(RNG.poisson(3, N), 30)})


def test_ends_of_a_model_are_kept_where_they_are_narrower() -> None:
    assert within(ph.Poisson("y ~ 1", upper=9), 2.5, 20).describe()["upper"] == 9
    assert within(ph.Poisson("y ~ 1"), 2.5, 20).lower == 3
    bounded = within(ph.NormalRegression("y ~ 1", upper=9.0), 0, 20)
    assert (bounded.lower, bounded.upper) == (0, 9)
    refuses("must keep to the declared range", within, ph.MixtureRegression("y ~ 1"), 0, 1)


def test_missing_values_have_a_report() -> None:
    y = pd.Series(DATA["visits"].astype(float)).where(np.arange(N) % 7 > 0)
    model = ph.Poisson("y ~ 1", missing=True)
    release = ph.Unweighted(model).release(pd.DataFrame({"y": y, "x": DATA["age"]}), seed=3,
                                           **SHORT)  # fmt: skip
    assert release.synthetic[0]["y"].isna().any()
    assert ph.reports.release_pages(release)
