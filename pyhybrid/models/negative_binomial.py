"""Negative binomial regression [V25, supplement 2]; program stan/negative_binomial.stan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln

from pyhybrid.checks import FloatArray
from pyhybrid.models.counts import CountModel, draw_counts_error
from pyhybrid.models.regression import Parameters
from pyhybrid.models.rough_fit import LOG_LINEAR, rough_fit

__all__ = ["NegativeBinomial"]


@dataclass(frozen=True)
class NegativeBinomial(CountModel):
    r"""Counts with log link: mean :math:`\mu_i = \exp(x_i'\beta)`, variance mu + mu^2 / phi.

    Priors: 1/phi ~ half-Cauchy(0, 5); beta ~ MVN(0, diag(s) L L' diag(s)), L ~ LKJ-Cholesky(6),
    s ~ half-t_3(0, 1).

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"visits ~ 1"``.

    Other parameters (the support) as in `pyhybrid.models.counts.CountModel`.

    References
    ----------
    [V25] supplement 2.
    """

    program_name: ClassVar[str] = "negative_binomial"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "phi")
    monitored_parameters: ClassVar[tuple[str, ...]] = ("beta", "phi", "sigma_beta")

    def log_lik(self, parameters: Parameters, y: FloatArray, X: FloatArray) -> FloatArray:
        """log NB(y | mu, phi), shape (S, b), in nats."""
        phi = parameters["phi"][:, None]
        log_odds = parameters["beta"] @ X.T - np.log(phi)  # log(mu / phi)
        # log[Gamma(y + phi) / (Gamma(phi) y!)] by the beta function: lgamma differences lose
        # all digits for large phi.
        coefficient = -betaln(phi, y + 1) - np.log(phi + y)
        return np.asarray(
            coefficient - y * np.logaddexp(0, -log_odds) - phi * np.logaddexp(0, log_odds)
        )

    def draw_outcome(
        self, parameters: Parameters, X: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """One replicate, shape (n,)."""
        phi = parameters["phi"]
        mu = np.exp(X @ parameters["beta"])
        try:
            # A gamma mixture of Poissons, the definition; numpy's own sampler needs phi/(phi+mu).
            return rng.poisson(rng.gamma(phi, mu / phi)).astype(np.float64)
        except ValueError as error:
            raise draw_counts_error(error) from None

    def rough_fit(self, y: FloatArray, X: FloatArray, weight: FloatArray) -> dict[str, Any]:
        """Quasi-Poisson fit of beta, and 1/phi by the method of moments."""
        fit = rough_fit(y, X, weight, LOG_LINEAR)
        mu = fit.fitted
        moment = weight @ ((y - mu) ** 2 - mu) / max(float(weight @ mu**2), 1e-300)
        rphi = float(np.clip(moment, 1e-3, 1e3))
        # Fisher information of 1/phi, roughly; on the log scale.
        information = rphi**2 * float(weight @ (mu / (1 + rphi * mu)) ** 2) / 2
        spread = float(np.clip(1 / np.sqrt(max(information, 1e-300)), 1e-4, 2.0))
        return {
            "center": fit.center,
            "factor": fit.factor,
            "center_rphi": float(np.log(rphi)),
            "spread_rphi": spread,
        }
