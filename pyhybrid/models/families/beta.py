"""Beta distribution [C25, supplement 2]; program stan/beta.stan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import betaln, expit, logit, polygamma

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.families.proportions import ProportionModel
from pyhybrid.models.families.regression import Offset, Parameters
from pyhybrid.models.formula.design import Design
from pyhybrid.models.grid import BetaForm
from pyhybrid.models.initialization.generalized_linear import cholesky_or_diagonal

__all__ = ["Beta"]

_RIDGE = 0.01
_BY_ROW = ("y", "frequency", "weights", "reference")


@dataclass(frozen=True)
class Beta(ProportionModel):
    r"""An outcome in an interval, without predictors: Beta(lambda phi, lambda (1 - phi)).

    Priors: phi ~ Beta(1, 1); lambda ~ Pareto(0.1, 1.5), lambda > 0.1. Without a cap the
    likelihood goes to Stan as three sums over the records (sufficient statistics): the same
    density at a cost that does not grow with n.

    Parameters
    ----------
    formula : str
        ``"rate ~ 1"``; for predictors see `BetaRegression`.

    Other parameters as in `pyhybrid.models.families.proportions.ProportionModel`.

    References
    ----------
    [C25] supplement 2.
    """

    program_name: ClassVar[str] = "beta"
    parameters: ClassVar[tuple[str, ...]] = ("phi", "lambda")

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Within the bounds, and no predictors."""
        if design.columns != ("Intercept",) or design.has_offset:
            raise InvalidInput(
                f"Beta takes no predictors, formula must be 'outcome ~ 1': found {self.formula!r}; "
                "use BetaRegression"
            )
        super().check_outcome(design, index)

    def grid_form(self, columns: tuple[str, ...]) -> BetaForm:
        """It has no predictors."""
        return BetaForm()

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log Beta(y | lambda phi, lambda (1 - phi)), shape (S, b), in nats, unit scale."""
        beta1 = (parameters["lambda"] * parameters["phi"])[:, None]
        beta2 = (parameters["lambda"] * (1 - parameters["phi"]))[:, None]
        return np.asarray(
            (beta1 - 1) * np.log(y) + (beta2 - 1) * np.log1p(-y) - betaln(beta1, beta2)
        )

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate on the unit scale, shape (n,)."""
        beta1 = parameters["lambda"] * parameters["phi"]
        return rng.beta(beta1, parameters["lambda"] * (1 - parameters["phi"]), size=X.shape[0])

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """The mode and its curvature, and the sums that stand for the records."""
        total, ones = float(weight.sum()), float(weight @ np.log(y))
        zeros = float(weight @ np.log1p(-y))

        def loss(u: FloatArray) -> float:
            phi, size = expit(u[0]), 0.1 + np.exp(np.clip(u[1], -30, 30))
            a, b = size * phi, size * (1 - phi)
            gain = (a - 1) * ones + (b - 1) * zeros - total * betaln(a, b)
            return float(_RIDGE * (u @ u) - gain)

        mean = float(np.clip(weight @ y / max(total, 1e-300), 1e-6, 1 - 1e-6))
        fit = minimize(loss, np.array([logit(mean), 0.0]), method="BFGS")
        return {
            "total_weight": total,
            "sum_log": ones,
            "sum_log1m": zeros,
            "center": fit.x,
            "factor": cholesky_or_diagonal(np.linalg.inv(_information(fit.x, total))),
        }

    def shape_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """No design; and no rows where the sums stand for them."""
        del data["X"], data["K"], data["offsets"]
        if not (data["use_cap"] or data["emit_log_lik"]):
            data |= {"n": 0, **dict.fromkeys(_BY_ROW, np.empty(0)), "unit": np.empty(0, int)}
        return data


def _information(u: FloatArray, total: float) -> FloatArray:
    """Fisher information of (logit phi, log(lambda - 0.1)) in `total` records, with the ridge."""
    phi, excess = expit(u[0]), np.exp(np.clip(u[1], -30, 30))
    size = 0.1 + excess
    slope = size * phi * expit(-u[0])
    jacobian = np.array([[slope, excess * phi], [-slope, excess * expit(-u[0])]])
    shared = polygamma(1, size)
    shapes = np.maximum(np.array([size * phi, size * expit(-u[0])]), 1e-8)
    by_record = np.diag(polygamma(1, shapes)) - shared
    return np.asarray(total * jacobian.T @ by_record @ jacobian + 2 * _RIDGE * np.eye(2))
