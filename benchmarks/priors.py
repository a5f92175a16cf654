"""(u) The papers' prior of the coefficients against `prior="normal"`, on the studies' data.

Each row: a fit under either prior, 4 chains x (1000 + 1000), embedded engine. How far apart the
posterior means of the coefficients are, in posterior standard deviations (largest, median; the
chains' own error is about .03), the same of the linear predictor of the records, the range of the
ratios of the coefficients' standard deviations (normal to the papers'), and what it moves of a
release: the Lipschitz bound without weights, and the mean weight of `LipschitzWeighted`. Beta(phi)
has no coefficients, and the mixture of study E has the papers' prior alone: its data stand here
with one normal regression. Results are written to benchmarks/results/priors.csv.

    python -m benchmarks priors
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.datasets import randhie

import pyhybrid as ph
from benchmarks.mixture import FILE, incomes
from pyhybrid.fitting.session import open_session
from pyhybrid.models.families.coefficients import PRIORS
from pyhybrid.studies.income import CE_FORMULA
from pyhybrid.studies.local_bounds import mixture_counts
from pyhybrid.studies.salary import simulated_salaries
from pyhybrid.studies.vector_weights import salaries

RESULTS = Path(__file__).parent / "results" / "priors.csv"
_WHOLE, _PART = "RAND visits", "every 50th RAND visit"


def _visits() -> pd.DataFrame:
    table = randhie.load_pandas().data.astype({"mdvis": "int64"})
    return table.assign(any_visit=(table["mdvis"] > 0).astype(int))


def _counts(y: Any) -> pd.DataFrame:
    return pd.DataFrame({"y": np.asarray(y).astype(np.int64)})


def _rng() -> np.random.Generator:
    return np.random.default_rng(1)


_RIGHT = " + ".join(name for name in _visits() if name not in ("mdvis", "any_visit"))
CASES: dict[str, tuple[Callable[[], pd.DataFrame], Any, str, dict[str, Any]]] = {
    "A, Poisson(100) counts": (lambda: _counts(_rng().poisson(100, 1000)), ph.Poisson, "y ~ 1", {}),
    "B, C, over-dispersed counts": (
        lambda: _counts(mixture_counts(1000, _rng())), ph.NegativeBinomial, "y ~ 1", {},
    ),
    "D, salaries": (lambda: _counts(salaries(1000, _rng())), ph.NegativeBinomial, "y ~ 1", {}),
    "E, incomes (one regression)": (
        lambda: pd.DataFrame(incomes()), ph.NormalRegression, CE_FORMULA,
        {"transform": "log", "decimals": 0},
    ),
    "G, salaries as shares": (
        lambda: simulated_salaries(_rng(), 1000), ph.BetaRegression,
        "salary ~ gender + age + weeks", {},
    ),
    _WHOLE: (_visits, ph.NegativeBinomial, f"mdvis ~ {_RIGHT}", {}),
    _PART: (lambda: _visits().iloc[::50], ph.NegativeBinomial, f"mdvis ~ {_RIGHT}", {}),
    "any RAND visit": (_visits, ph.Bernoulli, f"any_visit ~ {_RIGHT}", {"levels": (0, 1)}),
}  # fmt: skip


def run() -> None:
    """A line for each table; that of incomes where the file is."""
    print("(u) the papers' prior against independent normals")
    rows = []
    for name, (table, make, formula, options) in CASES.items():
        if make is ph.NormalRegression and not FILE.exists():
            print(f"  {name}: left out, {FILE.name} is not there")
            continue
        rows.append({"table": name, **_compared(table(), make, formula, options)})
        print("  " + ", ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    pd.DataFrame(rows).to_csv(RESULTS, index=False)


def _compared(
    table: pd.DataFrame, make: Any, formula: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Both posteriors of a model."""
    betas, fitted, bounds, weights = [], [], [], []
    for prior in PRIORS:
        model = make(formula, prior=prior, **options)
        bound = model.bind(table)
        session = open_session(bound, seed=1, engine="embedded")
        fit = session.unweighted()
        betas.append(fit.draws.flat("beta"))
        fitted.append(betas[-1] @ np.unique(bound.design.X, axis=0).T)
        bounds.append(fit.bounds.overall)
        weights.append(float(ph.LipschitzWeighted(model).weights(session).mean()))
    one, two = betas
    apart, lines = _apart(one, two), _apart(*fitted)
    wide = two.std(axis=0) / one.std(axis=0)
    return {
        "model": make.__name__, "n": len(table), "K": apart.size,
        "apart": round(float(apart.max()), 2), "median": round(float(np.median(apart)), 2),
        "line": round(float(lines.max()), 2), "line_median": round(float(np.median(lines)), 2),
        "narrowest": round(float(wide.min()), 2), "widest": round(float(wide.max()), 2),
        **{f"bound_{prior}": round(bound, 2) for prior, bound in zip(PRIORS, bounds, strict=True)},
        **{f"weight_{prior}": round(w, 3) for prior, w in zip(PRIORS, weights, strict=True)},
        "version": ph.__version__,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }  # fmt: skip


def _apart(one: Any, two: Any) -> Any:
    """Distances of the means of draws, in standard deviations of the first."""
    return np.abs(one.mean(axis=0) - two.mean(axis=0)) / one.std(axis=0)


def page_rows() -> list[str]:
    """The stored results as rows of the table in docs/pages/benchmarks.md."""
    return [
        f"| {row.table} | `{row.model}` | {row.n:,}, {row.K} | {row.apart:.2f}, {row.median:.2f} | "
        f"{row.line:.2f}, {row.line_median:.2f} | "
        f"{row.narrowest:.2f} to {row.widest:.2f} | {row.bound_published:.2f}, "
        f"{row.bound_normal:.2f} | {row.weight_published:.3f}, {row.weight_normal:.3f} |"
        for row in pd.read_csv(RESULTS).itertuples()
    ]


if __name__ == "__main__":
    run()
