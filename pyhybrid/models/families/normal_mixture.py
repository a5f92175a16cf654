"""Finite mixtures of normal regressions; program stan/normal_mixture.stan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines.base import Draws
from pyhybrid.models.families.regression import BoundRegression, Offset, Parameters, Positions
from pyhybrid.models.families.transformed import TransformedModel
from pyhybrid.models.formula.design import Design
from pyhybrid.models.initialization.mixture import rough_mixture
from pyhybrid.privacy.censoring import Cap

__all__ = ["BoundMixture", "MixtureRegression"]

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_EMPTY = 4.0  # -psi(a / C), and what log pi_k moves by either way: chains start with less
_ROWS_MONITORED = (0.05, 0.5, 0.95)  # by their fitted mean
_OUTCOMES_MONITORED = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)


@dataclass(frozen=True)
class MixtureRegression(TransformedModel):
    r"""A finite mixture of normal regressions of the transformed outcome.

    :math:`t(y_i) \sim \sum_k \pi_k N(o_i + x_i'\beta_k, \sigma_k^2)` with the component of a record
    summed out: the log-likelihood of a record is that of the whole mixture. Priors: pi ~
    Dirichlet(a/C, ..., a/C), a ~ Gamma(1, 1); beta_k and sigma_k as in `NormalRegression`, the
    scales s and correlations Omega shared by the components. `n_components` may be more than
    needed: the prior empties those that are not.

    Chains start around one EM fit (`pyhybrid.models.initialization.mixture`), which does not move
    the
    posterior; convergence is judged by densities at fixed points, so that components that change
    names are not taken for a failure. Partitions of the records that no start leads to are not
    seen, as in any mixture fit: the diagnostics speak of the mode that the chains are in.

    Parameters
    ----------
    n_components : int, default 5
        C, at least 1 and at most the number of records.

    Other parameters as in `pyhybrid.models.families.transformed.TransformedModel`. One component is
    `NormalRegression`, which is faster there.

    References
    ----------
    [S22] appendix B and sec. 5.
    """

    _: KW_ONLY
    n_components: int = 5
    program_name: ClassVar[str] = "normal_mixture"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "sigma", "log_proportion")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.n_components, "n_components")

    def bind(self, df: pd.DataFrame, at: Positions | None = None) -> BoundMixture:
        """Check `df` and join the model to it; see `RegressionModel.bind`."""
        plain = super().bind(df, at)
        return BoundMixture(model=self, table=plain.table, design=plain.design, at=at)

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        """As for any transformed outcome; and no more components than records."""
        super().check_outcome(design, index)
        if self.n_components > design.y.size:
            raise InvalidInput(
                f"n_components must be at most the number of records, {design.y.size}: "
                f"found {self.n_components}"
            )

    def describe(self) -> dict[str, Any]:
        """Public settings, with the number of components."""
        return {**super().describe(), "n_components": self.n_components}

    def log_lik(
        self, parameters: Parameters, y: FloatArray, X: FloatArray, offset: Offset = 0.0
    ) -> FloatArray:
        """log of the mixture density of t(y), shape (S, b), in nats."""
        beta, sigma = parameters["beta"], parameters["sigma"]  # (S, K, C), (S, C)
        constant = parameters["log_proportion"] - np.log(sigma) - _HALF_LOG_2PI
        total = None
        for k in range(sigma.shape[1]):
            z = (y - offset - beta[:, :, k] @ X.T) / sigma[:, k, None]
            own = constant[:, k, None] - z**2 / 2
            total = own if total is None else np.logaddexp(total, own)
        return np.asarray(total)

    def draw_outcome(
        self,
        parameters: Parameters,
        X: FloatArray,
        rng: np.random.Generator,
        offset: Offset = 0.0,
    ) -> FloatArray:
        """One replicate of t(y), shape (n,): a component for each record, then its normal."""
        proportion = np.exp(parameters["log_proportion"])
        component = rng.choice(proportion.size, size=X.shape[0], p=proportion / proportion.sum())
        mean = np.einsum("nk,kn->n", X, parameters["beta"][:, component])
        noise = rng.standard_normal(X.shape[0])
        return np.asarray(mean + offset + parameters["sigma"][component] * noise)

    def rough_fit(
        self, y: FloatArray, X: FloatArray, weight: FloatArray, offset: Offset = 0.0
    ) -> dict[str, Any]:
        """EM; see `pyhybrid.models.initialization.mixture`."""
        fit = rough_mixture(y - offset, X, weight, self.n_components)
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundMixture(BoundRegression):
    """A mixture model joined to a table. Confidential."""

    model: MixtureRegression

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

        Seven quantiles of the outcome, less the offset, at four designs: the mean one and three
        records', chosen by their least-squares means. Shape (chains, draws, 28), nats.
        """
        y, X = self.design.y - self.design.offset, self.design.X
        points = np.quantile(y, _OUTCOMES_MONITORED)
        order = np.argsort(X @ np.linalg.lstsq(X, y, rcond=None)[0], kind="stable")
        rows = [order[round(q * (order.size - 1))] for q in _ROWS_MONITORED]
        parameters = {name: draws.flat(name) for name in self.model.parameters}
        found = [
            self.model.log_lik(parameters, points, x[None])
            for x in np.vstack([X.mean(axis=0), X[rows]])
        ]
        return {"log_density": np.hstack(found).reshape(*draws.divergent.shape, -1)}
