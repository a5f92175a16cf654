"""Summaries of a study over its databases, and checks of claims, which say what they found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np
import pandas as pd

from pyhybrid.studies.comparing.comparison import DATA
from pyhybrid.studies.measuring import MAX_ECDF
from pyhybrid.studies.study import FEWEST, ROW, Check, Found, Pairs

QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
"""Columns of a summary with quartiles over databases."""
DIFFERENCE, _OF_TWO = "difference", "{}, {} less {}"
"""Name of the synthesizer, and the quantity, of a comparison on the same databases."""
Asked = ParamSpec("Asked")


def row_of(summary: pd.DataFrame, setting: str, synthesizer: str, quantity: str) -> pd.Series:
    """One row of a summary; NaN if it has no such row."""
    rows = summary[(summary[list(ROW)] == [setting, synthesizer, quantity]).all(axis=1)]
    row: pd.Series = rows.iloc[0] if len(rows) else pd.Series(float("nan"), index=summary.columns)
    return row


def mean_of(summary: pd.DataFrame, setting: str, synthesizer: str, quantity: str) -> float:
    """One mean of a summary; NaN if it has no such row."""
    return float(row_of(summary, setting, synthesizer, quantity)["mean"])


def summarize(rows: pd.DataFrame, compared: Pairs | None = None) -> pd.DataFrame:
    """Mean over databases with its Monte Carlo standard error (missing for one), range and
    quartiles, one row per setting, synthesizer and quantity of `rows`, in order of first
    appearance; then the differences of the pairs `compared`."""
    rows = pd.concat([rows, *_differences(rows, compared or {})])
    grouped = rows.groupby(list(ROW), sort=False)["value"]
    table: pd.DataFrame = grouped.agg(["size", "mean", "std", "min", "max"]).reset_index()
    table.columns = pd.Index([*ROW, "n", "mean", "mc_error", "lowest", "highest"])
    table["mc_error"] = table["mc_error"] / table["n"] ** 0.5
    for name, share in QUARTILES.items():
        table[name] = grouped.quantile(share).to_numpy()
    return table


def _differences(rows: pd.DataFrame, compared: Pairs) -> Iterator[pd.DataFrame]:
    """By how much farther the first of two synthesizers is off than the second, on each database:
    from its data, or of distances from 0, on that side of it where their means are."""
    of_pairs = rows[rows["quantity"].isin(compared)]
    for (setting, quantity), part in of_pairs.groupby(["setting", "quantity"], sort=False):
        wide = part.pivot(index="replicate", columns="synthesizer", values="value")
        off = wide.sub(wide[DATA], axis=0) if DATA in wide else wide
        off *= np.sign(off.mean())
        named = {"setting": setting, "synthesizer": DIFFERENCE}
        for one, other in compared[quantity]:
            if {one, other} <= {*off}:
                rows = (off[one] - off[other]).dropna().to_frame("value")
                yield rows.assign(**named, quantity=_OF_TWO.format(quantity, one, other))


def means_of(
    summary: pd.DataFrame, setting: str, synthesizers: Iterable[str], quantity: str
) -> dict[str, float]:
    """Means of a summary by synthesizer; see `mean_of`."""
    return {name: mean_of(summary, setting, name, quantity) for name in synthesizers}


def checking(find: Callable[Concatenate[pd.DataFrame, Asked], Found]) -> Callable[Asked, Check]:
    """A function of a summary and of what is asked about it, as one that makes checks of claims
    from what is asked."""
    return wraps(find)(lambda *asked, **named: lambda summary: find(summary, *asked, **named))


@checking
def of_means(
    summary: pd.DataFrame,
    setting: str,
    names: Iterable[str],
    quantity: str,
    words: str,
    holds: Callable[..., Any],
    form: str = ".3f",
) -> Found:
    """Whether a function of the means of several synthesizers holds."""
    means = means_of(summary, setting, names, quantity)
    return f"{words}: {listed(means, form)}", bool(holds(*means.values()))


def listed(values: Mapping[Any, float] | pd.Series, form: str = ".2f") -> str:
    """Names with their values, in words."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def falls(before: pd.Series, after: pd.Series, to: float = 0.0) -> bool | None:
    """Whether the mean comes nearer `to`; None within 2 standard errors of the difference, and of
    means over fewer databases than a verdict needs."""
    change = abs(after["mean"] - to) - abs(before["mean"] - to)
    error = math.hypot(before["mc_error"], after["mc_error"])
    return _below_zero(change, error, min(before["n"], after["n"]))


