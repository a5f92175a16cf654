"""Numbers of utility, risk and refits for the R package, from Python's own functions.

``python -m tests.golden.measures.make_measures`` writes measures.json: the tables, and what Python
makes of them. tests/parity holds it to what Python gives today, tests/testthat R to it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.measures.estimates import STATISTICS, avg_ecdf, max_ecdf, summaries
from pyhybrid.measures.matching import matching_risk
from pyhybrid.measures.propensity import propensity_utility
from pyhybrid.privacy.refits import candidates, refit_of, sole_informants

FILE = Path(__file__).with_name("measures.json")
_N = 60


def tables() -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Data with ties, a column of text with missing values, and three sets of its rows."""
    rng = np.random.default_rng(5)
    sex, age = rng.choice(["f", "m"], _N), rng.integers(20, 80, _N)
    region = rng.choice(["north", "south", "west"], _N).astype(object)
    region[[3, 17]] = None
    data = pd.DataFrame(
        {"visits": rng.poisson(4, _N), "age": age, "income": rng.normal(30, 8, _N).round(1),
         "sex": sex, "region": region}
    )  # fmt: skip
    sets = [
        data.assign(visits=rng.poisson(4.5, _N), income=rng.normal(31, 9, _N).round(1))
        for _ in range(3)
    ]
    return data, sets


def losses() -> dict[str, Any]:
    rng = np.random.default_rng(6)
    z = rng.normal(size=400)
    pairs = {
        "normal": (0.5 * (z + 0.5), 0.5 * z),
        "skewed": (rng.gamma(2, 0.3, 300), rng.gamma(2.2, 0.3, 250)),
        "none": (np.zeros(10), np.zeros(10)),
        "shifted": (0.1 * z[:200] - 40, 0.1 * z[200:] - 40.2),
    }
    return {
        name: {
            "change": there.tolist(), "change_without": gone.tolist(),
            **{f"loss at {d:g}": refit_of(there, gone, delta=d).loss for d in (1e-6, 1e-3)},
        }
        for name, (there, gone) in pairs.items()
    }  # fmt: skip


def designs() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    rare = np.column_stack([np.ones(12), np.eye(12)[:, 3], rng.normal(size=12).round(3)])
    plain = np.column_stack([np.ones(40), rng.normal(size=40).round(3)])
    twice = np.column_stack([rare, rare[:, 2]])
    return {
        name: {
            "X": X.tolist(),
            "informants": [[i.record + 1, i.column + 1, i.share] for i in sole_informants(X)],
        }
        for name, X in {"rare": rare, "plain": plain, "twice": twice}.items()
    }


def measures() -> dict[str, Any]:
    data, sets = tables()
    numbers = ["visits", "age", "income"]
    rng = np.random.default_rng(8)
    deviations, sizes = rng.integers(0, 9, 30) / 8, rng.integers(0, 9, 30) / 4
    risks = {}
    for name, how in {
        "equal": {"keys": ["age", "sex"]},
        "near": {"keys": ["age", "sex", "region"], "radius": {"age": 5.0}},
        "relative": {"keys": ["income", "region"], "radius": 0.1, "kind": "relative"},
    }.items():
        risk = matching_risk(data, sets, **how)
        fields = ("expected_match_risk", "true_match_rate", "false_match_rate", "mean_risk",
                  "n_unique_matches", "n_no_match")  # fmt: skip
        risks[name] = {
            **how, "by_record": risk.by_record.tolist(),
            **{field: getattr(risk, field) for field in fields},
        }  # fmt: skip
    return {
        "data": _columns(data),
        "sets": [_columns(table) for table in sets],
        "estimates": {
            column: {
                "data": summaries(data[column]).tolist(),
                "synthetic": summaries([t[column] for t in sets]).tolist(),
            }
            for column in numbers
        },
        "statistics": list(STATISTICS),
        "ecdf": {
            column: [
                float(np.mean([gap(data[column], t[column]) for t in sets]))
                for gap in (max_ecdf, avg_ecdf)
            ]
            for column in numbers
        },
        "pmse": {
            null: propensity_utility(data, sets, null=null)
            .by_set.drop(columns="null")
            .to_dict("list")
            for null in ("population", "paired")
        },
        "risk": risks,
        "loss": losses(),
        "informants": designs(),
        "candidates": {
            "deviations": deviations.tolist(), "sizes": sizes.tolist(),
            "chosen": [place + 1 for place in candidates(deviations, sizes, 10)],
        },
    }  # fmt: skip


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    values = {name: table[name].astype(object) for name in table}
    return {name: column.where(column.notna(), None).tolist() for name, column in values.items()}


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in measures().items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
