"""The numbers that R's utility, risk and refits are held to are what Python gives."""

import json
from typing import Any

import pytest

from tests.golden.measures.make_measures import FILE, measures


def test_the_stored_numbers_are_pythons() -> None:
    stored, today = json.loads(FILE.read_text()), json.loads(json.dumps(measures()))
    assert stored.keys() == today.keys()
    for name, value in stored.items():
        assert _alike(value, today[name]), name


def _alike(stored: Any, today: Any) -> bool:
    if isinstance(stored, dict):
        return stored.keys() == today.keys() and all(_alike(v, today[k]) for k, v in stored.items())
    if isinstance(stored, list):
        pairs = zip(stored, today, strict=True)
        return all(_alike(*pair) for pair in pairs)
    if isinstance(stored, float):
        return bool(stored == pytest.approx(today, rel=1e-9, abs=1e-12))
    return bool(stored == today)
