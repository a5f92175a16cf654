"""Normal regression and finite mixtures of normal regressions; program stan/normal_mixture.stan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_finite,
    check_positive,
)
from pyhybrid.engines.base import Draws
from pyhybrid.errors import InvalidInput, SamplingError
from pyhybrid.models.design import Design, row_label
from pyhybrid.models.proportions import decimals_of
from pyhybrid.models.regression import BoundRegression, Parameters, RegressionModel
from pyhybrid.models.rough_mixture import rough_mixture
from pyhybrid.models.transforms import LARGEST, TRANSFORMS
from pyhybrid.privacy.cap import Cap

__all__ = ["BoundMixture", "MixtureRegression", "NormalRegression"]

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_EMPTY = 4.0  # -psi(a / C), and what log pi_k moves by either way: chains start with less
_ROWS_MONITORED = (0.05, 0.5, 0.95)  # by their fitted mean
_OUTCOMES_MONITORED = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)


@dataclass(frozen=True)
class NormalRegression(RegressionModel):
    r"""A continuous outcome, transformed, with mean :math:`x_i'\beta` and deviation sigma.

    Priors: beta ~ MVN(0, diag(s) Omega diag(s)), Omega ~ LKJ(1), s ~ half-t_3(0, 1) for each
    coefficient; sigma ~ half-t_3(0, 1). They are on the scale of t(y) and of the columns as the
    formula codes them: choose `unit`, and units of predictors, so that both are of the order of 1.

    Parameters
    ----------
    formula : str
        Wilkinson formula, e.g. ``"income ~ age + education"``.
    transform : {"identity", "log", "signed_log", "asinh"}
        t, see `pyhybrid.models.transforms`. The density, and with it the log-likelihood, Lipschitz
        bounds and epsilon, is that of t(y / unit); the Jacobian of t is left out.
    unit : float, default 1
        Above 0, in the outcome's unit; given, never read from the data.
    min_sd : float, default 0
        Lower end of the prior of sigma, on the transformed scale. Many equal outcomes let the
        likelihood of a mixture grow without end as a component narrows onto them: a floor, such as
        0.01 for log income, keeps densities below 1 / (min_sd sqrt(2 pi)).

    Notes
    -----
    Released values are transformed back and keep the decimals of the data. Values beyond 2^53 in
    size are moved to it; under ``"log"`` values that would round to 0 become the smallest positive
    one. Densities can exceed 1, so that relation "replace" costs twice as much.

    References
    ----------
    [S22] appendix B, with one component.
    """

    _: KW_ONLY
    transform: str = "identity"
    unit: float = 1.0
    min_sd: float = 0.0
    density_above_one: ClassVar[bool] = True
    program_name: ClassVar[str] = "normal_mixture"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "sigma", "log_proportion")
    monitored_parameters: ClassVar[tuple[str, ...]] = ()

    @property
    def n_components(self) -> int:
        """One."""
        return 1

    def __post_init__(self) -> None:
        check_choice(self.transform, "transform", TRANSFORMS)
        check_positive(self.unit, "unit")
        if check_finite(self.min_sd, "min_sd") < 0:
            raise InvalidInput(f"min_sd must be >= 0: found {self.min_sd:g}")
        check_count(self.n_components, "n_components")

    def bind(self, df: pd.DataFrame) -> BoundMixture:
        """Check `df` and join the model to it; see `RegressionModel.bind`."""
        plain = super().bind(df)
        return BoundMixture(model=self, table=plain.table, design=plain.design)

    def describe(self) -> dict[str, Any]:
        """Public settings, with the scale that densities belong to."""
        own = {"transform": self.transform, "unit": self.unit, "min_sd": self.min_sd}
        scale = f"of {self.transform}(y / {self.unit:g}), Jacobian left out"
        return {**super().describe(), **own, "density": scale}

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """Raise InvalidInput, naming the first row, for outcomes that t cannot take."""
        rules = [(f"at most {LARGEST:.0f} in size: {{}} is larger", np.abs(design.y) > LARGEST)]
        if TRANSFORMS[self.transform].positive:
            rules.append((
                f"above 0 for transform={self.transform!r}: {{}} is not; take signed_log or asinh, "
                "or leave such rows out",
                design.y <= 0,
            ))  # fmt: skip
        for rule, broken in rules:
            if broken.any():
                label = row_label(index, int(np.flatnonzero(broken)[0]))
                raise InvalidInput(f"outcome {design.outcome!r} must be {rule.format(label)}")
        if self.n_components > design.y.size:
            raise InvalidInput(
                f"n_components must be at most the number of records, {design.y.size}: "
                f"found {self.n_components}"
            )

    def to_support(self, y: FloatArray) -> FloatArray:
        """t(y / unit)."""
        return TRANSFORMS[self.transform].forward(y / self.unit)

    def from_support(self, values: FloatArray, like: FloatArray) -> FloatArray:
        """Transformed back, with as many decimals as `like` has."""
        kind, decimals = TRANSFORMS[self.transform], decimals_of(like)
        with np.errstate(over="ignore"):
            own = np.clip(self.unit * kind.inverse(values), -LARGEST, LARGEST)
        if np.isnan(own).any():
            raise SamplingError("a replicate is not a number: the posterior draw is not finite")
        rounded = own if decimals is None else np.round(own, decimals)
        if kind.positive:
            step = np.finfo(np.float64).tiny if decimals is None else 10.0**-decimals
            rounded = np.maximum(rounded, step)
        return np.asarray(rounded)

    def log_lik(self, parameters: Parameters, y: FloatArray, X: FloatArray) -> FloatArray:
        """log of the mixture density of t(y), shape (S, b), in nats."""
        beta, sigma = parameters["beta"], parameters["sigma"]  # (S, K, C), (S, C)
        constant = parameters["log_proportion"] - np.log(sigma) - _HALF_LOG_2PI
        total = None
        for k in range(sigma.shape[1]):
            z = (y - beta[:, :, k] @ X.T) / sigma[:, k, None]
            own = constant[:, k, None] - z**2 / 2
            total = own if total is None else np.logaddexp(total, own)
        return np.asarray(total)

    def draw_outcome(
        self, parameters: Parameters, X: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """One replicate of t(y), shape (n,): a component for each record, then its normal."""
        proportion = np.exp(parameters["log_proportion"])
        component = rng.choice(proportion.size, size=X.shape[0], p=proportion / proportion.sum())
        mean = np.einsum("nk,kn->n", X, parameters["beta"][:, component])
        noise = rng.standard_normal(X.shape[0])
        return np.asarray(mean + parameters["sigma"][component] * noise)

    def rough_fit(self, y: FloatArray, X: FloatArray, weight: FloatArray) -> dict[str, Any]:
        """EM; see `pyhybrid.models.rough_mixture`."""
        fit = rough_mixture(y, X, weight, self.n_components)
        empty, total = fit.size == 0, max(float(fit.size.sum()), 1.0)
        size = np.where(empty, 1.0, fit.size)
        # Where no records are, pi_k follows its prior: log pi_k about psi(a/C) - log(n).
        ratio = np.log(size / size[0]), np.sqrt(1 / size + 1 / size[0])
        return {
            "information": fit.information,
            "score": np.einsum("kij,jk->ik", fit.information, fit.center),
            "center_sigma": np.log(np.maximum(fit.sd - self.min_sd, 0.1 * fit.sd)),
            "spread_sigma": np.where(empty, 1.0, 1 / np.sqrt(2 * size + 2)),
            "center_ratio": np.where(empty, -_EMPTY - np.log(total), ratio[0]),
            "spread_ratio": np.where(empty, _EMPTY / 2, ratio[1]),
        }

    def shape_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Number of components and the floor of their deviations, beside the rest."""
        return {**data, "n_components": self.n_components, "min_sd": float(self.min_sd)}


