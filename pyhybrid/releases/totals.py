"""Synthetic values that meet totals which are public already."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_finite
from pyhybrid.core.errors import InvalidInput
from pyhybrid.measures.survey import design_weights
from pyhybrid.models.columns.support import decimals_of
from pyhybrid.models.formula.values import with_columns
from pyhybrid.releases.households import summed_anew
from pyhybrid.releases.postprocessed import (
    changed_release,
    check_columns,
    check_synthesized,
    step_of,
)
from pyhybrid.releases.release import Release

__all__ = ["with_totals"]

_ROUNDING = 1e-9  # of a value on its grid, relative


def with_totals(
    release: Release,
    column: str,
    totals: float | Mapping[Any, float],
    *,
    by: str | None = None,
    weights: str | None = None,
) -> Release:
    """The release with synthetic values scaled to totals that are public already.

    Parameters
    ----------
    release : Release
    column : str
        Synthesized numbers >= 0. Those with declared decimals (0 of whole numbers) keep them: of
        the scaled values those with the largest remainders are rounded up, as many as the total
        asks for. None exceeds a declared upper end: what would is set to it, and the others are
        scaled further. Sums of it by household, made before, are made anew.
    totals : float, or mapping of a level of `by` to float
        PUBLIC sums over all rows, or over the rows of each level named. A total that was computed
        from the same confidential records, and is not published, is not covered by the charge.
    by : str, optional
        Column of the levels.
    weights : str, optional
        Column of the tables with design weights: sums are then weighted, of numbers that are not
        whole, and met but for the rounding of the values.

    Returns
    -------
    Release
        Of the same charge. `by` and `weights` that were not synthesized must be published with it:
        `Release.save` refuses to leave them out.

    Raises
    ------
    InvalidInput
        For a column that was not synthesized, or has levels; negative totals or values; whole
        numbers with weights; a total that cannot be met: off the grid of the decimals, above what
        the upper end allows, or of rows that sum to 0.
    """
    release.check_seal()
    check_columns([*filter(None, (by, weights))], list(release.synthetic[0].columns))
    check_synthesized(release, [column])
    step = step_of(release, column)
    if step is None:
        raise InvalidInput(f"{column!r} is the sum of another column: scale that one to a total")
    wanted = _wanted(totals, by)
    form = _Form.of(release.synthetic[0][column].dtype, step.settings, column)
    if form.decimals == 0 and weights is not None:
        raise InvalidInput(f"{column!r} holds whole numbers, which take no weights to a total")

    def agreeing(table: pd.DataFrame) -> pd.DataFrame:
        values = np.array(table[column].astype("Float64").to_numpy(np.float64, na_value=np.nan))
        if (values < 0).any():
            raise InvalidInput(f"{column!r} must be >= 0 to be scaled to a total: some are below")
        weight = None if weights is None else design_weights(table[weights], weights)
        for level, total in wanted.items():
            rows = np.isfinite(values) & _of_level(table, by, level)
            where = column if by is None else f"{column} of {level!r}"
            own = None if weight is None else weight[rows]
            values[rows] = _scaled(values[rows], own, total, where, form)
        filled = pd.Series(values, index=table.index)
        scaled = with_columns(table, {column: filled.astype(table[column].dtype)})
        return summed_anew(scaled, release.settings, column)

    named = {str(level): total for level, total in wanted.items()}
    own = {
        "column": column, "by": by, "weights": weights,
        "totals": named if by is not None else wanted[None],
    }  # fmt: skip
    return changed_release(release, agreeing, "totals", own, reads=[*filter(None, (by, weights))])


def _wanted(totals: Any, by: str | None) -> dict[Any, float]:
    """Totals by level; of all rows under None."""
    if isinstance(totals, Mapping) != (by is not None):
        raise InvalidInput("totals must be a number, or numbers by level of the column in by=")
    wanted = dict(totals) if isinstance(totals, Mapping) else {None: totals}
    if not wanted:
        raise InvalidInput("totals must name at least one level")
    for level, total in wanted.items():
        if check_finite(total, "a total") < 0:
            raise InvalidInput(f"totals must be >= 0: found {total:g} for {level!r}")
    return {level: float(total) for level, total in wanted.items()}


def _of_level(table: pd.DataFrame, by: str | None, level: Any) -> Any:
    if by is None:
        return np.ones(len(table), dtype=bool)
    rows = (table[by] == level).fillna(False).to_numpy(dtype=bool)
    if not rows.any():
        raise InvalidInput(f"a total is for a level of {by!r} that rows have: {level!r} has none")
    return rows


@dataclass(frozen=True, kw_only=True)
class _Form:
    """Declared form of a column's values: so many decimals, at most `upper`."""

    decimals: int | None
    upper: float

    @classmethod
    def of(cls, dtype: Any, settings: Mapping[str, Any], column: str) -> _Form:
        """From the column's dtype and the public settings of the step that replaced it."""
        numbers = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        declared = {**settings.get("positive", {}), **settings}  # amounts of a two-part model
        declared |= _of_domain(settings.get("domain", {}).get(column, {}))
        has_levels = "levels" in declared and "n_bins" not in declared
        if not numbers or has_levels:
            raise InvalidInput(f"{column!r} must hold amounts, for a total: it has levels")
        lower, upper = (declared.get(name) for name in ("lower", "upper"))
        if isinstance(lower, (int, float)) and lower != 0:
            raise InvalidInput(
                f"{column!r} must be declared from 0 to be scaled to a total: it is from {lower:g}"
            )
        whole = bool(pd.api.types.is_integer_dtype(dtype))
        decimals = 0 if whole else declared.get("decimals")
        return cls(
            decimals=decimals if isinstance(decimals, int) else None,
            upper=float(upper) if isinstance(upper, (int, float)) else math.inf,
        )


