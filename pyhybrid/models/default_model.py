"""Default models by column, and how a column enters the formulas of others.

One table of rules, `RULES`: the first rule that a column's kind meets gives the model. A new model
is one row of it.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betainc, log_ndtr, ndtr, ndtri

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.columns.kinds import (
    Amounts,
    Counts,
    Kind,
    Leveled,
    Nominal,
    Ordered,
    SemiContinuous,
)
from pyhybrid.models.columns.kinds import Real as RealKind
from pyhybrid.models.columns.support import FEW, TRANSFORMS, check_many_counts
from pyhybrid.models.families.counts import NegativeBinomial
from pyhybrid.models.families.regression import WIDE
from pyhybrid.models.formula.design import Design, read_design
from pyhybrid.models.formula.terms import divided, parse_formula
from pyhybrid.models.formula.values import kind_of

_ZEROS = 0.1  # of the values
_MANY = 500  # values that two regressions need at a small epsilon
_NEARER = 0.05  # to a normal distribution than to that of counts, as hours worked with zeros are
SHARED = 20  # records that set an effect at least: each of k has a mu of about 1 / sqrt(k)
_FAR, _ROUNDS = 3, 40  # standard errors of a mean and of one drawn anew; steps of a rough fit
_FAR_FROM_ZERO = 4  # units: nearly no value of a normal distribution is below 0


@dataclass(frozen=True)
class DefaultModel(NegativeBinomial):
    """`NegativeBinomial` for columns of counts; all others are refused with what to give: a 0/1
    column or a rating from 1 to 5 passes every check of a count and would come back with values
    that it cannot hold."""

    @property
    def name(self) -> str:
        return NegativeBinomial.__name__

    def check_outcome(self, design: Design, index: pd.Index) -> None:
        check_many_counts(design.y, design.outcome, index)
        super().check_outcome(design, index)


@dataclass(frozen=True)
class ModelRule:
    """One row: a model of `pyhybrid.models.MODELS` with `options`, for columns of a kind, where the
    rule applies to it."""

    model: str
    why: str
    kind: type[Kind]
    options: Callable[[Any], Mapping[str, Any]]
    applies: Callable[[Any], bool] = lambda kind: True


def rule_for(kind: Kind) -> ModelRule:
    """The first rule that a column of this kind meets."""
    return next(rule for rule in RULES if isinstance(kind, rule.kind) and rule.applies(kind))


def _levels(kind: Leveled) -> dict[str, Any]:
    return {"levels": kind.levels}


def _counts(kind: Counts) -> dict[str, Any]:
    return {"prior": "normal", "lower": int(kind.lower or 0),
            "upper": None if kind.upper is None else int(kind.upper)}  # fmt: skip


def _under_dispersed(kind: Counts) -> bool:
    """Less spread than a Poisson distribution and far from 0, as weeks of pregnancy are."""
    center, unit = kind.typical or (0.0, 1.0)
    return unit**2 < center and center >= _FAR_FROM_ZERO * unit


def _logarithms(kind: Amounts) -> dict[str, Any]:
    center, unit = kind.typical or (0.0, 1.0)
    return {"unit": center if center > 0 else unit, "decimals": kind.decimals}


def _signed(kind: RealKind | Counts) -> dict[str, Any]:
    """Logarithms of the size where values lie about 0, and values as they are elsewhere."""
    center, unit = kind.typical or (0.0, 1.0)
    about_zero = abs(center) <= 2 * unit
    own: dict[str, Any] = {"prior": "normal", "decimals": kind.form.decimals}
    if not about_zero:
        own["prior_scale_intercept"] = 2.5 * abs(center) / unit
    return {"transform": "signed_log" if about_zero else "identity", "unit": unit, **own}


RULES: tuple[ModelRule, ...] = (
    ModelRule(
        "bernoulli", "two levels", Leveled, lambda kind: {"prior": "normal", **_levels(kind)},
        lambda kind: len(kind.levels) == 2,
    ),
    ModelRule("ordinal", "levels in order", Ordered, _levels),
    ModelRule("categorical", "levels in no order", Nominal, _levels),
    ModelRule(
        "normal", "whole numbers of less spread than counts have by chance",
        Counts, _signed, lambda kind: _under_dispersed(kind),
    ),
    ModelRule("negative_binomial", "counts", Counts, _counts),
    ModelRule("lognormal", "amounts above 0: their logarithms", Amounts, _logarithms),
    ModelRule("normal", "numbers of any sign", RealKind, _signed),
)  # fmt: skip
"""Which model a column gets, by its kind: the first row that applies."""


def default_name(formula: str, df: pd.DataFrame) -> str | None:
    """Name in `MODELS` of the model for the outcome's kind of column; None if it holds numbers, see
    `DefaultModel`. Logicals, text and categories: "bernoulli" for two levels, "ordinal" for
    categories in an order, else "categorical". Levels of text are counted in the data, of
    categories in their dtype."""
    values = df[parse_formula(formula, df).outcome]
    dtype: Any = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        n_levels, ordered = len(dtype.categories), bool(dtype.ordered)
    else:
        kind, ordered = kind_of(values, what="outcome"), False
        if kind == "numbers":
            return None
        n_levels = 2 if kind == "logicals" else int(values.nunique())
    return name_for_levels(n_levels, ordered=ordered)


def name_for_levels(n_levels: int, *, ordered: bool) -> str:
    """Name in `MODELS` of the model for so many levels."""
    if n_levels <= 2:
        return "bernoulli"
    return "ordinal" if ordered else "categorical"


def has_zeros(kind: Kind, values: pd.Series) -> bool:
    """True for amounts of which many are 0, and for 500 counts or more of which more are 0 than a
    negative binomial has, by a tenth."""
    if isinstance(kind, SemiContinuous):
        return True
    if not isinstance(kind, Counts) or values.nunique() <= FEW + 1 or len(values) < _MANY:
        return False
    size, share = negative_binomial_by_moments(values.to_numpy(dtype=np.float64))
    return bool((values == 0).mean() > share**size + _ZEROS)


def name_and_options(
    kind: Kind, formula: str, df: pd.DataFrame, *, of_reference: bool
) -> tuple[str, dict[str, Any]]:
    """By `RULES`, but for few whole numbers of some records each, which keep to
    those that there are, for counts of less spread than their mean, and for amounts whose
    logarithms are more skewed than they are, or which have another mean by a model."""
    outcome = df[parse_formula(formula, df).outcome]
    numbers = pd.api.types.is_numeric_dtype(outcome) and not pd.api.types.is_bool_dtype(outcome)
    held = outcome.dropna()
    shared = held.nunique() <= FEW and held.value_counts().min() >= SHARED
    if isinstance(kind, Counts) and shared:
        return "ordinal", {"levels": tuple(int(value) for value in np.unique(held))}
    if isinstance(kind, Leveled):
        declared = {"levels": kind.levels} if numbers or of_reference else {}
        ordered = numbers or bool(getattr(outcome.dtype, "ordered", False))
        return name_for_levels(len(kind.levels), ordered=ordered), declared
    rule = rule_for(kind)
    name, options = rule.model, dict(rule.options(kind))
    if isinstance(kind, Counts) and kind.upper is None:
        by_mean = partial(_by_mean, formula, df, "negative_binomial", "normal")
        if (
            (not of_reference and held.var() < held.mean())
            or _from_normal(held, half=0.5) < _from_counts(held) - _NEARER
            or by_mean() == "normal"
        ):
            name = "normal"
        elif name == "negative_binomial" or not of_reference:
            reads = df[list(parse_formula(formula, df).predictors)]
            gaps = of_reference and bool(reads.isna().any(axis=None))  # new records may have none
            return "negative_binomial", {"prior": "normal"} if gaps else {}
    if options.get("transform") == "signed_log":
        unit = options["unit"]
        logs = TRANSFORMS["signed_log"].forward(held / unit)
        kept = _from_normal(logs) < _from_normal(held)
        if not kept or _by_mean(formula, df, "signed_log", "identity", unit=unit) == "identity":
            options.pop("transform")
    if isinstance(kind, Amounts):
        amounts = ["lognormal", "gamma", "normal"]
        straight = _skewness(held) <= _skewness(np.log(held))
        name = _by_mean(formula, df, *(amounts[::-1] if straight else amounts))
    if isinstance(kind, Amounts | Counts) and name == "normal":
        center, unit = kind.typical or (0.0, 1.0)
        options = {"unit": unit, "prior": "normal", "decimals": kind.form.decimals}
        options["prior_scale_intercept"] = 2.5 * max(center / unit, 1)
    if not of_reference:
        options.pop("decimals", None)
    return name, options


def _by_mean(formula: str, df: pd.DataFrame, *models: str, unit: float = 1.0) -> str:
    """The first of some models, or, where its rough fit gives the outcome a mean that chance does
    not explain, the one that is nearest: where a predictor's effect is no factor, its largest
    values have most of the mean under a log link (prices of diamonds by carat: 48 standard errors;
    computers by students of a school), and so have logarithms with a long lower tail."""
    parsed = parse_formula(formula, df)
    rows = df[[parsed.outcome, *parsed.predictors]].dropna()
    if parsed.offsets or len(rows) < SHARED:
        return models[0]
    design = read_design(formula, rows, any_rank=True, one_value=True)
    y, basis = design.y, np.linalg.qr(design.X)[0]
    off = {m: abs(float(_MEANS[m](y / unit, basis).mean()) * unit - y.mean()) for m in models}
    explained = _FAR * float(y.std()) * math.sqrt(2 / y.size)
    return models[0] if off[models[0]] <= explained else min(off, key=lambda name: off[name])


def _of_logarithms(y: FloatArray, basis: FloatArray) -> FloatArray:
    """Means of a lognormal; this and the next ones by records, (n,) or (n, draws)."""
    logs = basis @ (basis.T @ np.log(y))
    return np.asarray(np.exp(logs + (np.log(y) - logs).var() / 2))


def _of_gamma(y: FloatArray, basis: FloatArray) -> FloatArray:
    eta = basis @ (basis.T @ np.log(y))
    for _ in range(_ROUNDS):  # Fisher's scoring
        step = basis @ (basis.T @ (y * np.exp(-eta) - 1))
        eta = eta + step / max(1.0, float(np.abs(step).max()))
    return np.asarray(np.exp(eta))


def _of_normal(y: FloatArray, basis: FloatArray) -> FloatArray:
    """Above 0."""
    line = basis @ (basis.T @ y)
    sd = max(float((y - line).std()), 1e-300)
    mills = np.exp(-((line / sd) ** 2) / 2 - log_ndtr(line / sd)) / math.sqrt(2 * math.pi)
    return np.asarray(line + sd * mills)


def _of_signed_logarithms(y: FloatArray, basis: FloatArray) -> FloatArray:
    logs = TRANSFORMS["signed_log"]
    z = logs.forward(y)
    line = basis @ (basis.T @ z)
    return logs.inverse(line[:, None] + (z - line).std() * ndtri((np.arange(40) + 0.5) / 40))


def _of_counts(y: FloatArray, basis: FloatArray) -> FloatArray:
    """Of a negative binomial."""
    hints = NegativeBinomial("y ~ 1").rough_fit(y, basis * math.sqrt(y.size), np.ones(y.size))
    root = hints["information_root"]
    beta = np.linalg.lstsq(root @ root.T, hints["score"], rcond=None)[0]
    return np.asarray(np.exp(np.clip(basis @ beta * math.sqrt(y.size), -50, 50)))


_MEANS: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "lognormal": _of_logarithms, "gamma": _of_gamma, "normal": _of_normal,
    "negative_binomial": _of_counts, "signed_log": _of_signed_logarithms,
    "identity": lambda y, basis: basis @ (basis.T @ y),
}  # fmt: skip


def _from_normal(values: Any, *, half: float = 0.0) -> float:
    """Largest distance of the distribution function of values from a normal one, which is read at
    `half` a step above them."""
    z = np.sort(np.asarray(values, np.float64))
    return _gap(z, ndtr((z + half - z.mean()) / max(float(z.std()), 1e-300)))


def _from_counts(values: Any) -> float:
    """Largest distance from the negative binomial of their mean and variance."""
    k = np.sort(np.asarray(values, np.float64))
    size, share = negative_binomial_by_moments(k)
    return _gap(k, betainc(size, k + 1, share))


def negative_binomial_by_moments(k: FloatArray) -> tuple[float, float]:
    """Size and success probability of the negative binomial of a mean and variance."""
    mean = max(float(k.mean()), 1e-9)
    size = mean**2 / max(float(k.var()) - mean, 1e-9)
    return size, size / (size + mean)


def _gap(z: FloatArray, cdf: FloatArray) -> float:
    return float(np.abs(cdf - np.searchsorted(z, z, side="right") / z.size).max())


def _skewness(values: pd.Series) -> float:
    """Its size."""
    centered = values.to_numpy(dtype=np.float64) - values.mean()
    return abs(float((centered**3).mean())) / max(float(centered.std()) ** 3, 1e-300)


def in_units(formula: str, df: pd.DataFrame) -> str:
    """The formula with numbers that differ by hundreds, or by hundredths, over a power of ten: a
    normal prior of coefficients about 1 leaves next to all open of one of dollars that separates
    levels, and nothing of one of shares of a thousandth."""
    reads = df[list(parse_formula(formula, df).predictors)]
    spread = reads.select_dtypes("number", exclude="timedelta").std().items()
    other = {str(k): sd for k, sd in spread if 0 < sd <= 1 / WIDE or WIDE <= sd < np.inf}
    return divided(formula, {name: 10.0 ** round(math.log10(sd)) for name, sd in other.items()})


def quoted(name: str) -> str:
    """The name as formulas take it."""
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return name if plain else f"`{name}`"
