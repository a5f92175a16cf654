"""Any mechanism at a given epsilon: what is found costs at most the target, and near it."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.epsilon_search import with_epsilon
from tests.conftest import Run
from tests.fits import fit_options
from tests.mechanisms.test_accounting import MODEL, counts
from tests.refusals import refuses

pytestmark = pytest.mark.samples
OPTIONS = fit_options(chains=4, warmup=300, draws=400, seed=5)


@pytest.mark.parametrize(("mechanism", "target"), [
    (ph.LipschitzWeighted(MODEL, transform="reciprocal"), 0.2),
    (ph.ScalarWeighted(MODEL, target_epsilon=9.0), 2.0),
    (ph.Truncated(MODEL, cap=1.0, inner=ph.Unweighted(MODEL)), 9.0),
])  # fmt: skip
def test_the_target_is_met_from_below_and_released(mechanism: Any, target: float) -> None:
    found = ph.mechanisms.meet_epsilon(
        mechanism, counts(), target_epsilon=target, refits=0, **OPTIONS
    )
    assert found.epsilon <= target
    release = found.mechanism.release_from(
        found.session, n_synthetic=2, n_draws_released=1, refits=0
    )
    assert release.charge.epsilon == found.epsilon
    assert type(found.mechanism) is type(mechanism)


def test_a_target_above_what_the_largest_setting_costs_is_met_by_it() -> None:
    mechanism = ph.LipschitzWeighted(MODEL, scale=0.1, transform="logistic")
    found = ph.mechanisms.meet_epsilon(mechanism, counts(), target_epsilon=50, **OPTIONS)
    assert (found.value, len(found.steps)) == (1.0, 1)


def test_a_strict_mechanism_divides_it_by_its_draws() -> None:
    censored = with_epsilon(ph.Censored(MODEL, cap=3), target_epsilon=2, n_draws_released=4)
    assert (censored.epsilon, censored.cap) == (0.5, None)
    histogram = ph.PerturbedHistogram(column="y", lower=0, upper=50, n_bins=5, epsilon=9)
    release = with_epsilon(histogram, target_epsilon=2).release(counts(), n_synthetic=3)
    assert release.charge.epsilon == 2


def test_where_it_makes_no_sense() -> None:
    for mechanism, said in (
        (ph.Unweighted(MODEL), "Unweighted has none; take LipschitzWeighted"),
        (ph.GivenWeights(MODEL, alpha=[1.0] * 300), "GivenWeights has none"),
        (ph.Censored(MODEL, epsilon=1), "needs no search"),
    ):
        refuses(said, ph.mechanisms.meet_epsilon, mechanism, counts(), target_epsilon=1, **OPTIONS)
    refuses("has no epsilon of its own", with_epsilon, ph.Unweighted(MODEL), target_epsilon=1)
    low = ph.LipschitzWeighted(MODEL, shift=0.5)
    with pytest.raises(InvalidInput, match="target_epsilon must be reachable by scale"):
        ph.mechanisms.meet_epsilon(low, counts(), target_epsilon=1e-3, **OPTIONS)


def test_on_the_command_line(run: Run, tmp_path: Path) -> None:
    counts()[["y"]].to_csv(tmp_path / "data.csv", index=False)
    common = ("synthesize", "data.csv", "--formula", "y ~ 1", "--epsilon")
    fitted = ("--model", "poisson", "--fit", "engine=embedded,seed=5,refits=0")
    for name, more in {
        "scalar": fitted,
        "censored:inner=unweighted,sampling=exact": fitted,
        "perturbed_histogram:lower=0,upper=60,n_bins=30": (),
    }.items():
        out = name.partition(":")[0]
        code, _, problem = run(*common, "1.5", *more, "--mechanism", name, "--out", out)
        assert code == 0, problem
        charge = pd.read_json(tmp_path / out / "public" / "charge.json", typ="series")
        assert 0 < charge["epsilon"] <= 2
    for arguments, said in (
        (("--mechanism", "unweighted"), "unweighted has none"),
        (("--mechanism", "lipschitz:scale=0.5"), "determines scale: leave it out"),
        (("--formula", "x ~ y", "--mechanism", "lipschitz"), "is for one formula"),
        (("--mechanism", "censored:calibration=there"), "there must hold a calibration"),
    ):
        code, _, problem = run(*common, "1", "--out", "none", *arguments)
        assert code != 0
        assert said in problem
