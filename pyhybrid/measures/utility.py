r"""Distributions: columns one by one, tables of counts, confidence intervals of estimates.

**Tables of counts.** With a the counts of the data scaled to n_syn and b those of the set, over
cells not empty in both: Voas-Williamson :math:`\sum (a - b)^2 / ((a + b)/2)`, with an expectation
near (d - 1)(1 + n_syn/n) for d cells if both are samples of one population.

References
----------
[JC] Jiang (2025), short course on data privacy.
Voas, Williamson (2001), Geographical and Environmental Modeling 5:177-200; Raab, Nowok, Dibben
(2021), arXiv:2109.12717.
Karr, Kohnen, Oganian, Reiter, Sanil (2006), The American Statistician 60:224-232.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, IntArray, check_count, check_numeric
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import generator_of
from pyhybrid.measures.estimates import avg_ecdf, estimates, max_ecdf
from pyhybrid.measures.reconcile import Tables, reconcile_tables

DATA, SYNTHETIC = "data", "synthetic"
"""Names of the sources of estimates."""

_DISTANCES = ["column", "max_ecdf", "avg_ecdf", "missing_data", "missing_synthetic"]
_TIDY = ["column", "statistic", "source", "estimate", "lower", "upper"]
_OF_TABLES = ["statistic", "ratio", "total_variation", "n_cells"]
_MANY = 20_000
_MOST_LEVELS = 50


def interval_overlap(original: Any, synthetic: Any) -> FloatArray:
    """Half of [overlap / original length + overlap / synthetic length], shape () or (p,).

    overlap = min(upper ends) - max(lower ends); for disjoint intervals minus their distance. The
    measure is 1 for equal intervals and at most 0 for disjoint ones, without a lower limit [JC].

    Parameters
    ----------
    original, synthetic : array_like, shape (2,) or (2, p)
        Lower and upper ends, finite; lower < upper. Two equal intervals may have no length.

    Examples
    --------
    >>> float(interval_overlap([0, 2], [1, 3]))
    0.5
    """
    first, second = check_numeric(original, "original"), check_numeric(synthetic, "synthetic")
    if first.shape != second.shape or first.shape[:1] != (2,) or first.ndim > 2:
        raise InvalidInput(
            f"intervals must share a shape (2,) or (2, p): found {first.shape} and {second.shape}"
        )
    if not np.isfinite([first, second]).all():
        raise InvalidInput("ends of intervals must be finite")
    equal = (first == second).all(axis=0)
    lengths = np.stack([first[1] - first[0], second[1] - second[0]])
    if ((lengths <= 0) & ~equal).any():
        raise InvalidInput("intervals must have a length above 0: lower < upper")
    shared = np.minimum(first[1], second[1]) - np.maximum(first[0], second[0])
    overlap = 0.5 * (shared / np.where(lengths > 0, lengths, 1.0)).sum(axis=0)
    return np.asarray(np.where(equal, 1.0, overlap))


def standardised_difference(original: Any, synthetic: Any, standard_error: Any) -> FloatArray:
    """abs(original - synthetic) / standard error of the original estimate, above 0; all finite, of
    one shape () or (p,)."""
    first, second = check_numeric(original, "original"), check_numeric(synthetic, "synthetic")
    error = check_numeric(standard_error, "standard_error")
    alike = first.shape == second.shape == error.shape
    if not (alike and np.isfinite([first, second, error]).all()):
        raise InvalidInput("original, synthetic and standard_error must be finite, of one shape")
    if not (error > 0).all():
        raise InvalidInput("standard_error must be above 0")
    return np.asarray(np.abs(first - second) / error)


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
        the Wasserstein barycenter, see `pyhybrid.measures.estimates`.
    """

    distances: pd.DataFrame
    estimates: pd.DataFrame


def column_utility(
    real: Any,
    synthetic: Any = None,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    n_resamples: int | None = None,
    weights: str | None = None,
    rng: np.random.Generator | int | None = None,
) -> ColumnUtility:
    """Compare the columns of numbers one by one; missing values are left out and counted.

    Parameters
    ----------
    real, synthetic, columns, categorical, weights
        As in `pyhybrid.measures.propensity_utility`.
    n_resamples, rng
        As in `pyhybrid.measures.estimates`; None stands for 1000 resamples, 200 for many records.
    """
    tables = reconcile_tables(real, synthetic, columns, categorical, weights)
    resamples = n_resamples or (200 if len(tables.real) > _MANY else 1000)
    generator = generator_of(rng)
    distances: list[list[Any]] = []
    parts: list[pd.DataFrame] = []
    for column in filter(tables.is_number, tables.real.columns):
        there = [table[column].notna().to_numpy() for table in tables.all]
        truth, *sets = (t[column].dropna().to_numpy(np.float64) for t in tables.all)
        weight, *of_sets = (w[here] for w, here in zip(tables.weights, there, strict=True))
        even, *evens = (w[here] for w, here in zip(tables.mean_weights, there, strict=True))
        missing, *absent = (1 - np.average(here, weights=w) for w, here in
                            zip(tables.weights, there, strict=True))  # fmt: skip
        gaps = [
            [gap(truth, x, weights=even, synthetic_weights=w) for gap in (max_ecdf, avg_ecdf)]
            for x, w in zip(sets, evens, strict=True)
        ]
        distances.append([column, *np.mean(gaps, axis=0).tolist(), missing, np.mean(absent)])
        for source, values, w in ((DATA, truth, weight), (SYNTHETIC, sets, of_sets)):
            found = estimates(values, weights=w, n_resamples=resamples, rng=generator)
            parts.append(pd.DataFrame({
                "column": column, "statistic": found.statistics, "source": source,
                "estimate": found.estimate, "lower": found.lower, "upper": found.upper,
            }))  # fmt: skip
    return ColumnUtility(
        distances=pd.DataFrame(distances, columns=_DISTANCES),
        estimates=pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_TIDY),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TableUtility:
    """Distances of one- and two-way tables, averages over m sets. Confidential.

    Attributes
    ----------
    one_way : DataFrame
        column, statistic, ratio, total_variation, n_cells; in the order of the columns.
    two_way : DataFrame
        first, second, and the same; worst ratio first. Empty for one column.
    """

    one_way: pd.DataFrame
    two_way: pd.DataFrame

    def matrix(self) -> pd.DataFrame:
        """Ratios of pairs as a symmetric table, those of single columns on its diagonal."""
        names = list(self.one_way["column"])
        square = np.diag(self.one_way["ratio"].to_numpy(dtype=np.float64))
        for first, second, ratio in self.two_way[["first", "second", "ratio"]].to_numpy().tolist():
            cell = names.index(first), names.index(second)
            square[cell] = square[cell[::-1]] = ratio
        ratios: pd.DataFrame = pd.DataFrame(square, index=names, columns=names)
        return ratios


