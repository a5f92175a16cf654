"""The vector-weighted mechanisms beyond LW: their weights, collapsing cases and bad input."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.options import build_mechanism, named
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.privacy.count_risk import pairwise_risk, radius_risk
from tests.fits import fit_options, session_fixture
from tests.fitting.test_reweighting import mixture
from tests.refusals import refuses

MODEL = ph.NegativeBinomial("y ~ 1")
TABLE = mixture(300).assign(sex=lambda t: np.where(t.index % 3 == 0, "f", "m"))
OPTIONS = fit_options(chains=4, warmup=400, draws=400, seed=2)
ONE_DRAW = {"n_synthetic": 1, "n_draws_released": 1, "refits": 0}
session = session_fixture(lambda: MODEL.bind(TABLE), **OPTIONS)


@pytest.mark.parametrize("pairwise", [False, True])
@pytest.mark.parametrize("pattern", [(), ("sex",)])
@pytest.mark.parametrize("ball", [{"radius": 0.25}, {"radius": 5, "kind": "absolute"}])
def test_count_weights_are_those_of_the_risks(
    ball: dict[str, Any], pattern: tuple[str, ...], pairwise: bool, session: FitSession
) -> None:
    """Which are held to their definitions in test_bounds."""
    measure, known = pairwise_risk if pairwise else radius_risk, TABLE["sex"] if pattern else None
    risk = measure(TABLE["y"], **ball, pattern=known)
    own = ph.CountWeighted(MODEL, scale=0.9, shift=0.05, pattern=pattern, pairwise=pairwise, **ball)
    expected = np.clip(0.9 * (1 - risk) + 0.05, 0, 1)
    np.testing.assert_allclose(own.weights(session), expected, rtol=1e-12)


@pytest.mark.samples
def test_scalar_weights_are_the_exponential_mechanism(session: FitSession) -> None:
    bound = session.unweighted().bounds.overall
    alpha = ph.ScalarWeighted(MODEL, target_epsilon=4).weights(session)
    np.testing.assert_allclose(alpha, 4 / (2 * bound))
    assert (ph.ScalarWeighted(MODEL, target_bound=2).weights(session) == alpha).all()
    release = ph.ScalarWeighted(MODEL, target_bound=10 * bound).release_from(session, **ONE_DRAW)
    assert release.charge.bound == bound  # a weight of at most 1: the unweighted fit


def test_streams_of_a_truncated_mechanism_follow_its_inner_one() -> None:
    """As it was, two inner mechanisms that are described alike shared their random numbers."""
    for inner in (
        lambda x: ph.ScalarWeighted(MODEL, target_bound=x),
        lambda x: ph.GivenWeights(MODEL, alpha=np.full(60, x)),
    ):
        one, other = (ph.Truncated(MODEL, cap=3, inner=inner(x)) for x in (0.5, 0.6))
        assert one.describe() == other.describe(), "the control: what is public does not differ"
        assert one.stream() != other.stream()
        assert one.stream() == ph.Truncated(MODEL, cap=3, inner=inner(0.5)).stream()


def test_a_target_bound_is_not_taken_from_the_command_line() -> None:
    """The list of processes shows it."""
    refuses(
        "target_bound cannot be given on the command line, only in Python", build_mechanism,
        named("scalar:target_bound=2.123456"), MODEL, hidden=["2.12"],
    )  # fmt: skip
    made = ph.ScalarWeighted(MODEL, target_bound=2.123456)
    assert "2.123456" not in f"{made!r} {made.describe()}"


@pytest.mark.samples
def test_targets_know_of_the_doubling() -> None:
    table = pd.DataFrame({"y": np.random.default_rng(1).beta(2, 3, 300)})
    model = ph.Beta("y ~ 1")
    own = open_session(model.bind(table), seed=1, engine="embedded")
    bound = own.unweighted().bounds.overall
    for relation, sides in (("remove", 2), ("replace", 4)):
        mechanism = ph.ScalarWeighted(model, target_epsilon=2, relation=relation)
        np.testing.assert_allclose(mechanism.weights(own), 2 / (sides * bound))
        truncated = ph.Truncated(model, epsilon=2, relation=relation, inner=ph.Unweighted(model))
        f = own.unweighted().bounds.by_record
        np.testing.assert_array_equal(truncated.weights(own) == 0, f > 2 / sides)


def test_a_session_of_another_model_is_refused(session: FitSession) -> None:
    other = ph.Unweighted(ph.Poisson("y ~ 1"))
    refuses("over the mechanism's model", other.release_from, session, **ONE_DRAW)
    sets = {"n_synthetic": 4, "n_draws_released": 2}
    refuses("must be 1 or n_synthetic = 4", ph.Unweighted(MODEL).release_from, session, **sets)


@pytest.mark.samples
def test_truncation_drops_what_is_beyond_the_cap(session: FitSession) -> None:
    f = session.unweighted().bounds.by_record
    inner = ph.LipschitzWeighted(MODEL)
    weights = inner.weights(session)
    cap = float(np.quantile(weights * f, 0.9))
    alpha = ph.Truncated(MODEL, cap=cap).weights(session)
    np.testing.assert_array_equal(alpha, np.where(weights * f > cap, 0, weights))
    same = ph.Truncated(MODEL, epsilon=2 * cap, inner=inner).weights(session)
    np.testing.assert_array_equal(alpha, same)
    everything = ph.Truncated(MODEL, cap=1e9, inner=ph.Unweighted(MODEL)).weights(session)
    assert (everything == 1).all()
    described = ph.Truncated(MODEL, cap=cap, inner=inner).describe()
    assert described["inner"]["mechanism"] == "LipschitzWeighted"


@pytest.mark.samples
def test_given_weights_are_used_and_never_shown(session: FitSession) -> None:
    alpha = np.random.default_rng(1).uniform(0.123456, 1, 300)
    mechanism = ph.GivenWeights(MODEL, alpha=alpha)
    release = mechanism.release_from(session, **ONE_DRAW)
    np.testing.assert_array_equal(release.confidential.alpha, alpha)
    assert "alpha" not in mechanism.describe()
    assert f"{alpha[0]:.6f}" not in repr(mechanism) + release.statement
    ones = ph.GivenWeights(MODEL, alpha=np.ones(300)).fit(session).fit
    assert ones.bounds.overall == session.unweighted().bounds.overall


@pytest.mark.parametrize(("make", "message"), [
    (lambda: ph.LipschitzWeighted(MODEL, risk="mean"), "risk must be one of size, range, deviat"),
    (lambda: ph.CountWeighted(MODEL, radius=0), "radius must be above 0"),
    (lambda: ph.CountWeighted(MODEL, kind="both"), "relative, absolute"),
    (lambda: ph.CountWeighted(MODEL, pattern="sex"), "tuple of columns"),
    (lambda: ph.ScalarWeighted(MODEL), "exactly one of target"),
    (lambda: ph.ScalarWeighted(MODEL, target_bound=1, target_epsilon=2), "exactly one"),
    (lambda: ph.ScalarWeighted(MODEL, target_epsilon=0), "target_epsilon must be above 0"),
    (lambda: ph.Truncated(MODEL), "exactly one of cap and epsilon"),
    (lambda: ph.Truncated(MODEL, cap=0), "cap must be above 0"),
    (lambda: ph.Truncated(MODEL, cap=1, inner=ph.Unweighted(ph.Poisson("y ~ 1"))),
        "over the same model"),
    (lambda: ph.GivenWeights(MODEL, alpha=[0.5, 1.2]), "record 1 has another weight"),
    (lambda: ph.GivenWeights(MODEL, alpha=[np.nan, 1]), "record 0 has another weight"),
])  # fmt: skip
def test_bad_settings_are_named(make: Any, message: str) -> None:
    refuses(message, make)


@pytest.mark.samples
def test_weights_must_fit_the_data(session: FitSession) -> None:
    short = ph.GivenWeights(MODEL, alpha=[0.5, 1])
    refuses("must have 300 elements: found 2", short.weights, session)
    refuses("must not all be 0", ph.GivenWeights(MODEL, alpha=np.zeros(300)).fit, session)
    refuses("must not all be 0", ph.LipschitzWeighted(MODEL, scale=0, shift=-1).fit, session)
    for column, said in (("age", "column 'age' must be in the data"), ("y", "not be synthesized")):
        refuses(said, ph.CountWeighted(MODEL, pattern=(column,)).weights, session)


def test_settings_name_the_risk_where_it_is_not_the_papers() -> None:
    assert "risk" not in ph.LipschitzWeighted(MODEL).describe()
    assert ph.LipschitzWeighted(MODEL, risk="range").describe()["risk"] == "range"


def test_mechanisms_are_read_from_text() -> None:
    made = build_mechanism(named("count:radius=0.3,pattern=sex+age,pairwise=true"), MODEL)
    assert made == ph.CountWeighted(MODEL, radius=0.3, pattern=("sex", "age"), pairwise=True)
    made = build_mechanism(named("truncated:cap=2.5,relation=replace"), MODEL, unit=None)
    assert made == ph.Truncated(MODEL, cap=2.5, relation="replace")
    made = build_mechanism(named("censored:epsilon=4,inner=unweighted"), MODEL, unit="u")
    assert made == ph.Censored(MODEL, epsilon=4, unit="u", inner=ph.Unweighted(MODEL, unit="u"))
    made = build_mechanism(named("lipschitz:scale=0.7,reweighting=true"), MODEL)
    assert made == ph.LipschitzWeighted(MODEL, scale=0.7, reweighting=True)
