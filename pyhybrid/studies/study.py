"""What a study is: simulated or given databases, quantities measured on each, published numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from pyhybrid.core.randomness import Streams

__all__ = ["Claim", "Measured", "Published", "Size", "Study", "mean_of", "summarize"]


class Measured(NamedTuple):
    """One number from one database: what was measured, on which synthesizer."""

    synthesizer: str
    quantity: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number of a paper and the row of the study's summary that stands beside it.

    Attributes
    ----------
    setting, synthesizer, quantity : str
        Which row.
    shown : str
        As published.
    low, high : float
        What counts as agreement: the mean over databases, give or take 2 Monte Carlo standard
        errors, reaches into [low, high].
    one_database : bool
        The number is that of one database. Ours may then lie anywhere among databases: give or
        take 3 standard deviations, as all its numbers err together.
    note : str
        Why ours may differ: other data, one chain against several, a number read off a figure.
    """

    setting: str
    synthesizer: str
    quantity: str
    shown: str
    low: float
    high: float
    one_database: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper that is no single number.

    Attributes
    ----------
    text : str
        What is claimed.
    check : callable
        From the study's summary to what was found, in words, and whether the claim holds.
    note : str
        Why it may fail here.
    """

    text: str
    check: Callable[[pd.DataFrame], tuple[str, bool]]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of a study is run: databases per setting, and what else makes it quick."""

    replicates: int
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study of the papers.

    Attributes
    ----------
    name : str
        A to I.
    title, source : str
        In words; the paper and its section.
    settings : tuple of str
        Kinds of database, e.g. sample sizes.
    measure : callable
        (setting, streams, options) to rows of `Measured`; at the top level of a module, runs in
        any process. All its random numbers come from the streams.
    quick, paper : Size
        About a minute; the paper's size.
    takes_data : bool
        True if it can be run on a file of real records, `options["data"]`.
    published, claims : tuple of Published, tuple of Claim
        What the reproduction table sets beside ours.
    """

    name: str
    title: str
    source: str
    settings: tuple[str, ...]
    measure: Callable[[str, Streams, Mapping[str, Any]], list[Measured]]
    quick: Size
    paper: Size
    takes_data: bool = False
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()


def mean_of(summary: pd.DataFrame, setting: str, synthesizer: str, quantity: str) -> float:
    """One mean of a summary; NaN if it has no such row."""
    row = (
        (summary["setting"] == setting)
        & (summary["synthesizer"] == synthesizer)
        & (summary["quantity"] == quantity)
    )
    return float(summary.loc[row, "mean"].iloc[0]) if row.any() else float("nan")


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over databases with its Monte Carlo standard error, and the range.

    Parameters
    ----------
    rows : DataFrame
        Columns setting, replicate, synthesizer, quantity, value.

    Returns
    -------
    DataFrame
        One row per setting, synthesizer and quantity, in order of first appearance: n (databases),
        mean, mc_error (standard deviation over sqrt(n); missing for one database), lowest,
        highest.
    """
    grouped = rows.groupby(["setting", "synthesizer", "quantity"], sort=False)["value"]
    table: pd.DataFrame = grouped.agg(["size", "mean", "std", "min", "max"]).reset_index()
    table.columns = pd.Index(
        ["setting", "synthesizer", "quantity", "n", "mean", "mc_error", "lowest", "highest"]
    )
    table["mc_error"] = table["mc_error"] / table["n"] ** 0.5
    return table
