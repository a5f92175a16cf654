"""Beta regression [C25, sec. 5]; program stan/beta_regression.stan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, digamma, expit, logit, polygamma

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.families.coefficients import LinearModel, quadratic
from pyhybrid.models.families.proportions import ProportionModel
from pyhybrid.models.families.regression import Offset, Parameters
from pyhybrid.models.initialization.generalized_linear import (
    LOGIT,
    SizedLikelihood,
    rough_fit,
    scored_fit,
)

__all__ = ["BetaRegression"]

_SMALLEST = 0.1  # lambda is above it


@dataclass(frozen=True)
class BetaRegression(LinearModel, ProportionModel):
    r"""An outcome in an interval with predictors: mean expit(o_i + x_i' beta), size lambda.

    Priors: lambda ~ Pareto(0.1, 1.5); beta as in `NegativeBinomial`.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"salary ~ gender + age_group"``.

    Other parameters as in `pyhybrid.models.families.proportions.ProportionModel` and, for the prior
    on beta, `pyhybrid.models.families.coefficients.LinearModel`.

    References
    ----------
    [C25] sec. 5 and supplement 2; prior of beta from [V25] supplement 2.
    """

    program_name: ClassVar[str] = "beta_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "lambda")

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log Beta(y | lambda mu, lambda (1 - mu)), shape (S, b), in nats, unit scale."""
        return _log_density(y, parameters["beta"] @ X.T + offset, parameters["lambda"][:, None])

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate on the unit scale, shape (n,)."""
        eta, size = X @ parameters["beta"] + offset, parameters["lambda"]
        # A mean that rounds to 0 or 1 leaves no beta distribution; it is at the edge then.
        smallest = np.finfo(np.float64).tiny
        beta1, beta2 = (np.maximum(size * expit(sign * eta), smallest) for sign in (1, -1))
        return np.asarray(rng.beta(beta1, beta2), dtype=np.float64)

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """The mode of beta and lambda, roughly, from a quasi-binomial fit on."""
        target = logit(y)
        likelihood = SizedLikelihood(
            log_lik=lambda eta, t: _log_density(y, np.clip(eta, -30, 30), _SMALLEST + np.exp(t)),
            slope=lambda eta, t: _slope(target, np.clip(eta, -30, 30), _SMALLEST + np.exp(t)),
            curvature=lambda eta, t: _curvature(np.clip(eta, -30, 30), _SMALLEST + np.exp(t)),
            bounds=(-5.0, 18.0),  # of t = log(lambda - 0.1)
        )
        start = rough_fit(y, X, weight, LOGIT, offset).center
        fit = scored_fit(likelihood, X, weight, start, offset)
        return {
            **quadratic(X, fit.center, fit.slope, fit.curvature),
            "center_lambda": fit.log_size,
            "spread_lambda": fit.spread,
        }


def _log_density(y: FloatArray, eta: FloatArray, size: Any) -> FloatArray:
    """log Beta(y | size mu, size (1 - mu)), logit mu = eta, in nats."""
    beta1, beta2 = size * expit(eta), size * expit(-eta)
    return np.asarray((beta1 - 1) * np.log(y) + (beta2 - 1) * np.log1p(-y) - betaln(beta1, beta2))


def _slope(target: FloatArray, eta: FloatArray, size: float) -> FloatArray:
    """Derivative of the log density by eta; `target` is logit(y)."""
    beta1, beta2 = size * expit(eta), size * expit(-eta)
    return np.asarray(beta1 * expit(-eta) * (target - digamma(beta1) + digamma(beta2)))


def _curvature(eta: FloatArray, size: float) -> FloatArray:
    """Minus the expected second derivative by eta."""
    beta1, beta2 = size * expit(eta), size * expit(-eta)
    return np.asarray((beta1 * expit(-eta)) ** 2 * (polygamma(1, beta1) + polygamma(1, beta2)))
