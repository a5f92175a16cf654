"""From the description of a built-in model, as it is stored, to the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models import MODELS, Model, TwoPart, WithMissing, ZeroInflated

__all__ = ["described_model"]

_OF_PARTS = (TwoPart, WithMissing, ZeroInflated)


def described_model(settings: Mapping[str, Any]) -> Model:
    """The model that `Model.describe` described.

    A description may say more than the options that make the model, and leaves defaults out.

    Raises
    ------
    InvalidInput
        For a model that is not built in, such as a `StanModel`.
    """
    classes = {getattr(make, "__name__", ""): make for make in (*MODELS.values(), *_OF_PARTS)}
    if settings["model"] not in classes:
        raise InvalidInput(
            f"the calibration's model must be built in or given (model=, or --formula and --model "
            f"composed:... or stan:...): {settings['model']!r} is not built in"
        )
    make: Any = classes[settings["model"]]
    given = {f.name: settings[f.name] for f in fields(make) if f.init and f.name in settings}
    own: Model = make(**{name: _value(value) for name, value in given.items()})
    return own


def _value(value: Any) -> Any:
    """An option, or the model that it describes."""
    return described_model(value) if isinstance(value, Mapping) and "model" in value else value
