"""Models of whole tables, built from a name, a formula and settings that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betainc, log_ndtr, ndtr, ndtri

from pyhybrid.core.checks import FloatArray, check_choice
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models import MODELS
from pyhybrid.models.base import Model
from pyhybrid.models.columns.kinds import Amounts, Counts, Kind, Leveled, Number, kind_of
from pyhybrid.models.columns.support import FEW, TRANSFORMS, decimals_of
from pyhybrid.models.composite.steps import PartsModel
from pyhybrid.models.composite.two_part import TwoPart, ZeroInflated
from pyhybrid.models.composite.with_missing import WithMissing
from pyhybrid.models.default_model import DefaultModel, name_for_levels, rule_for
from pyhybrid.models.families.amounts import BoundedModel, Gamma, LogNormal
from pyhybrid.models.families.counts import CountModel, NegativeBinomial
from pyhybrid.models.families.levels import Bernoulli
from pyhybrid.models.families.regression import RegressionModel
from pyhybrid.models.formula.design import read_design
from pyhybrid.models.formula.terms import parse_formula, sides_of
from pyhybrid.models.formula.values import kind_of as kind_of_values

_LEAST_SD, _LEAST_SD_ALONE = 0.1, 0.5
"""Of the logs of amounts below 0, with predictors and without: where these fit the few that there
are without any error, or few are alike, chains follow sigma to 0."""
_POINT, _ZEROS = 0.2, 0.1  # of the values
_MANY = 500  # values that two regressions need at a small epsilon
_NEARER = 0.05  # to a normal distribution than to that of counts, as hours worked with zeros are
_SHARED = 20  # records that set an effect at least: each of k has a mu of about 1 / sqrt(k)
_FAR, _ROUNDS = 3, 40  # standard errors of a mean and of one drawn anew; steps of a rough fit
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

GROUPED = frozenset(
    name for name, own in BUILT.items() if getattr(own, "takes_groups", own not in MODELS.values())
)
"""Names of those that read ``(1 | g)``: regressions, and what is made of them."""


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
    elif isinstance(model, BoundedModel):
        own["truncated"] = "draws" if (low, high) == (None, None) else model.truncated
    elif (low, high) != (own["lower"], own["upper"]):
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
    name, options = _name_and_options(kind, formula, df, of_reference=of_reference)
    point = None
    if name in MODELS and "levels" not in options:
        point = _point_mass(outcome.dropna(), counted=isinstance(kind, Counts))
    if point is not None:
        rest = df[outcome != point]
        of_rest = kind_of(rest[parsed.outcome])
        if isinstance(of_rest, Counts) and not float(point).is_integer():
            point = None  # others need not be whole
        else:
            kind = of_rest
            name, options = _name_and_options(kind, formula, rest, of_reference=of_reference)
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


def _point_mass(values: pd.Series, *, counted: bool) -> float | None:
    """The number that a fifth of the values are, or more, and no other half as many: 40 hours, or
    where amounts are cut off; or 0, of `counted` ones of which more are 0 than a negative binomial
    has, by a tenth. Other zeros the rules of kinds see."""
    if not pd.api.types.is_numeric_dtype(values) or values.nunique() <= FEW + 1:
        return None
    counts, n = values.value_counts(), len(values)
    point, most, second = float(counts.index[0]), counts.iloc[0], counts.iloc[1]
    if n < _MANY:
        return None
    if point and most >= _POINT * n and 2 * second <= most:
        return point
    if not counted:
        return None
    size, share = _negative_binomial(values.to_numpy(dtype=np.float64))
    return 0.0 if counts.get(0, 0) / n > share**size + _ZEROS else None


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
    marked = _marked(lacking, _SHARED)
    if marked != _marked(lacking, 0):
        model = replace(model, marked=tuple(marked))
    left, _, right = model.missing_model.formula.partition("~")
    if 0 < outcome.isna().sum() < _SHARED * (1 + len(right.split("+"))):
        model = replace(model, missing=Bernoulli(f"{left.strip()} ~ 1"))
    return model


def _name_and_options(
    kind: Kind, formula: str, df: pd.DataFrame, *, of_reference: bool
) -> tuple[str, dict[str, Any]]:
    """By the rules of whole tables, but for few whole numbers of some records each, which keep to
    those that there are, for counts of less spread than their mean, and for
    amounts whose logarithms are more skewed than they are, or have another mean by a lognormal."""
    outcome = df[parse_formula(formula, df).outcome]
    numbers = pd.api.types.is_numeric_dtype(outcome) and not pd.api.types.is_bool_dtype(outcome)
    held = outcome.dropna()
    shared = held.nunique() <= FEW and held.value_counts().min() >= _SHARED
    if isinstance(kind, Counts) and shared:
        return "ordinal", {"levels": tuple(int(value) for value in np.unique(held))}
    if isinstance(kind, Leveled):
        declared = {"levels": kind.levels} if numbers or of_reference else {}
        ordered = numbers or bool(getattr(outcome.dtype, "ordered", False))
        return name_for_levels(len(kind.levels), ordered=ordered), declared
    rule = rule_for(kind, predicted=True)
    name, options = rule.model, dict(rule.options(kind))
    if isinstance(kind, Counts) and kind.upper is None:
        if not of_reference and held.var() < held.mean():
            ends = {"lower": int(held.min()), "upper": int(held.max())}
            return "beta_binomial", {"prior": "normal", **ends}
        if _from_normal(held, half=0.5) < _from_counts(held) - _NEARER:
            name = "normal"
        elif name == "negative_binomial" or not of_reference:
            reads = df[list(parse_formula(formula, df).predictors)]
            gaps = of_reference and bool(reads.isna().any(axis=None))  # new records may have none
            return "negative_binomial", {"prior": "normal"} if gaps else {}
    if options.get("transform") == "signed_log":
        unit = options["unit"]
        logs = TRANSFORMS["signed_log"].forward(held / unit)
        if _from_normal(held) <= _from_normal(logs) or not _keeps_mean(formula, df, unit):
            options.pop("transform")
    if isinstance(kind, Amounts):
        straight = abs(_skewness(held)) <= abs(_skewness(np.log(held)))
        name = "normal" if straight else _by_mean(formula, df)
    if isinstance(kind, Amounts | Counts) and name == "normal":
        center, unit = kind.typical or (0.0, 1.0)
        options = {"unit": unit, "prior": "normal", "decimals": kind.form.decimals}
        options["prior_scale_intercept"] = 2.5 * max(center / unit, 1)
    if not of_reference:
        options.pop("decimals", None)
    return name, options


def _by_mean(formula: str, df: pd.DataFrame) -> str:
    """A lognormal, or, where least squares give it a mean that chance does not explain, gamma or
    normal, whichever is nearer: where a predictor's effect is no factor, its largest values have
    most of the mean (prices of diamonds by carat: 48 standard errors), and so have logarithms with
    a long lower tail."""
    parsed = parse_formula(formula, df)
    rows = df[[parsed.outcome, *parsed.predictors]].dropna()
    if parsed.groups or parsed.offsets or len(rows) < _SHARED:
        return "lognormal"
    design = read_design(formula, rows, any_rank=True, one_value=True)
    y, basis = design.y, np.linalg.qr(design.X)[0]
    logs = basis @ (basis.T @ np.log(y))
    line, eta = basis @ (basis.T @ y), logs
    for _ in range(_ROUNDS):  # Fisher's scoring of a gamma
        step = basis @ (basis.T @ (y * np.exp(-eta) - 1))
        eta = eta + step / max(1.0, float(np.abs(step).max()))
    sd = max(float((y - line).std()), 1e-300)
    mills = np.exp(-((line / sd) ** 2) / 2 - log_ndtr(line / sd)) / math.sqrt(2 * math.pi)
    expected = {"lognormal": np.exp(logs + (np.log(y) - logs).var() / 2), "gamma": np.exp(eta),
                "normal": line + sd * mills}  # fmt: skip
    off = {name: abs(float(each.mean() - y.mean())) for name, each in expected.items()}
    explained = _FAR * float(y.std()) * math.sqrt(2 / y.size)
    return "lognormal" if off["lognormal"] <= explained else min(off, key=lambda name: off[name])


def _keeps_mean(formula: str, df: pd.DataFrame, unit: float) -> bool:
    """Whether least squares of signed logarithms give the outcome its mean, but for chance; True
    where they are not to be had."""
    parsed = parse_formula(formula, df)
    rows = df[[parsed.outcome, *parsed.predictors]].dropna()
    if parsed.groups or parsed.offsets or len(rows) < _SHARED:
        return True
    design, logs = (
        read_design(formula, rows, any_rank=True, one_value=True),
        TRANSFORMS["signed_log"],
    )
    z, basis = logs.forward(design.y / unit), np.linalg.qr(design.X)[0]
    line = basis @ (basis.T @ z)
    drawn = line[:, None] + (z - line).std() * ndtri((np.arange(40) + 0.5) / 40)
    off = abs(float(unit * logs.inverse(drawn).mean()) - float(design.y.mean()))
    return off <= _FAR * float(design.y.std()) * math.sqrt(2 / design.y.size)


def _from_normal(values: Any, *, half: float = 0.0) -> float:
    """Largest distance of the distribution function of values from a normal one, which is read at
    `half` a step above them."""
    z = np.sort(np.asarray(values, np.float64))
    return _gap(z, ndtr((z + half - z.mean()) / max(float(z.std()), 1e-300)))


def _from_counts(values: Any) -> float:
    """Largest distance from the negative binomial of their mean and variance."""
    k = np.sort(np.asarray(values, np.float64))
    size, share = _negative_binomial(k)
    return _gap(k, betainc(size, k + 1, share))


def _negative_binomial(k: FloatArray) -> tuple[float, float]:
    """Size and success probability of the negative binomial of a mean and variance."""
    mean = max(float(k.mean()), 1e-9)
    size = mean**2 / max(float(k.var()) - mean, 1e-9)
    return size, size / (size + mean)


def _gap(z: FloatArray, cdf: FloatArray) -> float:
    return float(np.abs(cdf - np.searchsorted(z, z, side="right") / z.size).max())


def _skewness(values: pd.Series) -> float:
    centered = values.to_numpy(dtype=np.float64) - values.mean()
    return float((centered**3).mean()) / max(float(centered.std()) ** 3, 1e-300)


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
