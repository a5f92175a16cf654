"""Frozen records of a model of several steps: each step's rows, and which records reach it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.composite.steps import Part
from pyhybrid.models.families.aggregation import distinct_rows
from pyhybrid.models.families.cap_data import frozen_log_lik
from pyhybrid.models.families.regression import Parameters, Positions
from pyhybrid.privacy.censoring import FrozenParts, FrozenRows

__all__ = ["frozen_parts", "frozen_terms", "terms_with_frozen"]


def frozen_parts(
    parts: Sequence[Part],
    row_of: Positions,
    at_zero: npt.NDArray[np.bool_],
    alpha: FloatArray,
    center: FloatArray,
    chosen: Positions,
) -> FrozenParts:
    """Distinct records among those `chosen`, with weights (n,) and center (n,).

    `row_of` (n,) tells records that are alike in all parts.
    """
    rows = distinct_rows(np.column_stack([row_of, alpha])[chosen])
    first = chosen[rows.first]
    reached = {part.name: part.place_of[first] >= 0 for part in parts}
    return FrozenParts(
        alpha=alpha[first],
        count=rows.frequency.astype(np.int64),
        center=center[first],
        parts={
            part.name: _rows_at(part, part.place_of[first][reached[part.name]])
            for part in parts
            if reached[part.name].any()
        },
        reached=reached,
        at_zero=at_zero[first],
    )


def _rows_at(part: Part, places: Positions) -> FrozenRows:
    """A part's rows; what a record weighs and its center are of all its parts together."""
    own = part.bound.design
    return FrozenRows(
        y=own.y[places],
        X=own.X[places],
        offset=own.offset[places],
        alpha=np.ones(places.size),
        count=np.ones(places.size, dtype=np.int64),
        center=np.zeros(places.size),
    )


def frozen_terms(
    parts: Sequence[Part], frozen: FrozenParts, parameters: Mapping[str, Parameters], here: slice
) -> dict[str, FloatArray]:
    """Unweighted log-likelihood (S, b) of the records `here` in each step, at its parameters; 0 of
    records that do not reach it."""
    made = {}
    for part in parts:
        at, reached = parameters[part.name], frozen.reached[part.name]
        n_draws = len(next(iter(at.values())))
        own = np.zeros((n_draws, frozen.count[here].size))
        if reached[here].any():
            before, among = int(reached[: here.start].sum()), int(reached[here].sum())
            rows = frozen.parts[part.name].some(slice(before, before + among))
            terms = frozen_log_lik(part.bound.model, rows, at)
            own[:, reached[here]] = np.hstack(list(terms.make()))
        made[part.name] = own
    return made


def terms_with_frozen(
    data: dict[str, Any], frozen: FrozenParts, n_rows: Mapping[str, int]
) -> dict[str, Any]:
    """A joint data block with the frozen records after the others; of each part, whose frozen rows
    stand after its own, `n_rows` are its own."""
    d = frozen.count.size
    after: dict[str, Any] = {
        "frequency": frozen.share,
        "weights": frozen.alpha,
        "reference": frozen.center,
        "unit": np.zeros(d, dtype=np.int64),
    }
    if "at_zero" in data:
        after["at_zero"] = frozen.at_zero.astype(np.int64)
    for name, own in n_rows.items():
        place = own + np.cumsum(frozen.reached[name])  # from 1: place 0 is a record of none
        after[f"row_{name}"] = np.where(frozen.reached[name], place + 1, 1)
    longer = {name: np.concatenate([data[name], own]) for name, own in after.items()}
    return {**data, **longer, "n_terms": data["n_terms"] + d, "n_frozen": d}
