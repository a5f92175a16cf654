"""Clipped scores: what one record can change, accounting, options, and errors."""

import json
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms import clipped_scores, scored_records
from pyhybrid.primitives.noise import gaussian_sums
from pyhybrid.privacy.conversions import mu_of_epsilon
from pyhybrid.releases.column_decisions import Decisions
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("opendp")
N = 300


def survey(n=N, seed=1):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({
        "age": rng.integers(20, 80, n), "sex": rng.choice(["f", "m"], n),
        "person": np.arange(n) // 3, "w": rng.choice([0.5, 1.0, 2.0], n),
        "visits": rng.poisson(3, n), "voted": rng.choice(["no", "yes"], n),
        "income": np.round(rng.lognormal(10, 0.6, n), 2), "share": rng.beta(2, 5, n).round(3),
        "mood": rng.choice([1, 2, 3], n),
    })  # fmt: skip
    table["pension"] = table["income"].where(rng.random(n) > 0.2, 0)
    table["vote"] = table["voted"].where(rng.random(n) > 0.2, None)
    seen = rng.poisson(9, n) * (rng.random(n) > 0.2)
    table["seen"] = pd.Series(seen).astype("Int64").mask(rng.random(n) < 0.15)
    return table.assign(asked=table["seen"].where(rng.random(n) < 0.8, 99))


RIGHT = "I((age - 50) / 10) + sex"
MODELS = {
    "visits": ph.NegativeBinomial(f"visits ~ {RIGHT}"),
    "voted": ph.Bernoulli(f"voted ~ {RIGHT}", levels=("no", "yes")),
    "income": ph.LogNormal(f"income ~ {RIGHT}", decimals=2, unit=20_000),
    "share": ph.BetaRegression(f"share ~ {RIGHT}", decimals=3),
    "mood": ph.Ordinal(f"mood ~ {RIGHT}", levels=(1, 2, 3)),
    "pension": ph.LogNormal(f"pension ~ {RIGHT}", decimals=2, unit=20_000, zeros=True),
    "seen": ph.NegativeBinomial(f"seen ~ {RIGHT}", zeros=True, missing=True),
    "asked": ph.NegativeBinomial(f"asked ~ {RIGHT}", zeros=True, missing=True, codes=(99, -9)),
    "vote": ph.Bernoulli(f"vote ~ {RIGHT}", levels=("no", "yes"), missing=True),
}


@pytest.fixture
def quick(monkeypatch):
    """Fewer simulated outcomes, of which neither sensitivity nor epsilon is made."""
    monkeypatch.setattr(clipped_scores, "_SIMULATED", 900)


def seen_sums(monkeypatch, mechanism, table):
    """What a release tells the noise: each sum and its sensitivity, under one outcome of it."""
    seen, rng = [], np.random.default_rng(9)

    def fixed(sums, sensitivity, mu):
        seen.append((np.array([int(v) for v in sums], dtype=object), sensitivity, mu))
        return rng.normal(0, sensitivity / mu, len(sums))  # not a function of the sums

    monkeypatch.setattr(clipped_scores, "gaussian_sums", fixed)
    bound = mechanism.bind(table)
    fit = mechanism.fit(bound, streams(5))
    drawn = mechanism.replicate(bound.design, fit.estimates.values, np.random.default_rng(3))
    return seen, fit, drawn


def farthest(before, after):
    """Largest change of a sum between two releases, squared, in squared sensitivities."""
    pairs = zip(before, after, strict=True)
    return max(Fraction(sum(int(v) ** 2 for v in a[0] - b[0]), a[1] ** 2) for a, b in pairs)


def not_whole(rows, clip):
    """The broken `whole_scores`, which leaves rows longer than the clip."""
    return np.trunc(rows * (2**30 / clip)).astype(np.int64)


