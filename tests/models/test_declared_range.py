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
    model = ph.WithMissing(ph.Poisson("y ~ 1"))
    release = ph.Unweighted(model).release(pd.DataFrame({"y": y, "x": DATA["age"]}), seed=3,
                                           **SHORT)  # fmt: skip
    assert release.synthetic[0]["y"].isna().any()
    assert ph.reports.release_pages(release)


def test_an_outcome_that_is_declared_complete_has_no_missing_values() -> None:
    data = DATA[["age", "visits"]].assign(age=DATA["age"].where(np.arange(N) != 3))
    model = ph.WithMissing(ph.Poisson("visits ~ age"), fill={"age": 0.5}, complete=True)
    assert [part.name for part in model.bind(data).parts] == ["value"]
    gone = data.assign(visits=data["visits"].where(np.arange(N) != 4))
    refuses(r"must not be missing, as complete=True declares: row 4", model.bind, gone)
