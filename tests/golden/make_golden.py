"""Write the golden cases: ``python -m tests.golden.make_golden``.

Expected values come from `formulas`, never from the functions under test. What is refused has no
value: such a case stands in its file alone, with a part of the message, and stays where it is.
"""

import json
import math
import random
from pathlib import Path
from typing import Any

from tests.golden import formulas, gaussian_formulas, scoring_formulas
from tests.golden.cases_gaussian import GAUSSIAN_CASES
from tests.golden.cases_risk import RISK_CASES
from tests.golden.cases_rules import RULE_CASES

CASES = {**GAUSSIAN_CASES, **RISK_CASES, **RULE_CASES, **scoring_formulas.SCORING_CASES}
EXPECTED = {**vars(formulas), **vars(gaussian_formulas), **vars(scoring_formulas)}


def encoded(value: Any) -> Any:
    """JSON has no Inf, -Inf and NaN: they are written as these strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    if isinstance(value, dict):
        return {name: encoded(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(item) for item in value]
    return value


def golden(function: str, stored: list[Any]) -> str:
    """The file's text: values in the order of the `stored` cases, then new ones."""
    cases = CASES[function]
    made = cases(random.Random(f"pyhybrid {function}")) if callable(cases) else cases
    values = iter(
        {"name": name, "args": args, "expected": EXPECTED[function](**args)} for name, args in made
    )
    kept = [case if "error" in case else next(values, None) for case in stored]
    lines = (json.dumps(encoded(case), allow_nan=False) for case in (*kept, *values) if case)
    body = ",\n".join(lines)
    return f'{{"function": "{function}", "cases": [\n{body}\n]}}\n'


def main() -> None:
    folder = Path(__file__).resolve().parent
    for function in CASES:
        path = folder / f"{function}.json"
        stored = json.loads(path.read_text("utf-8"))["cases"] if path.exists() else []
        path.write_text(golden(function, stored), encoding="utf-8")


if __name__ == "__main__":
    main()