ODD = [None, -1, 0, 10**9, 1e308, float("nan"), float("inf"), "text", "3", "yes", True, (1, 2),
       pd.Timestamp("2020-01-01"), 2.5]  # fmt: skip


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("outcome", "relation"),
    [*((name, "remove") for name in MODELS), ("visits", "replace"), ("asked", "replace")],
)
def test_a_neighbor_changes_the_sums_alone_and_by_the_sensitivity(monkeypatch, outcome, relation):
    """With the noise held fixed, everything else is equal to the last bit, whatever a cell holds:
    points, covariance, number of rounds, and the released column with its dtype."""
    mechanism = ph.ClippedScores(MODELS[outcome], epsilon=1, relation=relation)
    table = survey().astype({outcome: object})
    compared = table.copy()
    if relation == "remove":
        compared.loc[11, outcome] = "none"  # nothing that a model takes; of some a missing value is
    before, fit, drawn = seen_sums(monkeypatch, mechanism, compared)
    for cell in ODD:
        other = table.copy()
        other.at[11, outcome] = cell
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            after, fit_after, drawn_after = seen_sums(monkeypatch, mechanism, other)
        assert [look[1:] for look in before] == [look[1:] for look in after]
        assert farthest(before, after) <= 1
        np.testing.assert_array_equal(fit.estimates.values, fit_after.estimates.values)
        np.testing.assert_array_equal(fit.estimates.covariance, fit_after.estimates.covariance)
        pd.testing.assert_frame_equal(drawn, drawn_after)


@pytest.mark.usefixtures("quick")
def test_a_type_of_the_column_tells_nothing(monkeypatch):
    """One text cell makes a column of numbers one of objects; the release is the same."""
    mechanism = ph.ClippedScores(MODELS["visits"], epsilon=1)
    numbers, objects = survey(), survey().astype({"visits": object})
    floats = survey().astype({"visits": float})
    results = [seen_sums(monkeypatch, mechanism, table) for table in (numbers, objects, floats)]
    for sums, fit, drawn in results[1:]:
        assert all((a[0] == b[0]).all() for a, b in zip(results[0][0], sums, strict=True))
        np.testing.assert_array_equal(fit.estimates.values, results[0][1].estimates.values)
        pd.testing.assert_frame_equal(drawn, results[0][2])


@pytest.mark.usefixtures("quick")
def test_broken_mechanisms_are_caught(monkeypatch):
    """The controls: without a clip, and with a center computed from the data, a neighbor moves
    more than the sensitivity, or something else than the sums."""
    mechanism = ph.ClippedScores(MODELS["income"], epsilon=1)
    table = survey()
    other = table.copy()
    other.loc[11, "income"] = 1e14

    def moved():
        before, after = (seen_sums(monkeypatch, mechanism, t) for t in (table, other))
        same = before[1].estimates.values == after[1].estimates.values
        return farthest(before[0], after[0]), bool(same.all())

    worst, same = moved()
    assert worst <= 4
    assert same
    with monkeypatch.context() as patch:
        patch.setattr(scored_records, "clip_scores", lambda s, W, C: np.nan_to_num(s @ W))
        patch.setattr(scored_records, "whole_scores", not_whole)
        assert moved()[0] > 4
    design_of = clipped_scores.ClippedScores._design

    def reads_outcomes(self, bound, theta, mu, random):
        design = design_of(self, bound, theta, mu, random)
        scores = scored_records.clip_scores(
            bound.scoring.scores(theta, bound.outcome), design.whitening, design.clip
        )
        return clipped_scores.replace(design, center=scores.sum(axis=0))

    with monkeypatch.context() as patch:
        patch.setattr(clipped_scores.ClippedScores, "_design", reads_outcomes)
        assert not moved()[1]


@pytest.mark.usefixtures("quick")
def test_blocks_that_are_clipped_one_by_one_are_caught(monkeypatch):
    """The control of stacking: each block of a record has a norm of C, both have a larger one."""
    mechanism = ph.ClippedScores(MODELS["pension"], epsilon=1)
    table = survey()
    table.loc[11, "pension"] = 1e14
    absent = table.astype({"pension": object})
    absent.loc[11, "pension"] = "none"
    clip = scored_records.clip_scores

    def worst():
        return farthest(*(seen_sums(monkeypatch, mechanism, t)[0] for t in (table, absent)))

    def one_by_one(scores, whitening, C):
        of_zero = np.arange(scores.shape[1]) < 3
        return sum(clip(1e3 * scores * own, whitening, C) for own in (of_zero, ~of_zero))

    assert worst() <= 1
    monkeypatch.setattr(scored_records, "clip_scores", one_by_one)
    monkeypatch.setattr(scored_records, "whole_scores", not_whole)
    assert worst() > 1


