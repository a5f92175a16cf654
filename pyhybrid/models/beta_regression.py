"""Beta regression [C25, sec. 5]; program stan/beta_regression.stan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, expit

from pyhybrid.checks import FloatArray
from pyhybrid.models.proportions import ProportionModel
from pyhybrid.models.regression import Parameters
from pyhybrid.models.rough_fit import LOGIT, rough_fit

__all__ = ["BetaRegression"]


@dataclass(frozen=True)
class BetaRegression(ProportionModel):
    r"""An outcome in an interval with predictors: mean expit(x_i' beta), size lambda.

    Priors: lambda ~ Pareto(0.1, 1.5); beta as in `NegativeBinomial`.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"salary ~ gender + age_group"``.

    Other parameters as in `pyhybrid.models.proportions.ProportionModel`.

    References
    ----------
    [C25] sec. 5 and supplement 2; prior of beta from [V25] supplement 2.
    """

    program_name: ClassVar[str] = "beta_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "lambda")
    monitored_parameters: ClassVar[tuple[str, ...]] = ("beta", "lambda", "sigma_beta")

    def log_lik(self, parameters: Parameters, y: FloatArray, X: FloatArray) -> FloatArray:
        """log Beta(y | lambda mu, lambda (1 - mu)), shape (S, b), in nats, unit scale."""
        size, eta = parameters["lambda"][:, None], parameters["beta"] @ X.T
        beta1, beta2 = size * expit(eta), size * expit(-eta)
        return np.asarray(
            (beta1 - 1) * np.log(y) + (beta2 - 1) * np.log1p(-y) - betaln(beta1, beta2)
        )

    def draw_outcome(
        self, parameters: Parameters, X: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """One replicate on the unit scale, shape (n,)."""
        eta, size = X @ parameters["beta"], parameters["lambda"]
        # A mean that rounds to 0 or 1 leaves no beta distribution; it is at the edge then.
        smallest = np.finfo(np.float64).tiny
        beta1, beta2 = (np.maximum(size * expit(sign * eta), smallest) for sign in (1, -1))
        return np.asarray(rng.beta(beta1, beta2), dtype=np.float64)

    def rough_fit(self, y: FloatArray, X: FloatArray, weight: FloatArray) -> dict[str, Any]:
        """Quasi-binomial fit; var = mu (1 - mu) / (1 + lambda)."""
        fit = rough_fit(y, X, weight, LOGIT)
        size = float(np.clip(1 / max(fit.dispersion, 1e-8) - 1, 0.2, 1e8))
        total = max(float(weight.sum()), 1.0)
        return {
            "center": fit.center,
            "factor": fit.factor,
            "center_lambda": float(np.log(size - 0.1)),
            "spread_lambda": float(np.clip(1.5 / np.sqrt(total), 1e-5, 2)),
        }
