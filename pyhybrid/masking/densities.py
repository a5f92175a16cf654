r"""Mask densities and the closed forms of one masked key, arrays in, arrays out. The same in R.

Continuous: prior N(mu, sigma2), W_k ~ N(X, s2), k = 1 .. K, gives a normal with precision
1/sigma2 + K/s2 and mean (mu/sigma2 + sum_k W_k/s2) / precision. Categorical: probabilities
proportional to prior times exp(log density). See [J22], and `pyhybrid.masking.masks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_numeric, check_positive, check_vector
from pyhybrid.core.errors import InvalidInput

__all__ = [
    "MaskedNormal",
    "gaussian_mask_log_density",
    "masked_level_probabilities",
    "masked_normal",
    "misclassification_log_density",
    "mixture_mask_log_density",
]

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedNormal:
    """Normal distribution of a continuous key given its mask; both of shape (n,)."""

    mean: FloatArray
    variance: FloatArray


def gaussian_mask_log_density(w: Any, x: Any, variance: float) -> FloatArray:
    """Sum over k of log N(w_ik; x_i, variance), shape (n,).

    Parameters
    ----------
    w : array_like, shape (n, K)
    x : array_like, shape (n,)
    variance : float
        s2, above 0.

    Raises
    ------
    InvalidInput
        For a variance that is not above 0, or shapes that do not fit.
    """
    s2 = check_positive(variance, "variance")
    values, copies = _pair(x, w)
    squares = (copies - values[:, None]) ** 2
    constant = copies.shape[1] * (_LOG_2PI + np.log(s2))
    return np.asarray(-0.5 * (constant + squares.sum(axis=1) / s2))


def mixture_mask_log_density(w: Any, x: Any, separation: float) -> FloatArray:
    """log N(w; a x, 1), shape (n,); for w of shape (n, levels), nominal, with centers a apart.

    Parameters
    ----------
    w : array_like, shape (n,) or (n, levels)
    x : array_like, shape (n,)
        Codes from 0.
    separation : float
        a, above 0.
    """
    a = check_positive(separation, "separation")
    observed = check_numeric(w, "w")
    if observed.ndim < 2:
        codes, column = _pair(x, observed[:, None] if observed.ndim else observed)
        return np.asarray(-0.5 * (_LOG_2PI + (column[:, 0] - a * codes) ** 2))
    codes, observed = _pair(x, observed)
    levels = observed.shape[1]
    centers = a / np.sqrt(2) * np.eye(levels)[_codes(codes, levels)]
    return np.asarray(-0.5 * (levels * _LOG_2PI + ((observed - centers) ** 2).sum(axis=1)))


def misclassification_log_density(w: Any, x: Any, matrix: Any) -> FloatArray:
    """log P(W = w | X = x) from a matrix with row x and column w, shape (n,); codes from 0."""
    rows = check_numeric(matrix, "matrix")
    values, observed = _pair(x, check_vector(w, "w")[:, None])
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    return np.asarray(logs[_codes(values, len(rows)), _codes(observed[:, 0], len(rows))])


def masked_normal(mean: Any, variance: Any, w: Any, mask_variance: float) -> MaskedNormal:
    """Distribution of a continuous key given W, by precision weighting.

    Parameters
    ----------
    mean, variance : array_like, shape (n,)
        Of p(X | Z, theta); variances above 0.
    w : array_like, shape (n, K)
        Copies of the mask.
    mask_variance : float
        s2, above 0.
    """
    s2 = check_positive(mask_variance, "mask_variance")
    center, copies = _pair(mean, w)
    spread = check_vector(variance, "variance", length=center.size)
    if not (spread > 0).all():
        raise InvalidInput("variance must be above 0 in every record")
    precision = 1 / spread + copies.shape[1] / s2
    total = center / spread + copies.sum(axis=1) / s2
    return MaskedNormal(mean=total / precision, variance=1 / precision)


def masked_level_probabilities(prior: Any, log_density: Any) -> FloatArray:
    """Probabilities of the levels of a key given W, shape (n, levels).

    Parameters
    ----------
    prior : array_like, shape (n, levels)
        P(X = x | Z, theta), >= 0, not all 0 in a row.
    log_density : array_like, shape (n, levels)
        log p(w | x) for each level; -inf where it is 0, but not in a whole row.
    """
    p, logs = check_numeric(prior, "prior"), check_numeric(log_density, "log_density")
    if p.ndim != 2 or p.shape != logs.shape or not p.size:
        raise InvalidInput(
            "prior and log_density must share a shape (n, levels): "
            f"found {p.shape} and {logs.shape}"
        )
    weights = p * np.exp(logs - logs.max(axis=1, keepdims=True))
    total = weights.sum(axis=1, keepdims=True)
    if not ((p >= 0).all() and np.isfinite(total).all() and (total > 0).all()):
        raise InvalidInput("each record must have a level with positive prior and density")
    return np.asarray(weights / total)


def _pair(x: Any, w: Any) -> tuple[FloatArray, FloatArray]:
    """x of shape (n,) and w of shape (n, K)."""
    values, copies = check_vector(x, "x"), check_numeric(w, "w")
    if copies.ndim != 2 or copies.shape[0] != values.size or not copies.size:
        raise InvalidInput(
            f"w must have one row for each of {values.size} records: found shape {copies.shape}"
        )
    return values, copies


def _codes(values: FloatArray, levels: int) -> Any:
    codes = values.astype(np.intp)
    if ((codes != values) | (codes < 0) | (codes >= levels)).any():
        raise InvalidInput(f"codes must be whole numbers from 0 to {levels - 1}")
    return codes
