"""Column by column: estimates with intervals, distances of distributions, missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.randomness import generator_of
from pyhybrid.measures.arrays.estimates import STATISTICS, Estimates, avg_ecdf, estimates, max_ecdf
from pyhybrid.measures.tables.reconcile import Tables, reconcile_tables
from pyhybrid.measures.tables.sampled import Weights

__all__ = ["DATA", "SYNTHETIC", "ColumnUtility", "column_utility", "columns_of_tables"]

DATA, SYNTHETIC = "data", "synthetic"
"""Names of the sources of estimates."""

_FEWER_ABOVE = 20_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnUtility:
    """Distributions of single columns, data against m synthetic sets. Confidential.

    Attributes
    ----------
    distances : DataFrame
        column, max_ecdf, avg_ecdf (averages over the sets), missing_data, missing_synthetic
        (shares of missing values); one row per column of numbers.
    estimates : DataFrame
        Tidy: column, statistic, source ("data", "synthetic"), estimate, lower, upper; of m sets
        the Wasserstein barycenter, see `pyhybrid.estimates`.
    """

    distances: pd.DataFrame
    estimates: pd.DataFrame


def column_utility(
    real: pd.DataFrame,
    synthetic: Any,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    statistics: Sequence[str] = STATISTICS,
    n_resamples: int = 1000,
    weights: Weights = None,
    rng: np.random.Generator | int | None = None,
) -> ColumnUtility:
    """Compare the columns of numbers one by one; missing values are left out and counted.

    Parameters
    ----------
    real, synthetic, columns, categorical, weights
        As in `pyhybrid.propensity_utility`.
    statistics, n_resamples, rng
        As in `pyhybrid.estimates`.
    """
    tables = reconcile_tables(
        real, synthetic, columns=columns, categorical=categorical, weights=weights
    )
    return columns_of_tables(tables, statistics=statistics, n_resamples=n_resamples, rng=rng)


def columns_of_tables(
    tables: Tables,
    *,
    statistics: Sequence[str] = STATISTICS,
    n_resamples: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> ColumnUtility:
    """`column_utility` on tables that are reconciled already.

    With `n_resamples` None there are 1000, down to 200 for many records.
    """
    few = 200 if 1000 * len(tables.real) > _FEWER_ABOVE else 1000
    resamples = few if n_resamples is None else check_count(n_resamples, "n_resamples")
    generator = generator_of(rng)
    distances: list[dict[str, Any]] = []
    found: list[pd.DataFrame] = []
    for column in filter(tables.is_number, tables.real.columns):
        truth, *sets = (_present(table[column]) for table in (tables.real, *tables.synthetic))
        own, *others = _present_weights(tables, column, averaged=False)
        even, *evens = _present_weights(tables, column, averaged=True)
        gaps = [
            (
                max_ecdf(truth, each, weights=even, synthetic_weights=w),
                avg_ecdf(truth, each, weights=even, synthetic_weights=w),
            )
            for each, w in zip(sets, evens, strict=True)
        ]
        missing, *absent = _missing_shares(tables, column)
        distances.append(
            {
                "column": column,
                "max_ecdf": float(np.mean([gap[0] for gap in gaps])),
                "avg_ecdf": float(np.mean([gap[1] for gap in gaps])),
                "missing_data": missing,
                "missing_synthetic": float(np.mean(absent)),
            }
        )
        sources: list[tuple[str, Any, Any]] = [(DATA, truth, own), (SYNTHETIC, sets, others)]
        for source, values, weight in sources:
            summary = estimates(
                values, statistics=statistics, n_resamples=resamples, weights=weight, rng=generator
            )
            found.append(_rows(column, source, summary))
    named = ["column", "max_ecdf", "avg_ecdf", "missing_data", "missing_synthetic"]
    tidy = ["column", "statistic", "source", "estimate", "lower", "upper"]
    return ColumnUtility(
        distances=pd.DataFrame(distances, columns=named),
        estimates=pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=tidy),
    )


def _present_weights(tables: Tables, column: str, *, averaged: bool) -> list[FloatArray | None]:
    """Weights of the records with a value, of the data and of each set."""
    return [
        None if weight is None else weight[table[column].notna().to_numpy()]
        for weight, table in zip(
            tables.weights(averaged=averaged), (tables.real, *tables.synthetic), strict=True
        )
    ]


def _missing_shares(tables: Tables, column: str) -> list[float]:
    """Shares of missing values in the data and in each set."""
    return [
        float(gone.mean() if weight is None else np.average(gone, weights=weight))
        for weight, gone in zip(
            tables.weights(),
            (table[column].isna() for table in (tables.real, *tables.synthetic)),
            strict=True,
        )
    ]


def _present(values: pd.Series) -> FloatArray:
    return values.dropna().to_numpy(dtype=np.float64)


def _rows(column: str, source: str, found: Estimates) -> pd.DataFrame:
    rows: pd.DataFrame = pd.DataFrame(
        {
            "column": column,
            "statistic": found.statistics,
            "source": source,
            "estimate": found.estimate,
            "lower": found.lower,
            "upper": found.upper,
        }
    )
    return rows
