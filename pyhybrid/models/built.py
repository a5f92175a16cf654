"""Models of whole tables, built from a name, a formula and settings that JSON can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyhybrid.checks import check_choice
from pyhybrid.errors import InvalidInput
from pyhybrid.models import MODELS
from pyhybrid.models.base import Model
from pyhybrid.models.bernoulli import Bernoulli
from pyhybrid.models.log_normal import LogNormal
from pyhybrid.models.negative_binomial import NegativeBinomial
from pyhybrid.models.two_part import TwoPart
from pyhybrid.models.with_missing import WithMissing
from pyhybrid.models.zero_inflated import ZeroInflated

__all__ = ["BUILT", "GROUPED", "PREDICTED", "build_model"]

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
    alone = formula.partition("~")[0] + "~ 1"
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


BUILT: Mapping[str, Callable[..., Any]] = {
    **MODELS, "two_part": _two_part, "zero_inflated": _zero_inflated
}  # fmt: skip
"""Makers of models by name; each takes a formula and settings."""

GROUPED = frozenset(
    name for name, own in BUILT.items() if getattr(own, "takes_groups", own not in MODELS.values())
)
"""Names of those that read ``(1 | g)``: regressions, and what is made of them."""


def build_model(
    name: str,
    formula: str,
    options: Mapping[str, Any],
    *,
    missing: bool = False,
    fill: Mapping[str, float] | None = None,
    complete: bool | None = None,
) -> Model:
    """The model of a name; with `missing`, or numbers to `fill` in, one of missing values as well,
    of predictors alone if the outcome is `complete`.

    Raises
    ------
    InvalidInput
        For another name, and settings that the model does not take.
    """
    check_choice(name, "model", BUILT)
    try:
        model: Model = BUILT[name](formula, **options)
    except TypeError:
        raise InvalidInput(
            f"settings of {name} must be its own: found {', '.join(map(str, options))}"
        ) from None
    if not missing and not fill:
        return model
    made: Model = WithMissing(model, fill=fill, complete=complete)  # type: ignore[arg-type]
    return made
