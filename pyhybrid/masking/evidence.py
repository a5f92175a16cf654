"""What a mask says about each record: drawn once from the true keys, then all that synthesis sees.

A Gaussian mask comes down to the mean of its copies and a precision, any other to one log density
for each level. Records of one risk subgroup share a mask; a precision of 0, or equal log densities,
is a mask that is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.checks import FloatArray
from pyhybrid.errors import InvalidInput
from pyhybrid.masking.columns import Column
from pyhybrid.masking.masks import (
    GaussianMask,
    Mask,
    MisclassificationMask,
    MixtureMask,
    level_log_density,
)

__all__ = ["SUBGROUPS", "Evidence", "KeyMasks", "check_masks", "draw_evidence", "weakened"]

SUBGROUPS = ("low", "medium", "high")
KeyMasks = Mapping[str, "Mask | Mapping[str, Mask | None] | None"]
"""Mask of each key: one, one by risk subgroup, or None (off)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """What W says about one key of n records. Confidential.

    Attributes
    ----------
    centre, precision : ndarray, shape (n,), or None
        Mean of the copies and K/s2, standardised scale, for a continuous key.
    log_density : ndarray, shape (n, levels), or None
        log p(W | x) of each level, for any other key.
    """

    centre: FloatArray | None = None
    precision: FloatArray | None = None
    log_density: FloatArray | None = None


def check_masks(masks: Any, columns: Mapping[str, Column], *, subgroups: bool) -> None:
    """Refuse masks on columns that are no keys, of the wrong type, or by unknown subgroups."""
    if not isinstance(masks, Mapping):
        raise InvalidInput(
            f"masks must be a mapping of keys to masks: found {type(masks).__name__}"
        )
    for name, given in masks.items():
        if name not in columns:
            raise InvalidInput(
                f"masks must be on keys: {name!r} is none; keys are {', '.join(columns)}"
            )
        for group, mask in _by_subgroup(given).items():
            if group not in SUBGROUPS:
                raise InvalidInput(
                    f"the masks of {name!r} must be by {', '.join(SUBGROUPS)}: found {group!r}"
                )
            _check_mask(mask, columns[name])
        if isinstance(given, Mapping) and not subgroups:
            raise InvalidInput(f"masks by risk subgroup, as for {name!r}, need subgroups=")


def draw_evidence(
    masks: KeyMasks,
    columns: Mapping[str, Column],
    truth: Mapping[str, npt.NDArray[Any]],
    groups: npt.NDArray[Any] | None,
    rng: np.random.Generator,
) -> dict[str, Evidence]:
    """Draw W of every masked key from the true values."""
    found = {}
    for name, column in columns.items():
        parts = {g: mask for g, mask in _by_subgroup(masks.get(name)).items() if mask is not None}
        if not parts:
            continue
        n = len(truth[name])
        centre, precision = np.zeros(n), np.zeros(n)
        logs = np.zeros((n, column.n_levels))
        for group, mask in parts.items():
            rows = np.arange(n) if groups is None else np.flatnonzero(groups == group)
            if not rows.size:
                continue
            fitted = _fitted(mask, column)
            w = fitted.draw(truth[name][rows], rng)
            if isinstance(fitted, GaussianMask):
                centre[rows], precision[rows] = w.mean(axis=1), fitted.copies / fitted.variance
            else:
                logs[rows] = level_log_density(fitted, w, column.n_levels)
        found[name] = (
            Evidence(centre=centre, precision=precision)
            if column.kind == "continuous"
            else Evidence(log_density=logs)
        )
    return found


def weakened(masks: KeyMasks, factor: float) -> dict[str, Any]:
    """All masks with their log densities divided by `factor`."""
    return {
        name: {g: None if m is None else m.weakened(factor) for g, m in given.items()}
        if isinstance(given, Mapping)
        else None if given is None else given.weakened(factor)
        for name, given in masks.items()
    }  # fmt: skip


def _by_subgroup(given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(SUBGROUPS, given)


def _check_mask(mask: Any, column: Column) -> None:
    kinds: dict[type, tuple[str, ...]] = {
        GaussianMask: ("continuous",),
        MixtureMask: ("binary", "ordered", "nominal"),
        MisclassificationMask: ("binary", "ordered", "nominal"),
    }
    if mask is None:
        return
    if type(mask) not in kinds:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise InvalidInput(
            f"the mask of {column.name!r} must be one of {names}, or None: "
            f"found {type(mask).__name__}"
        )
    if column.kind not in kinds[type(mask)]:
        raise InvalidInput(
            f"{type(mask).__name__} does not fit {column.name!r}, which is {column.kind}: it is "
            f"for {', '.join(kinds[type(mask)])} keys"
        )
    levels = getattr(mask, "n_levels", None)
    if levels is not None and levels != column.n_levels:
        raise InvalidInput(
            f"the mask of {column.name!r} must have {column.n_levels} levels: found {levels}"
        )


def _fitted(mask: Any, column: Column) -> Any:
    """A mixture mask of a nominal key treats its levels alike."""
    if isinstance(mask, MixtureMask) and column.kind == "nominal" and mask.n_levels is None:
        return replace(mask, n_levels=column.n_levels)
    return mask