def _below_zero(mean: float, error: float, n: float) -> bool | None:
    return None if n < FEWEST or not abs(mean) > 2 * error else bool(mean < 0)


def nearer(
    summary: pd.DataFrame,
    setting: str,
    better: str,
    worse: Iterable[str],
    quantity: str,
    *,
    to_data: bool = False,
) -> Found:
    """Whether a mean of `better` is nearer than those of all `worse` to 0, or to the data's: by the
    difference on the same databases, where the study compares the two so."""
    target = means_of(summary, setting, [DATA] if to_data else [], quantity)
    rows = {name: row_of(summary, setting, name, quantity) for name in (better, *worse)}
    center = target.get(DATA, 0.0)
    shown = listed({**target, **{name: row["mean"] for name, row in rows.items()}}, ".4g")
    few = min(row["n"] for row in rows.values())
    shown += f" ({few:.0f} databases)" if few < FEWEST else ""
    parts, unpaired = [], ""
    for name in worse:
        pair = row_of(summary, setting, DIFFERENCE, _OF_TWO.format(quantity, better, name))
        if math.isnan(pair["n"]):
            unpaired = ", as if on different databases" if few >= FEWEST else ""
            parts.append(falls(rows[name], rows[better], to=center))
        else:
            parts.append(_below_zero(pair["mean"], pair["mc_error"], pair["n"]))
    return f"{quantity}: {shown}{unpaired}", all_hold(parts)


def all_hold(parts: Iterable[bool | None]) -> bool | None:
    """False if one is, else None if one is or there is none."""
    parts = list(parts)
    if False in parts:
        return False
    return None if None in parts or not parts else True


def together(found: Iterable[Found]) -> Found:
    """Several findings as one, which holds if all do."""
    texts, parts = zip(*found, strict=True)
    return "; ".join(texts), all_hold(parts)


def too_few(summary: pd.DataFrame, setting: str) -> str:
    """The reason why a setting is no evidence, or none."""
    n = int(summary.loc[summary["setting"] == setting, "n"].max())
    return f"{n} databases" if n < FEWEST else ""


@checking
def in_each_setting(
    summary: pd.DataFrame,
    check: Callable[[pd.DataFrame, str], Found],
    left_out: Callable[[pd.DataFrame, str], str] = too_few,
) -> Found:
    """Whether what one of summary and setting checks holds in every setting; a setting that is
    `left_out` for a reason is shown with it, and is no evidence."""
    shown, counted = [], []
    for setting in summary["setting"].unique():
        text, holds = check(summary, setting)
        why = left_out(summary, setting)
        shown.append(f"{setting}: {text}" + (f", not counted: {why}" if why else ""))
        counted += [] if why else [holds]
    return "; ".join(shown), all_hold(counted)


def are_nearer(
    *orders: Sequence[str],
    by: Sequence[str] = (MAX_ECDF,),
    setting: str = "",
    to_data: bool = False,
) -> Check:
    """The check of `nearer`, of the first of each order against the others in it, by several
    quantities, in one setting, or in each of them."""

    def check(summary: pd.DataFrame, setting: str) -> Found:
        asked = ((better, worse, quantity) for better, *worse in orders for quantity in by)
        return together(nearer(summary, setting, *one, to_data=to_data) for one in asked)

    return partial(check, setting=setting) if setting else in_each_setting(check)


def is_nearer(*order: str, **options: Any) -> Check:
    """`are_nearer` of one order."""
    return are_nearer(order, **options)
