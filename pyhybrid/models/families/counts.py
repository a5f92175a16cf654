"""Counts: Poisson and negative binomial regression."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from pyhybrid.core.checks import FloatArray, check_count
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.models.families.coefficients import LinearModel
from pyhybrid.models.families.regression import Offset, Parameters, Rng, Rules
from pyhybrid.models.families.two_block import BlockModel
from pyhybrid.models.grid import Axis
from pyhybrid.models.laws import LARGEST_ETA, NEGATIVE_BINOMIAL, POISSON, Law

_LARGEST_COUNT = 2**31 - 1  # Stan's integers have 32 bits


@dataclass(frozen=True)
class CountModel(BlockModel, LinearModel):
    """A model of whole numbers from `lower` to `upper`.

    Parameters
    ----------
    lower, upper : int, default 0 and None
        Smallest and largest value that the column can hold: public, given, never read from the
        data. Values outside never leave: replicates are drawn from the model given that they lie
        within, which is a function of the posterior draw and costs nothing more. The likelihood is
        not truncated. Data outside are refused.
    """

    _: KW_ONLY
    lower: int = 0
    upper: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.lower, "lower", at_least=0)
        if self.upper is not None and check_count(self.upper, "upper") <= self.lower:
            raise InvalidInput(
                f"upper must be above lower: found {self.upper:g} and {self.lower:g}"
            )

    @property
    def ends(self) -> tuple[float, float]:  # type: ignore[override]
        """Declared ends; counts lie above 0 without being declared so."""
        if self.upper is None:
            return self.lower or -math.inf, math.inf
        return self.lower, self.upper

    def rules(self, y: FloatArray) -> Rules:
        largest = _LARGEST_COUNT if self.upper is None else min(self.upper, _LARGEST_COUNT)
        return (
            ("be a count >= 0: {} is negative", y < 0),
            ("be a whole number: {} is not", y != np.floor(y)),
            (f"be at least {self.lower:g}: {{}} is smaller; give lower", y < self.lower),
            (f"be at most {largest:.0f}: {{}} is larger", y > largest),
        )

    def draw_outcome(self, at: Parameters, X: FloatArray, offset: Offset, rng: Rng) -> FloatArray:
        if (X @ at["beta"] + offset).max(initial=0.0) > LARGEST_ETA:
            raise SamplingError("no replicate can be drawn: the mean is out of range")
        return super().draw_outcome(at, X, offset, rng)


@dataclass(frozen=True)
class Poisson(CountModel):
    r"""Counts with log link and variance equal to the mean :math:`\mu_i = \exp(o_i + x_i'\beta)`.

    o_i is the offset, 0 without ``offset()`` in the formula. Parameters and priors on beta as in
    `NegativeBinomial`.

    References
    ----------
    [S22] sec. 4.4; prior of [V25] supplement 2, earlier version.
    """

    grid_axes: ClassVar[tuple[Axis, ...]] = (
        Axis(name="log_mean", lower=-10, upper=15, size=100_000),
    )
    program_name: ClassVar[str] = "poisson"
    parameters: ClassVar[tuple[str, ...]] = ("beta",)
    law: ClassVar[Law] = POISSON


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
    [V25] supplement 2, earlier version.
    """

    grid_axes: ClassVar[tuple[Axis, ...]] = (
        Axis(name="log_mean", lower=-6, upper=9, size=1250),
        Axis(name="log_reciprocal_phi", lower=-8, upper=4, size=800),
    )
    program_name: ClassVar[str] = "negative_binomial"
    parameters: ClassVar[tuple[str, ...]] = ("beta", "phi")
    law: ClassVar[Law] = NEGATIVE_BINOMIAL
