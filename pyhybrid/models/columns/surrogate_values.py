"""Values to put in place of confidential ones, drawn from references that are not the data.

A program that may not read an outcome is run on data without it: every confidential number is
replaced by another VALUE. An order of the same ones would leave sums, ranks and extremes in place.
Which references a program takes depends on its constraints, so that several are tried; none
depends on the data but for the kind of number (whole or not), which is public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.errors import InvalidInput

_REAL = [(0.1, 0.9), (1.1, 1.9), (2.1, 9.9)]
_REAL += [(1.1 * 10.0**k, 9.9 * 10.0**k) for k in range(1, 7)]
_REAL += [(-0.9, -0.1), (-99.0, -1.0), (-9e4, -1e3)]
_WHOLE = [(0, 1), (1, 2), (0, 5), (1, 9)]
_WHOLE += [(10**k + 1, 10 ** (k + 1)) for k in range(1, 7)]
_WHOLE += [(-9, -1), (-99, -10), (0, 0), (1, 1)]


@dataclass(frozen=True, kw_only=True)
class OtherValues:
    """Uniform numbers: reals on `real`, whole ones on `whole`; the same for the same `seed`. With
    `whole_reals`, reals get whole numbers as well; with `levels`, that many different values, so
    that there are ties."""

    real: tuple[float, float]
    whole: tuple[int, int]
    whole_reals: bool = False
    levels: int | None = None
    seed: int = 20220101

    def instead_of(self, values: npt.NDArray[Any], *, differ: bool = False) -> npt.NDArray[Any]:
        """Other values of the shape and kind of `values`. With `differ`, a number that happens to
        be equal is mirrored in its range: that looks at `values`, and is for checks, never for what
        is released."""
        rng = np.random.default_rng(self.seed)
        if values.dtype.kind not in "fiub":
            raise InvalidInput(
                f"data must be numbers, to be replaced by others: found {values.dtype}"
            )
        made: npt.NDArray[Any]
        if values.dtype.kind == "f" and not self.whole_reals:
            low, high = self.real
            share = rng.uniform(0, 1, values.shape)
            if self.levels is not None:
                share = (np.floor(share * self.levels) + 0.5) / self.levels
            made = low + (high - low) * share
        else:
            low, high = self.whole
            made = rng.integers(low, high + 1, values.shape)
        if differ:
            made = np.where(made == values, low + high - made, made)
        return np.asarray(made, dtype=np.float64 if values.dtype.kind == "f" else np.int64)


def references(kinds: str) -> Iterator[OtherValues]:
    """References for data with numbers of these kinds ("f" reals, "i" whole), likely ones first: of
    both, every pair, in the order of the sum of their places."""
    pairs = [(r, w) for r in range(len(_REAL)) for w in range(len(_WHOLE))]
    if "f" not in kinds:
        pairs = [(0, w) for w in range(len(_WHOLE))]
    elif "i" not in kinds:
        pairs = [(r, 0) for r in range(len(_REAL))]
    for r, w in sorted(pairs, key=sum):
        yield OtherValues(real=_REAL[r], whole=_WHOLE[w])
    if "f" in kinds:  # reals of the table that are whole numbers of the program
        for whole in _WHOLE:
            yield OtherValues(real=_REAL[0], whole=whole, whole_reals=True)


def like_the_data(values: npt.NDArray[Any]) -> list[OtherValues]:
    """Values in the range of the data's own, without and with ties. For checks: they tell it."""
    low, high = float(np.min(values)), float(np.max(values))
    whole_reals = bool((np.round(values) == values).all())
    plain = OtherValues(real=(low, high), whole=(round(low), round(high)), whole_reals=whole_reals)
    return [plain, replace(plain, whole_reals=False, levels=4)]
