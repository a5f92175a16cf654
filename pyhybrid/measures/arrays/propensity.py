r"""Propensity scores: can a classifier tell synthetic records from the data?

Both samples are stacked, N = n + n_syn rows; p_i is the fitted probability that row i is synthetic
and c = n_syn / N. [JC], [SN18]:

.. math:: \text{pMSE} = \frac1N \sum_i (p_i - c)^2,

0 if no row can be told apart, c (1 - c) if every row can (1/4 at equal sizes). A classifier finds
chance differences, so pMSE is set against its null expectation: what it would be if both were
samples of one population.

References
----------
[JC] Jiang (2025), short course on data privacy.
[SN18] Snoke, Raab, Nowok, Dibben, Slavkovic (2018), J. Royal Stat. Soc. A 181:663-688.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from pyhybrid.core.checks import FloatArray, check_choice, check_numeric, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.arrays.estimates import max_ecdf
from pyhybrid.measures.arrays.weighted import check_weights

__all__ = [
    "NULLS",
    "NullPmse",
    "logistic_propensities",
    "null_pmse",
    "orthonormal_design",
    "pmse",
    "specks",
]

NULLS = ("population", "data", "paired")
_MOST_STEPS, _STEEPEST = 100, 35.0

BoolArray = npt.NDArray[np.bool_]


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
    own = (None, None) if weight is None else (weight[label], weight[~label])
    return max_ecdf(p[label], p[~label], weights=own[0], synthetic_weights=own[1])


def logistic_propensities(
    basis: FloatArray, is_synthetic: BoolArray, weights: FloatArray | None = None
) -> FloatArray:
    """Fitted probabilities of an unpenalized logistic regression, shape (N,).

    Parameters
    ----------
    basis : ndarray, shape (N, k)
        Orthonormal columns that span the design; see `orthonormal_design`.
    is_synthetic : ndarray of bool, shape (N,)
    weights : ndarray, shape (N,), optional
        By which the terms of the log-likelihood are multiplied.

    Notes
    -----
    Newton's method with halved steps, as this layer is numpy and scipy alone; statsmodels' Logit
    also raises, or stops at large coefficients, where rows are separable, as rows of data and poor
    synthetic data often are. Where the rows are separable the coefficients have no
    maximum; linear predictors are then held at 35, and propensities are 0 or 1 to 15 digits.
    """
    y = is_synthetic.astype(np.float64)
    own = np.ones(y.size) if weights is None else weights
    linear = np.zeros(y.size)
    loss = _deviance(linear, y, own)
    for _ in range(_MOST_STEPS):
        p = 1 / (1 + np.exp(-linear))
        curved = own * np.maximum(p * (1 - p), 1e-12)
        information = basis.T @ (basis * curved[:, None])
        step = basis @ linalg.solve(
            information + 1e-12 * np.eye(basis.shape[1]), basis.T @ (own * (y - p)), assume_a="pos"
        )
        new, lower = linear, loss
        for half in range(30):
            new = np.clip(linear + step / 2**half, -_STEEPEST, _STEEPEST)
            lower = _deviance(new, y, own)
            if lower < loss:
                break
        if lower > loss - 1e-10 * (1 + loss):
            break
        linear, loss = new, lower
    return np.asarray(1 / (1 + np.exp(-linear)))


def orthonormal_design(columns: FloatArray) -> FloatArray:
    """Orthonormal basis (N, k) of an intercept and `columns` (N, p); k is their rank.

    Columns are centered and scaled, so that the rank does not depend on their units.
    """
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
    r"""Mean and sd of the pMSE of a logistic regression if the synthesis is right.

    pMSE is close to S'(B'B)^{-1}S / N with S the score at equal propensities, a quadratic form
    whose mean and variance follow from the covariance of S.

    Parameters
    ----------
    basis : ndarray, shape (N, k)
        As in `logistic_propensities`; k counts the intercept.
    is_synthetic : ndarray of bool, shape (N,)
    null : {"population", "data", "paired"}
        What is right. "population": both are samples of one population, also synthetic data from
        one draw of a posterior: mean c (1-c) (k-1) / N. "data": the synthetic rows are a sample of
        a model fitted to the data, or of the data themselves, c (1-c)^2 (k-1) / N, the published
        form [SN18 sec. 3]. "paired": synthetic row i replaces row i and keeps some of its columns
        (rows n + i and i); the two may be exchanged.
    weights : ndarray, shape (N,), optional
        Design weights of rows that are sampled with them: S has terms w_i (y_i - c) b_i, whose
        spread is estimated from the rows, pMSE near S'(B'WB)^{-1}S over the sum of weights.

    Returns
    -------
    NullPmse
    """
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
