r"""Combining rules: one inference from m (or m x r) synthetic or imputed data sets.

Each rule takes point estimates q and their variances v (squared standard errors) and returns a
`Combined`: estimate, total variance T, degrees of freedom, and the parts T is made of. Scalars
(shape (m,)) and coefficient vectors (shape (m, p)) alike; vectors are combined element by element.

References
----------
[R03] Reiter (2003), Survey Methodology 29:181-188; [RRR03] Raghunathan, Reiter, Rubin (2003),
J. Official Statistics 19:1-16; [R04] Reiter (2004), Survey Methodology 30:235-242; Rubin (1987);
[RHK23] Räisä, Jälkö, Kaski, Honkela (2023), Noise-aware statistical inference, AISTATS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.core.checks import BoolArray, FloatArray, check_numeric, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.estimates import check_level


@dataclass(frozen=True, kw_only=True, eq=False)
class Combined:
    """Combined inference; every array has shape () or (p,).

    Attributes
    ----------
    estimate, variance, df : ndarray
        Mean point estimate, total variance T, degrees of freedom of the t interval (may be inf).
    between, within : ndarray
        b, variance of the point estimates between sets (of nest means for nested rules), and the
        mean of the variances.
    adjusted : ndarray of bool
        True where T was negative, or below its least value, and the rule's fix replaced it.
    rule : str
        Name of the rule.
    """

    estimate: FloatArray
    variance: FloatArray
    df: FloatArray
    between: FloatArray
    within: FloatArray
    adjusted: BoolArray
    rule: str

    @property
    def standard_error(self) -> FloatArray:
        """Square root of T."""
        return np.asarray(np.sqrt(self.variance))

    def interval(self, level: float = 0.95) -> FloatArray:
        """Two-sided t interval, shape (2,) or (2, p): lower, upper."""
        from scipy import stats  # slow to import

        half = stats.t.ppf((1 + check_level(level)) / 2, self.df) * self.standard_error
        return np.stack([self.estimate - half, self.estimate + half])


def combine_partially_synthetic(estimates: Any, variances: Any) -> Combined:
    r"""[R03] for partially synthetic data: T = b/m + v, nu = (m-1)(1 + 1/r)^2, r = (b/m)/v.

    Parameters
    ----------
    estimates, variances : array_like, shape (m,) or (m, p)
        Point estimates and their variances (>= 0), one row per synthetic set; m >= 2.

    Raises
    ------
    InvalidInput
        For m < 2, text, rows of unlike length, unlike shapes, values that are not finite,
        negative variances.
    """
    m, parts = _moments("partially synthetic", estimates, variances)
    b, v = parts["between"] / m, parts["within"]
    return _combined(parts, b + v, (m - 1) * (1 + _ratio(v, b)) ** 2)


def combine_fully_synthetic(estimates: Any, variances: Any, *, size_ratio: float = 1.0) -> Combined:
    r"""[RRR03] for fully synthetic data: T = (1 + 1/m) b - v.

    nu = (m-1)(1 - v/((1 + 1/m) b))^2. A T that is not positive is replaced by `size_ratio` times
    v, with m - 1 degrees of freedom; the ratio is that of the records of a synthetic set to those
    of the data. Other parameters and errors as in `combine_partially_synthetic`.
    """
    m, parts = _moments("fully synthetic", estimates, variances)
    size_ratio = check_positive(size_ratio, "size_ratio")
    b, v = (1 + 1 / m) * parts["between"], parts["within"]
    adjusted = b - v <= 0
    df = (m - 1) * np.where(adjusted, 1.0, (1 - _ratio(v, b)) ** 2)
    return _combined(parts, np.where(adjusted, size_ratio * v, b - v), df, adjusted)


def combine_noise_aware(estimates: Any, variances: Any) -> Combined:
    r"""Combine sets of a posterior that knows of a private release's noise: T = (1 + 1/m) b - v.

    The rule of [RRR03], but T is at least (1 + 1/m) v: a posterior given noisy statistics is no
    narrower than the sampling of the records alone. With it b >= 2 v, and
    nu = (m-1)(1 - v/((1 + 1/m) b))^2 is at least (m-1)/4, so that a small m gives wide intervals
    and not absurd ones ([RHK23]). Parameters and errors as in `combine_partially_synthetic`.
    """
    m, parts = _moments("noise aware", estimates, variances)
    v, adjusted = parts["within"], parts["between"] < 2 * parts["within"]
    b = (1 + 1 / m) * np.maximum(parts["between"], 2 * v)
    df = (m - 1) * np.where(b > 0, (1 - _ratio(v, b)) ** 2, 1.0)
    return _combined(parts, np.where(adjusted, (1 + 1 / m) * v, b - v), df, adjusted)


def combine_multiple_imputation(estimates: Any, variances: Any) -> Combined:
    r"""Rubin's rules: T = v + (1 + 1/m) b, nu = (m-1)(1 + v/((1 + 1/m) b))^2.

    Parameters and errors as in `combine_partially_synthetic`.
    """
    m, parts = _moments("multiple imputation", estimates, variances)
    b, v = (1 + 1 / m) * parts["between"], parts["within"]
    return _combined(parts, v + b, (m - 1) * (1 + _ratio(v, b)) ** 2)


def combine_nested(estimates: Any, variances: Any) -> Combined:
    r"""[R04] for m imputations of missing values, each synthesized r times.

    T = (1 + 1/m) B - b/r + v with B the variance of the nest means, b the mean within-nest
    variance; 1/nu = ((1 + 1/m) B)^2 / ((m-1) T^2) + (b/r)^2 / (m (r-1) T^2). A negative T is
    replaced by (1 + 1/m) B + v with nu = (m-1)(1 + v/((1 + 1/m) B))^2.

    Parameters
    ----------
    estimates, variances : array_like, shape (m, r) or (m, r, p)
        One row per imputation, one column per synthesis; m >= 2 and r >= 2.
    """
    q, v = _checked("nested", estimates, variances, ndim=2)
    r = q.shape[1]
    m, parts = _moments("nested", q.mean(axis=1), v.mean(axis=1))
    b, inner = (1 + 1 / m) * parts["between"], q.var(axis=1, ddof=1).mean(axis=0) / r
    total = b - inner + parts["within"]
    adjusted = total < 0
    variance = np.where(adjusted, b + parts["within"], total)
    two_stage = _ratio(variance**2, b**2 / (m - 1) + inner**2 / (m * (r - 1)))
    df = np.where(adjusted, (m - 1) * (1 + _ratio(parts["within"], b)) ** 2, two_stage)
    return _combined(parts, variance, df, adjusted)


def _moments(rule: str, estimates: Any, variances: Any) -> tuple[int, dict[str, Any]]:
    """m; the mean of the sets' estimates, b and v."""
    q, v = _checked(rule, estimates, variances, ndim=1)
    between, within = q.var(axis=0, ddof=1), v.mean(axis=0)
    return len(q), {"rule": rule, "estimate": q.mean(axis=0), "between": between, "within": within}


