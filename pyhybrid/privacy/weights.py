r"""Record weights alpha_i in [0, 1] from disclosure risk.

Every function is one weight map of the papers. Weights are confidential: functions of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from pyhybrid.core.checks import (
    FloatArray,
    check_alpha,
    check_choice,
    check_count,
    check_each,
    check_finite,
    check_fraction,
    check_log_lik,
    check_nonnegative_vector,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.bounds import largest_abs, lipschitz_bounds, scaled_maxima
from pyhybrid.privacy.log_lik import LogLik, deviation_of, range_of

_RISKS = {"size": largest_abs, "range": range_of, "deviation": deviation_of}
RISKS = tuple(_RISKS)
"""Risks that weights follow: the papers' size of a log-likelihood, or what the record tells."""


def lipschitz_weights(
    log_lik: Any,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    transform: str = "linear",
    draw_quantile: float = 1.0,
    threshold: float | None = None,
    risk: str = "size",
) -> FloatArray:
    r"""Lipschitz weights (LW): records with large log-likelihoods are down-weighted.

    With :math:`f_i = \max_s |f_{si}|` and a map m that falls from 1 (no risk) to 0,
    :math:`\alpha_i = clip(scale \cdot m(f_i) + shift, 0, 1)`, exactly 0 where any log-likelihood of
    the record is not finite. Under another `risk` f_i is the range
    :math:`\max_s f_{si} - \min_s f_{si}`, or the deviation of f_si over s. [S22] sec. 3 and
    assumption 2; [V25] alg. 2.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        Log-likelihood in nats, draws from the UNWEIGHTED posterior.
    scale, shift : float
        c and g of [S22]; finite. With the defaults the riskiest record gets exactly 0.
    transform : {"linear", "reciprocal", "threshold", "logistic", "softmax"}
        ``linear``: 1 - r, r = (f - min f)/(max f - min f), r = 0 if all f are equal.
        ``reciprocal``: 1/(f + 1). ``threshold``: 1 if f < threshold, else 0.
        ``logistic``: 1 - r, r = 2/(1 + exp(-f/2)) - 1. ``softmax``: 1 - r,
        r = 1/(1 + exp(-1.69897 (f - mean f)/sd f)), r = 1/2 if all f are equal.
    draw_quantile : float, default 1
        As in `lipschitz_bounds`: draws above this quantile of the row maxima are not used. The
        papers' printed script takes its `thresh` in the bound alone: its weights are of all draws,
        which is the default here.
    threshold : float, optional
        f* in nats, above 0; required by, and only by, ``transform="threshold"``.
    risk : {"size", "range", "deviation"}
        Measure f_i of risk. "size" is the papers'; the others measure how far a log-likelihood
        moves over the posterior, as charges do (`loss_ranges`, `gaussian_mu`).

    Examples
    --------
    >>> lipschitz_weights([[-1.0, -2.0, -3.0]])
    array([1. , 0.5, 0. ])
    """
    matrix = check_log_lik(log_lik)
    check_choice(risk, "risk", RISKS)
    quantile = check_fraction(draw_quantile, "draw_quantile")
    if quantile < 1:
        whole = lipschitz_bounds(matrix, draw_quantile=quantile)
        unbounded = ~np.isfinite(whole.by_record)
        by_record = risk_of(LogLik.of(matrix[whole.kept_draws]), risk)
        by_record[unbounded] = np.inf  # by any draw, kept or not
    else:
        by_record = risk_of(LogLik.of(matrix), risk)
    return weights_from_lipschitz(
        by_record, scale=scale, shift=shift, transform=transform, threshold=threshold
    )


def risk_of(log_lik: LogLik, risk: str) -> FloatArray:
    """f_i of each record by one of `RISKS`, shape (n,), infinite where a value is not finite."""
    return log_lik.by_record(_RISKS[risk])


def weights_from_lipschitz(
    lipschitz: Any,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    transform: str = "linear",
    threshold: float | None = None,
) -> FloatArray:
    """Weights from unweighted by-record bounds f_i, shape (n,); see `lipschitz_weights`."""
    f = check_nonnegative_vector(lipschitz, "lipschitz")
    scale, shift = check_finite(scale, "scale"), check_finite(shift, "shift")
    check_choice(transform, "transform", TRANSFORMS)
    if (transform == "threshold") != (threshold is not None):
        raise InvalidInput("threshold must be given with transform='threshold', and only then")
    if threshold is not None:
        check_positive(threshold, "threshold")
    alpha = np.zeros(f.size)
    finite = np.isfinite(f)
    if finite.any():
        m = TRANSFORMS[transform](f[finite], threshold)
        alpha[finite] = np.clip(scale * m + shift, 0, 1)
    return alpha


def _linear(f: FloatArray, _: float | None) -> FloatArray:
    spread = f.max() - f.min()
    risk = (f - f.min()) / spread if spread > 0 else np.zeros(f.size)
    return 1 - risk


