"""Each check accepts what it states, returns it unchanged as a float array, refuses the rest."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhybrid.core import checks, errors
from tests.refusals import refuses

ENDLESS = [1j, np.complex128(1), np.complex64(1 + 0j), 10**400]
NOT_NUMBERS = [None, "1", True, np.True_, math.nan, math.inf, -np.inf, Decimal(1), [1.0], *ENDLESS]


@pytest.mark.parametrize("value", [0, -3, 2.5, np.float32(0.5), np.int8(-7), 1e308])
def test_finite_numbers_come_back_as_floats(value: float) -> None:
    result = checks.check_finite(value, "x")
    assert (type(result), result) == (float, value)


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_not_a_finite_number(value: object) -> None:
    for check in ("finite", "positive", "fraction", "count"):
        checked = getattr(checks, f"check_{check}")
        refuses(r"^width must be a finite number: found", checked, value, "width")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_positive_and_fraction_agree_with_their_words(value: float) -> None:
    holding = {checks.check_positive: value > 0, checks.check_fraction: 0 < value <= 1}
    for check, holds in holding.items():
        if holds:
            assert check(value, "x") == value
        else:
            refuses("x must", check, value, "x")


def test_counts() -> None:
    for value, least in ((1, 1), (2.0, 1), (np.int64(5), 5), (0, 0)):
        result = checks.check_count(value, "m", at_least=least)
        assert (type(result), result) == (int, value)
    for value, least in ((0, 1), (1.5, 1), (-2, 0), (4, 5)):
        said = f"m must be a whole number >= {least}"
        refuses(said, checks.check_count, value, "m", at_least=least)


def test_choice_lists_the_known_ones() -> None:
    assert checks.check_choice("b", "kind", ("a", "b")) == "b"
    for wrong in ("c", None, 1, ["a"], ""):
        refuses("one of a, b: found", checks.check_choice, wrong, "kind", iter(("a", "b")))


def test_vectors_of_any_container_with_nan_and_infinity() -> None:
    values = [1, np.nan, np.inf]
    for each in (values, tuple(values), np.array(values), pd.Series(values, index=["u", "v", "w"])):
        result = checks.check_vector(each, "v", length=3)
        assert result.dtype == np.float64
        np.testing.assert_array_equal(result, values)


@pytest.mark.parametrize(("values", "message"), [
    (1.0, r"shape \(n,\)"), ([], r"found \(0,\)"), ([[1.0]], r"found \(1, 1\)"),
    (["a"], "numeric"), ([None, object()], "numeric"), ([[1], [2, 3]], "numeric"),
    ([1.0, 2.0, 3.0], "have 2 elements: found 3"), *(([1.0, each], "numeric") for each in ENDLESS),
])  # fmt: skip
def test_not_vectors(values: object, message: str) -> None:
    refuses(rf"^v must .*{message}", checks.check_vector, values, "v", length=2)


@pytest.mark.parametrize("wrong", [-1e-300, -math.inf, math.nan])
def test_nonnegative_vectors_name_the_first_offender(wrong: float) -> None:
    assert checks.check_nonnegative_vector([0.0, -0.0, math.inf], "f").size == 3
    refuses("record 1 is not", checks.check_nonnegative_vector, [0.0, wrong, wrong], "f")


@pytest.mark.parametrize("wrong", [-1e-12, 1.0000001, math.nan, math.inf])
def test_weights_lie_in_the_unit_interval(wrong: float) -> None:
    assert checks.check_alpha([0, 1, 0.5], 3).tolist() == [0.0, 1.0, 0.5]
    said = r"alpha must lie in \[0, 1\]: record 2 has another"
    refuses(said, checks.check_alpha, [0.0, 1.0, wrong], 3)
    refuses("must have 2 elements", checks.check_alpha, [0.0, 1.0, 1.0], 2)


def test_log_lik_keeps_non_finite_values_copies_nothing_and_has_two_axes() -> None:
    matrix = np.array([[-np.inf, np.nan], [1.0, 2.0]])
    assert checks.check_log_lik(matrix) is matrix
    for shape in ((), (3,), (0, 2), (2, 0), (1, 1, 1)):
        refuses("S draws, n records", checks.check_log_lik, np.zeros(shape))


def test_names_that_print_alike() -> None:
    checks.check_names(["y", 1], [None, "label"])
    refuses("'1' occurs more than once", checks.check_names, ["1", 1])
    refuses("not have the name of a column: found 'y'", checks.check_names, ["x", "y"], ["y"])


def test_errors_share_one_base() -> None:
    for name, builtin in {
        "InvalidInput": ValueError, "EngineUnavailable": RuntimeError,
        "SamplingError": RuntimeError, "NotConverged": errors.SamplingError,
        "BudgetExceeded": RuntimeError, "SaveFailed": OSError,
    }.items():  # fmt: skip
        assert issubclass(getattr(errors, name), errors.PyhybridError)
        assert issubclass(getattr(errors, name), builtin)