def test_what_no_block_takes_is_absent_from_all_of_them():
    cells = pd.Series([3, 0, None, "n/a", -1, 2.5, float("inf")], dtype=object)
    both = ph.Poisson("y ~ 1", zeros=True, missing=True).outcome_numbers(cells)
    gone = np.nan
    np.testing.assert_array_equal(both[:3], [[0, 0, 3], [0, 1, gone], [1, gone, gone]])
    assert np.isnan(both[3:]).all()
    zeros = ph.Poisson("y ~ 1", zeros=True).outcome_numbers(cells)
    np.testing.assert_array_equal(zeros[:3], [[0, 3], [1, gone], [gone, gone]])


@pytest.mark.usefixtures("quick")
@pytest.mark.long
def test_zeros_and_missing_values_come_back_in_their_shares():
    """Within about 5 standard errors of a share at epsilon 8, whatever the rows' labels are."""
    table = survey(16000)[::2]
    for outcome, of_block in (
        ("pension", lambda y: y == 0), ("asked", lambda y: y == 99), ("seen", pd.isna),
    ):  # fmt: skip
        release = ph.ClippedScores(MODELS[outcome], epsilon=8).release(table)
        values = release.synthetic[0][outcome]
        assert abs(of_block(values).mean() - of_block(table[outcome]).mean()) < 0.04
        assert (release.charge.kind, release.charge.epsilon) == ("strict", 8)
    assert values.dtype == pd.Int64Dtype()
    assert abs((values == 0).mean() - (table["seen"] == 0).mean()) < 0.04
    assert [name for name in ph.estimates(release).index if "Intercept" in name] == [
        "missing: Intercept", "zero: Intercept", "value: Intercept"
    ]  # fmt: skip


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("unit", [None, "person"])
def test_a_whole_unit_changes_the_sums_by_the_sensitivity(monkeypatch, unit):
    mechanism = ph.ClippedScores(MODELS["visits"], epsilon=1, unit=unit)
    table = survey().astype({"visits": object})
    other = table.copy()
    other.loc[other["person"] == 4, "visits"] = None
    worst = farthest(*(seen_sums(monkeypatch, mechanism, t)[0] for t in (table, other)))
    # Three records together move more than one may: the control of what unit= adds.
    assert (worst <= 1) == (unit is not None)


@pytest.mark.usefixtures("quick")
def test_mu_is_spent_to_the_last_digit_and_epsilon_is_exact():
    for epsilon in (0.1, 1.0, 8.0):
        n = 3000 if epsilon > 0.1 else 20_000  # of fewer it is refused
        charge = ph.ClippedScores(MODELS["visits"], epsilon=epsilon).release(survey(n)).charge
        assert (charge.epsilon, charge.kind, charge.delta) == (epsilon, "strict", 1e-6)
        due = mu_of_epsilon(epsilon, 1e-6)
        assert (1 - 1e-6) * due <= charge.mu <= due


def test_noise_has_the_scale_that_is_charged():
    """Each look's discrete noise: deviation sensitivity / mu, by many draws of a sum of 0."""
    sensitivity, mu = 2**30, 0.2
    drawn = np.concatenate([gaussian_sums(np.zeros(50), sensitivity, mu) for _ in range(80)])
    sd = drawn.std() / (sensitivity / mu)
    assert abs(sd - 1) < 5 / math.sqrt(2 * drawn.size)
    assert abs(drawn.mean()) < 5 * drawn.std() / math.sqrt(drawn.size)
    assert (drawn == np.rint(drawn)).all()
    refuses("sensitivity must be at least", gaussian_sums, [0], 100, 0.2)


