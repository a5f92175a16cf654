"""From names and options of the command line to models and mechanisms."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, replace
from typing import Any

from pyhybrid.engines import SamplerSettings
from pyhybrid.errors import InvalidInput
from pyhybrid.mechanisms import MECHANISMS, PseudoPosteriorMechanism
from pyhybrid.models import MODELS, Model
from pyhybrid.reweighting import Reweighting
from pyhybrid.validation import check_choice

__all__ = ["build_mechanism", "build_model", "reweighting_of", "sampler_settings"]

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def build_model(name: str, formula: str) -> Model:
    """Return the model `name` for `formula`; the message of an unknown name lists the known."""
    return MODELS[check_choice(name, "--model", MODELS)](formula)


def build_mechanism(
    text: str, model: Model, options: dict[str, Any] | None = None
) -> PseudoPosteriorMechanism:
    """Return the mechanism that `text` names: ``NAME`` or ``NAME:key=value,key=value``.

    Parameters
    ----------
    text : str
        E.g. ``"lipschitz:scale=0.7,reweighting=true"``; several values of a key are joined by
        ``+`` (``"count:pattern=sex+region"``).
    model : Model
    options : dict, optional
        Values from options of their own; None keeps the default.

    Raises
    ------
    InvalidInput
        For an unknown name, an option the mechanism does not take, or a value of another type.
    """
    name, _, rest = text.partition(":")
    cls = MECHANISMS[check_choice(name.strip(), "--mechanism", MECHANISMS)]
    types_of = {f.name: _type_of(cls, f.name) for f in fields(cls) if f.name != "model"}
    given = {k: v for k, v in (options or {}).items() if v is not None}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        given[key.strip()] = value.strip()
    values = {}
    for key, value in given.items():
        if key not in types_of:
            known = ", ".join(sorted(types_of))
            option = key.replace("_", "-")
            raise InvalidInput(f"--mechanism {name} takes no --{option}; it takes {known}")
        values[key] = _converted(value, types_of[key], key)
    return cls(model, **values)


def _type_of(cls: type, name: str) -> Any:
    """The type that the text of a field is read as."""
    hint = typing.get_type_hints(cls)[name]
    if isinstance(hint, types.UnionType):
        return next(kind for kind in typing.get_args(hint) if kind is not type(None))
    return typing.get_origin(hint) or hint


def _converted(value: Any, kind: Any, key: str) -> Any:
    if not isinstance(value, str) or kind is str:
        return value
    if kind is bool:
        return _TRUTH.get(value.lower(), value)
    if kind is tuple:
        return tuple(value.split("+"))
    if kind is not float:
        raise InvalidInput(f"{key} cannot be given on the command line")
    try:
        return float(value)
    except ValueError:
        raise InvalidInput(f"{key} must be a number: found {value!r}") from None


def reweighting_of(reweight: bool, k: float | None, single_step: bool) -> bool | Reweighting | None:
    """What --reweight, --k and --single-step say of re-weighting; None keeps the default."""
    if not reweight:
        if k is not None or single_step:
            raise InvalidInput("--k and --single-step go with --reweight")
        return None
    plan = Reweighting(recursive=not single_step)
    return plan if k is None else replace(plan, k=k)


def sampler_settings(
    chains: int | None, warmup: int | None, draws: int | None, adapt_delta: float | None
) -> SamplerSettings:
    """Sampler settings; None keeps the default."""
    given: dict[str, Any] = {
        "chains": chains,
        "warmup": warmup,
        "draws": draws,
        "adapt_delta": adapt_delta,
    }
    return SamplerSettings(**{k: v for k, v in given.items() if v is not None})
