"""Matching risk against a double loop and hand-worked cases; attribute risk."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhybrid.measures.matching import attribute_risk, match_counts, matching_risk
from tests.refusals import refuses


def double_loop(x: np.ndarray, z: np.ndarray, r: np.ndarray) -> list[int]:
    """c_i, as the definition reads."""
    keys = range(x.shape[1])
    return [
        sum(all(abs(other[k] - own[k]) <= radius[k] for k in keys) for other in z)
        for own, radius in zip(x, r, strict=True)
    ]


@st.composite
def _boxes(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few distinct values, so that ties, repeated records and points on the edge abound."""
    n, n_syn, k = draw(st.integers(1, 90)), draw(st.integers(1, 90)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    step, levels = draw(st.sampled_from([1.0, 0.1, 1e-7, 1e9])), draw(st.integers(1, 9))
    x, z = (rng.integers(0, levels, (rows, k)) * step for rows in (n, n_syn))
    return x, z, rng.choice([0, 1, 2, 3], (n, k)) * step


@given(_boxes())
@settings(max_examples=60)
def test_counts_are_those_of_a_double_loop(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    x, z, r = case
    assert match_counts(x, z, r).tolist() == double_loop(x, z, r)


@pytest.fixture
def real() -> pd.DataFrame:
    return pd.DataFrame({"age": [30, 50, 70, 71], "sex": ["f", "m", "m", "m"]})


def test_worked_out_by_hand(real: pd.DataFrame) -> None:
    # Matches within 2 years. Set 1: target 0 has rows 0, 1; 1 none; 2 and 3 have row 2 (true for
    # target 2, false for 3), row 3 is 80. Set 2 is the data: 0 alone, 1 alone, 2 and 3 have both.
    first = pd.DataFrame({"age": [31, 28, 71, 80], "sex": ["f", "f", "m", "m"]})
    how: Any = {"keys": ["age", "sex"], "radius": {"age": 2}, "rows_correspond": True}
    risk = matching_risk(real, [first, real], **how)
    assert risk.by_record.tolist() == [0.75, 0.5, 0.75, 0.75]
    assert risk.correct_by_record.tolist() == [0.75, 0.5, 0.75, 0.25]
    assert risk.n_matches.tolist() == [1.5, 0.5, 1.5, 1.5]
    assert (risk.expected_match_risk, risk.true_match_rate) == (2.25, 0.375)
    assert (risk.false_match_rate, risk.n_unique_matches, risk.n_no_match) == (0.25, 2, 0.5)
    assert (risk.n_targets, risk.n_sets, risk.mean_risk) == (4, 2, 0.6875)


def test_no_match_is_no_risk_and_the_data_match_their_own_kind(real: pd.DataFrame) -> None:
    risk = matching_risk(real, real.assign(age=real["age"] + 1000), keys=["age", "sex"])
    assert risk.by_record.tolist() == [0, 0, 0, 0]
    assert (risk.expected_match_risk, risk.true_match_rate, risk.false_match_rate) == (0, 0, 0)
    assert risk.n_no_match == 4
    # Synthetic = real: I_i is one over the records with the same keys.
    risk = matching_risk(real, real, keys=["sex"])
    assert risk.by_record == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])
    assert risk.expected_match_risk == pytest.approx(2)  # the number of distinct keys


def test_rows_that_do_not_correspond_have_no_true_matches(real: pd.DataFrame) -> None:
    whole, part = (matching_risk(real, [s], keys=["age"]) for s in (real, real.iloc[:3]))
    assert part.by_record.tolist() == [1, 1, 1, 0]
    assert part.expected_match_risk is part.true_match_rate is part.false_match_rate is None
    assert part.correct_by_record is None
    assert whole.true_match_rate == 1
    refuses("in sets of 4 rows: found sets of", matching_risk, real, real.iloc[:3],
            keys=["age"], rows_correspond=True)  # fmt: skip


