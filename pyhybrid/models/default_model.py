"""The model that a column gets by what it holds: a draft, which its owner reads, declares, and so
makes public, or the model of a local release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.base import Model
from pyhybrid.models.columns.support import codes_among, decimals_of
from pyhybrid.models.families.amounts import Gamma, LogNormal, NormalRegression
from pyhybrid.models.families.counts import NegativeBinomial, Poisson
from pyhybrid.models.families.levels import Bernoulli, Categorical, Ordinal
from pyhybrid.models.families.normal_mixture import MixtureRegression
from pyhybrid.models.families.proportions import Beta, BetaRegression
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.models.formula.values import is_number

MODELS: Mapping[str, Callable[..., Model]] = {
    "negative_binomial": NegativeBinomial,
    "poisson": Poisson,
    "beta": Beta,
    "beta_regression": BetaRegression,
    "normal": NormalRegression,
    "mixture": MixtureRegression,
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "ordinal": Ordinal,
    "lognormal": LogNormal,
    "gamma": Gamma,
}
"""Models by their name on the command line; each takes a formula."""
_FEW_NUMBERS, _MOST_LEVELS = 10, 30
_MOST_DECIMALS = 4
_MANY = 0.02  # of the records: from here on zeros and missing values get a block
_LARGE = 1000  # median of whole numbers that are amounts
_SHARED = 20  # records: each of k has a mu of about 1 / sqrt(k)


def as_text(value: Any) -> str:
    """A setting as on the command line; a number in digits that are read as the number again."""
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value)).removesuffix(".0") if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class SuggestedModel:
    """A model by its name and settings, and in words what the column seems to hold."""

    name: str
    holds: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def but(self, holds: str, **settings: Any) -> SuggestedModel:
        """The same with more words and settings."""
        return SuggestedModel(self.name, self.holds + holds, {**self.settings, **settings})

    def __str__(self) -> str:
        """As on the command line: ``lognormal:decimals=2,unit=1000``."""
        given = ",".join(f"{name}={as_text(value)}" for name, value in self.settings.items())
        return f"{self.name}:{given}" if given else self.name


def suggest_model(column: pd.Series) -> SuggestedModel:
    """The model for an outcome, by kind and shape of what it holds.

    Levels give Bernoulli, Categorical or, in an order, Ordinal; whole numbers counts, or levels if
    there are few; other numbers shares within 0 and 1, amounts above 0 by the shape of their
    logarithms, or numbers of any sign. Numbers that seem to be answers,
    and from 2 % on missing values, and zeros among amounts, are modeled in blocks of their own;
    fewer of these count as absent. InvalidInput for columns of one value or
    none, and of text of too many levels.
    """
    held = column.dropna()
    if is_number(held):
        held = held[np.isfinite(held.to_numpy(dtype=np.float64))]
    if held.nunique() < 2:
        raise InvalidInput(f"outcome {str(column.name)!r} must hold two values or more")
    suggested = _of_numbers(held) if is_number(held) else _of_levels(held, str(column.name))
    if codes := codes_among(held):
        of_amounts = _of_numbers(held[~held.isin(codes)])
        if "levels" not in of_amounts.settings:
            suggested = of_amounts.but(f", and codes {', '.join(map(str, codes))}", codes=codes)
    if column.isna().mean() >= _MANY:
        return suggested.but(", and missing values", missing=True)
    few = ", and missing values, which get synthetic ones"
    return suggested.but(few) if len(held) < len(column) else suggested


def _of_levels(column: pd.Series, outcome: str) -> SuggestedModel:
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels, ordered = tuple(column.cat.categories), bool(column.cat.ordered)
    else:
        levels, ordered = tuple(sorted(column.unique(), key=str)), False
    if len(levels) > _MOST_LEVELS:
        raise InvalidInput(
            f"outcome {outcome!r} must have at most {_MOST_LEVELS} levels for a model: it has "
            f"{len(levels)}; put levels together, or release the whole table"
        )
    order = "in an order" if ordered else "in no order"
    holds = "two levels" if len(levels) == 2 else f"{len(levels)} levels {order}"
    of_many = "ordinal" if ordered else "categorical"
    name = "bernoulli" if len(levels) == 2 else of_many
    return SuggestedModel(name, holds, {"levels": levels})


def _of_numbers(column: pd.Series) -> SuggestedModel:
    y = column.to_numpy(dtype=np.float64)
    values, above = np.unique(y), y[y > 0]
    whole = bool((values == np.floor(values)).all())
    if whole and values.size <= _FEW_NUMBERS:
        levels = tuple(int(value) for value in values)
        if len(levels) == 2:
            return SuggestedModel("bernoulli", "two numbers", {"levels": levels})
        holds = f"{len(levels)} whole numbers, taken as levels in order"
        return SuggestedModel("ordinal", holds, {"levels": levels})
    # whole numbers that are mostly large are money, not counts
    if whole and values[0] >= 0 and np.median(above) < _LARGE:
        if y.var() >= y.mean():
            return SuggestedModel("negative_binomial", "counts")
        return _normal(y, 0, "whole numbers of less spread than counts have").but("", lower=0)
    decimals = decimals_of(y)
    decimals = _MOST_DECIMALS if decimals is None else min(decimals, _MOST_DECIMALS)
    if values[0] < 0:
        return _normal(y, decimals, "numbers of any sign")
    suggested = _positive(above, decimals)
    if not (y == 0).any():
        return suggested
    many = (y == 0).mean() >= _MANY
    few = ", and a few zeros, which get amounts"
    return suggested.but(", and zeros", zeros=True) if many else suggested.but(few)


def _positive(y: FloatArray, decimals: int) -> SuggestedModel:
    """The model for shares, or amounts above 0."""
    if y.max() <= 1:
        return SuggestedModel("beta_regression", "shares from 0 to 1", {"decimals": decimals})
    settings = {"decimals": decimals, "unit": _round_number(float(np.median(y)))}
    # Of a gamma, logarithms are skewed to the left by about half of its skewness.
    if _skewness(np.log(y)) > -0.25 * _skewness(y):
        return SuggestedModel("lognormal", "skewed amounts above 0", settings)
    return SuggestedModel("gamma", "amounts above 0", settings)


def _normal(y: FloatArray, decimals: int, holds: str) -> SuggestedModel:
    """A normal model of y over a round unit; of long tails, of asinh(y / unit)."""
    center, spread = float(np.median(y)), float(np.quantile(y, 0.84) - np.quantile(y, 0.16)) / 2
    far = abs(center) > 2 * spread
    unit = _round_number(max(abs(center), spread) if far else spread or float(y.std()))
    settings: dict[str, Any] = {"decimals": decimals, "unit": unit}
    if abs(_skewness(y)) > 1.5 and not far:
        settings = {"transform": "asinh", **settings}
        return SuggestedModel("normal", f"{holds}, with long tails", settings)
    return SuggestedModel("normal", holds, settings)


def _skewness(y: FloatArray) -> float:
    spread = float(y.std())
    return float((((y - y.mean()) / spread) ** 3).mean()) if spread else 0.0


def _round_number(value: float) -> float:
    """To one digit."""
    return float(f"{value:.0e}") or 1.0


def chosen_model(formula: str, df: pd.DataFrame, *, of_reference: bool = False) -> Model:
    """The model that `suggest_model` has for the outcome's column.

    Levels of text and decimals are declared where `df` is a reference; where it holds the records
    that are released they are left to be read, as a charge then says, and few counts from 0 on are
    no levels if one of them has fewer than 20 records, each of which would inform its threshold.
    """
    outcome = df[parse_formula(formula, df).outcome]
    if len(df) < 2 or outcome.isin([np.inf, -np.inf]).any():
        return NegativeBinomial(formula)  # which refuses them
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
            return NegativeBinomial(formula, **settings)
    return MODELS[suggested.name](formula, **settings)


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
