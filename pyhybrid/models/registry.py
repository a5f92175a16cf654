"""Models of whole tables, built from a name, a formula and settings that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import check_choice
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models import MODELS
from pyhybrid.models.base import Model
from pyhybrid.models.columns.kinds import Counts, Number, kind_of
from pyhybrid.models.columns.support import decimals_of
from pyhybrid.models.composite.steps import PartsModel
from pyhybrid.models.composite.two_part import TwoPart, ZeroInflated
from pyhybrid.models.composite.with_missing import WithMissing
from pyhybrid.models.default_model import (
    SHARED,
    DefaultModel,
    name_and_options,
    point_mass,
)
from pyhybrid.models.families.amounts import BoundedModel, Gamma, LogNormal
from pyhybrid.models.families.counts import CountModel, NegativeBinomial
from pyhybrid.models.families.levels import Bernoulli
from pyhybrid.models.families.regression import RegressionModel
from pyhybrid.models.formula.terms import parse_formula, sides_of
from pyhybrid.models.formula.values import kind_of as kind_of_values

_LEAST_SD, _LEAST_SD_ALONE = 0.1, 0.5
"""Of the logs of amounts below 0, with predictors and without: where these fit the few that there
are without any error, or few are alike, chains follow sigma to 0."""
PREDICTED = "predicted"
"""Of `negative`: both sides of zero by the formula."""


def _two_part(
    formula: str, *, unit: float = 1.0, decimals: int | None = None, negative: bool | str = True
) -> TwoPart:
    """Zeros and amounts above 0, both by one formula; with `negative` also below it: whether and
    how far without predictors, as few records would have to tell many coefficients, or by the
    formula if it is "predicted"."""
    if not isinstance(negative, bool) and negative != PREDICTED:
        raise InvalidInput(f"negative must be True, False or {PREDICTED!r}: found {negative!r}")
    zero, positive = Bernoulli(formula), LogNormal(formula, unit=unit, decimals=decimals)
    if not negative:
        return TwoPart(zero=zero, positive=positive)
    if negative == PREDICTED:
        below = replace(positive, min_sd=_LEAST_SD)
        return TwoPart(zero=zero, positive=positive, negative=below)
    alone = formula.rstrip().removesuffix(sides_of(formula)[1]) + "1"
    return TwoPart(
        zero=zero,
        positive=positive,
        sign=replace(zero, formula=alone),
        negative=replace(positive, formula=alone, min_sd=_LEAST_SD_ALONE),
    )


def _zero_inflated(
    formula: str, *, prior: str = "normal", upper: int | None = None
) -> ZeroInflated:
    """Negative binomial counts and extra zeros, both by one formula."""
    count = NegativeBinomial(formula, prior=prior, upper=upper)
    return ZeroInflated(count, zero=Bernoulli(formula, prior=prior))


_OF_PARTS: Mapping[str, tuple[type, Callable[..., Any]]] = {
    "two_part": (TwoPart, _two_part), "zero_inflated": (ZeroInflated, _zero_inflated)
}  # fmt: skip
BUILT: Mapping[str, Callable[..., Any]] = {
    **MODELS, **{name: make for name, (_, make) in _OF_PARTS.items()}
}  # fmt: skip
"""Makers of models by name; each takes a formula and settings."""


def within(model: Any, lower: float | None, upper: float | None) -> Any:
    """The model, none of whose replicates leave the declared range: they are truncated, and the
    likelihood is what it was. Ends that it has already are kept where they are narrower."""
    if lower is None and upper is None:
        return model
    if isinstance(model, WithMissing):
        return replace(model, value=within(model.value, lower, upper))
    if isinstance(model, ZeroInflated):
        return replace(model, count=within(model.count, lower, upper))
    if isinstance(model, TwoPart):
        below = model.negative
        if below is not None and lower is not None and lower < 0:
            below = within(below, None, -lower)
        return replace(model, positive=within(model.positive, lower, upper), negative=below)
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


def build_model(
    name: str,
    formula: str,
    options: Mapping[str, Any],
    *,
    missing: bool = False,
    fill: Mapping[str, float] | None = None,
    marked: Sequence[str] | None = None,
    complete: bool | None = None,
) -> Model:
    """The model of a name; with `missing`, or numbers to `fill` in, one of missing values as well,
    of predictors alone if the outcome is `complete`."""
    check_choice(name, "model", BUILT)
    try:
        model: Model = BUILT[name](formula, **options)
    except TypeError:
        raise InvalidInput(
            f"settings of {name} must be its own: found {', '.join(map(str, options))}"
        ) from None
    if not missing and not fill:
        return model
    made: Model = WithMissing(model, fill=fill, marked=marked, complete=complete)  # type: ignore[arg-type]
    return made


def chosen_model(formula: str, df: pd.DataFrame, *, of_reference: bool = False) -> Model:
    """The model for what the outcome's column holds: its support, zeros, shape and missing values.

    Levels and decimals are declared where `df` is a reference; where it holds the records that are
    released they are left to be read, as a charge then says.
    """
    parsed = parse_formula(formula, df)
    outcome, reads = df[parsed.outcome], df[list(parsed.predictors)]
    if len(df) < 2 or outcome.isin([np.inf, -np.inf]).any():
        return DefaultModel(formula)  # which refuses them
    kind = kind_of(outcome)
    name, options = name_and_options(kind, formula, df, of_reference=of_reference)
    single = name in MODELS and "levels" not in options
    counted = isinstance(kind, Counts)
    point = point_mass(outcome.dropna(), counted=counted) if single else None
    if options.get("negative") is False:
        point = 0.0
    if point is not None:
        rest = df[outcome != point]
        kind = kind_of(rest[parsed.outcome])
        name, options = name_and_options(kind, formula, rest, of_reference=of_reference)
    gone = bool(outcome.isna().any())
    lacking = reads.loc[:, reads.isna().any()]
    model = build_model(
        name, formula, options, missing=gone or not lacking.empty, complete=None if gone else True
    )
    if point is not None:
        model = _about_point(model, point)
    if of_reference:
        model = declared_by(model, formula, df)
    elif isinstance(model, WithMissing):
        model = _without_rare_effects(model, outcome, lacking)
    if "levels" in options or not isinstance(kind, Number):
        return model
    lower = 0 if kind.lower is None and outcome.min() >= 0 else kind.lower
    upper = kind.upper
    if point is not None and not of_reference:  # where values are cut off
        lower = point if point == outcome.min() else lower
        upper = point if point == outcome.max() else upper
    return within(model, lower, upper)  # type: ignore[no-any-return]


def _about_point(model: Any, point: float) -> Model:
    """Whether a value is at the point, and the model for all others."""
    if isinstance(model, WithMissing):
        return replace(model, value=_about_point(model.value, point))  # type: ignore[arg-type]
    if not isinstance(model, RegressionModel):  # zeros beside the point
        return model  # type: ignore[no-any-return]
    return TwoPart(zero=Bernoulli(model.formula), positive=model, point=point)


def declared_by(model: Model, formula: str, reference: pd.DataFrame) -> Model:
    """The model with what a public reference tells where nothing is given: decimals, and what may
    be missing."""
    parsed = parse_formula(formula, reference)
    outcome, reads = reference[parsed.outcome], reference[list(parsed.predictors)]
    own = model.value if isinstance(model, WithMissing) else model
    if pd.api.types.is_numeric_dtype(outcome):
        read = decimals_of(outcome.dropna().to_numpy(dtype=np.float64))
        own = _with_decimals(own, kind_of(outcome).form.decimals if read is None else read)
    gone, lacking = bool(outcome.isna().any()), reads.loc[:, reads.isna().any()]
    if not isinstance(model, WithMissing):
        if not isinstance(own, RegressionModel | PartsModel) or not (gone or lacking.size):
            return own
        model = WithMissing(own, complete=None if gone else True)
    medians = {str(k): float(v) for k, v in reads.median(numeric_only=True).items()}
    marked = tuple(_marked(lacking, 0)) if model.marked is None else model.marked
    return replace(model, value=own, fill=medians | dict(model.fill or {}), marked=marked)  # type: ignore[arg-type]


def _with_decimals(model: Model, decimals: int | None) -> Model:
    if isinstance(model, TwoPart):
        positive, negative = (
            part and _with_decimals(part, decimals) for part in (model.positive, model.negative)
        )
        return replace(model, positive=positive, negative=negative)  # type: ignore[arg-type]
    lacks = getattr(model, "decimals", decimals) is None
    return replace(model, decimals=decimals) if lacks else model  # type: ignore[type-var]


def _marked(lacking: pd.DataFrame, least: int) -> list[str]:
    """Predictors that have a level or an indicator of missing values: all with levels, and numbers
    that so many records lack, of one pattern once."""
    marked, patterns = list[str](), set[bytes]()
    for name, values in lacking.items():
        gone = values.isna().to_numpy(dtype=bool)
        if kind_of_values(values) == "numbers":
            if gone.sum() < least or gone.tobytes() in patterns:
                continue
            patterns.add(gone.tobytes())
        marked.append(str(name))
    return marked


def _without_rare_effects(model: WithMissing, outcome: pd.Series, lacking: pd.DataFrame) -> Model:
    """No indicator of numbers that few records lack, and no predictors of few missing outcomes:
    few records set such an effect, and pay for it."""
    marked = _marked(lacking, SHARED)
    if marked != _marked(lacking, 0):
        model = replace(model, marked=tuple(marked))
    left, _, right = model.missing_model.formula.partition("~")
    if 0 < outcome.isna().sum() < SHARED * (1 + len(right.split("+"))):
        model = replace(model, missing=Bernoulli(f"{left.strip()} ~ 1"))
    return model


def name_and_settings(model: Model) -> tuple[str, dict[str, str]]:
    """What the command line names a chosen model by: name and settings that are no defaults."""
    if isinstance(model, WithMissing):
        name, settings = name_and_settings(model.value)
        return name, {**settings, "missing": "predictors" if model.complete else "model"}
    own: Any = getattr(model, "positive", getattr(model, "count", model))
    names = {getattr(make, "__name__", ""): name for name, make in MODELS.items()}
    names |= {part.__name__: name for name, (part, _) in _OF_PARTS.items()}
    negative = getattr(model, "negative", None)
    settings = {} if negative is None else {"negative": names[negative.name]}
    if isinstance(model, TwoPart) and not isinstance(own, LogNormal):
        settings |= {"positive": names[own.name]}
    if isinstance(model, TwoPart) and model.point:
        settings |= {"point": _exact(model.point)}
    for each in fields(own):
        value = getattr(own, each.name)
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
    parts = (part for part, _ in _OF_PARTS.values())
    makers = (*MODELS.values(), WithMissing, *parts)
    classes = {getattr(make, "__name__", ""): make for make in makers}
    if settings["model"] not in classes:
        raise InvalidInput(
            f"the calibration's model must be built in: {settings['model']!r} is not"
        )
    make: Any = classes[settings["model"]]
    given = {f.name: settings[f.name] for f in fields(make) if f.init and f.name in settings}
    own: Model = make(**{name: _value(value) for name, value in given.items()})
    return own


def _value(value: Any) -> Any:
    """An option, or the model that it describes."""
    return described_model(value) if isinstance(value, Mapping) and "model" in value else value
