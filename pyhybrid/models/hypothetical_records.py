"""Records that could have been: rows of a declared support, coded as the data's.

The support is public: a range or values of the outcome, and of predictors. A predictor that is not
declared takes the rows of the data, which a release publishes as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.base import BoundModel
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.formula.values import kind_of, with_columns

Support = Mapping[str, Sequence[Any]]
"""By column: a tuple (lowest, highest) of a column of numbers, or a list of values."""

_OUTCOMES = 201
_INSIDE = 5  # values of the range of a predictor that are looked at
_MOST_ROWS = 20_000


def check_support(support: Support | None) -> None:
    """Check what was declared, before any data are seen: a mapping of columns to ranges (a tuple of
    two numbers, the smaller first) or lists of values."""
    if support is None:
        return
    if not isinstance(support, Mapping) or not support:
        raise InvalidInput(f"support must map columns to ranges or values: found {support!r}")
    for name, given in support.items():
        if not isinstance(name, str) or not isinstance(given, (tuple, list)) or not given:
            raise InvalidInput(
                f"support of {name!r} must be a tuple (lowest, highest) or a list of values: found "
                f"{given!r}"
            )
        if isinstance(given, tuple):
            numbers = [isinstance(v, (int, float)) and np.isfinite(v) for v in given]
            if len(given) != 2 or not all(numbers) or not given[0] < given[1]:
                raise InvalidInput(
                    f"support of {name!r} must be (lowest, highest), two finite numbers, the "
                    f"smaller first: found {given!r}; give a list for single values"
                )


def support_text(support: Support) -> str:
    """The declared support in words, on one line."""
    parts = []
    for name, given in support.items():
        if isinstance(given, tuple):
            parts.append(f"{name} from {given[0]:g} to {given[1]:g}")
        else:
            parts.append(f"{name} one of {', '.join(str(value) for value in given)}")
    return " ".join("; ".join(parts).split())


def regression_of(bound: BoundModel, support: Support) -> BoundRegression:
    """`bound`, whose rows can be made anew: a built-in model whose outcome is declared."""
    if not isinstance(bound, BoundRegression):
        raise InvalidInput(
            "support needs a built-in model: the terms of a user's program are known for the "
            "records present only"
        )
    outcome = bound.design.outcome
    if outcome not in support:
        raise InvalidInput(f"support must declare the outcome {outcome!r}: found {[*support]}")
    unread = [name for name in support if name not in (outcome, *bound.predictors)]
    if unread:
        raise InvalidInput(f"support must be of columns that the model reads: {unread[0]!r} is not")
    return bound


def outcome_grid(bound: BoundRegression, support: Support) -> list[Any]:
    """Values of the outcome that are looked at, in the form of its column, its ends among them."""
    given = support[bound.design.outcome]
    if not isinstance(given, tuple):
        return list(given)
    low, high = given
    whole = not bound.density_above_one
    if whole and high - low < _OUTCOMES:
        return list(range(int(np.ceil(low)), int(np.floor(high)) + 1))
    inside = [np.linspace(low, high, _OUTCOMES // 2 + 1)]
    start = low if low > 0 else min(1.0, high) if whole else high * 1e-6
    if 0 < start < high:
        inside.append(np.geomspace(start, high, _OUTCOMES // 2))
    values = np.concatenate(inside)
    return sorted({float(v) for v in (np.round(values) if whole else values)})


def predictor_grid(bound: BoundRegression, support: Support) -> pd.DataFrame:
    """Rows of predictors that are looked at: of those declared a grid, of the others what the data
    have; a frame without columns and one row where the model has none."""
    table, names = bound.table, list(bound.predictors)
    if not names:
        alone: pd.DataFrame = pd.DataFrame(index=[0])
        return alone
    declared = [name for name in names if name in support]
    for inside in (_INSIDE, 2):
        axes = [_axis(table[name], support[name], inside) for name in declared]
        own = pd.DataFrame(list(itertools.product(*axes)), columns=declared)
        left = [name for name in names if name not in declared]
        others = table[left].drop_duplicates() if left else pd.DataFrame(index=[0])
        if len(own) * len(others) <= _MOST_ROWS or not declared:
            break
    if len(own) > _MOST_ROWS:
        raise InvalidInput(
            f"support of predictors must have at most {_MOST_ROWS} corners: found {len(own)}; "
            "declare fewer of them: the others take the rows of the data"
        )
    most = max(1, _MOST_ROWS // max(len(own), 1))
    if len(others) > most:
        others = others.iloc[np.unique(np.linspace(0, len(others) - 1, most).astype(int))]
    if not declared:
        there: pd.DataFrame = others[names].reset_index(drop=True)
        return there
    whole = own.merge(others.reset_index(drop=True), how="cross") if left else own
    made: pd.DataFrame = pd.DataFrame({name: _like(whole[name], table[name]) for name in names})
    return made


def crossed(
    rows: pd.DataFrame, outcome: str, values: Sequence[Any], like: pd.Series
) -> pd.DataFrame:
    """Every row of predictors with every value of the outcome, the outcome's changing fastest."""
    made = rows.loc[rows.index.repeat(len(values))].reset_index(drop=True)
    column = pd.Series(list(values) * len(rows), name=outcome)
    return with_columns(made, {outcome: _like(column, like)})


def of_records(bound: BoundRegression, table: pd.DataFrame) -> BoundRegression:
    """The same model over other records, coded as these: for their log-likelihood, not a fit."""
    made = bound.design.recoded(table)
    y = bound.numbers_of(table[bound.design.outcome])
    other = replace(bound.design, y=y, X=made.X, offset=made.offset)
    bound.model.check_outcome(other, table.index)
    return replace(bound, table=table, design=replace(other, y=bound.model.to_support(y)), at=None)


def _axis(values: pd.Series, given: Sequence[Any], inside: int) -> list[Any]:
    if not isinstance(given, tuple):
        return list(given)
    name = str(values.name)
    if kind_of(values) != "numbers":
        raise InvalidInput(f"support of {name!r} must be a list of its levels: found a range")
    points = np.linspace(given[0], given[1], inside)
    return list(np.round(points) if pd.api.types.is_integer_dtype(values.dtype) else points)


def _like(values: pd.Series, like: pd.Series) -> pd.Series:
    """Declared values in the dtype of the data's column, as floats where whole ones do not fit."""
    whole = pd.api.types.is_integer_dtype(like.dtype)
    try:
        made: pd.Series = values.astype(np.float64 if whole else like.dtype)
        known = not made.isna().any()
    except (TypeError, ValueError):
        known = False
    if not known:
        raise InvalidInput(
            f"support of {str(like.name)!r} must hold values of its column ({like.dtype}): found "
            "others"
        )
    return made
