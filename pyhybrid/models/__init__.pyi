"""Public names of models, loaded when they are first used."""

from .base import BoundModel as BoundModel
from .base import Model as Model
from .default_model import MODELS as MODELS
from .families.amounts import Gamma as Gamma
from .families.amounts import LogNormal as LogNormal
from .families.amounts import NormalRegression as NormalRegression
from .families.counts import NegativeBinomial as NegativeBinomial
from .families.counts import Poisson as Poisson
from .families.levels import Bernoulli as Bernoulli
from .families.levels import Categorical as Categorical
from .families.levels import Ordinal as Ordinal
from .families.normal_mixture import MixtureRegression as MixtureRegression
from .families.proportions import Beta as Beta
from .families.proportions import BetaRegression as BetaRegression
from .stan_model import StanModel as StanModel

__all__: list[str]