@dataclass(frozen=True)
class MixtureRegression(NormalRegression):
    r"""A finite mixture of normal regressions of the transformed outcome.

    :math:`t(y_i) \sim \sum_k \pi_k N(x_i'\beta_k, \sigma_k^2)` with the component of a record
    summed out: the log-likelihood of a record is that of the whole mixture. Priors: pi ~
    Dirichlet(a/C, ..., a/C), a ~ Gamma(1, 1); beta_k and sigma_k as in `NormalRegression`, the
    scales s and correlations Omega shared by the components. `n_components` may be more than
    needed: the prior empties those that are not.

    Chains start around one EM fit (`pyhybrid.models.rough_mixture`), which does not move the
    posterior; convergence is judged by densities at fixed points, so that components that change
    names are not taken for a failure. Partitions of the records that no start leads to are not
    seen, as in any mixture fit: the diagnostics speak of the mode that the chains are in.

    Parameters
    ----------
    n_components : int, default 5
        C, at least 1 and at most the number of records.

    Other parameters as in `NormalRegression`, which is the case n_components = 1.

    References
    ----------
    [S22] appendix B and sec. 5.
    """

    _: KW_ONLY
    n_components: int = 5

    def describe(self) -> dict[str, Any]:
        """Public settings, with the number of components."""
        return {**super().describe(), "n_components": self.n_components}


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundMixture(BoundRegression):
    """A mixture model joined to a table. Confidential."""

    model: NormalRegression

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the chains, which start around one fit, have seen the modes that matter."""
        if self.model.n_components == 1:
            return ()
        return (
            "All chains of the mixture start around one rough fit: modes of the posterior that "
            "none of them reached are assumed to have no weight.",
        )

    def stan_data(
        self,
        alpha: FloatArray,
        *,
        cap: float | Cap | None = None,
        dispersion: float = 1.0,
        emit_log_lik: bool = False,
    ) -> dict[str, Any]:
        """Data block of the program; see `pyhybrid.models.base.BoundModel`."""
        data = super().stan_data(alpha, cap=cap, emit_log_lik=emit_log_lik)
        for name in ("spread_sigma", "spread_ratio"):
            data[name] = dispersion * data[name]
        for name in ("information", "score"):  # inverse to the starts' variance
            data[name] = data[name] / dispersion**2
        return data

    def monitored(self, draws: Draws) -> Mapping[str, FloatArray]:
        """Log densities at fixed points, which do not depend on the components' labels.

        Seven quantiles of the outcome at four designs: the mean one and three records', chosen by
        their least-squares means. Shape (chains, draws, 28), nats.
        """
        y, X = self.design.y, self.design.X
        points = np.quantile(y, _OUTCOMES_MONITORED)
        order = np.argsort(X @ np.linalg.lstsq(X, y, rcond=None)[0], kind="stable")
        rows = [order[round(q * (order.size - 1))] for q in _ROWS_MONITORED]
        parameters = {name: draws.flat(name) for name in self.model.parameters}
        found = [
            self.model.log_lik(parameters, points, x[None])
            for x in np.vstack([X.mean(axis=0), X[rows]])
        ]
        return {"log_density": np.hstack(found).reshape(*draws.divergent.shape, -1)}
