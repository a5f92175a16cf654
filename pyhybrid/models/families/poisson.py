"""Poisson regression [S22, sec. 4.4]; program stan/poisson.stan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.families.coefficients import quadratic
from pyhybrid.models.families.counts import CountModel, draw_counts_error
from pyhybrid.models.families.regression import Offset, Parameters
from pyhybrid.models.grid import PoissonForm
from pyhybrid.models.initialization.generalized_linear import LOG_LINEAR, rough_fit

__all__ = ["Poisson"]


@dataclass(frozen=True)
class Poisson(CountModel):
    r"""Counts with log link and variance equal to the mean :math:`\mu_i = \exp(o_i + x_i'\beta)`.

    o_i is the offset, 0 without ``offset()`` in the formula.

    Priors on beta as in `NegativeBinomial`.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"visits ~ 1"``.

    Other parameters: the support, as in `pyhybrid.models.families.counts.CountModel`; the prior on
    beta, as in `pyhybrid.models.families.coefficients.LinearModel`.

    References
    ----------
    [S22] sec. 4.4; prior of [V25] supplement 2.
    """

    program_name: ClassVar[str] = "poisson"
    parameters: ClassVar[tuple[str, ...]] = ("beta",)

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log Poisson(y | mu), shape (S, b), in nats."""
        eta = parameters["beta"] @ X.T + offset
        return np.asarray(y * eta - np.exp(eta) - gammaln(y + 1))

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate, shape (n,)."""
        try:
            return rng.poisson(np.exp(X @ parameters["beta"] + offset)).astype(np.float64)
        except ValueError as error:
            raise draw_counts_error(error) from None

    def grid_form(self, columns: tuple[str, ...]) -> PoissonForm | None:
        """With an intercept alone under the published prior."""
        return PoissonForm() if self.plain_intercept(columns) else None

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """The mode of beta, roughly."""
        fit = rough_fit(y, X, weight, LOG_LINEAR, offset)
        return quadratic(X, fit.center, weight * (y - fit.fitted), weight * fit.variance)
