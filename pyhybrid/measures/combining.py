r"""Combining rules: one inference from m (or m x r) synthetic or imputed data sets.

Each rule takes point estimates q and their variances v (squared standard errors) and returns a
`Combined`: estimate, total variance T, degrees of freedom, and the parts T is made of. Scalars
(shape (m,)) and coefficient vectors (shape (m, p)) alike; vectors are combined element by element.

References
----------
[R03] Reiter (2003), Survey Methodology 29:181-188; [RRR03] Raghunathan, Reiter, Rubin (2003),
J. Official Statistics 19:1-16; [R04] Reiter (2004), Survey Methodology 30:235-242; Rubin (1987).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray, check_finite, check_numeric, check_positive
from pyhybrid.core.errors import InvalidInput


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
    adjusted: npt.NDArray[np.bool_]
    rule: str

    @property
    def standard_error(self) -> FloatArray:
        """Square root of T."""
        return np.asarray(np.sqrt(self.variance))

    def interval(self, level: float = 0.95) -> FloatArray:
        """Two-sided t interval, shape (2,) or (2, p): lower, upper."""
        from scipy import stats  # slow to import

        level = check_finite(level, "level")
        if not 0 < level < 1:
            raise InvalidInput(f"level must lie in (0, 1): found {level:g}")
        half = stats.t.ppf((1 + level) / 2, self.df) * self.standard_error
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
    rule = "partially synthetic"
    m, estimate, between, within = _moments(estimates, variances, rule)
    df = (m - 1) * (1 + _ratio(within, between / m)) ** 2
    return _combined(rule, estimate, between, within, variance=between / m + within, df=df)


def combine_fully_synthetic(estimates: Any, variances: Any, *, size_ratio: float = 1.0) -> Combined:
    r"""[RRR03] for fully synthetic data: T = (1 + 1/m) b - v.

    nu = (m-1)(1 - v/((1 + 1/m) b))^2. A T that is not positive is replaced by `size_ratio` times
    v, with m - 1 degrees of freedom.

    Parameters
    ----------
    estimates, variances : array_like, shape (m,) or (m, p)
        As in `combine_partially_synthetic`.
    size_ratio : float, default 1
        Records of a synthetic set over records of the data, above 0; used by the fix only.
    """
    rule = "fully synthetic"
    m, estimate, between, within = _moments(estimates, variances, rule)
    size_ratio = check_positive(size_ratio, "size_ratio")
    spread = (1 + 1 / m) * between
    total = spread - within
    adjusted = total <= 0
    variance = np.where(adjusted, size_ratio * within, total)
    df = (m - 1) * np.where(adjusted, 1.0, (1 - _ratio(within, spread)) ** 2)
    return _combined(rule, estimate, between, within, variance, df, adjusted)


def combine_noise_aware(estimates: Any, variances: Any) -> Combined:
    r"""Combine sets of a posterior that knows of a private release's noise: T = (1 + 1/m) b - v.

    The rule of [RRR03], but T is at least (1 + 1/m) v: a posterior given noisy statistics is no
    narrower than the sampling of the records alone. With it b >= 2 v, and
    nu = (m-1)(1 - v/((1 + 1/m) b))^2 is at least (m-1)/4, so that a small m gives wide intervals
    and not absurd ones.

    Parameters and errors as in `combine_partially_synthetic`.

    References
    ----------
    [RRR03]; Räisä, Jälkö, Kaski, Honkela (2023), Noise-aware statistical inference with
    differentially private synthetic data, AISTATS.
    """
    rule = "noise aware"
    m, estimate, between, within = _moments(estimates, variances, rule)
    least = 2 * within
    adjusted = between < least
    spread = (1 + 1 / m) * np.maximum(between, least)
    variance = np.where(adjusted, (1 + 1 / m) * within, spread - within)
    df = (m - 1) * np.where(spread > 0, (1 - _ratio(within, spread)) ** 2, 1.0)
    return _combined(rule, estimate, between, within, variance, df, adjusted)


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
    q, v = _checked(estimates, variances, ndim=2, rule="nested")
    m, r = q.shape[:2]
    nest_means = q.mean(axis=1)
    between = nest_means.var(axis=0, ddof=1)
    inner = q.var(axis=1, ddof=1).mean(axis=0)
    within = v.mean(axis=(0, 1))
    spread = (1 + 1 / m) * between
    total = spread - inner / r + within
    adjusted = total < 0
    variance = np.where(adjusted, spread + within, total)
    parts = spread**2 / (m - 1) + (inner / r) ** 2 / (m * (r - 1))
    df_two_stage = _ratio(variance**2, parts)
    df_fixed = (m - 1) * (1 + _ratio(within, spread)) ** 2
    df = np.where(adjusted, df_fixed, df_two_stage)
    return _combined("nested", nest_means.mean(axis=0), between, within, variance, df, adjusted)


def combine_multiple_imputation(estimates: Any, variances: Any) -> Combined:
    r"""Rubin's rules: T = v + (1 + 1/m) b, nu = (m-1)(1 + v/((1 + 1/m) b))^2.

    Parameters and errors as in `combine_partially_synthetic`.
    """
    rule = "multiple imputation"
    m, estimate, between, within = _moments(estimates, variances, rule)
    spread = (1 + 1 / m) * between
    df = (m - 1) * (1 + _ratio(within, spread)) ** 2
    return _combined(rule, estimate, between, within, variance=within + spread, df=df)


def _moments(
    estimates: Any, variances: Any, rule: str
) -> tuple[int, FloatArray, FloatArray, FloatArray]:
    """Number of sets; mean and variance of their estimates, mean of their variances."""
    q, v = _checked(estimates, variances, ndim=1, rule=rule)
    return q.shape[0], q.mean(axis=0), q.var(axis=0, ddof=1), v.mean(axis=0)


def _combined(
    rule: str,
    estimate: FloatArray,
    between: FloatArray,
    within: FloatArray,
    variance: FloatArray,
    df: FloatArray,
    adjusted: npt.NDArray[np.bool_] | None = None,
) -> Combined:
    fixed = np.zeros(between.shape, dtype=bool) if adjusted is None else adjusted
    return Combined(
        estimate=estimate, variance=variance, df=df, between=between, within=within,
        adjusted=fixed, rule=rule,
    )  # fmt: skip


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator, infinite where the denominator is 0."""
    result = np.full(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)), np.inf)
    np.divide(numerator, denominator, out=result, where=np.asarray(denominator) > 0)
    return result


def _checked(
    estimates: Any, variances: Any, *, ndim: int, rule: str
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
