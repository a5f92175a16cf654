"""Negative binomial regression [V25, supplement 2]; program stan/negative_binomial.stan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, expit

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.families.coefficients import quadratic
from pyhybrid.models.families.counts import CountModel, draw_counts_error
from pyhybrid.models.families.regression import Offset, Parameters
from pyhybrid.models.families.softplus import softplus
from pyhybrid.models.grid import NegativeBinomialForm
from pyhybrid.models.initialization.generalized_linear import (
    LOG_LINEAR,
    SizedLikelihood,
    rough_fit,
    scored_fit,
)

__all__ = ["NegativeBinomial"]


@dataclass(frozen=True)
class NegativeBinomial(CountModel):
    r"""Counts with log link: mean :math:`\mu_i = \exp(o_i + x_i'\beta)`, variance mu + mu^2 / phi.

    Priors: 1/phi ~ half-Cauchy(0, 5); beta ~ MVN(0, diag(s) L L' diag(s)), L ~ LKJ-Cholesky(6),
    s ~ half-t_3(0, 1), or independent normals.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"visits ~ 1"``.

    Other parameters: the support, as in `pyhybrid.models.families.counts.CountModel`; the prior on
    beta, as in `pyhybrid.models.families.coefficients.LinearModel`.

    References
    ----------
    [V25] supplement 2.
    """

    program_name: ClassVar[str] = "negative_binomial"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "phi")

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log NB(y | mu, phi), shape (S, b), in nats."""
        return _log_density(y, parameters["beta"] @ X.T + offset, parameters["phi"][:, None])

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate, shape (n,)."""
        phi = parameters["phi"]
        mu = np.exp(X @ parameters["beta"] + offset)
        try:
            # A gamma mixture of Poissons, the definition; numpy's own sampler needs phi/(phi+mu).
            return rng.poisson(rng.gamma(phi, mu / phi)).astype(np.float64)
        except ValueError as error:
            raise draw_counts_error(error) from None

    def grid_form(self, columns: tuple[str, ...]) -> NegativeBinomialForm | None:
        """With an intercept alone under the published prior."""
        return NegativeBinomialForm() if self.plain_intercept(columns) else None

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """The mode of beta and 1/phi, roughly, from a Poisson fit on."""
        likelihood = SizedLikelihood(
            log_lik=lambda eta, t: _log_density(y, _clipped(eta), np.exp(-t)),
            slope=lambda eta, t: (y - np.exp(_clipped(eta))) * expit(-t - eta),
            curvature=lambda eta, t: (
                (1 + np.exp(t) * y) * expit(t + eta) * expit(-t - eta) / np.exp(t)
            ),
            bounds=(-7.0, 7.0),  # of t = log(1/phi)
        )
        start = rough_fit(y, X, weight, LOG_LINEAR, offset).center
        fit = scored_fit(likelihood, X, weight, start, offset)
        return {
            **quadratic(X, fit.center, fit.slope, fit.curvature),
            "center_rphi": fit.log_size,
            "spread_rphi": fit.spread,
        }


def _log_density(y: FloatArray, eta: FloatArray, phi: FloatArray) -> FloatArray:
    """log NB(y | exp(eta), phi) in nats."""
    above, below = softplus(eta - np.log(phi))  # of the log odds, log(mu / phi)
    # log[Gamma(y + phi) / (Gamma(phi) y!)] by the beta function: lgamma differences lose all
    # digits for large phi. It is the dearest part, and counts take few values.
    values, at = np.unique(y, return_inverse=True)
    coefficient = -betaln(phi, values + 1) - np.log(phi + values)
    return np.asarray(coefficient[..., at] - y * below - phi * above)


def _clipped(eta: FloatArray) -> FloatArray:
    return np.clip(eta, -50, 50)
