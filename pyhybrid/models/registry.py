"""The model that a column gets, and models by name and settings that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models import MODELS
from pyhybrid.models.base import Model
from pyhybrid.models.columns.kinds import Number, kind_of
from pyhybrid.models.columns.support import decimals_of
from pyhybrid.models.default_model import DefaultModel, has_zeros, name_and_options
from pyhybrid.models.families.amounts import BoundedModel, Gamma
from pyhybrid.models.families.counts import CountModel
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.models.two_block import BlockModel


def within(model: Any, lower: float | None, upper: float | None) -> Any:
    """The model, none of whose replicates leave the declared range: they are truncated, and the
    likelihood is what it was. Ends that it has already are kept where they are narrower."""
    if lower is None and upper is None:
        return model
    low, high = (getattr(model, name, None) for name in ("lower", "upper"))
    positive = isinstance(model, Gamma) or getattr(model, "transform", "") == "log"
    if positive and lower is not None and lower <= 0:
        lower = None
    own: dict[str, Any] = {
        "lower": max((end for end in (low, lower) if end is not None), default=None),
        "upper": min((end for end in (high, upper) if end is not None), default=None),
    }
    if isinstance(model, CountModel):
        own["lower"] = math.ceil(own["lower"] or 0)
        own["upper"] = None if own["upper"] is None else math.floor(own["upper"])
    elif not isinstance(model, BoundedModel) and (low, high) != (own["lower"], own["upper"]):
        raise InvalidInput(
            f"{model.name} must keep to the declared range of its column: it takes no ends that "
            "replicates are drawn within; take another model, or declare no lower and upper"
        )
    return replace(model, **own)


def chosen_model(formula: str, df: pd.DataFrame, *, of_reference: bool = False) -> Model:
    """The model for what the outcome's column holds: its support, zeros, shape and missing values.

    Levels and decimals are declared where `df` is a reference; where it holds the records that are
    released they are left to be read, as a charge then says.
    """
    name = parse_formula(formula, df).outcome
    outcome = df[name]
    if len(df) < 2 or outcome.isin([np.inf, -np.inf]).any():
        return DefaultModel(formula)  # which refuses them
    rest, blocks = df[outcome.notna()], dict[str, bool]()
    if len(rest) < len(df):
        blocks["missing"] = True
    kind = kind_of(rest[name])
    if has_zeros(kind, rest[name]):
        others = rest[rest[name] != 0]
        if isinstance(kind_of(others[name]), Number):
            blocks["zeros"], rest, kind = True, others, kind_of(others[name])
    chosen, options = name_and_options(kind, formula, rest, of_reference=of_reference)
    if "levels" in options:
        blocks.pop("zeros", None)
    model: Model = MODELS[chosen](formula, **options, **blocks)
    if of_reference:
        model = declared_by(model, formula, df)
    if "levels" in options or not isinstance(kind, Number):
        return model
    lower = 0 if kind.lower is None and outcome.min() >= 0 else kind.lower
    return within(model, lower, kind.upper)  # type: ignore[no-any-return]


def declared_by(model: Model, formula: str, reference: pd.DataFrame) -> Model:
    """The model with what a public reference tells where nothing is given: decimals, and whether
    the outcome may be missing."""
    outcome = reference[parse_formula(formula, reference).outcome]
    if not isinstance(model, BlockModel):
        return model
    if outcome.isna().any():
        model = replace(model, missing=True)
    if pd.api.types.is_numeric_dtype(outcome) and model.given_decimals is None:
        read = decimals_of(outcome.dropna().to_numpy(dtype=np.float64))
        decimals = kind_of(outcome).form.decimals if read is None else read
        own: Any = model
        return replace(own, decimals=decimals)  # type: ignore[no-any-return]
    return model


def name_and_settings(model: Any) -> tuple[str, dict[str, str]]:
    """What the command line names a chosen model by: name and settings that are no defaults."""
    names = {getattr(make, "__name__", ""): name for name, make in MODELS.items()}
    settings = {}
    for each in fields(model):
        value = getattr(model, each.name)
        if each.init and each.name != "formula" and value not in (None, each.default):
            shown = "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
            settings[each.name] = _exact(value) if isinstance(value, float) else shown
    return names.get(model.name, model.name), settings


def _exact(value: float) -> str:
    """Digits that are read as the value again: an end that is rounded may leave data outside."""
    return repr(float(value)).removesuffix(".0")


def described_model(settings: Mapping[str, Any]) -> Model:
    """The model that `Model.describe` described, which may say more than the options that make the
    model, and leaves defaults out."""
    classes = {getattr(make, "__name__", ""): make for make in MODELS.values()}
    if settings["model"] not in classes:
        raise InvalidInput(
            f"the calibration's model must be built in: {settings['model']!r} is not"
        )
    make: Any = classes[settings["model"]]
    given = {f.name: settings[f.name] for f in fields(make) if f.init and f.name in settings}
    made: Model = make(**given)
    return made
