r"""What epsilon would be under other weights, from the draws of a fit that was made.

Draws of the posterior under weights alpha stand for those under alpha' by the importance weights
:math:`w_s \propto \exp(\sum_i (\alpha'_i - \alpha_i) f_{si})`, Pareto-smoothed. What is charged by
is then a smooth function of the weights: the deviation of a record's term, or the expected maximum
and minimum of as many draws, :math:`E \max = \sum_k T_{(k)} (F_k^S - F_{k-1}^S)`, F the cumulated
weights in the order of T. Only its ratio to the same at alpha is used: times the epsilon that the
fit has, however that was accounted.

References
----------
[V17], as in `pyhybrid.privacy.diagnostics`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.privacy.diagnostics import RELIABLE_K, smoothed_log_weights
from pyhybrid.privacy.log_lik import LogLik, unit_terms

__all__ = ["RISK_OF", "Nearby"]

RISK_OF: Mapping[str, str] = {"gaussian": "deviation", "range": "range", "lipschitz": "size"}
"""What an accounting grows with."""
_DRAWS, _ELEMENTS = 1000, 20_000_000
_PARTS = 4  # of the draws, for the Monte Carlo error


class Nearby:
    """A fit, and what its draws say of others near it. Confidential.

    Parameters
    ----------
    session : FitSession
    fit : PosteriorFit
        Its draws are thinned to 1,000 at most.
    accounting : {"gaussian", "range", "lipschitz"}
    """

    def __init__(self, session: FitSession, fit: PosteriorFit, accounting: str) -> None:
        whole = session.bound.log_lik(fit.draws)
        most = min(_DRAWS, fit.draws.n_draws, max(_PARTS, _ELEMENTS // whole.n_rows))
        places = np.linspace(0, fit.draws.n_draws - 1, most).astype(np.intp)
        thinned = session.bound.log_lik(fit.draws.part(places))
        matrix = np.concatenate(list(thinned.make()), axis=1).astype(np.float64)
        self._log_lik = LogLik(make=lambda: (matrix,), row_of=thinned.row_of)
        self._matrix, self._units, self.alpha = matrix, session.units, fit.alpha
        self._risk, self._even = RISK_OF.get(accounting, "deviation"), np.full(most, 1 / most)
        self._here = self._told(fit.alpha, self._even)

    def ratio(self, alpha: FloatArray) -> float:
        """Of epsilon under `alpha` (n,) to that of the fit; NaN where the draws do not tell."""
        log_ratio = self._log_lik.total(alpha - self.alpha)
        if not (np.isfinite(log_ratio).all() and 0 < self._here < np.inf):
            return float("nan")
        smoothed, k = smoothed_log_weights(log_ratio[:, None])
        if not k[0] <= RELIABLE_K:
            return float("nan")
        weights = np.exp(smoothed[:, 0] - smoothed.max())
        return self._told(alpha, weights / weights.sum()) / self._here

    def relative_error(self) -> float:
        """Monte Carlo standard error of epsilon, as a share of it, from the spread between parts of
        the draws; that of a maximum is hardly less for more draws."""
        parts = [self._told(self.alpha, own) for own in _parts(self._even.size)]
        spread = float(np.std(parts, ddof=1) / np.mean(parts)) if np.all(np.isfinite(parts)) else 0
        return spread / np.sqrt(_PARTS) if self._risk == "deviation" else spread

    def _told(self, alpha: FloatArray, weights: FloatArray) -> float:
        """The largest risk of the weighted terms under weights of the draws (S,)."""
        if self._units is not None:
            terms = unit_terms(self._log_lik, alpha, self._units.of)
        else:
            top = np.zeros(self._matrix.shape[1])
            np.maximum.at(top, self._log_lik.row_of, alpha)
            terms = self._matrix[:, top > 0] * top[top > 0]
        if not (terms.size and np.isfinite(terms).all()):
            return float("inf") if terms.size else 0.0
        if self._risk == "deviation":
            moved = terms - weights @ terms
            return float(np.sqrt((weights @ moved**2).max()))
        if self._risk == "size":
            return float(_largest(np.abs(terms).max(axis=1)[:, None], weights)[0])
        return float((_largest(terms, weights) + _largest(-terms, weights)).max())


def _parts(n: int) -> list[FloatArray]:
    """Even weights of one part of n draws after the other."""
    part = np.arange(n) * _PARTS // n
    return [np.where(part == own, 1.0, 0.0) / (part == own).sum() for own in range(_PARTS)]


def _largest(terms: FloatArray, weights: FloatArray) -> FloatArray:
    """Expected maximum of S draws by `weights` (S,) from the terms (S, b), shape (b,)."""
    order = np.argsort(terms, axis=0)
    below = np.minimum(np.cumsum(weights[order], axis=0), 1.0) ** weights.size
    return np.asarray(
        (np.take_along_axis(terms, order, axis=0) * np.diff(below, axis=0, prepend=0)).sum(axis=0)
    )
