"""A center that is bought from the records themselves: charged, strict and near the data."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms import Round, calibrate_privately
from pyhybrid.mechanisms.censored.private_calibration import usual_rounds
from tests.fuzzing.engine import RANDOM_DRAWS, RandomDraws
from tests.refusals import refuses

OPTIONS: dict[str, Any] = {"engine": "embedded", "seed": 1}
POISSON = ph.Poisson("y ~ 1")
pytestmark = pytest.mark.usefixtures("opendp")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame({"y": np.random.default_rng(3).poisson(3.0, 2500)})


@pytest.mark.long
def test_rounds_and_release_cost_what_was_given(table: pd.DataFrame, tmp_path: Path) -> None:
    made = calibrate_privately(POISSON, table, epsilon=1, **OPTIONS)
    assert (made.bought.epsilon, made.bought.kind, made.cap) == (0.4, "strict", 0.3)
    assert not made.unconfirmed, "they are charged"
    made.save(tmp_path / "c")
    loaded = ph.mechanisms.Calibration.load(tmp_path / "c")
    assert loaded.bought == made.bought
    for draws, epsilon in ((1, 1.0), (2, 1.6)):
        release = ph.Censored(calibration=loaded).release(table, n_synthetic=draws, **OPTIONS)
        charge = release.charge
        assert (charge.epsilon, charge.kind, charge.relation) == (epsilon, "strict", "remove")
    # Draw and n counts have 1.15 % each; 20 seeds had 1.65 % together, and 3.9 % at most.
    assert abs(release.synthetic[0]["y"].mean() / table["y"].mean() - 1) < 0.1
    for words in ("drawn from these records before", "drawn in 3 rounds", "exactly, on a grid"):
        assert words in release.statement, words
    for words in ("before these records were looked at", "records that the calibration was made"):
        assert words not in release.statement, words
    ledger = ph.Ledger(tmp_path / "l.json", budget=2, kind="strict", relation="remove")
    release.save(tmp_path / "r", ledger=ledger)
    assert ledger.left == pytest.approx(0.4)


def test_usual_rounds_count_more_records_with_more_parameters_and_a_larger_cap() -> None:
    def records(n: int, size: int, **how: Any) -> list[float]:
        return [each.records for each in usual_rounds(n, size, epsilon=1, **how)]

    assert records(100, 1) == [10, 40, 200], "so many for a parameter"
    assert records(100, 9) == [90, 360, 1800]
    # A weight of records / n times so many nats is the cap: half of a share of epsilon.
    many = records(100_000, 9)
    caps = [0.05, 0.05, 0.1]
    for own, cap, moved in zip(many, caps, (8.0, 2.0, 0.6), strict=True):
        assert own / 100_000 * moved == pytest.approx(cap)
    assert np.allclose(records(100_000, 9, relation="replace"), np.array(many) / 2)


@pytest.mark.samples
def test_a_histogram_is_a_reference(table: pd.DataFrame) -> None:
    for relation, cap in (("remove", 0.75), ("replace", 0.375)):
        made = calibrate_privately(
            POISSON, table, epsilon=2, relation=relation, histogram=(0, 30, 31), **OPTIONS
        )
        assert (made.bought.epsilon, made.bought.relation, made.cap) == (0.5, relation, cap)
        # 31 noisy counts: the mean of 10,000 values from them, within a tenth.
        assert abs(np.exp(made.center.parameters["beta"][0]) / 3.0 - 1) < 0.1
        release = ph.Censored(calibration=made, relation=relation).release(table, **OPTIONS)
        assert (release.charge.epsilon, release.charge.kind) == (2.0, "strict")


@pytest.mark.samples
def test_a_regression_is_bought_at_public_predictors() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    table = pd.DataFrame({"x": x, "y": rng.poisson(np.exp(0.5 + 0.4 * x))})
    model = ph.Poisson("y ~ x", prior="normal")
    with pytest.raises(InvalidInput, match="predictors='public' must be given"):
        calibrate_privately(model, table, epsilon=1, **OPTIONS)
    few = ph.engines.SamplerSettings(chains=2, warmup=200, draws=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains: a charge that is local then
        made = calibrate_privately(
            model, table, epsilon=10, predictors="public", rounds=[Round(share=0.2, records=100)],
            settings=few, on_not_converged="warn", **OPTIONS,
        )  # fmt: skip
    assert made.bought.epsilon == 2.0
    # The draw takes 100 records: deviations of about 0.1; 5 of them.
    assert np.abs(made.center.parameters["beta"] - [0.5, 0.4]).max() < 0.5
    assert "Predictors of all records and their order are public" in made.bought.assumes[1]
    refuses("its cost would not be counted", ph.Censored, model, epsilon=1, center=made.center)
    first = ph.PerturbedHistogram(
        column="x", lower=-4, upper=4, n_bins=8, epsilon=1, decimals=1, relation="remove"
    )
    assert set(made.center.frozen.X[:, 1]) <= set(x), "the control: what such a step would read"
    steps = ph.SequentialSynthesis([first, ph.Censored(calibration=made)])
    refuses("step 2 must not take a center that was bought", steps.release, table)


def test_each_round_has_random_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epsilons add for draws that are independent. The control: fits of one session share a seed,
    which two rounds whose draws are at one place of their chains would tell."""
    seeds, once = list[int](), RandomDraws.sample
    monkeypatch.setattr(RandomDraws, "sample", lambda *own, seed, **how: (
        seeds.append(seed), once(*own, seed=seed, **how))[1])  # fmt: skip
    model, table = ph.Poisson("y ~ x", prior="normal"), pd.DataFrame({"x": range(9), "y": range(9)})
    calibrate_privately(model, table, epsilon=9, predictors="public", **RANDOM_DRAWS)
    assert len(set(seeds)) == len(seeds) == 3
    session = open_session(model.bind(table), **RANDOM_DRAWS)
    for alpha in (0.5, 1.0):
        session.fit(np.full(9, alpha), label="a fit")
    assert seeds[3] == seeds[4]


@pytest.mark.parametrize(("options", "words"), [
    ({"rounds": []}, "rounds must be given"),
    ({"rounds": [Round(share=0.6, records=9), Round(share=0.4, records=9)]}, "less than 1"),
    ({"start": {"phi": 1.0}}, "start must be given for this model"),
    ({"epsilon": 0}, "epsilon must be above 0"), ({"histogram": (0, 30, 1)}, "n_bins must be"),
])  # fmt: skip
def test_what_is_refused(options: Any, words: str, table: pd.DataFrame) -> None:
    refuses(words, calibrate_privately, POISSON, table, **{"epsilon": 1, **options, **OPTIONS})
