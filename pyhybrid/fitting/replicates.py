"""Synthetic data sets from posterior draws.

m draws are chosen at random without replacement among those that may be released, and for each
one every record's outcome is drawn anew from p(. | x_i, theta). Simulation from a released draw is
post-processing: it costs nothing beyond the draw.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.engines import Draws
from pyhybrid.models.base import BoundModel
from pyhybrid.models.formula.values import with_columns


def choose_draws(
    kept_draws: npt.NDArray[np.bool_],
    n_draws: int,
    rng: np.random.Generator,
    *,
    released: npt.NDArray[np.intp] | None = None,
) -> npt.NDArray[np.intp]:
    """Positions (n_draws,) of kept draws at random, none in `released`, which an earlier release
    took."""
    available = np.flatnonzero(kept_draws)
    if released is not None:
        available = np.setdiff1d(available, released, assume_unique=True)
    if n_draws > available.size:
        before = "" if released is None or not released.size else " that were not released before"
        raise InvalidInput(
            f"n_synthetic must be at most the number of kept draws{before}, {available.size}: "
            f"found {n_draws}"
        )
    return rng.choice(available, size=n_draws, replace=False)


def synthesize(
    bound: BoundModel,
    draws: Draws,
    kept_draws: npt.NDArray[np.bool_],
    *,
    n_synthetic: int,
    n_draws_released: int,
    streams: Streams,
    stream: str,
    earlier: Sequence[int] = (),
    drawn_for_this: bool = False,
    given: Sequence[pd.DataFrame] | None = None,
    correct: Callable[[Draws, Streams], Draws] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[pd.DataFrame]:
    """The synthesized columns of `n_synthetic` sets, each with a random stream of its own, from
    `kept_draws` (S,), which alone may be released, and none of those of the releases `earlier`;
    `correct` is given the draws that were chosen, and no other, and says which to take instead."""
    released: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)
    for number, n_draws in enumerate((*earlier, n_draws_released), start=1):
        name = stream if number == 1 else f"{stream}/release {number}"
        if drawn_for_this:
            chosen = np.arange(n_draws_released)
            continue
        rng = streams.generator(f"{name}/draws")
        chosen = choose_draws(kept_draws, n_draws, rng, released=released)
        released = np.concatenate([released, chosen])
    if correct is not None:
        draws = correct(draws.part(chosen), streams.child(f"{name}/corrected"))
        chosen = np.arange(chosen.size)
    sets = []
    for place in range(n_synthetic):
        rng = streams.generator(f"{name}/replicate {place + 1}")
        draw, table = int(chosen[place % chosen.size]), None if given is None else given[place]
        sets.append(bound.replicate(draws, draw, rng, table))
        if progress is not None:
            progress(place + 1, n_synthetic)
    return sets


def simulated(
    bound: BoundModel,
    released: Draws,
    number: int,
    streams: Streams,
    given: Sequence[pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Table `number` of those that one would have had if one of the released draws were true."""
    known = None if given is None else given[number % len(given)]
    rng, draw = streams.generator("outcomes"), number % released.n_draws
    outcomes = bound.replicate(released, draw, rng, known)
    return joined(bound.table if known is None else known, outcomes)


def without_bias(
    released: Draws, pairs: Sequence[tuple[Draws, Draws]], names: Sequence[str]
) -> Draws:
    """Released draws less how far the means of parameters `names`, or of the logarithms of scales
    and sizes, lie apart in `pairs` of draws, of a biased fit and one without bias: on average,
    as far as all pairs agree, since a bias that changes fast with the parameters is not known. They
    are asked by directions that are independent in fits without bias: of a regression the first is
    the level at usual predictors, which an intercept, at predictors of 0, would hide."""
    corrected = dict(released.variables)
    for name in names:
        seen = [draws.flat(name) for pair in pairs for draws in pair]
        own = corrected[name]
        if any(draws.shape[1:] != own.shape[2:] for draws in seen):
            raise InvalidInput("a simulated table lacks levels; levels= of the model declares them")
        location, ordered = name.startswith(("beta", "threshold")), name.startswith("threshold")
        if not location:
            seen, own = [np.log(draws) for draws in seen], np.log(own)
        fits = [draws.reshape(len(draws), -1) for draws in seen]
        means = np.stack([draws.mean(axis=0) for draws in fits])
        root = _root_of_precision(fits[1::2])
        agreed = _agreed((means[0::2] - means[1::2]) @ root)
        own = own - np.linalg.solve(root.T, agreed).reshape(own.shape[2:])
        own = own if location else np.exp(own)
        corrected[name] = np.sort(own, axis=-1) if ordered else own
    return replace(released, variables=corrected)


def _root_of_precision(fits: Sequence[FloatArray]) -> FloatArray:
    """Of parameters, in fits of draws (S, p): lower triangular (p, p), of their covariance within
    fits, which is drawn to that of each alone where draws are few."""
    apart = np.concatenate([draws - draws.mean(axis=0) for draws in fits])
    covariance, share = apart.T @ apart / len(apart), min(1.0, apart.shape[1] / len(apart))
    alone = np.diag(np.diag(covariance))
    return np.linalg.cholesky(np.linalg.inv((1 - share) * covariance + share * alone))


def _agreed(estimates: FloatArray) -> FloatArray:
    """Of estimates (k, p) the mean, but no more than twice the one nearest to 0, and 0 where signs
    differ, (p,)."""
    sign, sizes = np.sign(estimates[0]), np.abs(estimates)
    agree = (np.sign(estimates) == sign).all(axis=0)
    return np.where(agree, sign * np.minimum(sizes.mean(axis=0), 2 * sizes.min(axis=0)), 0.0)


def joined(table: pd.DataFrame, columns: pd.DataFrame) -> pd.DataFrame:
    """`table` with `columns` in the place of its own, and without notes (`attrs`) on it. What is
    not replaced is shared with `table` where pandas copies on write (from 3.0)."""
    whole = with_columns(table, columns)
    whole.attrs = {}  # notes on the confidential table would be published with it
    return whole


def in_one_dtype(tables: Sequence[pd.DataFrame], columns: Sequence[str]) -> list[pd.DataFrame]:
    """The tables with each column in one dtype, as files of a release have one schema: whole
    numbers beside missing ones become floats; what numpy has no number for becomes objects."""
    alike = list(tables)
    for name in columns:
        kinds = {table[name].dtype for table in alike}
        if len(kinds) > 1:
            common = _common(kinds)
            alike = [with_columns(table, {name: table[name].astype(common)}) for table in alike]
    return alike


def _common(kinds: Collection[Any]) -> Any:
    if all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in kinds):
        return np.result_type(*kinds)
    return "Int64" if all(map(pd.api.types.is_integer_dtype, kinds)) else np.dtype(object)
