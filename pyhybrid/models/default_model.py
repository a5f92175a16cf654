"""Default models by column, and how a column enters the formulas of others.

One table of rules, `RULES`, decides for whole tables: the first rule that a column's kind meets
gives the model. A new model is one row of it.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.kinds import (
    Amounts,
    Counts,
    Kind,
    Leveled,
    Nominal,
    Number,
    Ordered,
    SemiContinuous,
)
from pyhybrid.models.columns.kinds import Real as RealKind
from pyhybrid.models.columns.support import check_many_counts, grid_ends
from pyhybrid.models.families.counts import NegativeBinomial
from pyhybrid.models.formula.design import Design
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.models.formula.values import kind_of

HISTOGRAM, MARGINALS = "perturbed_histogram", "noisy_marginals"
COUNTED = (HISTOGRAM, MARGINALS)
"""What a plan calls columns that come from noisy counts, without a model."""
MOST_LEVELS = 30
"""Levels beyond which a column is synthesized without predictors, and is none itself."""
_BINS = 30
_NEAR_ENDS = 20
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
    """One row: a model of `pyhybrid.models.registry.BUILT`, or the histogram, with `options`, for
    columns of a kind, where the rule applies to it and to whether it has predictors."""

    model: str
    why: str
    kind: type[Kind]
    options: Callable[[Any], Mapping[str, Any]]
    applies: Callable[[Any, bool], bool] = lambda kind, predicted: True


def rule_for(kind: Kind, *, predicted: bool) -> ModelRule:
    """The first rule that a column of this kind meets; `predicted` if it has predictors."""
    return next(
        rule for rule in RULES if isinstance(kind, rule.kind) and rule.applies(kind, predicted)
    )


def _levels(kind: Leveled) -> dict[str, Any]:
    return {"levels": kind.levels}


def _range(kind: Number) -> dict[str, Any]:
    assert kind.least is not None
    assert kind.upper is not None
    low, high, decimals = kind.least, kind.upper, kind.form.decimals
    if decimals is None:
        return {"lower": low, "upper": high, "n_bins": _BINS}
    low, high = grid_ends(decimals, low, high)
    bins = int(min(_BINS, round((high - low) * 10**decimals) + 1))
    return {"lower": low, "upper": high, "n_bins": bins, "decimals": decimals}


def _counts(kind: Counts) -> dict[str, Any]:
    return {"prior": "normal", "lower": int(kind.lower or 0),
            "upper": None if kind.upper is None else int(kind.upper)}  # fmt: skip


def _near(lower: float | None, upper: float | None) -> bool:
    """True for two ends between which whole numbers are beta-binomial."""
    return lower is not None and upper is not None and upper - lower <= _NEAR_ENDS


def _under_dispersed(kind: Counts) -> bool:
    """Less spread than a Poisson distribution and far from 0, as weeks of pregnancy are."""
    center, unit = kind.typical or (0.0, 1.0)
    return unit**2 < center and center >= _FAR_FROM_ZERO * unit


def _logarithms(kind: Amounts | SemiContinuous) -> dict[str, Any]:
    center, unit = kind.typical or (0.0, 1.0)
    return {"unit": center if center > 0 else unit, "decimals": kind.decimals}


def _parts(kind: SemiContinuous) -> dict[str, Any]:
    return {**_logarithms(kind), "negative": kind.lower is None or kind.lower < 0}


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
        HISTOGRAM, f"more than {MOST_LEVELS} levels: noisy shares, without predictors",
        Leveled, _levels, lambda kind, _: len(kind.levels) > MOST_LEVELS,
    ),
    ModelRule(
        HISTOGRAM, "levels without predictors: noisy shares tell all",
        Leveled, _levels, lambda _, predicted: not predicted,
    ),
    ModelRule(
        HISTOGRAM, "a range without predictors: noisy counts in bins",
        Number, _range,
        lambda kind, predicted: None not in (kind.lower, kind.upper) and not predicted,
    ),
    ModelRule(
        "bernoulli", "two levels", Leveled, lambda kind: {"prior": "normal", **_levels(kind)},
        lambda kind, _: len(kind.levels) == 2,
    ),
    ModelRule("ordinal", "levels in order", Ordered, _levels),
    ModelRule("categorical", "levels in no order", Nominal, _levels),
    ModelRule(
        "zero_inflated", "counts, and zeros beyond them", Counts,
        lambda kind: {name: own for name, own in _counts(kind).items() if name != "lower"},
        lambda kind, _: kind.extra_zeros,
    ),
    ModelRule(
        "beta_binomial", f"whole numbers between two ends, {_NEAR_ENDS} apart at most",
        Counts, _counts, lambda kind, _: _near(kind.lower, kind.upper),
    ),
    ModelRule(
        "normal", "whole numbers of less spread than counts have by chance",
        Counts, _signed, lambda kind, _: _under_dispersed(kind),
    ),
    ModelRule("negative_binomial", "counts", Counts, _counts),
    ModelRule("lognormal", "amounts above 0: their logarithms", Amounts, _logarithms),
    ModelRule("two_part", "zeros, and amounts on each side of them", SemiContinuous, _parts),
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


FEWEST_GROUPED = 12
"""Levels from which on a predictor enters as ``(1 | g)``: a spread that is estimated holds the
intercepts of levels with few records together, where a coefficient for each is left to its prior,
and under a small cap nearly all of them are."""


def quoted(name: str) -> str:
    """The name as formulas take it."""
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return name if plain else f"`{name}`"


def unusable(kind: Kind) -> str | None:
    """Why a column of this kind is no predictor; None if it can be one."""
    if isinstance(kind, Leveled) and len(kind.levels) > MOST_LEVELS:
        return f"{len(kind.levels)} levels"
    if isinstance(kind, Number) and kind.typical is None:
        return "no center and unit"
    return None


def terms_of(name: str, kind: Kind) -> list[str]:
    """Terms of a formula. Levels are coded against the first. A number x enters as s = sign(z)
    log(1 + abs(z)), z = (x - center) / unit, nearly z about the center and slow in the tails, and
    as its square; where it has a point mass at 0, that has a term, too."""
    own = quoted(name)
    if isinstance(kind, Leveled):
        return [own]
    assert isinstance(kind, Number)
    if kind.typical is None:
        raise InvalidInput(
            f"column {name!r} must have a typical difference to be a predictor: give unit= in its "
            "type, or lower= and upper="
        )
    center, unit = kind.typical
    if isinstance(kind, SemiContinuous):
        center = 0.0
    size = f"log1p(abs({own} - {_number(center)}) / {_number(unit)})"
    sign = f"(({own} > {_number(center)}) - ({own} < {_number(center)}))"
    terms = [f"I({sign} * {size})", f"I({size} ** 2)"]
    return [f"I({own} == 0)", *terms] if isinstance(kind, SemiContinuous) else terms


def n_coefficients(kind: Kind) -> int:
    """Columns of the design that the terms make."""
    if isinstance(kind, Leveled):
        return len(kind.levels) - 1
    return 3 if isinstance(kind, SemiContinuous) else 2


def is_grouped(kind: Kind) -> bool:
    """Whether a predictor of this kind enters as ``(1 | g)`` in models that take such terms."""
    return isinstance(kind, Leveled) and len(kind.levels) >= FEWEST_GROUPED


def formula_of(outcome: str, predictors: dict[str, Kind], *, groups: bool = False) -> str:
    """Formula of an outcome given predictors; with `groups` those of many levels as ``(1 | g)``."""
    terms = [
        f"(1 | {term})" if groups and is_grouped(kind) else term
        for name, kind in predictors.items()
        for term in terms_of(name, kind)
    ]
    return f"{quoted(outcome)} ~ {' + '.join(terms) or '1'}"


def _number(value: float) -> str:
    """As it stands in a formula: no sign before it that would follow another."""
    text = f"{value:.12g}"
    return f"({text})" if value < 0 else text
