"""Whole tables as a sequence of clipped scores, beside noisy marginals at the same epsilon.

Both strict, at delta 1e-6, of half of each table. In a sequence each column is regressed on those
before it, main effects alone; mu^2 is shared alike. Families, levels and ends are declared by kind
of column, and noisy marginals are declared the same. Overlap: of the 95 % intervals of two least
squares regressions of the last two columns on the others with those of the data; pairs: mean total
variation of all two-way tables; mean: largest error of a column's mean, in standard deviations of
the column. Means over sets, each of a split of its own. The last three tables were chosen before a
look.

    python -m benchmarks sequences
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import pyhybrid as ph
from benchmarks.guarantees import consumers, packaged
from pyhybrid.tables.synthesis import declared_kinds, table_mechanism

EPSILONS = (1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6
STORED = Path(__file__).parent / "results" / "sequences.csv"
_SETS = 3
_FEW = 12  # values of a column of whole numbers that are levels


def _rand() -> pd.DataFrame:
    table = randhie.load_pandas().data[["idp", "physlm", "disea", "lncoins", "mdvis"]]
    coded = {"idp": table["idp"].astype(int), "physlm": (table["physlm"] > 0) * 1}
    return table.assign(**coded, disea=table["disea"].round(1), mdvis=table["mdvis"].astype(int))


def _ce() -> pd.DataFrame:
    table = consumers()[["SEX", "EDUCA", "CUTENURE", "FAM_SIZE", "AGE", "TOTEXPCQ"]]
    return table.assign(TOTEXPCQ=table["TOTEXPCQ"].round()).astype({"EDUCA": int, "CUTENURE": int})


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "RAND": _rand,
    "CE": _ce,
    "SLID": lambda: packaged("carData", "SLID").dropna()[
        ["sex", "language", "age", "education", "wages"]
    ],
    # Chosen before a look.
    "NMES": lambda: packaged("AER", "NMES1988")[
        ["gender", "insurance", "chronic", "age", "school", "visits"]
    ],
    "working hours": lambda: packaged("Ecdat", "Workinghours")[
        ["occupation", "child5", "education", "age", "income", "hours"]
    ],
    "computers": lambda: packaged("Ecdat", "Computers")[
        ["cd", "premium", "ram", "screen", "speed", "price"]
    ],
}


def kinds(table: pd.DataFrame) -> dict[str, Any]:
    """Declared kind of each column, ends rounded outward."""
    found: dict[str, Any] = {}
    for name, column in table.items():
        if not pd.api.types.is_numeric_dtype(column) or column.nunique() <= _FEW:
            found[str(name)] = ph.Nominal(levels=tuple(sorted(column.unique().tolist())))
            continue
        step = float(10 ** np.floor(np.log10(np.ptp(column))))
        ends = {"lower": float(np.floor(column.min() / step)) * step,
                "upper": float(np.ceil(column.max() / step)) * step}  # fmt: skip
        decimals = 0 if (column % 1 == 0).all() else 2
        about = {"center": sum(ends.values()) / 2, "unit": step}
        found[str(name)] = ph.Real(**ends, **about, decimals=decimals)
    return found


def sequence(table: pd.DataFrame, epsilon: float) -> ph.SequentialSynthesis:
    """Each column on those before it."""
    declared = kinds(table)
    mu = ph.arrays.mu_of_epsilon(epsilon, DELTA) / np.sqrt(len(declared))
    share = ph.epsilon_of_mu(mu * (1 - 1e-9), DELTA)
    steps, before = [], []
    for name, kind in declared.items():
        formula = f"{name} ~ {' + '.join(before) or '1'}"
        if isinstance(kind, ph.Nominal):
            family = ph.Bernoulli if len(kind.levels) == 2 else ph.Categorical
            model: Any = family(formula, levels=kind.levels)
        elif kind.decimals == 0 and kind.lower == 0:
            model = ph.NegativeBinomial(formula)
        else:
            model = ph.NormalRegression(
                formula,
                decimals=kind.decimals,
                unit=kind.spread,
                lower=kind.lower,
                upper=kind.upper,
            )
        steps.append(ph.ClippedScores(model, epsilon=share, delta=DELTA))
        is_number = not isinstance(kind, ph.Nominal)
        before.append(f"I({name} / {kind.spread:g})" if is_number else f"C({name})")
    return ph.SequentialSynthesis(steps)


def marginals(table: pd.DataFrame, epsilon: float) -> Any:
    """Noisy marginals of the whole table."""
    declared = declared_kinds(list(table), kinds(table), None)
    return table_mechanism(declared, {}, epsilon=epsilon, delta=DELTA)


WAYS = {"sequence": sequence, "noisy marginals": marginals}


def measured(data: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    """Overlap, pairs and means of one synthetic table."""
    coded, drawn = (table.apply(_numbers) for table in (data, made))
    overlaps = []
    for name in list(data)[-2:]:
        ends = []
        for table in (coded, drawn):
            X = np.column_stack([np.ones(len(table)), table.drop(columns=name)]).astype(float)
            y = table[name].to_numpy(dtype=float)
            coefficients, *_ = np.linalg.lstsq(X, y, rcond=None)
            scale = np.square(y - X @ coefficients).sum() / (len(y) - X.shape[1])
            half = 1.96 * np.sqrt(scale * np.diag(np.linalg.pinv(X.T @ X))) + 1e-9
            ends.append(np.array([coefficients - half, coefficients + half]))
        overlaps += np.clip(ph.measures.interval_overlap(*ends), 0, None).tolist()
    off = np.abs(drawn.mean() - coded.mean()) / coded.std()
    pairs = ph.measures.table_utility(data, [made]).two_way["total_variation"].mean()
    return {"overlap": float(np.mean(overlaps)), "pairs": float(pairs), "mean": float(off.max())}


def _numbers(column: pd.Series) -> pd.Series:
    """Numbers as they are; of text, whether it is the last level."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    text = column.astype(str)
    return (text == text.max()) * 1


def run() -> None:
    """Measure, print and store one line for each table, way and epsilon."""
    rows = []
    for name, make in TABLES.items():
        table = make().reset_index(drop=True)
        for epsilon in EPSILONS:
            for way, mechanism in WAYS.items():
                rows.append({"table": name, "n": len(table) // 2, "columns": table.shape[1],
                             "epsilon": epsilon, "way": way,
                             **_means(table, epsilon, mechanism)})  # fmt: skip
                print(pd.DataFrame(rows[-1:]).to_string(index=False, header=len(rows) == 1),
                      flush=True)  # fmt: skip
    pd.DataFrame(rows).to_csv(STORED, index=False, float_format="%.3g")


def _means(
    table: pd.DataFrame, epsilon: float, mechanism: Callable[[pd.DataFrame, float], Any]
) -> dict[str, Any]:
    found, started = [], time.process_time()
    for split in range(_SETS):
        half = table.sample(len(table) // 2, random_state=split).reset_index(drop=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = mechanism(table, epsilon).release(half).synthetic[0]
            except ph.InvalidInput as error:
                return {"refused": str(error)[:80]}
        found.append(measured(half, made))
    means = pd.DataFrame(found).mean().round(3).to_dict()
    return {**means, "CPU s": round((time.process_time() - started) / _SETS, 1)}
