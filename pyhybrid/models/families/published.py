"""The papers' own programs, as they print or describe them: which models have one, what it reads.

``program="published"`` of a model samples the program of that name in stan/published. The one in
stan/ has the same posterior and is faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_choice
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.formula.design import Design
from pyhybrid.privacy.censoring import Cap

PROGRAMS = ("default", "published")
PUBLISHED = {
    "poisson": ("n", "K", "y", "weights", "X"),
    "negative_binomial": ("n", "K", "y", "weights", "X"),
    "beta": ("n", "outcome", "alpha", "M"),
    "beta_regression": ("n", "K", "outcome", "alpha", "X"),
    "normal_mixture": ("n", "P", "K", "y", "weights", "X"),
}
"""Data of the programs in stan/published, by the name of the program that has their posterior."""
_NONE = 1e300  # no term reaches it


def program_of(model: Any) -> str:
    """Name of the program that is sampled."""
    folder = "" if model.program == "default" else "published/"
    return f"{folder}{model.program_name}"


def check_program(model: Any) -> None:
    """Raise InvalidInput unless the model has the program that it asks for."""
    if check_choice(model.program, "program", PROGRAMS) == "default":
        return
    if model.program_name not in PUBLISHED:
        raise InvalidInput(
            f"program='published' must be of Poisson, NegativeBinomial, Beta, BetaRegression or "
            f"MixtureRegression, which the papers print or describe: {model.name} with these "
            "settings has none"
        )
    if getattr(model, "prior", "published") != "published":
        raise InvalidInput("program='published' has the papers' prior: leave prior= out")


def published_data(
    model: Any, design: Design, alpha: FloatArray, outcome: Any, cap: Cap | None
) -> dict[str, Any]:
    """Data block of a published program, of which that of `Beta` alone takes a cap, about 0."""
    if design.has_offset:
        raise InvalidInput(
            "program='published' takes no offset(), which the papers do not have: "
            "leave program= out, the default one samples the same posterior"
        )
    if cap is not None and model.program_name != "beta":
        raise InvalidInput(
            f"program='published' of {model.name} takes no cap, as no paper prints one for it: "
            "leave program= out"
        )
    plain = cap is None or (cap.reference is None and cap.unit is None and cap.below == cap.above)
    if not plain:
        raise InvalidInput(
            "program='published' clips the terms of single records at a cap about 0: leave center, "
            "calibration and unit out, or program="
        )
    everything = {
        "n": design.y.size,
        "P": design.X.shape[1],
        "K": getattr(model, "n_components", design.X.shape[1]),
        "X": design.X,
        "y": outcome,
        "outcome": outcome,
        "weights": alpha,
        "alpha": alpha,
        "M": _NONE if cap is None or not np.isfinite(cap.below) else cap.below,
    }
    return {name: everything[name] for name in PUBLISHED[model.program_name]}
