"""Outcomes in an interval: beta distribution and beta regression.

An outcome within given bounds is scaled to (0, 1). Exact 0 and 1 have no finite density: values
nearer to an end than `edge` are moved to it. Both steps look at one record alone.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_finite
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.support import check_decimals, grid_ends, on_grid
from pyhybrid.models.families.amounts import within
from pyhybrid.models.families.coefficients import LinearModel
from pyhybrid.models.families.regression import Hints, Offset, Parameters, Rng, Rules
from pyhybrid.models.families.two_block import BlockModel
from pyhybrid.models.formula.design import Design, Matrix
from pyhybrid.models.grid import Axis, ParameterGrid
from pyhybrid.models.initialization import mode_of
from pyhybrid.models.laws import BETA, Law, log_beta
from pyhybrid.models.scoring import LinearScoring, Scoring

_BY_ROW = ("y", "frequency", "weights", "reference")


@dataclass(frozen=True)
class ProportionModel(BlockModel):
    """A model of an outcome in [lower, upper].

    Parameters
    ----------
    lower, upper : float, default 0 and 1
        Bounds of the outcome, finite, given and never read from the data. Log densities are those
        of the scaled outcome: Lipschitz bounds and epsilon belong to this scale.
    edge : float, default 1e-10
        Distance from 0 and 1 to which values beyond it are moved, on the unit scale, in (0, 0.1).
    decimals : int, optional
        Of released values, as in `pyhybrid.models.families.amounts.AmountModel`.
    """

    _: KW_ONLY
    lower: float = 0.0
    upper: float = 1.0
    edge: float = 1e-10
    decimals: int | None = None
    density_above_one: ClassVar[bool] = True
    law: ClassVar[Law] = BETA

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper", "edge"):
            check_finite(getattr(self, name), name)
        ends = f"found {self.lower:g} and {self.upper:g}"
        if not self.lower < self.upper:
            raise InvalidInput(
                f"lower must be below upper: {ends}; give the bounds, they are part of the model"
            )
        if math.isinf(self.upper - self.lower):
            raise InvalidInput(f"upper - lower must be finite: {ends}")
        if not 0 < self.edge < 0.1:
            raise InvalidInput(f"edge must lie in (0, 0.1): found {self.edge:g}")
        check_decimals(self.decimals)
        if self.decimals is not None:
            grid_ends(self.decimals, self.lower, self.upper)

    def rules(self, y: FloatArray) -> Rules:
        return (within(y, self.lower, self.upper),)

    def to_support(self, y: FloatArray) -> FloatArray:
        unit = (y - self.lower) / (self.upper - self.lower)
        return np.clip(unit, self.edge, 1 - self.edge)

    def from_support(self, values: FloatArray, decimals: int | None) -> FloatArray:
        y = self.lower + (self.upper - self.lower) * values
        return on_grid(y, decimals, self.lower, self.upper)


@dataclass(frozen=True)
class Beta(ProportionModel):
    r"""An outcome in an interval, without predictors: Beta(lambda phi, lambda (1 - phi)).

    Priors: phi ~ Beta(1, 1); lambda ~ Pareto(0.1, 1.5), lambda > 0.1. Without a cap the
    likelihood goes to Stan as three sums over the records (sufficient statistics): the same
    density at a cost that does not grow with n. The formula is ``"rate ~ 1"``; other parameters as
    in `pyhybrid.models.families.proportions.ProportionModel`.

    References
    ----------
    [C25] supplement 2.
    """

    program_name: ClassVar[str] = "beta"
    parameters: ClassVar[tuple[str, ...]] = ("phi", "lambda")

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        if design.columns != ("Intercept",) or design.has_offset:
            raise InvalidInput(
                f"Beta takes no predictors, formula must be 'outcome ~ 1': found {self.formula!r}; "
                "use BetaRegression"
            )
        super().check_outcome(design, index)

    def scoring_of_values(self, matrix: Matrix) -> Scoring:
        return LinearScoring(
            law=self.law, X=matrix.X, offset=matrix.offset, columns=("logit(phi)",),
            prior_sd=np.ones(1), share=True,
        )  # fmt: skip

    def grid(self, columns: tuple[str, ...]) -> ParameterGrid:
        axes = (
            Axis(name="logit_phi", lower=-8, upper=8, size=1250),
            Axis(name="log_lambda", lower=-6, upper=10, size=800),
        )
        return ParameterGrid(law=self.law, axes=axes, share=True)

    def log_lik(self, at: Parameters, y: FloatArray, X: FloatArray, offset: Offset) -> FloatArray:
        phi, size = at["phi"][:, None], at["lambda"][:, None]
        return log_beta(y, size * phi, size * (1 - phi))

    def draw_outcome(self, at: Parameters, X: FloatArray, offset: Offset, rng: Rng) -> FloatArray:
        phi, size = at["phi"], at["lambda"]
        return rng.beta(size * phi, size * (1 - phi), size=X.shape[0])

    def start(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset, n_levels: int = 0
    ) -> Hints:
        mode = mode_of(self.law, y, X, weight, offset)
        center, steps = np.append(mode.beta, mode.u), 1e-4 * np.eye(2)

        def gradient(u: FloatArray) -> FloatArray:
            size = self.law.size_at(u[1])
            by_eta, by_size = self.law.slopes(y, np.full(y.size, u[0]), size)
            return np.array([weight @ by_eta, weight @ by_size * (size - self.law.floor)])

        bend = np.array([gradient(center - step) - gradient(center + step) for step in steps])
        values, vectors = np.linalg.eigh(bend / 2e-4)
        return {
            "total_weight": float(weight.sum()),
            "sum_log": float(weight @ np.log(y)),
            "sum_log1m": float(weight @ np.log1p(-y)),
            "center": center,
            "factor": vectors / np.sqrt(np.clip(values, 1e-3, None)),
        }

    def shape_data(self, data: dict[str, Any], design: Matrix) -> dict[str, Any]:
        if not (data["use_cap"] or data["emit_log_lik"]):
            data |= {"n": 0, **dict.fromkeys(_BY_ROW, np.empty(0)), "unit": np.empty(0, int)}
        return data


@dataclass(frozen=True)
class BetaRegression(LinearModel, ProportionModel):
    r"""An outcome in an interval with predictors: mean expit(o_i + x_i' beta), size lambda.

    Priors: lambda ~ Pareto(0.1, 1.5); beta as in `NegativeBinomial`. Parameters as in
    `pyhybrid.models.families.proportions.ProportionModel` and, for the prior on beta,
    `pyhybrid.models.families.coefficients.LinearModel`.

    References
    ----------
    [C25] sec. 5 and supplement 2; prior of beta from [V25] supplement 2, earlier version.
    """

    program_name: ClassVar[str] = "beta_regression"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "lambda")
    law: ClassVar[Law] = BETA
