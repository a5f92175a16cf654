r"""Re-centered censoring: strict, and nearly free.

.. math::

    h_i(\theta) = \max(-a, \min(b, \alpha_i (f_i(\theta) - c_i))), \quad c_i = f_i(\theta_{ref})

ranges over at most a + b for any data and any theta. Without clipping the center cancels from the
posterior; with it, clipping starts at the typical movement of a term, not at its typical size.
Center and weight must be functions of record i and frozen quantities alone.

References
----------
[C25] Hu, Williams, Savitsky (2025), Statistica Sinica 35:563-584, sec. 3: c_i = 0.
[DR19] Durfee, Rogers (2019), NeurIPS: bounded range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyhybrid.core.checks import (
    FloatArray,
    check_alpha,
    check_choice,
    check_flag,
    check_log_lik,
    check_positive,
    check_vector,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.epsilon import RELATIONS, STRICT, shown
from pyhybrid.privacy.range_epsilon import at_least, epsilon_of_range

__all__ = [
    "cap_of_epsilon",
    "center_and_censor",
    "epsilon_of_censoring",
    "frozen_excess",
    "range_of_censoring",
]


def center_and_censor(
    log_lik: Any, center: Any = None, alpha: Any = None, *, cap: Any, excess: Any = None
) -> FloatArray:
    """Re-centered censored terms max(-a, min(b, alpha_i (f_si - c_i) + e_s)), shape (S, n).

    A weight of 0 gives 0; an infinite f_si gives -a or b; NaN (a density that cannot be evaluated)
    gives -a, as a likelihood of 0 would. Whatever comes in, terms stay within [-a, b].

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        Unweighted log-likelihood in nats.
    center : array_like, shape (n,), optional
        c_i in nats, finite; the record's log-likelihood at a frozen or released parameter. 0 if
        omitted, which is `censor`.
    alpha : array_like, shape (n,), optional
        Weights in [0, 1]; all 1 if omitted.
    cap : float or pair of float
        M in nats, above 0; or (a, b), each >= 0 and one of them above 0.
    excess : array_like, shape (S,), optional
        e in nats, a frozen function of the parameters such as `frozen_excess`; 0 if omitted. It is
        clipped with the rest, so that the range stays a + b.

    Raises
    ------
    InvalidInput
        For a wrong shape, a center or an excess that is not finite, weights outside [0, 1] or
        wrong caps.

    References
    ----------
    [C25] sec. 3 with c_i = 0 and a = b = M.

    Examples
    --------
    >>> center_and_censor([[-5.0, -9.0]], center=[-4.8, -6.0], cap=0.5).round(3)
    array([[-0.2, -0.5]])
    """
    matrix = check_log_lik(log_lik).astype(np.float64, copy=False)
    n = matrix.shape[1]
    middle = np.zeros(n) if center is None else check_vector(center, "center", length=n)
    wrong = np.flatnonzero(~np.isfinite(middle))
    if wrong.size:
        raise InvalidInput(
            f"center must be finite: that of record {wrong[0]} is not; take a parameter at which "
            "every record has a density"
        )
    weights = np.ones(n) if alpha is None else check_alpha(alpha, n)
    below, above = _caps(cap)
    moved = _moved(matrix, middle, weights)
    if excess is not None:
        added = check_vector(excess, "excess", length=matrix.shape[0])
        wrong = np.flatnonzero(~np.isfinite(added))
        if wrong.size:
            raise InvalidInput(f"excess must be finite: that of draw {wrong[0]} is not")
        np.add(moved, added[:, None], out=moved, where=weights > 0)
    return np.asarray(np.clip(moved, -below, above))


def frozen_excess(log_lik: Any, center: Any = None, alpha: Any = None, *, cap: Any) -> FloatArray:
    r"""What clipping takes from the terms of a reference on average, shape (S,), nats.

    .. math:: e_s = \frac{1}{n} \sum_j g_{sj} - \max(-a, \min(b, g_{sj})),
       \quad g_{sj} = \alpha_j (f_{sj} - c_j)

    Of a reference that is frozen; added to each term of other records before it is clipped
    (`center_and_censor`), it keeps a posterior of clipped terms near the one without clipping.

    Parameters
    ----------
    log_lik, center, alpha, cap
        As in `center_and_censor`, of the reference's records.

    Raises
    ------
    InvalidInput
        As `center_and_censor`; and for a term that is not finite.

    Examples
    --------
    >>> frozen_excess([[-5.0, -9.0]], center=[-4.8, -6.0], cap=0.5)
    array([-1.25])
    """
    clipped = center_and_censor(log_lik, center, alpha, cap=cap)
    matrix = check_log_lik(log_lik).astype(np.float64, copy=False)
    n = matrix.shape[1]
    middle = np.zeros(n) if center is None else check_vector(center, "center", length=n)
    moved = _moved(matrix, middle, np.ones(n) if alpha is None else check_alpha(alpha, n))
    wrong = np.flatnonzero(~np.isfinite(moved).all(axis=0))
    if wrong.size:
        raise InvalidInput(
            f"terms of a reference must be finite: that of record {wrong[0]} is not in some draw"
        )
    return np.asarray((moved - clipped).mean(axis=1))


def _moved(matrix: FloatArray, middle: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted terms less their center (S, n); 0 for a weight of 0, -inf for NaN."""
    moved = np.zeros_like(matrix)
    with np.errstate(over="ignore"):
        np.subtract(matrix, middle, out=moved, where=weights > 0)
        np.multiply(moved, weights, out=moved, where=weights > 0)
    return np.nan_to_num(moved, nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def range_of_censoring(cap: Any, *, discrete_uncentered: bool = False) -> float:
    """Largest range of a censored term, a + b (2 M); M for f <= 0 without a center.

    Parameters
    ----------
    cap : float or pair of float
        As in `center_and_censor`.
    discrete_uncentered : bool, default False
        The outcome is discrete, so that f <= 0, and nothing is subtracted from it: terms then lie
        in [-a, 0].

    Examples
    --------
    >>> range_of_censoring(0.5), range_of_censoring((0.3, 0.1))
    (1.0, 0.4)
    """
    below, above = _caps(cap)
    if check_flag(discrete_uncentered, "discrete_uncentered"):
        return below
    return at_least(shown(below) + shown(above))  # 0.1 + 0.2 is 0.3


def epsilon_of_censoring(
    cap: Any,
    *,
    n_draws_released: int = 1,
    relation: str = "remove",
    discrete_uncentered: bool = False,
) -> float:
    """Strict epsilon of m draws of a censored posterior: m (a + b), or 2 m (a + b), rounded up.

    With a = b = M: 2 M under "remove", 4 M under "replace"; without a center and for a discrete
    outcome M and 2 M. Holds for every database and every n, for the exact posterior.

    Parameters
    ----------
    cap, discrete_uncentered
        As in `range_of_censoring`.
    n_draws_released, relation
        As in `epsilon_of_range`.

    Examples
    --------
    >>> epsilon_of_censoring(0.25), epsilon_of_censoring(0.25, relation="replace")
    (0.5, 1.0)
    """
    return epsilon_of_range(
        range_of_censoring(cap, discrete_uncentered=discrete_uncentered),
        n_draws_released=n_draws_released,
        relation=relation,
        kind=STRICT,
    )


def cap_of_epsilon(
    epsilon: float, *, relation: str = "remove", discrete_uncentered: bool = False
) -> float:
    """Symmetric cap M at which one released draw costs `epsilon`; inverse of the above, in nats."""
    sides = 2 if check_choice(relation, "relation", RELATIONS) == "replace" else 1
    halves = 1 if check_flag(discrete_uncentered, "discrete_uncentered") else 2
    return check_positive(epsilon, "epsilon") / (sides * halves)


def _caps(cap: Any) -> tuple[float, float]:
    if np.ndim(cap) == 0:
        both = check_positive(cap, "cap")
        return both, both
    pair = check_vector(cap, "cap")
    if pair.size != 2 or not np.isfinite(pair).all() or pair.min() < 0 or pair.max() == 0:
        raise InvalidInput(
            "cap must be one number above 0, or two, none below 0 and one above: "
            f"found {pair.tolist()}"
        )
    return float(pair[0]), float(pair[1])
