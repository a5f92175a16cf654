"""Beta-binomial regression of counts with two public ends; program stan/beta_binomial.stan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, digamma, expit, gammaln

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.families.coefficients import quadratic
from pyhybrid.models.families.counts import CountModel
from pyhybrid.models.families.regression import Offset, Parameters
from pyhybrid.models.initialization.generalized_linear import (
    LOGIT,
    SizedLikelihood,
    rough_fit,
    scored_fit,
)

__all__ = ["BetaBinomial"]

_SMALLEST = 0.1  # lambda is above it
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class BetaBinomial(CountModel):
    r"""Whole numbers from `lower` to `upper`: days of a week, items right, ratings.

    :math:`y_i` - lower is beta-binomial of size upper - lower, with mean share
    :math:`\mathrm{expit}(o_i + x_i'\beta)` and precision lambda: large, binomial; below 2, most at
    both ends. It is never less spread than a binomial: `pyhybrid.Ordinal` has any shape.

    Priors: lambda ~ Pareto(0.1, 1.5) and that of beta, both as in `pyhybrid.BetaRegression`. brms's
    ``beta_binomial()`` has gamma(0.01, 0.01) for its phi, which is lambda.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"days ~ age + sex"``.
    lower, upper : int
        Smallest (default 0) and largest value that the column can hold: public, given, never read
        from the data. Nothing outside has any probability.

    Other parameters: the prior on beta, as in `pyhybrid.models.families.coefficients.LinearModel`.
    """

    program_name: ClassVar[str] = "beta_binomial"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "lambda")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.upper is None:
            raise InvalidInput(
                "upper must be given for BetaBinomial: the largest value that the column can hold, "
                "e.g. upper=7 for days of a week"
            )

    @property
    def size(self) -> int:
        """Number of trials."""
        assert self.upper is not None
        return self.upper - self.lower

    def shape_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """With the ends."""
        return {**data, "least": self.lower, "n_trials": self.size}

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log BetaBinomial(y - lower | size, lambda mu, lambda (1 - mu)), shape (S, b), in nats."""
        eta = parameters["beta"] @ X.T + offset
        return self._log_density(y, eta, parameters["lambda"][:, None])

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate, shape (n,)."""
        share = rng.beta(*_shapes(X @ parameters["beta"] + offset, parameters["lambda"]))
        return (self.lower + rng.binomial(self.size, share)).astype(np.float64)

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """The mode of beta and lambda, roughly, from a binomial fit on."""
        likelihood = SizedLikelihood(
            log_lik=lambda eta, t: self._log_density(
                y, np.clip(eta, -30, 30), _SMALLEST + np.exp(t)
            ),
            slope=lambda eta, t: self._slope(y, np.clip(eta, -30, 30), _SMALLEST + np.exp(t)),
            curvature=lambda eta, t: self._curvature(np.clip(eta, -30, 30), np.exp(t)),
            bounds=(-5.0, 12.0),  # of t = log(lambda - 0.1)
            # As to a binomial, which counts of less spread approach without end.
            log_prior=lambda t: float(t - 2.5 * np.log(_SMALLEST + np.exp(t))),
        )
        share = (y - self.lower) / self.size
        start = rough_fit(share, X, weight * self.size, LOGIT, offset).center
        fit = scored_fit(likelihood, X, weight, start, offset)
        return {
            **quadratic(X, fit.center, fit.slope, fit.curvature),
            "center_lambda": fit.log_size,
            "spread_lambda": fit.spread,
        }

    def _log_density(self, y: FloatArray, eta: FloatArray, precision: Any) -> FloatArray:
        above = y - self.lower
        below = self.size - above
        one, two = _shapes(eta, precision)
        choose = gammaln(self.size + 1) - gammaln(above + 1) - gammaln(below + 1)
        return np.asarray(choose + betaln(above + one, below + two) - betaln(one, two))

    def _slope(self, y: FloatArray, eta: FloatArray, precision: float) -> FloatArray:
        """Derivative of the log density by eta."""
        above = y - self.lower
        one, two = _shapes(eta, precision)
        moved = digamma(above + one) - digamma(one)
        moved = moved - digamma(self.size - above + two) + digamma(two)
        return np.asarray(one * expit(-eta) * moved)

    def _curvature(self, eta: FloatArray, precision: float) -> FloatArray:
        """The quasi-binomial information of eta."""
        inflated = 1 + (self.size - 1) / (1 + precision)
        return np.asarray(self.size * expit(eta) * expit(-eta) / inflated)


def _shapes(eta: FloatArray, precision: Any) -> tuple[FloatArray, FloatArray]:
    """Shapes of the beta distribution of the share, above 0."""
    one, two = (np.maximum(precision * expit(sign * eta), _TINY) for sign in (1, -1))
    return one, two
