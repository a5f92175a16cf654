"""What was measured: results.csv, results.md, and the rows of the page of benchmarks."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = ["page_rows", "store", "winner_rows", "write_page"]

HERE = Path(__file__).parent
RESULTS = HERE / "results.csv"
SHOWN = (1, 4)
"""Epsilons of the rows on the page of benchmarks, beside those without."""
_KEY = ["data", "program", "asked", "form"]
_MEASURES = ("overlap", "mean_error", "two_way", "pmse_ratio", "attribute_excess")
_NOTES = """# Peers beside pyhybrid

Written by `python -m benchmarks.peers`; versions and dates are in the rows. One set each, or means
of so many.
CPU seconds with imports, without installation, and of a machine at work: compare within one
date only.

- overlap: of 95 % intervals of a linear regression on all predictors, 1 is best. mean_error:
  relative, of the outcome. two_way: mean total variation of all two-way tables. pmse_ratio: 1 is
  the null. attribute_excess: what being in the data adds to the share of an intruder's matches
  that have the target's outcome; 0 is best.
- **Not like for like.** The peers with an epsilon protect all columns, as `pyhybrid-table` does;
  the others of ours protect the outcome alone: predictors are published as they are, which makes
  two-way tables and pMSE better than a release that protects them can be. "outcome alone" gives a
  program of whole tables the same predictors; its outcomes are still those of a model that spent
  epsilon on all columns.
- Guarantees differ. At (epsilon, 1e-6), for every database: the peers, `pyhybrid-table`. At a pure
  epsilon for every database: `pyhybrid-histogram`, `pyhybrid-marginals` and `pyhybrid-censored`,
  whose reference (2,000 or 1,000 records of the same survey) is not covered. The local charges of
  the others hold for these data.
- SDV's copula and synthpop have no guarantee. `synthpop-cart` is R's synthpop, `synthpop-py-cart`
  its sequential CART as the Python package synthpop-py has it, both with their defaults.
- Rows of dpmm, of `pyhybrid-table` and of `pyhybrid-marginals` come out with the tables of their
  models, those of the others with the noise of a sample on top.
- SmartNoise (1.0.8 with mbi 1.1.0): its rows are drawn one by one (`method="sample"`). By
  rounding, mbi's default and what SmartNoise calls, columns that depend on one other column are
  filled in the same order, so that they move together whatever the model says: with RAND at
  epsilon 8 the two-way table of coinsurance and disease is .39 from the data in total variation,
  and .41 from the fitted model itself; drawn one by one .04 and .01.
- SDV's copula takes the columns as the numbers that they are.
- Rows without measures were stopped after as many CPU seconds; rows that are missing have not
  been run. `pyhybrid-lipschitz`: the largest scale whose charge of one draw is within epsilon.
"""


def store(rows: pd.DataFrame) -> None:
    """Replace the stored rows of what was run."""
    rows = rows.assign(date=datetime.datetime.now(datetime.timezone.utc).date().isoformat())
    if RESULTS.exists():
        rows = pd.concat([pd.read_csv(RESULTS), rows]).drop_duplicates(_KEY, keep="last")
    rows.sort_values(_KEY).to_csv(RESULTS, index=False, float_format="%.4g")


def write_page() -> None:
    """results.md: the stored rows as a table, with what is not like for like."""
    rows = pd.read_csv(RESULTS).drop(columns=["asked"]).astype(object)
    cells = rows.where(rows.notna(), "").astype(str)
    lines = [list(cells.columns), ["---"] * cells.shape[1], *cells.to_numpy().tolist()]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    (HERE / "results.md").write_text(f"{_NOTES}\n{text}\n", encoding="utf-8")


def page_rows() -> list[str]:
    """Stored results as rows of the table in docs/pages/benchmarks.md."""
    rows = pd.read_csv(RESULTS)
    rows = rows[rows["asked"].isin(SHOWN) | rows["asked"].isna()]
    rows = rows.sort_values(["data", "form", "asked", "program"], na_position="last")
    return [
        f"| {row.data} | {row.form} | {row.program} | {_number(row.epsilon)} | "
        + " | ".join(_number(getattr(row, name)) for name in _MEASURES)
        + f" | {_seconds(row)} | {_number(row.megabytes)} |"
        for row in rows.itertuples()
    ]


def winner_rows() -> list[str]:
    """Ours beside the best peer with an epsilon, by table, epsilon and measure, all columns
    protected: the better one in bold."""
    rows = pd.read_csv(RESULTS)
    rows = rows[(rows["form"] == "all columns") & rows["asked"].notna()].set_index("program")
    lines = []
    for (data, epsilon), own in rows.groupby(["data", "asked"]):
        cells = []
        for name in _MEASURES[:-1]:
            sign = -1 if name == "overlap" else 1
            ours = float(own.loc["pyhybrid-table", name])
            peers = sign * own.loc[[n for n in own.index if not n.startswith("pyhybrid")], name]
            best, theirs = str(peers.idxmin()), sign * float(peers.min())
            told = [_number(ours), f"{_number(theirs)} {best}"]
            first = 0 if sign * ours <= sign * theirs else 1
            told[first] = f"**{told[first]}**"
            cells.append(", ".join(told))
        lines.append(f"| {data} | {epsilon:g} | " + " | ".join(cells) + " |")
    return lines


def _seconds(row: Any) -> str:
    stopped = "stopped after " if pd.isna(row.two_way) else ""
    return f"{stopped}{row.cpu_seconds:.0f}"


def _number(value: float) -> str:
    if pd.isna(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}"
