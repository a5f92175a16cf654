r"""Utility of synthetic data in numbers: propensity scores, tables of counts, confidence intervals.

**Propensity scores.** Data and synthetic records are stacked, N = n + n_syn rows; p_i is the fitted
probability that row i is synthetic and c = n_syn / N. [JC], [SN18]:

.. math:: \text{pMSE} = \frac1N \sum_i (p_i - c)^2,

0 if no row can be told apart, c (1 - c) if every row can (1/4 at equal sizes). A classifier finds
chance differences, so pMSE is set against its null expectation: what it would be if both were
samples of one population.

**Tables of counts.** With a the counts of the data scaled to n_syn and b those of the set, over
cells not empty in both: Voas-Williamson :math:`\sum (a - b)^2 / ((a + b)/2)`, with an expectation
near (d - 1)(1 + n_syn/n) for d cells if both are samples of one population.

References
----------
[JC] Jiang (2025), short course on data privacy.
[SN18] Snoke, Raab, Nowok, Dibben, Slavkovic (2018), J. Royal Stat. Soc. A 181:663-688.
Voas, Williamson (2001), Geographical and Environmental Modeling 5:177-200; Raab, Nowok, Dibben
(2021), arXiv:2109.12717.
Karr, Kohnen, Oganian, Reiter, Sanil (2006), The American Statistician 60:224-232.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from pyhybrid.core.checks import BoolArray, FloatArray, check_choice, check_numeric, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.arrays.estimates import check_weights, max_ecdf

NULLS = ("population", "data", "paired")
_MOST_STEPS, _STEEPEST = 100, 35.0


@dataclass(frozen=True, kw_only=True)
class NullPmse:
    """Mean and standard deviation of pMSE where nothing but chance tells the rows apart."""

    mean: float
    sd: float


def pmse(propensities: Any, is_synthetic: Any, *, weights: Any = None) -> float:
    """Mean squared distance of propensities from the share of synthetic rows; in [0, 1].

    Parameters
    ----------
    propensities : array_like, shape (N,)
        Probability of being synthetic, in [0, 1].
    is_synthetic : array_like of bool, shape (N,)
    weights : array_like, shape (N,), optional
        Design weights above 0: means are weighted, and c is the share of weight that is synthetic.

    References
    ----------
    [SN18] sec. 3.

    Examples
    --------
    >>> pmse([0.0, 0.0, 1.0, 1.0], [False, False, True, True])
    0.25
    """
    p, label = _checked(propensities, is_synthetic)
    weight = check_weights(weights, p.size)
    if weight is None:
        return float(np.mean((p - label.mean()) ** 2))
    return float(np.average((p - np.average(label, weights=weight)) ** 2, weights=weight))


def specks(propensities: Any, is_synthetic: Any, *, weights: Any = None) -> float:
    """Kolmogorov-Smirnov distance of the propensities of data and synthetic rows, in [0, 1].

    Parameters as in `pmse`. 0 if the two have one distribution, 1 if a threshold parts them.
    """
    p, label = _checked(propensities, is_synthetic)
    weight = check_weights(weights, p.size)
    by_kind = (None, None) if weight is None else (weight[label], weight[~label])
    return max_ecdf(p[label], p[~label], weights=by_kind[0], synthetic_weights=by_kind[1])


def logistic_propensities(
    basis: FloatArray, is_synthetic: BoolArray, weights: FloatArray | None = None
) -> FloatArray:
    """Fitted probabilities (N,) of an unpenalized logistic regression on an orthonormal `basis` (N,
    k). statsmodels stops where rows are separable: here linear predictors are held at 35."""
    y = is_synthetic.astype(np.float64)
    weight = np.ones(y.size) if weights is None else weights
    linear = np.zeros(y.size)
    loss = _deviance(linear, y, weight)
    for _ in range(_MOST_STEPS):
        p = 1 / (1 + np.exp(-linear))
        curved = weight * np.maximum(p * (1 - p), 1e-12)
        information = basis.T @ (basis * curved[:, None])
        step = basis @ linalg.solve(
            information + 1e-12 * np.eye(basis.shape[1]),
            basis.T @ (weight * (y - p)),
            assume_a="pos",
        )
        new, lower = linear, loss
        for half in range(30):
            new = np.clip(linear + step / 2**half, -_STEEPEST, _STEEPEST)
            lower = _deviance(new, y, weight)
            if lower < loss:
                break
        if lower > loss - 1e-10 * (1 + loss):
            break
        linear, loss = new, lower
    return np.asarray(1 / (1 + np.exp(-linear)))


def orthonormal_design(columns: FloatArray) -> FloatArray:
    """Orthonormal basis (N, rank) of an intercept and `columns` (N, p), whatever their units."""
    n = columns.shape[0]
    centered = columns - columns.mean(axis=0)
    size = np.sqrt((centered**2).sum(axis=0))
    constant = size <= 1e-10 * np.sqrt(n) * np.abs(columns).max(axis=0, initial=0)
    varied = centered[:, ~constant] / size[~constant]
    intercept = np.full((n, 1), 1 / np.sqrt(n))
    if not varied.shape[1]:
        return intercept
    basis, triangle, _ = linalg.qr(varied, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > 1e-9 * diagonal[0]).sum())
    return np.hstack([intercept, basis[:, :rank]])


def null_pmse(
    basis: FloatArray,
    is_synthetic: BoolArray,
    *,
    null: str = "population",
    weights: FloatArray | None = None,
) -> NullPmse:
    """Mean and sd of pMSE, near S'(B'B)^{-1}S / N with S the score at equal propensities, if the
    synthesis is right: "population", both are samples of one, mean c (1-c) (k-1) / N; "data", the
    rows are a sample of a model fitted to the data, c (1-c)^2 (k-1) / N [SN18 sec. 3]; "paired",
    row n + i may be exchanged with row i. Under design weights S has terms w_i (y_i - c) b_i."""
    check_choice(null, "null", NULLS)
    total, k = basis.shape
    if weights is not None:
        return _weighted_null(basis, is_synthetic, null, weights)
    if null == "paired":
        difference = basis[is_synthetic] - basis[~is_synthetic]
        spread = difference.T @ difference / (4 * total)
        return NullPmse(mean=float(np.trace(spread)), sd=float(np.sqrt(2) * linalg.norm(spread)))
    c = float(is_synthetic.mean())
    size = c * (1 - c) / total * (1 if null == "population" else 1 - c)
    return NullPmse(mean=size * (k - 1), sd=size * float(np.sqrt(2 * (k - 1))))


def _weighted_null(
    basis: FloatArray, is_synthetic: BoolArray, null: str, weights: FloatArray
) -> NullPmse:
    c = float(weights[is_synthetic].sum() / weights.sum())
    middle = weights @ basis / weights.sum()
    term = (basis - middle) * (weights * np.where(is_synthetic, 1 - c, -c))[:, None]
    if null == "paired":
        term = term[is_synthetic] + term[~is_synthetic]
    elif null == "data":
        term = term[is_synthetic]
    information = basis.T @ (basis * weights[:, None])
    spread = linalg.solve(information, term.T @ term, assume_a="pos") / weights.sum()
    # spread is similar to a symmetric matrix, the trace of whose square is that of spread.
    variance = 2 * float(np.trace(spread @ spread))
    return NullPmse(mean=float(np.trace(spread)), sd=max(variance, 0.0) ** 0.5)


def _deviance(linear: FloatArray, y: FloatArray, weights: FloatArray) -> float:
    return float(np.sum(weights * (np.logaddexp(0, linear) - y * linear)))


def _checked(propensities: Any, is_synthetic: Any) -> tuple[FloatArray, BoolArray]:
    p = check_vector(propensities, "propensities")
    label = check_numeric(is_synthetic, "is_synthetic")
    if label.shape != p.shape or not np.isin(label, (0, 1)).all():
        raise InvalidInput(
            f"is_synthetic must hold {p.size} values True or False: found shape {label.shape}"
        )
    if not ((p >= 0) & (p <= 1)).all():
        raise InvalidInput("propensities must lie in [0, 1]")
    if not 0 < label.mean() < 1:
        raise InvalidInput("is_synthetic must hold both kinds of rows: found one")
    return p, label.astype(bool)


@dataclass(frozen=True, kw_only=True)
class TableDistance:
    """Distance of two tables of counts.

    Attributes
    ----------
    statistic : float
        Voas-Williamson, from 0; 0 for equal shares.
    ratio : float
        Over its expectation for two samples of one population; near 1 there, 0 for equal shares.
    total_variation : float
        Half the sum of absolute differences of shares, in [0, 1].
    n_cells : int
        Cells that are not empty in both.
    """

    statistic: float
    ratio: float
    total_variation: float
    n_cells: int


def table_distance(data: Any, synthetic: Any) -> TableDistance:
    """Compare two tables of counts of the same cells.

    Parameters
    ----------
    data, synthetic : array_like, of one shape
        Counts >= 0, in any number of dimensions, each of sum above 0.

    Raises
    ------
    InvalidInput
        For unlike shapes, negative or infinite counts, or an empty table.

    Examples
    --------
    >>> round(table_distance([10, 10], [5, 15]).statistic, 3)
    5.333
    """
    a, b = check_numeric(data, "data"), check_numeric(synthetic, "synthetic")
    for name, counts in (("data", a), ("synthetic", b)):
        if not np.isfinite(counts).all() or (counts < 0).any() or counts.sum() == 0:
            raise InvalidInput(f"counts of {name} must be finite and >= 0, some above 0")
    if a.shape != b.shape:
        raise InvalidInput(f"tables must have the same cells: found {a.shape} and {b.shape}")
    n, n_syn = a.sum(), b.sum()
    filled = (a > 0) | (b > 0)
    a, b = a[filled] * (n_syn / n), b[filled]
    statistic = float(np.sum((a - b) ** 2 / ((a + b) / 2)))
    expected = (a.size - 1) * (1 + n_syn / n)
    return TableDistance(
        statistic=statistic,
        ratio=statistic / expected if a.size > 1 else 0.0,
        total_variation=float(np.abs(a - b).sum() / (2 * n_syn)),
        n_cells=int(a.size),
    )


def interval_overlap(original: Any, synthetic: Any) -> FloatArray:
    """Half of [overlap / original length + overlap / synthetic length].

    overlap = min(upper ends) - max(lower ends); for disjoint intervals minus their distance. The
    measure is 1 for equal intervals and at most 0 for disjoint ones, without a lower limit.

    Parameters
    ----------
    original, synthetic : array_like, shape (2,) or (2, p)
        Lower and upper ends, finite; lower < upper. Two equal intervals may have no length.

    Returns
    -------
    ndarray, shape () or (p,)

    Raises
    ------
    InvalidInput
        For unlike shapes, ends that are not finite, or an interval without length.

    References
    ----------
    [JC], utility of inference.

    Examples
    --------
    >>> float(interval_overlap([0, 2], [1, 3]))
    0.5
    """
    first, second = check_numeric(original, "original"), check_numeric(synthetic, "synthetic")
    if first.shape != second.shape or first.shape[:1] != (2,) or first.ndim > 2:
        raise InvalidInput(
            "original and synthetic must share a shape (2,) or (2, p): found "
            f"{first.shape} and {second.shape}"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InvalidInput("ends of intervals must be finite")
    equal = (first == second).all(axis=0)
    lengths = [ends[1] - ends[0] for ends in (first, second)]
    if ((np.minimum(*lengths) <= 0) & ~equal).any():
        raise InvalidInput("intervals must have a length above 0: lower < upper")
    shared = np.minimum(first[1], second[1]) - np.maximum(first[0], second[0])
    with np.errstate(invalid="ignore"):
        overlap = 0.5 * (shared / lengths[0] + shared / lengths[1])
    return np.asarray(np.where(equal, 1.0, overlap))


def standardised_difference(original: Any, synthetic: Any, standard_error: Any) -> FloatArray:
    """abs(original - synthetic) / standard error of the original estimate, from 0.

    Parameters
    ----------
    original, synthetic : array_like, shape () or (p,)
        Point estimates, finite.
    standard_error : array_like, shape () or (p,)
        Of the original ones, above 0.
    """
    parts = [
        check_numeric(values, name)
        for values, name in (
            (original, "original"),
            (synthetic, "synthetic"),
            (standard_error, "standard_error"),
        )
    ]
    if len({part.shape for part in parts}) > 1 or not all(np.isfinite(p).all() for p in parts):
        raise InvalidInput("original, synthetic and standard_error must be finite, of one shape")
    if not (parts[2] > 0).all():
        raise InvalidInput("standard_error must be above 0")
    return np.asarray(np.abs(parts[0] - parts[1]) / parts[2])
