"""Texts of options that name files, columns, models, mechanisms and settings."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from pyhybrid.cli.console import note
from pyhybrid.core.checks import check_choice, did_you_mean
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.mechanisms import MECHANISMS, MODEL_FREE, Censored, ClippedScores, NoisyMarginals
from pyhybrid.models import MODELS, Model, StanModel
from pyhybrid.models.columns.form import Form
from pyhybrid.models.default_model import chosen_model
from pyhybrid.models.formula.terms import sides_of
from pyhybrid.tables.read import SourceTable, read_file, text_among_numbers

OWN_PROGRAM, CLIPPED = "stan", "clipped-scores"
MODEL_NAMES, OVER_A_MODEL = (*MODELS, OWN_PROGRAM), (*MECHANISMS, CLIPPED)
MECHANISM_NAMES = (*OVER_A_MODEL, *MODEL_FREE)
"""What --model and --mechanism can name."""


def read_table(
    path: Path, unsaid: Collection[str] = (), read: Sequence[str] | None = None,
    declared: Mapping[str, Form] | None = None,
) -> SourceTable:  # fmt: skip
    """The table of a file, written as `read` says, with a note on what was taken for it and on each
    column of numbers that has text among them, but for the columns `unsaid`."""
    given: dict[str, Any] = {}
    for key, mark, value in (text.partition("=") for text in read or ()):
        name = check_choice(key.strip(), "--read", _READINGS)
        if not mark or not value:
            raise InvalidInput(f"--read must be KEY=VALUE, such as decimal=, : found {key!r}")
        if name in ("missing", "numbers"):  # 90+ is one mark
            given[name] = [*given.get(name, ()), *re.split(r"(?<=.)\+(?=[^+])", value)]
        else:
            given[name] = {"tab": "\t", "\\t": "\t"}.get(value, value)
    formulas = check_choice(given.pop("formulas", "kept"), "formulas", ("kept", "escaped"))
    source = replace(read_file(path, **given, declared=declared), excel_safe=formulas == "escaped")
    columns = {name: why for name, why in source.remarks.items() if name not in unsaid}
    for line in (*source.of_file, *(f"column {name!r}: {why}" for name, why in columns.items())):
        note(f"{source.name}: {line}")
    if any(f"{key}=" in why for why in columns.values() for key in _READINGS):
        note("how cells are written is said by --read, e.g. --read decimal=, --read missing=.+N")
    return source


_READINGS = (
    "decimal", "thousands", "signs", "missing", "numbers", "separator", "encoding", "sheet",
    "formulas",
)  # fmt: skip


def names_of(given: Sequence[str] | None, columns: Iterable[Any]) -> list[str]:
    """Names of columns of an option that may be repeated: one each, or with commas between."""
    known = set(map(str, columns))
    parts = [[text] if text in known else text.split(",") for text in given or ()]
    names = (name.strip() for part in parts for name in part)
    return list(dict.fromkeys(name for name in names if name))


def check_once(given: Sequence[str], what: str) -> None:
    """Refuse what is named twice."""
    twice = [name for name in given if list(given).count(name) > 1]
    if twice:
        raise InvalidInput(f"each {what} must be given once: {twice[0]!r} is there twice")


class Named(NamedTuple):
    """A model or mechanism with its settings."""

    name: str
    settings: dict[str, Any]


def named(text: str, known: Collection[str] = (), option: str = "--mechanism") -> Named:
    """The parts of ``NAME:key=value,key=value``; the name one of those `known`, if any are."""
    name, _, rest = text.partition(":")
    if known:
        check_choice(name.strip(), option, known)
    return Named(name.strip(), pairs(rest))


def pairs(text: str) -> dict[str, str]:
    """``key=value,key=value`` as a dictionary."""
    parts = (part.partition("=") for part in filter(None, text.split(",")))
    return {key.strip(): value.strip() for key, _, value in parts}


def fit_options(text: str | None, more: Mapping[str, type] | None = None) -> dict[str, Any]:
    """Keyword arguments of a fit from ``key=value,...``: engine, seed, on_not_converged, those of
    `more`, and `settings` from the fields of `SamplerSettings`."""
    given, taken = pairs(text or ""), {"engine": str, "seed": int, "on_not_converged": str}
    arguments = {key: converted(given.pop(key), kind, key)
                 for key, kind in {**taken, **(more or {})}.items() if key in given}  # fmt: skip
    if given:
        arguments["settings"] = SamplerSettings(**values_of("--fit", SamplerSettings, given))
    return arguments


def build_model(text: str, formula: str) -> Model:
    """The model that `text` names, ``NAME`` or ``NAME:key=value,...``, for `formula`.

    E.g. ``"beta:lower=0,upper=100"``, ``"lognormal:zeros=true,missing=true,decimals=0"``, or
    ``"stan:program=own.stan,predict=y_rep"`` for a program of the user's own, which gets the
    formula's design matrix.
    """
    name, given = named(text, MODEL_NAMES, "--model")
    if name != OWN_PROGRAM:
        cls: Any = MODELS[name]
        model: Model = cls(formula, **values_of(f"--model {name}", cls, given, {"formula"}))
        return model
    for key in ("program", "predict"):
        if not given.get(key):
            raise InvalidInput(
                f"--model stan needs {key}, e.g. stan:program=own.stan,predict=y_rep"
            )
    taken = {"outcome", "formula", "data", "predictors"}  # of the formula, or functions
    values = values_of("--model stan", StanModel, given, taken)
    return StanModel(values.pop("program"), outcome=sides_of(formula)[0], formula=formula, **values)


def build_mechanism(wanted: Named, model: Any, **shared: Any) -> Any:
    """The mechanism `wanted` over a model, or, if it takes none, over a formula; ``shared`` are
    settings from options of their own."""
    name, settings = wanted
    classes: dict[str, Any] = {CLIPPED: ClippedScores, **MECHANISMS, **MODEL_FREE}
    cls, what = classes[name], f"--mechanism {name}"
    shared = {key: value for key, value in shared.items() if value is not None}
    twice = sorted(shared.keys() & settings.keys())
    if twice:
        raise InvalidInput(f"{twice[0]} must be given once: it is also in --mechanism")
    settings = {**shared, **settings}
    if name in MODEL_FREE:
        if cls is NoisyMarginals:
            raise InvalidInput(f"{what} takes whole tables: leave --formula out, or use Python")
        return cls.for_formula(model, **values_of(what, cls, settings, {"column"}))
    inner = settings.pop("inner", None)  # by its name alone
    values = values_of(what, cls, settings, {"model", "start"})
    if inner is not None:
        unit = {key: values[key] for key in ("unit", "design") if key in values}
        values["inner"] = MECHANISMS[check_choice(inner, "inner", MECHANISMS)](model, **unit)
    return cls(model, **values)


def refuse_text(outcome: str, df: pd.DataFrame) -> None:
    """Refuse to choose a model for numbers with text among them."""
    if outcome in df and text_among_numbers(df[outcome]):
        raise InvalidInput(
            f"outcome {outcome!r} must be numbers: some cells are text; mend these, or declare "
            "--model: such cells then count as absent, or are levels of a categorical"
        )


def model_for(
    text: str | None,
    formula: str,
    df: pd.DataFrame,
    *,
    mechanism: str = "",
    of_reference: bool = False,
) -> Model:
    """The model named; or the one chosen for the outcome by what it holds, which is no strict
    charge's, with a note that says which, but for counts."""
    if text is not None:
        return build_model(text, formula)
    if MECHANISMS.get(mechanism) is Censored:
        raise InvalidInput("--mechanism censored needs --model: a strict charge covers no choice")
    refuse_text(sides_of(formula)[0], df)
    model = chosen_model(formula, df, of_reference=of_reference)
    name = next((key for key, make in MODELS.items() if make is type(model)), model.name)
    blocks = [f"{block}=true" for block in ("zeros", "missing") if getattr(model, block)]
    name = ":".join([name, ",".join(blocks)]) if blocks else name
    if name != "negative_binomial":
        note(f"model chosen by the column's values: {name}; --model chooses another")
    return model


