"""From names and options of the command line to models and mechanisms."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pyhybrid.engines import SamplerSettings
from pyhybrid.errors import InvalidInput
from pyhybrid.mechanisms import MECHANISMS, PseudoPosteriorMechanism
from pyhybrid.models import MODELS, Model
from pyhybrid.validation import check_choice

__all__ = ["build_mechanism", "build_model", "sampler_settings"]


def build_model(name: str, formula: str) -> Model:
    """Return the model `name` for `formula`; the message of an unknown name lists the known."""
    return MODELS[check_choice(name, "--model", MODELS)](formula)


def build_mechanism(name: str, model: Model, options: dict[str, Any]) -> PseudoPosteriorMechanism:
    """Return the mechanism `name`; options that were not given (None) keep their defaults.

    Raises
    ------
    InvalidInput
        For an unknown name, or an option that the mechanism does not take.
    """
    cls = MECHANISMS[check_choice(name, "--mechanism", MECHANISMS)]
    given = {option: value for option, value in options.items() if value is not None}
    known = {f.name for f in fields(cls)}
    for option in given:
        if option not in known:
            raise InvalidInput(f"--mechanism {name} takes no --{option.replace('_', '-')}")
    return cls(model, **given)


def sampler_settings(
    chains: int | None, warmup: int | None, draws: int | None, adapt_delta: float | None
) -> SamplerSettings:
    """Sampler settings; None keeps the default."""
    given = {"chains": chains, "warmup": warmup, "draws": draws, "adapt_delta": adapt_delta}
    return SamplerSettings(**{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
