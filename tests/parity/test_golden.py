"""Every golden case: Python and live R against the brute-force value, and so against each other."""

from typing import Any

import pytest

from tests.parity.golden import (
    arguments,
    assert_same,
    decoded,
    golden_cases,
    in_python,
    in_r,
    label,
    message_part,
)
from tests.refusals import fails, refuses

CASES = golden_cases()
GOOD = [pytest.param(f, c, id=label(f, c)) for f, c in CASES if "error" not in c]
BAD = [pytest.param(f, c, id=label(f, c)) for f, c in CASES if "error" in c]


@pytest.mark.parametrize(("function", "case"), GOOD)
def test_python_gives_the_golden_value(function: str, case: dict[str, Any]) -> None:
    assert_same(in_python(function, arguments(case)), decoded(case["expected"]))


@pytest.mark.parametrize(("function", "case"), GOOD)
def test_r_gives_the_value_of_python(function: str, case: dict[str, Any], r: Any) -> None:
    from_r = in_r(r, function, arguments(case))
    assert_same(from_r, decoded(case["expected"]))
    from_python = in_python(function, arguments(case))
    shared = from_python.keys() & from_r.keys() if isinstance(from_python, dict) else None
    if shared is not None:
        from_python = {name: from_python[name] for name in shared}
        assert len(shared) >= 4
    assert_same(from_r, from_python)


@pytest.mark.parametrize(("function", "case"), BAD)
def test_python_refuses_in_these_words(function: str, case: dict[str, Any]) -> None:
    assert message_part(case, first=0) in refuses("", in_python, function, arguments(case))


@pytest.mark.parametrize(("function", "case"), BAD)
def test_r_refuses_in_the_same_words(function: str, case: dict[str, Any], r: Any) -> None:
    assert message_part(case, first=1) in refuses("", in_r, r, function, arguments(case))


def test_the_comparison_catches_a_wrong_number() -> None:
    for found, expected in ((1 + 1e-11, 1.0), ([1, 2], [1, 3]), ([1.0], [1.0, 1.0]), ("a", "b")):
        fails(AssertionError, "", assert_same, found, expected)
