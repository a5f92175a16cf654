"""Models (synthesizers): a likelihood, a prior, a Stan program and a way to draw replicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.composite.two_part import TwoPart
from pyhybrid.models.composite.with_missing import WithMissing
from pyhybrid.models.composite.zero_inflated import ZeroInflated
from pyhybrid.models.default_model import DefaultModel, default_name
from pyhybrid.models.families.bernoulli import Bernoulli
from pyhybrid.models.families.beta import Beta
from pyhybrid.models.families.beta_binomial import BetaBinomial
from pyhybrid.models.families.beta_regression import BetaRegression
from pyhybrid.models.families.categorical import Categorical
from pyhybrid.models.families.gamma import Gamma
from pyhybrid.models.families.log_normal import LogNormal
from pyhybrid.models.families.negative_binomial import NegativeBinomial
from pyhybrid.models.families.normal_mixture import MixtureRegression
from pyhybrid.models.families.normal_regression import NormalRegression
from pyhybrid.models.families.ordinal import Ordinal
from pyhybrid.models.families.poisson import Poisson
from pyhybrid.models.stan_program.composed_model import ComposedModel
from pyhybrid.models.stan_program.stan_model import StanModel

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