def test_rows_in_another_order_are_not_taken_for_own_rows() -> None:
    """A resample would look safe if row i of it were taken for a version of record i."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"age": rng.integers(0, 90, 300), "year": 2020, "job": rng.random(300)})
    resample = data.iloc[rng.integers(300, size=300)].reset_index(drop=True)
    masked = data.assign(age=data["age"] + 1)
    given: dict[str, Any] = {"keys": ["age"], "radius": 1}
    assert matching_risk(data, resample, **given).true_match_rate is None
    assert matching_risk(data, masked, **given).expected_match_risk is not None
    assert matching_risk(data, [masked, resample], **given).true_match_rate is None
    told = matching_risk(data, resample, rows_correspond=True, **given)
    assert told.expected_match_risk is not None
    silent = matching_risk(data, masked, rows_correspond=False, **given)
    assert silent.correct_by_record is None


def test_relative_radius_is_of_the_target(real: pd.DataFrame) -> None:
    data = pd.DataFrame({"income": [100.0, 200.0, 0.0]})
    sets = pd.DataFrame({"income": [110.0, 180.0, 1e-9]})
    risk = matching_risk(data, sets, keys=["income"], radius=0.1, kind="relative")
    assert risk.by_record.tolist() == [1, 1, 0]  # closed ball; 0 is matched by 0 only
    how = {"keys": ["age", "sex"], "radius": 0.02, "kind": {"age": "relative"}}
    mixed = matching_risk(real, real.assign(age=real["age"] + 1), **how)
    assert mixed.n_matches.tolist() == [0, 1, 1, 2]


def test_missing_keys_match_missing_keys_only() -> None:
    data = pd.DataFrame({"age": [30, np.nan, 0], "job": ["a", None, "b"]})
    risk = matching_risk(data, data, keys=["age", "job"], radius={"age": 40})
    assert risk.n_matches.tolist() == [1, 1, 1]
    risk = matching_risk(data, data, keys=["age"], radius=40)
    assert risk.n_matches.tolist() == [2, 1, 2]


@pytest.mark.parametrize(("changed", "message"), [
    ({"keys": ["income"]}, "key 'income' must be in the data"),
    ({"keys": []}, "keys must be a sequence of column names"),
    ({"keys": ["age", "age"]}, "keys must name each column once"),
    ({"radius": {"sex": 1}}, "key 'sex' must hold numbers to have a radius"),
    ({"radius": {"income": 1}}, "radius must name keys: 'income'"),
    ({"radius": -1}, "radius of 'age' must be >= 0: found -1"),
    ({"radius": 1, "kind": "both"}, "kind of 'age' must be one of absolute, relative"),
    ({"kind": {"income": "relative"}}, "kind must name keys: 'income'"),
    ({"synthetic": []}, "a sequence of at least one"),
    ({"synthetic": [None]}, "synthetic set 1 must be a pandas DataFrame"),
])  # fmt: skip
def test_bad_arguments_are_named(real: pd.DataFrame, changed: Any, message: str) -> None:
    given = {"real": real, "synthetic": real, "keys": ["age", "sex"], **changed}
    refuses(message, matching_risk, **given)


def test_bad_arrays_are_named() -> None:
    for x, z, r, message in (
        ([1.0], [[1.0]], 0, "must have shapes"),
        ([[1.0]], [[1.0, 2.0]], 0, "must have shapes"),
        ([[np.nan]], [[1.0]], 0, "targets must be finite: row 0"),
        ([[1.0]], [[1.0]], -1, "radius must be >= 0"),
        ([[1.0]], [[1.0]], [1, 2], "radius must broadcast"),
    ):
        refuses(message, match_counts, x, z, r)


def test_attribute_risk_by_hand(real: pd.DataFrame) -> None:
    # Two men and two women; the synthetic incomes are 10, 30 and 12, 50.
    data = pd.DataFrame({"sex": ["f", "f", "m", "m"], "income": [10, 20, 12, 90]})
    sets = pd.DataFrame({"sex": ["f", "f", "m", "m"], "income": [10, 30, 12, 50]})
    risk = attribute_risk(data, sets, sensitive="income", keys=["sex"], radius={"income": 10})
    assert risk.by_record.tolist() == [0.5, 1, 0.5, 0]
    assert risk.overall == 0.5
    assert risk.baseline == (2 + 3 + 2 + 0) / 16  # of all four records, for each target
    assert (risk.holdout, risk.excess) == (None, None)
    others = pd.DataFrame({"sex": ["m"] * 2, "income": [49, 300]})
    given: dict[str, Any] = {"sensitive": "income", "keys": ["sex"], "radius": 1}
    beside = attribute_risk(data, sets, holdout=others, **given)
    assert beside.holdout == 0.25  # 49 has one of the two men within 1, 300 none
    assert beside.excess == beside.overall - 0.25


def test_a_ball_is_closed_for_decimals() -> None:
    """0.8 lies within 0.1 of 0.7, though the difference of the floats is above it."""
    k = np.arange(1, 400)
    real = pd.DataFrame({"x": k / 10, "key": k})
    other = pd.DataFrame({"x": (k + 1) / 10, "key": k})
    risk = matching_risk(real, other, keys=["x", "key"], radius={"x": 0.1})
    np.testing.assert_array_equal(risk.by_record, 1.0)
    assert (np.abs(other["x"] - real["x"]) > 0.1).any()  # the control
    none = matching_risk(real, other, keys=["x", "key"], radius={"x": 0.0999})
    np.testing.assert_array_equal(none.by_record, 0.0)
