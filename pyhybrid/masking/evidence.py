"""Masks of all keys, by risk subgroup where they differ: checked, drawn, weakened, put into words.

W is drawn once from the true keys; what it says, an `Evidence` for each key, is all that synthesis
sees of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.errors import InvalidInput
from pyhybrid.masking.columns import Column
from pyhybrid.masking.masks import MASKS, Evidence, Mask

__all__ = ["SUBGROUPS", "KeyMasks", "check_masks", "described", "draw_evidence", "weakened"]

SUBGROUPS = ("low", "medium", "high")
KeyMasks = Mapping[str, "Mask | Mapping[str, Mask | None] | None"]
"""Mask of each key: one, one by risk subgroup, or None (off)."""


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
        found[name] = Evidence.none(n, column.n_levels)
        for group, mask in parts.items():
            rows = np.arange(n) if groups is None else np.flatnonzero(groups == group)
            if not rows.size:
                continue
            fitted = mask.fitted(column.kind, column.n_levels)
            fitted.tell(fitted.draw(truth[name][rows], rng), rows, found[name])
    return found


def weakened(masks: KeyMasks, factor: float) -> dict[str, Any]:
    """All masks with their log densities divided by `factor`."""
    return {
        name: {g: None if m is None else m.weakened(factor) for g, m in given.items()}
        if isinstance(given, Mapping)
        else None if given is None else given.weakened(factor)
        for name, given in masks.items()
    }  # fmt: skip


def described(given: Any) -> str:
    """What `masks` hold for one key, in words."""
    if given is None:
        return "mask off: drawn from the association model alone"
    if isinstance(given, Mapping):
        return "by risk subgroup: " + "; ".join(f"{g}, {described(m)}" for g, m in given.items())
    return str(given.describe())


def _by_subgroup(given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(SUBGROUPS, given)


def _check_mask(mask: Any, column: Column) -> None:
    if mask is None:
        return
    if not isinstance(mask, MASKS):
        names = ", ".join(kind.__name__ for kind in MASKS)
        raise InvalidInput(
            f"the mask of {column.name!r} must be one of {names}, or None: "
            f"found {type(mask).__name__}"
        )
    if column.kind not in mask.kinds:
        raise InvalidInput(
            f"{type(mask).__name__} does not fit {column.name!r}, which is {column.kind}: it is "
            f"for {', '.join(mask.kinds)} keys"
        )
    if mask.n_levels not in (None, column.n_levels):
        raise InvalidInput(
            f"the mask of {column.name!r} must have {column.n_levels} levels: found {mask.n_levels}"
        )