def _softmax(f: FloatArray, _: float | None) -> FloatArray:
    # Equal values have a rounded mean and so a standard deviation just above 0: compare them.
    spread = f.std(ddof=1) if f.max() > f.min() else 0.0
    standard = (f - f.mean()) / spread if spread > 0 else np.zeros(f.size)
    return np.asarray(1 - expit(1.69897 * standard))


TRANSFORMS: Mapping[str, Callable[[FloatArray, float | None], FloatArray]] = {
    "linear": _linear,
    "reciprocal": lambda f, _: np.asarray(1 / (f + 1)),
    "threshold": lambda f, limit: np.asarray(f < (limit or 0.0), dtype=np.float64),
    "logistic": lambda f, _: np.asarray(1 - (2 / (1 + np.exp(-f / 2)) - 1)),
    "softmax": _softmax,
}


def count_weights(risk: Any, *, scale: float = 1.0, shift: float = 0.0) -> FloatArray:
    """Count weights (CW): clip(scale (1 - risk_i) + shift, 0, 1), shape (n,).

    Parameters
    ----------
    risk : array_like, shape (n,)
        `radius_risk` or `pairwise_risk`, in [0, 1].
    scale, shift : float
        c and g of [H22] sec. 2-3 and [V25] alg. 3; finite.
    """
    values = check_nonnegative_vector(risk, "risk")
    check_each(values <= 1, "risk must lie in [0, 1]: record {} is above")
    scale, shift = check_finite(scale, "scale"), check_finite(shift, "shift")
    return np.clip(scale * (1 - values) + shift, 0, 1)


def scalar_weights(n: int, *, target_bound: float, unweighted_bound: float) -> FloatArray:
    """One weight for all n records: min(1, target / unweighted), shape (n,).

    `target_bound` and `unweighted_bound` are overall Lipschitz bounds in nats, above 0: the one
    wanted, and that of the unweighted fit. This is the exponential mechanism under a
    log-likelihood utility: alpha = epsilon / (2 Delta) [S22] sec. 3.1; [MT07].
    """
    n = check_count(n, "n")
    target = check_positive(target_bound, "target_bound")
    unweighted = check_positive(unweighted_bound, "unweighted_bound")
    return np.full(n, min(1.0, target / unweighted))


def truncate_weights(alpha: Any, lipschitz: Any, *, cap: float) -> FloatArray:
    """Set alpha_i to 0 where alpha_i f_i > cap (Weighted-M, Weighted-e), shape (n,).

    Parameters
    ----------
    alpha : array_like, shape (n,)
        Weights in [0, 1].
    lipschitz : array_like, shape (n,)
        f_i = max_s |f_si| of the UNWEIGHTED fit, in nats; infinity allowed.
    cap : float
        M in nats, above 0; M = epsilon / 2 for one released draw [S22] sec. 4.4; [C25] sec. 2.2.
    """
    f = check_nonnegative_vector(lipschitz, "lipschitz")
    weights = check_alpha(alpha, f.size)
    cap = check_positive(cap, "cap")
    return np.where(scaled_maxima(f, weights) > cap, 0.0, weights)


def reweight(
    alpha: Any, by_record: Any, *, k: float = 0.95, bound: float | None = None
) -> FloatArray:
    r"""One re-weighting step: :math:`clip(k \alpha_i \Delta / \Delta_i, 0, 1)`, shape (n,).

    Raises the weight of records whose by-record bound leaves slack below the overall bound [V25]
    eq. 2.1 and alg. 1.

    Parameters
    ----------
    alpha : array_like, shape (n,)
        Weights of the fit, in [0, 1]. A weight of 0 stays 0.
    by_record : array_like, shape (n,)
        Delta_i of the alpha-weighted fit, in nats, finite: per RECORD, not per draw.
    k : float, default 0.95
        In (0, 1]; holds the refitted bound down.
    bound : float, optional
        Overall bound of the same fit; the largest `by_record` if omitted.

    Raises
    ------
    InvalidInput
        For an infinite bound, k outside (0, 1], or vectors of unlike length.
    """
    lipschitz = check_nonnegative_vector(by_record, "by_record")
    weights = check_alpha(alpha, lipschitz.size)
    k = check_fraction(k, "k")
    check_each(
        np.isfinite(lipschitz), "by_record must be finite: record {} has no bound; give it weight 0"
    )
    overall = float(lipschitz.max()) if bound is None else check_positive(bound, "bound")
    raised = np.where(weights > 0, 1.0, 0.0)  # a record without any bound to meet goes to 1
    with np.errstate(over="ignore"):  # a bound next to 0 divides to infinity and is clipped to 1
        where = (lipschitz > 0) & (weights > 0)
        np.divide(k * weights * overall, lipschitz, out=raised, where=where)
    return np.clip(raised, 0, 1)
