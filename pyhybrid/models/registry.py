"""The model that a column gets, and models by settings that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models import MODELS
from pyhybrid.models.base import Model
from pyhybrid.models.default_model import DefaultModel, suggest_model
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.models.formula.values import is_number

_SHARED = 20  # records: each of k has a mu of about 1 / sqrt(k)


def chosen_model(formula: str, df: pd.DataFrame, *, of_reference: bool = False) -> Model:
    """The model that `suggest_model` has for the outcome's column.

    Levels of text and decimals are declared where `df` is a reference; where it holds the records
    that are released they are left to be read, as a charge then says, and few counts from 0 on are
    no levels if one of them has fewer than 20 records, each of which would inform its threshold.
    """
    outcome = df[parse_formula(formula, df).outcome]
    if len(df) < 2 or outcome.isin([np.inf, -np.inf]).any():
        return DefaultModel(formula)  # which refuses them
    suggested = suggest_model(outcome)
    settings = dict(suggested.settings)
    if outcome.isna().any():  # and all others stay in: a sampled model refuses what it cannot take
        settings["missing"] = True
    if suggested.name in ("lognormal", "gamma") and (outcome == 0).any():
        settings["zeros"] = True
    if not of_reference:
        settings.pop("decimals", None)
        if not is_number(outcome):
            settings.pop("levels", None)
        rare = outcome.min() == 0 and outcome.value_counts().min() < _SHARED
        if suggested.name == "ordinal" and is_number(outcome) and rare:
            settings.pop("levels")
            return MODELS["negative_binomial"](formula, **settings)
    model: Model = MODELS[suggested.name](formula, **settings)
    return model


def described_model(settings: Mapping[str, Any]) -> Model:
    """The model that `Model.describe` described, which may say more than the options that make the
    model, and leaves defaults out."""
    name = settings["model"]
    make: Any = next((m for m in MODELS.values() if getattr(m, "__name__", "") == name), None)
    if make is None:
        raise InvalidInput(f"the calibration's model must be built in: {name!r} is not")
    given = {f.name: settings[f.name] for f in fields(make) if f.init and f.name in settings}
    model: Model = make(**given)
    return model
