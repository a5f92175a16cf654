"""What the verdicts of curves and comparisons name, and what they do not."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from pyhybrid.reports.page import Marked
from pyhybrid.reports.verdicts import _costs_more, _learned, _mean_lost, _poor, _which


def _curve(errors: list[float], standard_error: float) -> pd.DataFrame:
    return pd.DataFrame({
        "mechanism": ["Unweighted", *["LW"] * len(errors)],
        "error_mean": [0.1, *errors],
        "error_mean_se": standard_error,
    })  # fmt: skip


def test_a_curve_names_weights_that_lose_the_mean_beyond_chance() -> None:
    (said,) = _mean_lost(_curve([0.1, 0.9, 0.8], standard_error=0.1))
    assert said.startswith("LW: ")
    assert "at 2 of 3 points" in said
    assert _mean_lost(_curve([0.1, 0.9, 0.8], standard_error=1.0)) == []


def _release(epsilon: float, *, reweighted: bool = False, scale: float = 1.0) -> Any:
    return SimpleNamespace(
        charge=SimpleNamespace(epsilon=epsilon, accounting="gaussian"),
        reweighted=SimpleNamespace() if reweighted else None,
        settings={"scale": scale, "reweighting": reweighted},
    )


def test_a_comparison_names_reweighting_that_costs_more() -> None:
    def said(before: Any, after: Any) -> list[str]:
        return _costs_more(SimpleNamespace(releases={"LW": before, "LW_final": after}))  # type: ignore[arg-type]

    (found,) = said(_release(2.0), _release(3.0, reweighted=True))
    assert found.startswith("LW_final costs more than LW: epsilon 3 against 2.")
    assert said(_release(3.0), _release(2.0, reweighted=True)) == []
    other = said(_release(2.0, scale=0.5), _release(3.0, reweighted=True))
    assert other == [], "other weights"


def test_what_matches_tell_is_said_of_each_sensitive_column_beside_all_records() -> None:
    overall = {
        "expected_match_risk": 0.5, "attribute_risk, wage": 0.25, "attribute_baseline, wage": 0.125,
        "attribute_risk, sex": 0.75, "attribute_baseline, sex": 0.5,
    }  # fmt: skip
    assert _learned(overall) == [
        "Of the matches, 25.0% have the target's value of wage; of all records, 12.5%.",
        "Of the matches, 75.0% have the target's value of sex; of all records, 50.0%.",
    ]
    assert _learned({"expected_match_risk": 0.5}) == []


@pytest.mark.parametrize("worst", [0, 1, 2])
def test_the_column_and_the_pair_of_a_worst_value_are_named(worst: int) -> None:
    """Wherever in its table the largest value stands."""
    sizes = [9.0 if place == worst else 1.0 for place in range(3)]
    names = ["wage", "age", "sex"]
    found: Any = SimpleNamespace(
        columns=SimpleNamespace(distances=pd.DataFrame({"column": names, "max_ecdf": sizes})),
        one_and_two_way=SimpleNamespace(
            one_way=pd.DataFrame({"column": names[::-1], "ratio": sizes}),
            two_way=pd.DataFrame({"first": names, "second": names[::-1], "ratio": sizes}),
        ),
    )
    assert _which(found, "max_ecdf, worst column") == f" ({names[worst]})"
    assert _which(found, "table_ratio, worst column") == f" ({names[::-1][worst]})"
    pair = f" ({names[worst]} and {names[::-1][worst]})"
    assert _which(found, "table_ratio, worst pair") == pair
    assert _which(found, "interval_overlap, visits ~ age") == ""


def test_a_comparison_names_what_is_poor_of_each_mechanism() -> None:
    good = [Marked(text="1.0%", word="good"), Marked(text="0.90", word="good")]
    bad = [Marked(text="13.7%", word="POOR"), Marked(text="0.30", word="fair")]
    measures = ["Error of the mean", "Interval overlap of the mean"]
    assert _poor({"LW": good, "CW": bad}, measures) == ["CW: error of the mean 13.7% (POOR)."]
    assert _poor({"LW": good}, measures) == []
