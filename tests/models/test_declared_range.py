"""Declared ends of a model hold for what is drawn."""

import numpy as np
import pandas as pd

import pyhybrid as ph
from tests.fits import fit_options
from tests.fuzzing.engine import RandomDraws

N = 200
SHORT = fit_options(chains=4, warmup=20, draws=400, engine=RandomDraws())
RNG = np.random.default_rng(6)
DATA = pd.DataFrame({"age": np.linspace(0, 1, N), "visits": np.minimum(RNG.poisson(3, N), 30)})


def test_missing_values_have_a_report() -> None:
    y = pd.Series(DATA["visits"].astype(float)).where(np.arange(N) % 7 > 0)
    model = ph.Poisson("y ~ 1", missing=True)
    release = ph.Unweighted(model).release(pd.DataFrame({"y": y, "x": DATA["age"]}), seed=3,
                                           **SHORT)  # fmt: skip
    assert release.synthetic[0]["y"].isna().any()
    assert ph.reports.release_pages(release)