def _of_domain(domain: Mapping[str, Any]) -> dict[str, Any]:
    """Decimals and upper end of the numbers of a domain of noisy marginals."""
    if "bins" not in domain:
        return {}
    step = domain.get("step")
    known = None if step is None else decimals_of(np.array([step, *domain.get("levels", ())]))
    return {"decimals": known, "upper": domain["bins"][-1]}


def _scaled(
    values: FloatArray, weight: FloatArray | None, total: float, where: str, form: _Form
) -> FloatArray:
    """Values whose sum, weighted if there are weights, is `total`."""
    own = np.ones(values.size) if weight is None else weight
    if not (own @ values > 0) and total > 0:
        raise InvalidInput(f"{where} must not sum to 0 in a synthetic set, to be scaled to a total")
    scaled = _below(values, own, total, where, form.upper)
    if form.decimals is None:
        return scaled
    if weight is not None:
        return np.asarray(np.round(scaled, form.decimals))
    steps = 10.0**form.decimals
    return _on_grid(scaled * steps, total * steps, where) / steps


def _below(
    values: FloatArray, weight: FloatArray, total: float, where: str, upper: float
) -> FloatArray:
    """Scaled to the total, none above `upper`: what would be is set to it, the others go on."""
    scaled, free = np.zeros(values.size), values > 0
    if upper * float(weight[free].sum()) < total * (1 - _ROUNDING):
        raise InvalidInput(
            f"the total of {where} cannot be met: rows above 0 are at most {upper:g} each, and too "
            "few"
        )
    left = total
    while free.any():
        scaled[free] = values[free] * (left / float(weight[free] @ values[free]))
        over = free & (scaled > upper)
        if not over.any():
            break
        scaled[over] = upper
        left -= upper * float(weight[over].sum())
        free &= ~over
    return scaled


def _on_grid(scaled: FloatArray, total: float, where: str) -> FloatArray:
    """Whole numbers next to `scaled` whose sum is `total`, which must be whole."""
    if abs(total - round(total)) > _ROUNDING * max(1.0, total):
        raise InvalidInput(
            f"the total of {where} must be a whole number of its smallest step: it is not"
        )
    low = np.floor(scaled * (1 + 1e-14))
    up = np.argsort(low - scaled, kind="stable")[: round(total - low.sum())]
    low[up] += 1
    return low