def table_utility(
    real: Any,
    synthetic: Any = None,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    n_bins: int = 5,
    weights: str | None = None,
) -> TableUtility:
    """Compare the tables of every column and every pair of columns.

    Parameters
    ----------
    real, synthetic, columns, categorical, weights
        As in `pyhybrid.measures.propensity_utility`. Under weights a cell holds its share of the
        weight times the effective number of records, so that ratios stay near 1 for two samples of
        one population.
    n_bins : int, default 5
        Cells of a column of numbers, between quantiles of the data; at least 2. Values that many
        records share keep a cell of their own. Missing values are a cell, too; of categories the
        49 most frequent keep theirs and the others share one.
    """
    tables = reconcile_tables(real, synthetic, columns, categorical, weights)
    bins = check_count(n_bins, "n_bins", at_least=2)
    cells = {name: _cells(tables, name, bins) for name in tables.real.columns}
    # weights that add to Kish's effective sample size, (sum w)^2 / sum w^2
    counted = [w * (w.sum() / (w**2).sum()) for w in tables.weights]
    one = [(name, *_crossed([codes], counted)) for name, codes in cells.items()]
    two = [(a, b, *_crossed([cells[a], cells[b]], counted)) for a, b in combinations(cells, 2)]
    pairs = pd.DataFrame(two, columns=["first", "second", *_OF_TABLES])
    return TableUtility(
        one_way=pd.DataFrame(one, columns=["column", *_OF_TABLES]),
        two_way=pairs.sort_values("ratio", ascending=False, kind="stable", ignore_index=True),
    )


def _crossed(parts: Sequence[Sequence[IntArray]], counted: Sequence[FloatArray]) -> FloatArray:
    """`table_distance`, averaged over the sets, of the table that crosses `parts`, each the cells
    of 1 + m tables; `counted` says as how many each record counts."""
    sizes = [1 + max(int(codes.max()) for codes in part) for part in parts]
    data, *sets = (
        np.bincount(np.ravel_multi_index(codes, sizes), weights, minlength=int(np.prod(sizes)))
        for codes, weights in zip(zip(*parts, strict=True), counted, strict=True)
    )
    return np.asarray(np.mean([table_distance(data, counts) for counts in sets], axis=0))


def table_distance(data: Any, synthetic: Any) -> FloatArray:
    """Voas-Williamson statistic of two tables of counts of the same cells, its ratio to what two
    samples of one population have, total variation, and cells that are not empty in both: (4,)."""
    n, n_syn = data.sum(), synthetic.sum()
    filled = (data > 0) | (synthetic > 0)
    a, b = data[filled] * (n_syn / n), synthetic[filled]
    statistic = np.sum((a - b) ** 2 / ((a + b) / 2))
    expected = (a.size - 1) * (1 + n_syn / n)
    ratio = statistic / expected if a.size > 1 else 0.0
    return np.array([statistic, ratio, np.abs(a - b).sum() / (2 * n_syn), a.size])


def _cells(tables: Tables, column: str, n_bins: int) -> list[IntArray]:
    """Cell of each record of the data and of each set; cell 0 holds missing values."""
    everything = [table[column] for table in tables.all]
    if not tables.is_number(column):
        codes = [values.cat.codes.to_numpy(dtype=np.intp) + 1 for values in everything]
        counts = np.bincount(codes[0], minlength=1 + len(everything[0].cat.categories))
        order = np.argsort(-counts[1:], kind="stable")
        cell_of = np.zeros(counts.size, dtype=np.intp)
        cell_of[1 + order] = np.minimum(np.arange(1, counts.size), _MOST_LEVELS)
        return [cell_of[values_codes] for values_codes in codes]
    edges = _edges(everything[0].dropna().to_numpy(), n_bins)
    return [
        np.where(values.isna(), 0, 1 + np.searchsorted(edges, values.to_numpy())).astype(np.intp)
        for values in everything
    ]


def _edges(values: FloatArray, n_bins: int) -> FloatArray:
    """Inner edges of cells closed to the right; a value that fills one has it alone."""
    quantiles = np.quantile(values, np.arange(1, n_bins) / n_bins, method="inverted_cdf")
    distinct, counts = np.unique(values, return_counts=True)
    heavy = distinct[counts * n_bins >= values.size]
    below = distinct[np.maximum(np.searchsorted(distinct, heavy) - 1, 0)]
    edges = np.unique(np.concatenate([quantiles, heavy, below[below < heavy]]))
    return np.asarray(edges[edges < distinct[-1]])
