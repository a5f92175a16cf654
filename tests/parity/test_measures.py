"""The numbers that R's utility, risk and refits are held to are what Python gives."""

import json

from tests.golden.measures.make_measures import FILE, measures
from tests.parity.test_golden import assert_same


def test_the_stored_numbers_are_pythons() -> None:
    stored, today = json.loads(FILE.read_text()), json.loads(json.dumps(measures()))
    assert stored.keys() == today.keys()
    assert_same(today, stored, relative=1e-9)