@pytest.mark.usefixtures("quick")
def test_sets_have_draws_of_their_own_and_others_stay(tmp_path):
    table = survey(2000)
    release = ph.ClippedScores(MODELS["income"], epsilon=2).release(table, n_synthetic=3)
    assert len(release.synthetic) == 3
    for made in release.synthetic:
        pd.testing.assert_frame_equal(made.drop(columns="income"), table.drop(columns="income"))
        assert list(made.columns) == list(table.columns)
    assert not release.synthetic[0]["income"].equals(release.synthetic[1]["income"])
    frame = ph.estimates(release)
    assert list(frame.index) == ["Intercept", "I((age - 50) / 10)", "sex[T.m]", "log(sigma)"]
    assert (frame["std_error"] > frame["std_error_without_noise"]).all()
    refuses("'person': it may identify persons with several rows", release.save, tmp_path / "out")
    release.save(tmp_path / "out", keep="person")
    again = ph.estimates(ph.Release.load(tmp_path / "out"))
    pd.testing.assert_frame_equal(again, frame)
    public = json.loads((tmp_path / "out" / "public" / "estimates.json").read_text())
    assert public["names"] == list(frame.index)
    statement = (tmp_path / "out" / "public" / "privacy_statement.md").read_text()
    assert "`estimates.json`" in statement


