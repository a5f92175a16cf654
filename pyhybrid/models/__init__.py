"""Models (synthesizers): a likelihood, a prior, a Stan program and a way to draw replicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.negative_binomial import NegativeBinomial
from pyhybrid.models.poisson import Poisson

__all__ = ["MODELS", "BoundModel", "Model", "NegativeBinomial", "Poisson"]

MODELS: Mapping[str, Callable[[str], Model]] = {
    "negative_binomial": NegativeBinomial,
    "poisson": Poisson,
}
"""Models by their name on the command line; each takes a formula."""
