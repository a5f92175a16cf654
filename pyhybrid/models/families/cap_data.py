"""What the Stan programs read of a cap, and of its frozen rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.models.families.aggregation import distinct_rows
from pyhybrid.models.formula.design import Design
from pyhybrid.privacy.censoring import Cap, FrozenRows
from pyhybrid.privacy.log_lik import LogLik

__all__ = ["cap_data", "frozen_log_lik", "frozen_rows", "with_frozen"]

_BLOCK_ELEMENTS = 2_000_000


def cap_data(cap: Cap | None, chosen: npt.NDArray[np.intp]) -> dict[str, Any]:
    """What stan/functions/pseudo_log_lik.stan reads of a cap, for the records `chosen` (d,)."""
    none = np.zeros(chosen.size)
    reference = none if cap is None or cap.reference is None else cap.reference[chosen]
    unit = none.astype(np.int64) if cap is None or cap.unit is None else cap.unit[chosen] + 1
    return {
        "use_cap": int(cap is not None),
        "cap_below": 0.0 if cap is None else cap.below,
        "cap_above": 0.0 if cap is None else cap.above,
        "reference": reference,
        "n_units": 0 if cap is None else cap.n_units,
        "unit": unit,
        "n_frozen": 0,  # until they are appended
        "farthest": 0.0 if cap is None else cap.farthest,
        "steep": 0.0 if cap is None else cap.steep,
    }


def with_frozen(
    data: dict[str, Any], cap: Cap | None, outcome: Callable[[FloatArray], npt.NDArray[Any]]
) -> dict[str, Any]:
    """A data block with a cap's frozen rows, if it has any, after the records'; `outcome` makes
    theirs (d,) as the program reads it."""
    frozen = None if cap is None else cap.frozen
    if frozen is None:
        return data
    assert isinstance(frozen, FrozenRows)
    after = {
        "y": outcome(frozen.y),
        "X": frozen.X,
        "offsets": frozen.offset,
        "frequency": frozen.share,
        "weights": frozen.alpha,
        "reference": frozen.center,
        "unit": np.zeros(frozen.y.size, dtype=np.int64),
    }
    longer = {name: np.concatenate([data[name], own]) for name, own in after.items()}
    return {**data, **longer, "n": longer["y"].shape[0], "n_frozen": frozen.y.size}


def frozen_rows(
    design: Design,
    alpha: FloatArray,
    center: FloatArray,
    chosen: npt.NDArray[np.intp] | None = None,
) -> FrozenRows:
    """Distinct rows of the records of a design, or of those `chosen`, with weights and center;
    those with the same predictors are neighbors, as programs of many levels want them."""
    places = np.arange(design.y.size) if chosen is None else chosen
    table = np.column_stack([design.y, design.keys, design.offset, alpha])[places]
    rows = distinct_rows(table)
    order = np.argsort(distinct_rows(design.keys[places[rows.first]]).row_of, kind="stable")
    first = places[rows.first[order]]
    return FrozenRows(
        y=design.y[first],
        X=design.X[first],
        offset=design.offset[first],
        alpha=alpha[first],
        count=rows.frequency[order].astype(np.int64),
        center=center[first],
    )


def frozen_log_lik(model: Any, frozen: FrozenRows, parameters: Mapping[str, FloatArray]) -> LogLik:
    """Unweighted log-likelihood under a regression model, at parameters (S, *dims), of the records
    of frozen rows."""
    n_draws = len(next(iter(parameters.values())))
    levels = max(own.shape[2] if own.ndim == 3 else 1 for own in parameters.values())
    size = max(1, _BLOCK_ELEMENTS // (n_draws * levels))
    alike = bool((frozen.X[0] == frozen.X).all() and (frozen.offset[0] == frozen.offset).all())

    def blocks() -> Iterator[FloatArray]:
        for start in range(0, frozen.y.size, size):
            rows = slice(start, start + size)
            read = slice(0, 1) if alike else rows
            yield model.log_lik(parameters, frozen.y[rows], frozen.X[read], frozen.offset[read])

    return LogLik(make=blocks, row_of=np.repeat(np.arange(frozen.y.size), frozen.count))
