"""Words for how good synthetic data are: at the limits, for copies, second samples and wrecks."""

import numpy as np
import pandas as pd
import pytest

from pyhybrid.measures.summaries import MEASURES
from pyhybrid.reports import verdicts
from pyhybrid.reports.columns import column_section, intraclass_correlation, shares_of
from pyhybrid.reports.masking import _in_order
from pyhybrid.reports.verdicts import FAIR, GOOD, POOR, Judged, judge_outcome, limits_text


def test_limits_are_of_known_measures_and_point_the_right_way_and_others_have_no_word() -> None:
    for measure, (good, poor) in verdicts.LIMITS.items():
        assert (good > poor) == MEASURES[measure].direction.startswith("larger")
        words = [Judged(measure, value).word for value in (good, (good + poor) / 2, poor)]
        assert words == [GOOD, FAIR, FAIR]
        assert Judged(measure, poor + 0.01 * (poor - good)).word == POOR
    said = limits_text(["mean_error", "max_ecdf", "max_ecdf"])
    assert "error of the mean 2% and 10%, max-ECDF 0.05 and 0.1." in said
    assert limits_text([]) == ""
    assert Judged("matching_risk", 1.0).word == ""
    assert Judged("pmse_ratio, cart", np.nan).word == ""
    assert Judged("pmse_ratio, cart", 11.0).word == POOR


@pytest.mark.parametrize("m", [1, 3])
def test_a_copy_is_good_and_a_shifted_one_poor(m: int) -> None:
    data = pd.Series(np.random.default_rng(1).poisson(3, 2000))
    copies = judge_outcome(data, [data] * m)
    assert {each.word for each in copies} == {GOOD}
    found = {each.measure: each.value for each in copies}
    zeros = dict.fromkeys(("mean_error", "standardised_difference", "max_ecdf"), 0)
    assert found == pytest.approx({**zeros, "interval_overlap": 1})
    moved = judge_outcome(data, [data + 2] * m)
    assert {each.word for each in moved} == {POOR}
    found = {each.measure: each.value for each in moved}
    error = data.std() / np.sqrt(len(data))
    assert found["standardised_difference"] == pytest.approx(2 / error)


def test_second_samples_are_poor_by_the_mean_in_few_cases() -> None:
    rng = np.random.default_rng()
    poor, repeats = 0, 400
    for _ in range(repeats):
        data, other = (pd.Series(rng.normal(10, 1, 200)) for _ in range(2))
        words = {each.measure: each.word for each in judge_outcome(data, [other])}
        poor += words["standardised_difference"] == POOR
    expected = 0.034  # beyond 3 / sqrt(2) normal deviations
    assert abs(poor / repeats - expected) < 5 * np.sqrt(expected / repeats) + 0.005


def test_columns_of_levels_are_judged_by_their_shares() -> None:
    data, other = (pd.Series(["a"] * k + ["b"] * (100 - k)) for k in (50, 80))
    (found,) = judge_outcome(data, [other])
    assert (found.measure, found.value, found.word) == ("total_variation", pytest.approx(0.3), POOR)
    many = pd.Series([f"level {k}" for k in range(100)])  # seen: 30 of them counted
    assert judge_outcome(many, [many.str.replace("level", "other")])[0].value == pytest.approx(1)


def test_the_error_of_a_mean_near_0_is_in_deviations() -> None:
    """Seen: 14,861,776 %."""
    data = pd.Series(np.random.default_rng(1).normal(size=400))
    data -= data.mean() - 1e-9
    (found,) = (m for m in judge_outcome(data, [data + 0.5]) if m.measure == "mean_error")
    assert (found.text, found.word) == (f"{0.5 / data.std():.2f} deviations", POOR)
    assert judge_outcome(data + 5, [data + 5.5])[0].text == "10.0%"


def test_constants_do_no_harm_and_missing_values_are_judged() -> None:
    data, constant = pd.Series(np.arange(100.0)), pd.Series([0.0, 0.0, 0.0, np.nan])
    *_, share = judge_outcome(data.where(data < 90), [data.where(data < 70)])
    said = ("total variation, missing values", "0.20", POOR)
    assert (share.label, share.text, share.word) == said
    found = [each.measure for each in judge_outcome(constant, [constant])]
    assert found == ["max_ecdf", "total_variation, missing values"]
    assert judge_outcome(pd.Series([1.0]), [pd.Series([1.0])]) == ()


def test_shares_by_set_and_their_means_in_the_order_of_levels_of_which_thirty_are_shown() -> None:
    data = pd.Series(["a", "b", "b", "b"])
    sets = [pd.Series(["b", "b", "c", "a"]), pd.Series(["b", "b", "b", "b"])]
    found = shares_of(data, sets)
    assert found.index.tolist() == ["b", "a", "c"]
    np.testing.assert_allclose(found.to_numpy().T, [[0.75, 0.25, 0], [0.5, 0.25, 0.25], [1, 0, 0]])
    large = pd.Series([2**63 + k % 5 for k in range(60)], dtype="uint64")  # seen: no report
    assert len(column_section("code", large, [large]).tables[0].rows) == 5
    rows = column_section("way", data, sets).tables[0].rows
    assert rows == [["b", "0.750", "0.750"], ["a", "0.250", "0.125"], ["c", "0.000", "0.125"]]
    kind = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    data = pd.Series(["high", "high", "low", "middle"], dtype=kind)
    assert shares_of(data, [data]).index.tolist() == ["low", "middle", "high"]
    many = pd.Series([f"level {k}" for k in range(40) for _ in range(k + 1)])
    assert shares_of(many, [many]).index[0] == "level 39"
    assert len(shares_of(many, [many])) == 30
    school = pd.Series([12, 12, 12, 9, 9, 10, None], dtype="Int64")  # a key of a mask
    assert shares_of(school, []).index[0] == "12"
    assert shares_of(_in_order(school), []).index.tolist() == ["9", "10", "12", "missing"]


def test_the_intraclass_correlation_is_that_of_the_analysis_of_variance() -> None:
    """Two groups by hand, then simulated ones."""
    y, g = pd.Series([1.0, 3, 5, 7, np.nan]), pd.Series(["a", "a", "b", "b", "b"])
    between, within = 16.0, 2.0  # 2 * 4 + 2 * 4; 4 over 2
    assert intraclass_correlation(y, g) == (between - within) / (between + within)
    assert np.isnan(intraclass_correlation(y, pd.Series([*"abcde"])))
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(800), 4)
    value = pd.Series(rng.normal(0, 1, 800)[person] + rng.normal(0, 2, 3200))
    assert abs(intraclass_correlation(value, pd.Series(person)) - 0.2) < 5 * 0.02
    assert abs(intraclass_correlation(value, pd.Series(rng.permutation(person)))) < 5 * 0.012
