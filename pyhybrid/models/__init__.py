"""Models (synthesizers): a likelihood, a prior, a Stan program and a way to draw replicates."""

from __future__ import annotations

from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.default_model import MODELS
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
    "Gamma",
    "LogNormal",
    "MixtureRegression",
    "Model",
    "NegativeBinomial",
    "NormalRegression",
    "Ordinal",
    "Poisson",
    "StanModel",
]
