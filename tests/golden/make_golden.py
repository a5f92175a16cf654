"""Write the golden cases: ``python -m tests.golden.make_golden``.

Expected values come from `formulas`, never from the functions under test.
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


def golden(function: str) -> str:
    cases, lines = CASES[function], []
    for name, args, *error in (
        cases(random.Random(f"pyhybrid {function}")) if callable(cases) else cases
    ):
        case = {"name": name, "args": args}
        case |= {"error": error[0]} if error else {"expected": EXPECTED[function](**args)}
        lines.append(json.dumps(encoded(case), allow_nan=False))
    body = ",\n".join(lines)
    return f'{{"function": "{function}", "cases": [\n{body}\n]}}\n'


def main() -> None:
    folder = Path(__file__).resolve().parent
    for function in CASES:
        (folder / f"{function}.json").write_text(golden(function), encoding="utf-8")


if __name__ == "__main__":
    main()
