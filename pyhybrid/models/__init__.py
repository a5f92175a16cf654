"""Models (synthesizers): a likelihood, a prior, a Stan program and a way to draw replicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.bernoulli import Bernoulli
from pyhybrid.models.beta import Beta
from pyhybrid.models.beta_binomial import BetaBinomial
from pyhybrid.models.beta_regression import BetaRegression
from pyhybrid.models.categorical import Categorical
from pyhybrid.models.composed_model import ComposedModel
from pyhybrid.models.default import DefaultModel, default_name
from pyhybrid.models.gamma import Gamma
from pyhybrid.models.log_normal import LogNormal
from pyhybrid.models.negative_binomial import NegativeBinomial
from pyhybrid.models.normal_mixture import MixtureRegression
from pyhybrid.models.normal_regression import NormalRegression
from pyhybrid.models.ordinal import Ordinal
from pyhybrid.models.poisson import Poisson
from pyhybrid.models.stan_model import StanModel
from pyhybrid.models.two_part import TwoPart
from pyhybrid.models.with_missing import WithMissing
from pyhybrid.models.zero_inflated import ZeroInflated

__all__ = [
    "MODELS",
    "Bernoulli",
    "Beta",
    "BetaBinomial",
    "BetaRegression",
    "BoundModel",
    "Categorical",
    "ComposedModel",
    "DefaultModel",
    "Gamma",
    "LogNormal",
    "MixtureRegression",
    "Model",
    "NegativeBinomial",
    "NormalRegression",
    "Ordinal",
    "Poisson",
    "StanModel",
    "TwoPart",
    "WithMissing",
    "ZeroInflated",
    "default_name",
]

MODELS: Mapping[str, Callable[[str], Model]] = {
    "negative_binomial": NegativeBinomial,
    "poisson": Poisson,
    "beta": Beta,
    "beta_regression": BetaRegression,
    "beta_binomial": BetaBinomial,
    "normal": NormalRegression,
    "mixture": MixtureRegression,
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "ordinal": Ordinal,
    "lognormal": LogNormal,
    "gamma": Gamma,
}
"""Models by their name on the command line; each takes a formula."""
