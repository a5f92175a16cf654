"""Declared ends of a model hold for what is drawn."""

import numpy as np
import pandas as pd
from scipy import stats

import pyhybrid as ph
from pyhybrid.models.registry import within
from tests.fits import fit_options
from tests.fuzzing.engine import RandomDraws
from tests.refusals import refuses

N = 200
SHORT = fit_options(chains=4, warmup=20, draws=400, engine=RandomDraws())
P_VALUE = 1e-6
RNG = np.random.default_rng(6)
DATA = pd.DataFrame({"age": np.linspace(0, 1, N), "visits": np.minimum(RNG.poisson(3, N), 30)})


def test_replicates_are_those_of_the_model_given_that_they_lie_within() -> None:
    """By the distribution function; the likelihood and the program stay what they were."""
    free = ph.NormalRegression("y ~ 1")
    cut = within(free, -1.0, 2.0)
    assert (cut.truncated, cut.stan_program) == ("draws", free.stan_program)
    parameters = {"beta": np.array([0.5]), "sigma": np.array(1.5)}
    X = np.ones((4000, 1))
    drawn = cut.draw_outcome(parameters, X, np.random.default_rng(1))
    truth = stats.truncnorm(-1, 1, loc=0.5, scale=1.5)
    assert stats.kstest(drawn, truth.cdf).pvalue > P_VALUE
    many = {"beta": np.array([[0.5]]), "sigma": np.array([1.5])}
    y = np.linspace(-1, 2, 7)
    np.testing.assert_array_equal(cut.log_lik(many, y, X[:7]), free.log_lik(many, y, X[:7]))
    gamma = within(ph.Gamma("y ~ 1"), None, 3.0)
    one = {"beta": np.array([0.2]), "shape": np.array(2.0)}
    own = stats.gamma(2, scale=np.exp(0.2) / 2)
    drawn = gamma.draw_outcome(one, X, np.random.default_rng(2))
    assert stats.kstest(drawn, lambda y: own.cdf(y) / own.cdf(3)).pvalue > P_VALUE


def test_ends_of_a_model_are_kept_where_they_are_narrower() -> None:
    assert within(ph.Poisson("y ~ 1", upper=9), 2.5, 20).describe()["upper"] == 9
    assert within(ph.Poisson("y ~ 1"), 2.5, 20).lower == 3
    bounded = within(ph.NormalRegression("y ~ 1", upper=9.0), 0, 20)
    assert (bounded.lower, bounded.upper, bounded.truncated) == (0, 9, "likelihood")
    refuses("must keep to the declared range", within, ph.MixtureRegression("y ~ 1"), 0, 1)
    refuses("truncated must be one of", ph.NormalRegression, "y ~ 1", truncated="both")


def test_missing_values_marked_by_a_text_have_a_report() -> None:
    """In version 0.2 the report of a column of numbers with NA in its file failed."""
    y = pd.Series(DATA["visits"].astype(float)).where(np.arange(N) % 7 > 0)
    model = ph.WithMissing(ph.Poisson("y ~ 1"))
    release = ph.Unweighted(model).release(pd.DataFrame({"y": y, "x": DATA["age"]}), seed=3,
                                           **SHORT)  # fmt: skip
    marked = release.with_marks({"y": "NA"}, ["y"])
    assert set(marked.synthetic[0]["y"].map(type)) == {int, str}
    assert ph.reports.release_pages(marked)


def test_an_outcome_that_is_declared_complete_has_no_missing_values() -> None:
    data = DATA[["age", "visits"]].assign(age=DATA["age"].where(np.arange(N) != 3))
    model = ph.WithMissing(ph.Poisson("visits ~ age"), fill={"age": 0.5}, complete=True)
    assert [part.name for part in model.bind(data).parts] == ["value"]
    gone = data.assign(visits=data["visits"].where(np.arange(N) != 4))
    refuses(r"must not be missing, as complete=True declares: row 4", model.bind, gone)
