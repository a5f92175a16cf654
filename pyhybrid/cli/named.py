"""``NAME:key=value,key=value``: text of the command line as settings of a class."""

from __future__ import annotations

import types
import typing
from dataclasses import fields
from pathlib import Path
from typing import Any

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import InvalidInput

__all__ = ["converted", "named", "values_of"]

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def named(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of ``NAME:key=value,key=value``."""
    name, _, rest = text.partition(":")
    parts = (part.partition("=") for part in filter(None, rest.split(",")))
    return name.strip(), {key.strip(): value.strip() for key, _, value in parts}


def values_of(what: str, cls: type, given: dict[str, Any], positional: set[str]) -> dict[str, Any]:
    """Options converted to the types of the fields of `cls`."""
    taken = {f.name: f for f in fields(cls) if f.name not in positional}
    types_of = {name: _type_of(cls, name) for name in taken}
    values = {}
    for key, value in given.items():
        if key not in types_of:
            known = ", ".join(sorted(types_of)) or "none"
            option = key.replace("_", "-")
            raise InvalidInput(
                f"{what} takes no --{option}{did_you_mean(key, types_of)}; its options are {known}"
            )
        if taken[key].metadata.get("confidential") and isinstance(value, str):
            values[key] = _from_file(value, key)
        else:
            values[key] = converted(value, types_of[key], key)
    return values


def _from_file(value: str, key: str) -> float:
    """The number in FILE, given as ``@FILE``: no confidential one must be on a command line."""
    if not value.startswith("@"):
        raise InvalidInput(
            f"{key} is confidential, and the list of processes shows a command line: write it to a "
            f"file that only you can read, and give {key}=@FILE"
        )
    try:
        return float(Path(value[1:]).read_text(encoding="utf-8"))
    except OSError:
        raise InvalidInput(f"{key} must be in a readable file: {value[1:]} is none") from None
    except ValueError:  # UnicodeDecodeError, too
        raise InvalidInput(f"{key}: {value[1:]} must hold one number and nothing else") from None


def _type_of(cls: type, name: str) -> Any:
    """The type that the text of a field is read as."""
    hint = typing.get_type_hints(cls)[name]
    if isinstance(hint, types.UnionType):
        hint = next(kind for kind in typing.get_args(hint) if kind is not type(None))
    return typing.get_origin(hint) or hint


def _levels(texts: list[str]) -> tuple[Any, ...]:
    """Numbers if all of them are, as they would be written; "01" is a text."""
    for kind in (int, float):
        try:
            if [str(kind(text)) for text in texts] == texts:
                return tuple(map(kind, texts))
        except ValueError:
            pass
    return tuple(texts)


def converted(value: Any, kind: Any, key: str) -> Any:
    if not isinstance(value, str) or kind is str:
        return value
    if kind is bool:
        return _TRUTH.get(value.lower(), value)
    if kind is tuple:
        return _levels(value.split("+")) if key == "levels" else tuple(value.split("+"))
    if kind not in (float, int):
        raise InvalidInput(f"{key} cannot be given on the command line")
    try:
        return kind(value)
    except ValueError:
        what = "a number" if kind is float else "a whole number"
        raise InvalidInput(f"{key} must be {what}: found {value!r}") from None