@pytest.mark.parametrize("seed", range(2))
def test_estimates_are_near_the_truth_by_their_own_errors(seed):
    """With a large epsilon the estimate is that of the whole table, within its error."""
    rng = np.random.default_rng(seed)
    n = 4000
    table = pd.DataFrame({"x": rng.normal(size=n)})
    table["y"] = rng.poisson(np.exp(0.5 + 0.3 * table["x"]))
    largest = []
    for epsilon in (1, 1e4):
        mechanism = ph.ClippedScores(ph.Poisson("y ~ x"), epsilon=epsilon)
        found = mechanism.fit(mechanism.bind(table), streams(seed)).estimates
        variance = np.diag(found.covariance)
        assert (np.abs(found.values - [0.5, 0.3]) < 5 * np.sqrt(variance)).all()
        largest.append(variance.max())
    assert largest[1] < largest[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_rare_level_moves_no_mean_far(seed):
    """Of a coefficient that 12 of 6,000 records have next to nothing is known at epsilon 1: noise
    in it, exponentiated, took means of whole sets to twice that of the data."""
    rng = np.random.default_rng(seed)
    n = 6000
    table = pd.DataFrame({"x": rng.normal(size=n), "area": rng.choice(["a", "b"], n)})
    table.loc[rng.choice(n, 12, replace=False), "area"] = "rare"
    table["y"] = rng.poisson(np.exp(0.5 + 0.3 * table["x"]))
    mechanism = ph.ClippedScores(ph.Poisson("y ~ x + area"), epsilon=1)
    fit, bound = mechanism.fit(mechanism.bind(table), streams(seed)), mechanism.bind(table)
    for number in range(5):
        theta = fit.draw(np.random.default_rng(number))
        drawn = mechanism.replicate(bound.design, theta, np.random.default_rng(number))["y"]
        assert abs(drawn.mean() / table["y"].mean() - 1) < 0.2
    sd = np.sqrt(np.diag(fit.estimates.covariance))
    assert sd[3] > 3 * sd[2]  # what is not known, is said


def test_a_start_takes_the_place_of_the_histogram():
    table = survey(2000)
    mechanism = ph.ClippedScores(MODELS["visits"], epsilon=1).from_reference(survey(3000, seed=2))
    start = mechanism.start
    fit = mechanism.fit(mechanism.bind(table), streams(1))
    assert len(fit.mus) == 2
    assert set(start) == {"Intercept", "I((age - 50) / 10)", "sex[T.m]", "log(phi)"}
    other = ph.ClippedScores(MODELS["visits"], start={"Intercept": 1.0})
    refuses("start must have the coordinates", other.release, table)


def test_survey_weights_multiply_scores():
    """Half the records have visits of 1 and weight 3: the estimate is the population's mean."""
    n = 20_000
    table = pd.DataFrame({"w": np.repeat([3.0, 1.0], n // 2), "y": np.repeat([1, 9], n // 2)})
    mechanism = ph.ClippedScores(ph.Poisson("y ~ 1"), epsilon=8, weights="w")
    fit = mechanism.fit(mechanism.bind(table), streams(1))
    assert np.exp(fit.estimates.values[0]) == pytest.approx(3.0, rel=0.1)
    alone = table.assign(w=np.repeat([3.0, 0.0], n // 2))  # those of weight 0 have no say
    assert np.exp(mechanism.fit(mechanism.bind(alone), streams(1)).estimates.values[0]) < 1.3
    for wrong in (np.nan, -1.0, 0.0):
        refuses("survey weights 'w' must be", mechanism.bind, table.assign(w=wrong))


def test_predicted_widths_are_known_beforehand_and_decide():
    table = survey(2000)
    mechanism = ph.ClippedScores(MODELS["visits"], epsilon=1)
    widths = mechanism.predicted_widths(table)
    again = mechanism.predicted_widths(table.assign(visits="never looked at"))
    pd.testing.assert_frame_equal(widths, again)
    assert (widths["width"] > 1).all()
    wider = ph.ClippedScores(MODELS["visits"], epsilon=0.2).predicted_widths(table)
    assert (wider["width"] > widths["width"]).all()
    few = survey(30)
    low, high = (ph.ClippedScores(MODELS["visits"], epsilon=epsilon) for epsilon in (0.25, 8))
    refuses("too few records for this epsilon", low.release, few)
    high.release(few)


@pytest.mark.usefixtures("quick")
def test_missing_predictors_have_indicators_and_stay_missing():
    table = survey(2000)
    table.loc[::9, "age"], table.loc[::5, "sex"] = np.nan, None
    mechanism = ph.ClippedScores(MODELS["visits"], epsilon=4)
    release = mechanism.release(table)
    known = mechanism.from_reference(survey(2000, 2))
    assert "is.na(age)" not in known.start
    for made in (release, known.release(table)):
        assert {"is.na(age)", "is.na(sex)"} < set(ph.estimates(made).index)
    pd.testing.assert_frame_equal(release.synthetic[0][["age", "sex"]], table[["age", "sex"]])


@pytest.mark.parametrize(("make", "words"), [
    (lambda: ph.ClippedScores(ph.Poisson("visits ~ scale(age)")).release(survey()),
     "scale.age. reads all; write its constants"),
    (lambda: ph.ClippedScores(ph.Bernoulli("voted ~ age")), "levels must be declared"),
    (lambda: ph.ClippedScores(ph.LogNormal("income ~ age")), "decimals must be declared"),
    (lambda: ph.ClippedScores("visits ~ age"), "model must be a built-in"),
    (lambda: ph.ClippedScores(MODELS["visits"], delta=0.1).release(survey()),
     "delta must be below 1 / n"),
    (lambda: ph.ClippedScores(MODELS["visits"]).release(survey(), seed=1), "seed must not be"),
    (lambda: ph.SequentialSynthesis(STEPS[1::-1]).release(chain(100)),
     "step 1: it must not read 'voted'"),
    (lambda: ph.SequentialSynthesis([
        ph.ClippedScores(ph.Poisson("visits ~ voted", missing=True)),
        ph.ClippedScores(ph.Poisson("age ~ visits")),
    ]).release(chain(100)), "step 2: it must not read 'visits', which has miss"),
])  # fmt: skip
def test_what_is_not_declared_or_out_of_order_is_refused(make, words):
    refuses(words, make)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("table", [
    survey().assign(visits=0),  # constant
    survey().assign(visits="n/a"),  # no cell is a count
    survey().assign(sex="f"),  # a predictor that does not vary
    survey().assign(visits=lambda t: (t["sex"] == "m") * 1000),  # separable
    survey(2).assign(sex=["f", "m"]),
])  # fmt: skip
def test_strange_tables_end_in_a_release_or_one_line(table):
    try:
        release = ph.ClippedScores(MODELS["visits"], epsilon=4).release(table)
    except ph.InvalidInput as error:
        said = str(error)
    else:
        said = str(release.synthetic[0]["visits"].dtype)
        assert (release.synthetic[0]["visits"] >= 0).all()
    assert said == "int64" or (len(said) > 30 and "\n" not in said)


def chain(n=3000, seed=2):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(20, 80, n)})
    table["voted"] = np.where(rng.random(n) < table["age"] / 100, "yes", "no")
    table["visits"] = rng.poisson(np.exp(0.5 + (table["voted"] == "yes")))
    table["income"] = np.round(rng.lognormal(9 + 0.2 * np.log1p(table["visits"]), 0.5), 2)
    return table


STEPS = [
    ph.ClippedScores(ph.Bernoulli("voted ~ I(age / 50)", levels=("no", "yes")), epsilon=4),
    ph.ClippedScores(ph.Poisson("visits ~ voted + I(age / 50)"), epsilon=4),
    ph.ClippedScores(ph.LogNormal("income ~ log1p(visits) + voted", decimals=2, unit=10_000),
                     epsilon=4),
]  # fmt: skip


def test_a_sequence_reads_synthetic_columns_and_keeps_relations():
    table = chain()
    release = ph.SequentialSynthesis(STEPS).release(table, n_synthetic=2)
    assert release.charge.kind == "strict"
    mu = math.sqrt(3) * mu_of_epsilon(4, 1e-6)
    assert release.charge.epsilon == pytest.approx(ph.arrays.epsilon_of_mu(mu, 1e-6), rel=1e-5)
    made = release.synthetic[0]
    for name in ("voted", "visits", "income"):
        assert not made[name].astype(object).equals(table[name].astype(object))
    by_vote = made.groupby("voted", observed=True)["visits"].mean()
    assert 1.8 < by_vote["yes"] / by_vote["no"] < 4
    assert len(release.parts) == 3


@pytest.mark.usefixtures("quick")
def test_one_record_tells_no_later_step_but_by_its_sum(monkeypatch):
    """Levels, numbers for which a term is not defined, and text in a column read by a later step:
    with the noise fixed, all tables are equal."""

    def released(table):
        rng = np.random.default_rng(9)
        monkeypatch.setattr(
            clipped_scores, "gaussian_sums",
            lambda sums, size, mu: rng.normal(0, size / mu, len(sums)),
        )  # fmt: skip
        monkeypatch.setattr(clipped_scores, "streams", lambda seed=3: streams(3))
        made = clipped_scores.release_in_sequence(STEPS, table, 1, None)
        return made[-1].tables[0][["voted", "visits", "income"]]

    table = chain(400).astype({"voted": object, "visits": object, "income": object})
    base = released(table)
    for name, cells in {"voted": ["perhaps", None, 3], "visits": [-1, "x", None, 1e300, -5.5],
                        "income": [0, "?"]}.items():  # fmt: skip
        for cell in cells:
            other = table.copy()
            other.at[7, name] = cell
            pd.testing.assert_frame_equal(released(other), base)


def test_discrete_noise_costs_less_than_its_margin():
    """At any epsilon, over all looks: what the whole numbers can add is below what epsilon falls by
    as mu is charged for noise that is larger by DISCRETE."""
    from pyhybrid.primitives.noise import DISCRETE

    for epsilon in (0.01, 0.1, 1.0, 8.0):
        for d in (1, 10, 130, 1000):
            mu, looks = mu_of_epsilon(epsilon, 1e-6), 8
            log_ratio = (d + 40 * math.sqrt(d)) * mu / math.sqrt(looks) / 2**30
            added = 2 * looks * log_ratio
            spared = epsilon - ph.arrays.epsilon_of_mu(mu * (1 - DISCRETE), 1e-6)
            assert added < spared


@pytest.mark.usefixtures("quick")
def test_predictors_and_weights_are_published():
    table = survey(2000)
    release = ph.ClippedScores(MODELS["visits"], epsilon=4, weights="w").release(table)
    for name in ("age", "w"):
        dropped = Decisions.of(drop=[name, "person"])
        refuses(f"'{name}' must be published as it is", release.with_decisions, dropped)
    assert "person" not in release.with_decisions(Decisions.of(drop=["person"])).synthetic[0]


@pytest.mark.usefixtures("quick")
def test_no_outcome_of_a_sequence_decides_which_columns_need_a_decision(monkeypatch):
    """A column that is a function of a later outcome is named by nobody: that would tell of it."""
    table = chain(400)
    made = clipped_scores.release_in_sequence(STEPS, table.assign(copy=table["income"]), 1, None)
    assert all("copy" not in part.record.exposed for part in made)
