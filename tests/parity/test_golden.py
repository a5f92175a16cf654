"""Every golden case: Python and live R against the brute-force value, and so against each other."""

from typing import Any

import pytest

from tests.parity import golden
from tests.refusals import fails, refuses

CASES = golden.golden_cases()
GOOD = [pytest.param(f, c, id=golden.label(f, c)) for f, c in CASES if "error" not in c]
BAD = [pytest.param(f, c, id=golden.label(f, c)) for f, c in CASES if "error" in c]


@pytest.mark.parametrize(("function", "case"), GOOD)
def test_python_gives_the_golden_value(function: str, case: dict[str, Any]) -> None:
    golden.assert_same(golden.in_python(function, golden.arguments(case)),
                       golden.decoded(case["expected"]))  # fmt: skip


@pytest.mark.parametrize(("function", "case"), GOOD)
def test_r_gives_the_value_of_python(function: str, case: dict[str, Any], r: Any) -> None:
    from_r = golden.in_r(r, function, golden.arguments(case))
    golden.assert_same(from_r, golden.decoded(case["expected"]))
    from_python = golden.in_python(function, golden.arguments(case))
    shared = from_python.keys() & from_r.keys() if isinstance(from_python, dict) else None
    if shared is not None:
        from_python = {name: from_python[name] for name in shared}
        assert len(shared) >= 4
    golden.assert_same(from_r, from_python)


@pytest.mark.parametrize(("function", "case"), BAD)
def test_python_refuses_in_these_words(function: str, case: dict[str, Any]) -> None:
    assert golden.message_part(case, first=0) in refuses("", golden.in_python, function,
                                                         golden.arguments(case))  # fmt: skip


@pytest.mark.parametrize(("function", "case"), BAD)
def test_r_refuses_in_the_same_words(function: str, case: dict[str, Any], r: Any) -> None:
    assert golden.message_part(case, first=1) in refuses("", golden.in_r, r, function,
                                                         golden.arguments(case))  # fmt: skip


def test_the_comparison_catches_a_wrong_number() -> None:
    for found, expected in ((1 + 1e-11, 1.0), ([1, 2], [1, 3]), ([1.0], [1.0, 1.0]), ("a", "b")):
        fails(AssertionError, "", golden.assert_same, found, expected)
