"""Models (synthesizers): a likelihood, a prior, a Stan program and a way to draw replicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.default_model import DefaultModel, default_name
from pyhybrid.models.families.amounts import Gamma, LogNormal, NormalRegression
from pyhybrid.models.families.counts import NegativeBinomial, Poisson
from pyhybrid.models.families.levels import Bernoulli, Categorical, Ordinal
from pyhybrid.models.families.normal_mixture import MixtureRegression
from pyhybrid.models.families.proportions import Beta, BetaRegression
from pyhybrid.models.stan_model import StanModel

__all__ = [
    "MODELS",
    "Bernoulli",
    "Beta",
    "BetaRegression",
    "BoundModel",
    "Categorical",
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
    "default_name",
]

MODELS: Mapping[str, Callable[[str], Model]] = {
    "negative_binomial": NegativeBinomial,
    "poisson": Poisson,
    "beta": Beta,
    "beta_regression": BetaRegression,
    "normal": NormalRegression,
    "mixture": MixtureRegression,
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "ordinal": Ordinal,
    "lognormal": LogNormal,
    "gamma": Gamma,
}
"""Models by their name on the command line; each takes a formula."""