def values_of(
    what: str, cls: type, given: Mapping[str, Any], positional: Collection[str] = ()
) -> dict[str, Any]:
    """Texts of settings converted to the types of the fields of `cls`; a confidential one must not
    be on a command line, which the list of processes shows."""
    taken = {field.name: field for field in fields(cls) if field.name not in positional}
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in given.items():
        if key not in taken:
            known = ", ".join(sorted(taken)) or "none"
            raise InvalidInput(f"{what} takes no {key}{did_you_mean(key, taken)}; it takes {known}")
        hint = hints[key]
        if isinstance(hint, types.UnionType):
            hint = next(kind for kind in typing.get_args(hint) if kind is not type(None))
        kind = None if taken[key].metadata.get("confidential") else typing.get_origin(hint) or hint
        values[key] = converted(value, kind, key)
    return values


_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def converted(value: Any, kind: Any, key: str) -> Any:
    """The text of a setting as its type; what is no text stays as it is."""
    if not isinstance(value, str) or kind is str:
        return value
    if kind is bool:
        return _TRUTH.get(value.lower(), value)
    if kind is tuple:
        return _levels(value.split("+")) if key in ("levels", "codes") else tuple(value.split("+"))
    if kind not in (float, int):
        raise InvalidInput(f"{key} cannot be given on the command line, only in Python")
    try:
        return kind(value)
    except ValueError:
        what = "a number" if kind is float else "a whole number"
        raise InvalidInput(f"{key} must be {what}: found {value!r}") from None


def _levels(texts: list[str]) -> tuple[Any, ...]:
    """Numbers if all of them are, as they would be written; "01" is a text."""
    for kind in (int, float):
        try:
            if [str(kind(text)) for text in texts] == texts:
                return tuple(map(kind, texts))
        except ValueError:
            pass
    return tuple(texts)
