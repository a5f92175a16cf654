"""Rules of rows: read, refused, held against pandas, met by drawing again."""

import numpy as np
import pandas as pd
import pytest

from pyhybrid.core.errors import SamplingError
from pyhybrid.models.formula import row_rules
from pyhybrid.models.formula.row_rules import meeting, read_rules, rules_met_by
from tests.refusals import fails, refuses

TABLE = pd.DataFrame({
    "wage": [1.0, 5.0, np.nan, 2.0], "income": [2, 4, 3, 2], "age": [10, 20, 30, 40],
    "sex": ["f", "m", "f", None], "a b": [True, False, True, False],
    "code": pd.Categorical([1, 2, 1, 2]),
})  # fmt: skip


@pytest.mark.parametrize(("text", "columns", "holds"), [
    ("wage <= income", ("wage", "income"), [1, 0, 1, 1]), ("0 < age <= 30", ("age",), [1, 1, 1, 0]),
    ("age < 25 -> sex == 'f'", ("age", "sex"), [1, 0, 1, 1]),
    ("not (age > 15 and income != 3)", ("age", "income"), [1, 0, 1, 0]),
    ("age / 10 - 1 < income * 1 or `a b` == 1", ("age", "income", "a b"), [1, 1, 1, 0]),
    ("code == 1 -> -income < -1", ("code", "income"), [1, 1, 1, 1]),
    ("`a b` == 1 -> code == 1", ("a b", "code"), [1, 1, 1, 1]),
])  # fmt: skip
def test_rules_hold_where_they_say(text: str, columns: tuple[str, ...], holds: list[int]) -> None:
    """By hand; a row with a missing value meets a rule that reads it."""
    (rule,) = read_rules([text], TABLE.columns)
    assert set(rule.columns) == set(columns)
    np.testing.assert_array_equal(rule.holds(TABLE), np.array(holds, dtype=bool))


@pytest.mark.parametrize(("text", "message"), [
    ("wage", "must be a comparison"), ("wage <= ", "does not parse"),
    ("__import__('os').system('x') == 0", r"found Call"), ("wage.size > 0", "found Attribute"),
    ("[x for x in wage] == 1", "found ListComp"),
    ("wgae < 1", "'wgae' is none .did you mean 'wage'"), ("a -> b -> c", "one '->' at most"),
    (3, "must be a text"), ("age == None", "numbers and texts as constants"),
    ("age ** 99 > 1", "found Pow"),
])  # fmt: skip
def test_what_is_no_rule_is_refused(text: str, message: str) -> None:
    refuses(message, read_rules, [text], TABLE.columns)


def test_texts_are_not_compared_with_numbers() -> None:
    (rule,) = read_rules(["sex < 3"], TABLE.columns)
    refuses("compare like with like", rule.holds, TABLE)


def test_a_rule_that_no_row_meets_is_named() -> None:
    """Of declared columns by their levels, whatever the records have."""
    rules = read_rules(["age > 5", "income > 100"], TABLE.columns)
    refuses("rule 'income > 100' must be met by some row", rules_met_by, TABLE, rules)
    (rule,) = read_rules(["sex == 'x'"], TABLE.columns)
    for levels in (("f", "x"), ("f", None), None):
        rules_met_by(TABLE, [rule], {"sex": levels})
    refuses("rule .* must be met by some row", rules_met_by, TABLE, [rule], {"sex": ("f", "m")})


def test_values_are_those_of_the_model_given_that_the_rule_holds() -> None:
    """Uniform numbers under y <= x are uniform on (0, x): mean x / 2, of 4000 rows each."""
    rng = np.random.default_rng(2)
    known = pd.DataFrame({"x": np.repeat([0.2, 0.9], 4000)})
    (rule,) = read_rules(["y <= x"], ["x", "y"])
    made = meeting([rule], lambda: pd.DataFrame({"y": rng.random(8000)}), known)
    for x in (0.2, 0.9):
        own = made["y"][known["x"] == x]
        assert own.max() <= x
        assert abs(own.mean() - x / 2) < 5 * x / np.sqrt(12 * 4000)


def test_structural_zeros_are_put_in_place_with_the_dtype_kept() -> None:
    known = pd.DataFrame({"age": [10, 50]})
    (rule,) = read_rules(["age < 16 -> income == 0"], ["age", "income"])
    made = meeting([rule], lambda: pd.DataFrame({"income": [70, 80]}), known)
    assert made["income"].tolist() == [0, 80]
    assert made["income"].dtype == "int64"


def test_what_cannot_be_met_names_the_rule_and_no_count_of_a_draw_that_was_not_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_rules, "_TRIES", 50)
    known = pd.DataFrame({"x": [1, 2, 3]})
    (rule,) = read_rules(["y > x"], ["x", "y"])
    draw, says = (lambda: pd.DataFrame({"y": [2, 2, 2]})), "rule 'y > x' cannot be met"
    said = fails(SamplingError, says, meeting, [rule], draw, known)
    assert not any(each.isdigit() for each in said)


def test_a_structural_zero_looks_at_what_was_drawn_and_not_at_the_data() -> None:
    """`known` still has the true values of the columns that are drawn together."""
    known = pd.DataFrame({"age": [10, 50, 10, 50], "income": [1, 2, 3, 4]})
    (rule,) = read_rules(["age < 16 -> income == 0"], known.columns)
    drawn = pd.DataFrame({"age": [10, 10, 50, 50], "income": [70, 80, 90, 60]})
    assert meeting([rule], lambda: drawn, known)["income"].tolist() == [0, 0, 90, 60]
