r"""The loss of releasing a draw, from draws of both posteriors: with a record and without it.

With T the log ratio of the two unnormalized densities, :math:`L = T - \log r`, r the ratio of their
normalizing constants, which draws of both give by the bridge of [B76] and [MW96]: the c that solves

.. math:: E_x[1 / (1 + e^{T - c})] = E_{-i}[1 / (1 + e^{c - T})]

Nothing is smoothed and no limit is used: this is the evidence that the numbers from one posterior
are held against.

References
----------
[B76] Bennett (1976), Efficient estimation of free energy differences from Monte Carlo data,
Journal of Computational Physics 22:245-268.
[MW96] Meng, Wong (1996), Simulating ratios of normalizing constants via a simple identity,
Statistica Sinica 6:831-860.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from pyhybrid.core.checks import FloatArray, check_finite, check_vector
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.effective_draws import check_chains, effective_draws

__all__ = ["RefitLoss", "refit_loss"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RefitLoss:
    """Privacy loss about one record, at draws of both posteriors. Confidential.

    Attributes
    ----------
    by_draw : ndarray, shape (S,)
        L at draws of the posterior with the record, nats.
    by_draw_without : ndarray, shape (S',)
        L at draws of the posterior without it.
    loss_range : float
        Largest less smallest T over the draws of both.
    mu, mu_without : float
        Deviation of T under either posterior; they agree in the Gaussian limit.
    standard_error, standard_error_without : float
        Monte Carlo standard errors of both.
    moved : float
        Root of the mean of L with the record less its mean without: the distance of the
        posteriors, mu in the Gaussian limit.
    """

    by_draw: FloatArray
    by_draw_without: FloatArray
    loss_range: float
    mu: float
    mu_without: float
    standard_error: float
    standard_error_without: float
    moved: float

    @property
    def largest(self) -> float:
        """Largest abs(L) over the draws of both, nats."""
        return float(max(np.abs(self.by_draw).max(), np.abs(self.by_draw_without).max()))

    def delta(self, epsilon: float) -> float:
        """Delta at `epsilon`, >= 0, from the draws: the larger of both directions."""
        epsilon = check_finite(epsilon, "epsilon")
        if epsilon < 0:
            raise InvalidInput(f"epsilon must be >= 0: found {epsilon:g}")
        with_record = -np.expm1(np.minimum(epsilon - self.by_draw, 0.0)).mean()
        without = -np.expm1(np.minimum(epsilon + self.by_draw_without, 0.0)).mean()
        return float(max(with_record, without))


def refit_loss(terms: Any, terms_without: Any, *, chains: int = 1) -> RefitLoss:
    """Loss about one record from draws with it and draws of a refit without it.

    Parameters
    ----------
    terms : array_like, shape (S,)
        T at draws of the posterior with the record, nats: what the record adds to the weighted
        log-likelihood, alpha_i f_i where no other weight changes. Not NaN.
    terms_without : array_like, shape (S',)
        T at draws of the posterior without it.
    chains : int, default 1
        Chains that either come from, at least 4 draws each.

    Returns
    -------
    RefitLoss
        Where a T is infinite, `largest` and `loss_range` are.

    Raises
    ------
    InvalidInput
        For NaN, or draws that do not split into the chains.

    References
    ----------
    [B76]; [MW96] sec. 3.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> z = norm.ppf((np.arange(4000) + 0.5) / 4000)  # N(0.5, 1) against N(0, 1)
    >>> round(refit_loss(0.5 * (z + 0.5), 0.5 * z).moved, 2)
    0.5
    """
    own, other = (_checked(v, name, chains) for v, name in (
        (terms, "terms"), (terms_without, "terms_without")))  # fmt: skip
    constant = _log_ratio(own, other)
    with np.errstate(invalid="ignore"):
        loss, loss_without = own - constant, other - constant
        spread = max(own.max(), other.max()) - min(own.min(), other.min())
        distance = loss.mean() - loss_without.mean()
    (mu, error), (mu_without, error_without) = _deviation(own, chains), _deviation(other, chains)
    return RefitLoss(
        by_draw=loss,
        by_draw_without=loss_without,
        loss_range=math.inf if np.isnan(spread) else float(spread),
        mu=mu,
        mu_without=mu_without,
        standard_error=error,
        standard_error_without=error_without,
        moved=math.inf if np.isnan(distance) else math.sqrt(max(distance, 0.0)),
    )


def _checked(values: Any, name: str, chains: int) -> FloatArray:
    vector = check_vector(values, name)
    if np.isnan(vector).any():
        raise InvalidInput(f"{name} must not be NaN: draw {int(np.isnan(vector).argmax())} is")
    check_chains(vector.size, chains)
    return vector


def _log_ratio(own: FloatArray, other: FloatArray) -> float:
    """log r; the bridge's equation is monotone in it."""
    both = np.concatenate([own, other])
    finite = both[np.isfinite(both)]
    if not finite.size:
        return math.nan
    low, high = float(finite.min()), float(finite.max())

    def difference(c: float) -> float:
        return float(expit(c - own).mean() - expit(other - c).mean())

    while difference(low) > 0:
        low -= 1 + high - low
    while difference(high) < 0:
        high += 1 + high - low
    return low if low == high else float(brentq(difference, low, high, xtol=1e-12, maxiter=5000))


def _deviation(terms: FloatArray, chains: int) -> tuple[float, float]:
    """Standard deviation of terms and its Monte Carlo standard error; infinite if they are."""
    if not np.isfinite(terms).all():
        return math.inf, math.inf
    squares = (terms - terms.mean()) ** 2
    variance = float(squares.mean())
    if variance == 0:
        return 0.0, 0.0
    noise = float(squares.std()) / math.sqrt(float(effective_draws(squares[:, None], chains)[0]))
    return math.sqrt(variance), noise / (2 * math.sqrt(variance))