def _combined(
    parts: dict[str, Any], variance: FloatArray, df: FloatArray, adjusted: Any = False
) -> Combined:
    adjusted = np.broadcast_to(adjusted, np.shape(variance))
    return Combined(**parts, variance=variance, df=df, adjusted=adjusted)


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator, infinite where the denominator is 0."""
    result = np.full(np.shape(numerator), np.inf)
    np.divide(numerator, denominator, out=result, where=np.asarray(denominator) > 0)
    return result


def _checked(
    rule: str, estimates: Any, variances: Any, *, ndim: int
) -> tuple[FloatArray, FloatArray]:
    q, v = check_numeric(estimates, "estimates"), check_numeric(variances, "variances")
    axes = "(m,) or (m, p)" if ndim == 1 else "(m, r) or (m, r, p)"
    if q.ndim not in (ndim, ndim + 1) or q.shape != v.shape:
        raise InvalidInput(
            f"estimates and variances must share a shape {axes}: found {q.shape} and {v.shape}"
        )
    if min(q.shape[:ndim]) < 2:
        raise InvalidInput(
            f"the rule '{rule}' needs at least 2 sets along {axes}: found shape {q.shape}"
        )
    if not (np.isfinite(q).all() and np.isfinite(v).all() and (v >= 0).all()):
        raise InvalidInput("estimates must be finite and variances finite and >= 0")
    return q, v
