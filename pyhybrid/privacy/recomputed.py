r"""What a record changes where weights were computed on the same data.

The papers' vector weights move when a record leaves, and 2 Delta ignores it. The whole change is

.. math:: T_i(\theta) = \sum_j \alpha_j(x) f_j(\theta) - \sum_{j \ne i} \alpha_j(x_{-i}) f_j(\theta)

with :math:`\alpha_j(x_{-i})` the same map without record i, on the same reference draws. Its range,
deviation and leave-one-out loss are those of `loss_ranges`, `gaussian_mu` and `leave_one_out_loss`,
which take the matrix of T as they take a log-likelihood. Left out is that reference draws of the
database without i differ from those of x.

References
----------
[S22] Savitsky, Williams, Hu (2022), JMLR 23:1-37, sec. 3, 3.1, 4.4: the maps.
[V25] Hu, Savitsky, Williams, Maximizing utility for vector-weighted pseudo posterior mechanisms,
alg. 1 and 2.
[C25] Hu, Williams, Savitsky (2025), Statistica Sinica 35:563-584, sec. 2.2 and 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyhybrid.checks import (
    FloatArray,
    check_alpha,
    check_finite,
    check_fraction,
    check_log_lik,
    check_nonnegative_vector,
    check_positive,
)
from pyhybrid.errors import InvalidInput
from pyhybrid.privacy.bounds import scaled_maxima
from pyhybrid.privacy.log_lik import LogLik
from pyhybrid.privacy.terms import IntArray
from pyhybrid.privacy.weights import (
    reweight,
    scalar_weights,
    truncate_weights,
    weights_from_lipschitz,
)

__all__ = [
    "WeightsWithout",
    "lipschitz_without",
    "moved_terms",
    "recomputed_terms",
    "reweight_without",
    "scalar_without",
    "scale_without",
    "truncate_without",
    "weights_without",
]

Map = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightsWithout:
    """Weights of a database and of it without each record. Confidential.

    Attributes
    ----------
    alpha : ndarray, shape (n,)
        Weights of the whole database.
    movers : ndarray of int, shape (k,)
        Records whose absence changes the weight of another.
    without : callable
        From one of `movers` to the weights (n,) without it; its own entry does not count.
    """

    alpha: FloatArray
    movers: IntArray
    without: Callable[[int], FloatArray]

    def mapped(self, change: Map) -> WeightsWithout:
        """The same after a map that changes each weight by itself: (n,) to (n,)."""
        return WeightsWithout(
            alpha=change(self.alpha), movers=self.movers, without=lambda i: change(self.without(i))
        )

    def others_change(self, i: int) -> FloatArray:
        """alpha_j(x) - alpha_j(x without i), shape (n,), 0 for i itself."""
        change = self.alpha - self.without(i)
        change[i] = 0.0
        return change

    def terms(self, matrix: FloatArray) -> FloatArray:
        """T, shape (S, n), for a checked log-likelihood matrix."""
        changes = _product(matrix, self.alpha)
        for i in self.movers:
            change = self.others_change(int(i))
            moved = np.flatnonzero(change)
            with np.errstate(invalid="ignore"):
                changes[:, i] += matrix[:, moved] @ change[moved]
        return changes


def weights_without(weigh: Callable[[IntArray], Any], n: int) -> WeightsWithout:
    """Any map: `weigh` gives the weights (k,) of k records from those records alone.

    Costs one call of `weigh` for each record, and S n^2 for the terms: for small n, for a few
    records, or as the reference that other forms are held to.

    Parameters
    ----------
    weigh : callable
        From the kept records, indices of shape (k,), to their weights (k,).
    n : int
        Records, at least 1.
    """

    def without(i: int) -> FloatArray:
        kept = np.delete(np.arange(n), i)
        alpha = np.zeros(n)
        if kept.size:
            alpha[kept] = check_alpha(weigh(kept), kept.size)
        return alpha

    everyone = np.arange(n)
    return WeightsWithout(alpha=check_alpha(weigh(everyone), n), movers=everyone, without=without)


def lipschitz_without(
    lipschitz: Any,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    transform: str = "linear",
    threshold: float | None = None,
) -> WeightsWithout:
    """Lipschitz weights (LW): a record that alone holds the largest or smallest f moves others.

    Under ``softmax``, which standardizes by mean and standard deviation, every record does; the
    maps of the own f alone (reciprocal, threshold, logistic) move none.

    Parameters
    ----------
    lipschitz : array_like, shape (n,)
        Unweighted by-record bounds f_i = max_s |f_si| in nats; infinity allowed.
    scale, shift, transform, threshold
        As in `lipschitz_weights`.

    References
    ----------
    [S22] sec. 3; [V25] alg. 2.
    """
    f = check_nonnegative_vector(lipschitz, "lipschitz")

    def weigh(kept: IntArray) -> FloatArray:
        return weights_from_lipschitz(
            f[kept], scale=scale, shift=shift, transform=transform, threshold=threshold
        )

    whole = weights_without(weigh, f.size)
    if transform == "softmax":
        movers = np.flatnonzero(np.isfinite(f))
    else:
        movers = _sole_extremes(f, (np.min, np.max) if transform == "linear" else ())
    return WeightsWithout(alpha=whole.alpha, movers=movers, without=whole.without)


def scalar_without(lipschitz: Any, *, target_bound: float) -> WeightsWithout:
    """Scalar weights: a record that alone holds the largest f, the unweighted bound, moves all.

    Parameters
    ----------
    lipschitz : array_like, shape (n,)
        Unweighted by-record bounds in nats, finite, one above 0.
    target_bound : float
        As in `scalar_weights`.

    References
    ----------
    [S22] sec. 3.1.
    """
    f = check_nonnegative_vector(lipschitz, "lipschitz")
    target = check_positive(target_bound, "target_bound")

    def weigh(kept: IntArray) -> FloatArray:
        top = float(f[kept].max())
        if top == 0:
            return np.ones(kept.size)
        return scalar_weights(kept.size, target_bound=target, unweighted_bound=top)

    whole = weights_without(weigh, f.size)
    return WeightsWithout(
        alpha=whole.alpha, movers=_sole_extremes(f, (np.max,)), without=whole.without
    )


def truncate_without(weights: Any, lipschitz: Any, *, cap: float) -> Any:
    """`truncate_weights` after any of these: each weight is cut by itself.

    Parameters
    ----------
    weights : WeightsWithout or CountWithout
        What is truncated.
    lipschitz : array_like, shape (n,)
        f_i of the unweighted fit, in nats.
    cap : float
        M in nats, above 0.

    References
    ----------
    [S22] sec. 4.4; [C25] sec. 2.2.
    """
    f, cap = check_nonnegative_vector(lipschitz, "lipschitz"), check_positive(cap, "cap")
    return weights.mapped(lambda alpha: truncate_weights(alpha, f, cap=cap))


def scale_without(weights: Any, *, scale: float = 1.0, shift: float = 0.0) -> Any:
    """Down-scaling clip(scale alpha + shift, 0, 1) of finished weights [C25] sec. 4.4."""
    scale, shift = check_finite(scale, "scale"), check_finite(shift, "shift")
    return weights.mapped(lambda alpha: np.clip(scale * alpha + shift, 0, 1))


def reweight_without(weights: WeightsWithout, largest: Any, *, k: float = 0.95) -> WeightsWithout:
    """One re-weighting step at fixed k: the record that alone holds the overall bound moves others.

    Parameters
    ----------
    weights : WeightsWithout
        Of the fit that the step starts from (for counts: `CountWithout.general()`).
    largest : array_like, shape (n,)
        max_s |f_si| over the draws of the alpha-weighted fit, UNWEIGHTED, in nats; finite where a
        weight is above 0.
    k : float, default 0.95
        In (0, 1].

    References
    ----------
    [V25] eq. 2.1 and alg. 1.
    """
    f = check_nonnegative_vector(largest, "largest", length=weights.alpha.size)
    k = check_fraction(k, "k")

    def step(alpha: FloatArray, kept: IntArray) -> FloatArray:
        stepped = np.zeros(f.size)
        stepped[kept] = reweight(alpha[kept], scaled_maxima(f[kept], alpha[kept]), k=k)
        return stepped

    everyone = np.arange(f.size)
    moving = set(weights.movers.tolist())

    def without(i: int) -> FloatArray:
        base = weights.without(i) if i in moving else weights.alpha
        kept = np.delete(everyone, i)
        return step(base, kept) if kept.size else np.zeros(f.size)

    bound = scaled_maxima(f, weights.alpha)
    movers = np.union1d(weights.movers, _sole_extremes(bound, (np.max,)))
    return WeightsWithout(
        alpha=step(weights.alpha, everyone), movers=movers.astype(np.intp), without=without
    )


def recomputed_terms(log_lik: Any, weights: Any) -> FloatArray:
    """T_i at each draw, shape (S, n), from a log-likelihood matrix and weights with and without.

    Parameters
    ----------
    log_lik : array_like, shape (S, n)
        UNWEIGHTED log-likelihood in nats at draws from the posterior weighted by `weights.alpha`.
    weights : WeightsWithout or CountWithout
        From `lipschitz_without`, `count_without`, `scalar_without` and what follows them.

    Returns
    -------
    ndarray, shape (S, n)
        In nats; g_i where the absence of record i moves no other weight. Confidential. Goes to
        `loss_ranges`, `gaussian_mu`, `gaussian_limit` and `leave_one_out_loss` without weights.

    Examples
    --------
    >>> log_lik = [[-1.0, -2.0, -4.0], [-1.5, -2.0, -3.0]]
    >>> recomputed_terms(log_lik, lipschitz_without([1.5, 2.0, 4.0])).round(2)
    array([[-0.6, -1.6, -1.6],
           [-1.1, -1.6, -1.6]])
    """
    matrix = check_log_lik(log_lik).astype(np.float64, copy=False)
    if matrix.shape[1] != weights.alpha.size:
        raise InvalidInput(
            f"log_lik must have {weights.alpha.size} records, as the weights: "
            f"found {matrix.shape[1]}"
        )
    return np.asarray(weights.terms(matrix))


def moved_terms(
    log_lik: LogLik, weights: WeightsWithout, movers: IntArray | None = None
) -> FloatArray:
    """T of `weights.movers`, or some of them, shape (S, k), of a log-likelihood in blocks.

    For all others T_i = g_i, so that `ranges_of`, `mu_of` and `losses_of` hold for them as they
    are. For LW, k is at most 2.
    """
    wanted = weights.movers if movers is None else movers
    if not wanted.size:
        return np.zeros((0, 0))
    by_row = np.empty((log_lik.n_rows, wanted.size))
    for place, i in enumerate(wanted):
        change = weights.others_change(int(i))
        change[i] = weights.alpha[i]
        by_row[:, place] = np.bincount(log_lik.row_of, weights=change, minlength=log_lik.n_rows)
    total: FloatArray | None = None
    for rows, block in log_lik.blocks():
        part = _weighted_sums(block, by_row[rows])
        total = part if total is None else total + part
    assert total is not None
    return total


def _weighted_sums(block: FloatArray, factors: FloatArray) -> FloatArray:
    """block (S, b) @ factors (b, k), where a factor of 0 leaves out what is not finite."""
    used = (factors != 0).any(axis=1)
    terms = np.asarray(block[:, used], dtype=np.float64)
    bounded = np.isfinite(terms).all(axis=0)
    sums = terms[:, bounded] @ factors[used][bounded]
    for column in np.flatnonzero(~bounded):
        counts = factors[used][column] != 0
        with np.errstate(invalid="ignore"):
            sums[:, counts] += np.outer(terms[:, column], factors[used][column][counts])
    return np.asarray(sums)


def _product(matrix: FloatArray, alpha: FloatArray) -> FloatArray:
    product = np.zeros(matrix.shape)
    with np.errstate(over="ignore"):
        np.multiply(matrix, alpha, out=product, where=alpha != 0)
    return product


def _sole_extremes(values: FloatArray, ends: tuple[Callable[..., Any], ...]) -> IntArray:
    """Records that alone hold an end of the finite values."""
    finite = np.flatnonzero(np.isfinite(values))
    if finite.size < 2:
        return np.zeros(0, dtype=np.intp)
    holders = [np.flatnonzero(values == end(values[finite])) for end in ends]
    return np.array(sorted({int(h[0]) for h in holders if h.size == 1}), dtype=np.intp)
