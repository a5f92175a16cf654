"""Public cells of a column for noisy marginals, and which columns it is measured with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.marginals.domain import ColumnDomain, with_steps
from pyhybrid.mechanisms.marginals.measure import most_cells, n_effects
from pyhybrid.models.columns.form import Kind
from pyhybrid.models.columns.kinds import Amounts, Counts, Dates, Leveled, Real, SemiContinuous
from pyhybrid.models.columns.support import each_occurs, of_steps
from pyhybrid.models.formula.values import is_number
from pyhybrid.privacy.histogram import in_steps

MOST_BINS = 12
"""Of a column in two-way tables: its bins are merged to so many; see `pyhybrid.NoisyMarginals`."""
_FEW = 300  # numbers in a range of so many steps are cells of their own
_ON_STEP = 1e-6
_FAR = np.arange(0.1, 11, 0.1)  # edges at typical +- spread (exp(t) - 1) / 3
_EVEN = 100  # bins of numbers without a spread


def domain_of(name: str, kind: Kind, reference: pd.Series | None = None) -> ColumnDomain:
    """The public domain: declared levels, or many bins, narrow about the center and wide far from
    it, as each column is measured alone before neighbors are merged. A range that is not declared
    is that of a `reference`, in round numbers, and what lies beyond it is counted at its ends.
    """
    if isinstance(kind, Leveled):
        return ColumnDomain(levels=kind.levels, missing=kind.missing, ordered=kind.ordered)
    if isinstance(kind, Dates):
        steps = Real(lower=0, upper=kind.last, decimals=0, codes=kind.points)
        return replace(domain_of(name, steps), missing=kind.missing, clamp=True, dates=kind)
    assert isinstance(kind, Real)
    clamp = None in (kind.lower, kind.upper)
    if clamp and reference is not None:
        kind = ranged(kind, reference[~reference.isin(kind.codes)])
    low, high = float(kind.lower), float(kind.upper)  # type: ignore[arg-type]
    decimals = kind.decimals
    if decimals is None:
        raise InvalidInput(
            f"column {name!r} must have decimals for noisy marginals: give decimals= in its type, "
            "0 for whole numbers"
        )
    step = 10.0**-decimals
    zero = isinstance(kind, SemiContinuous) and low <= 0 <= high
    points = tuple(sorted({*kind.codes, *((0,) if zero else ())}))
    return ColumnDomain(
        levels=points,
        bins=_edges(kind, points=points, step=step),
        step=step,
        missing=kind.missing,
        clamp=clamp,
        center=None if kind.spread is None else float(kind.typical or 0.0),
        unit=kind.spread,
    )


def ranged(kind: Real, values: pd.Series) -> Real:
    """With the ends of public values, moved outward to two digits of how far they are apart."""
    low, high, step = float(values.min()), float(values.max()), step_of_ends(kind, values)
    digits, ends = max(12, kind.decimals or 0), (np.floor(low / step), np.ceil(high / step))
    start, end = (round(step * steps, digits) for steps in ends)
    number = int if isinstance(kind, Counts) else float
    return replace(
        kind,
        lower=number(start) if kind.lower is None else kind.lower,
        upper=number(max(end, start + step)) if kind.upper is None else kind.upper,
    )


def step_of_ends(kind: Real, values: pd.Series) -> float:
    """What ends are multiples of: two of the second digit of how far values are apart. Rounded
    outward, an end crosses neither 0 nor 1 or 100, which are multiples, too. 1 if `each_occurs`."""
    amounts = values[~values.isin(kind.codes)].dropna()
    if each_occurs(amounts):
        return 1.0
    least = 1.0 if kind.decimals is None else 10.0**-kind.decimals
    apart = max(float(amounts.max()) - float(amounts.min()), least)
    return float(max(10.0 ** np.floor(np.log10(apart)) / 5, least))


def _edges(kind: Real, *, points: tuple[float, ...], step: float) -> tuple[float, ...]:
    low, high = float(kind.lower or 0.0), float(kind.upper or 0.0)
    if isinstance(kind, Amounts) and low <= 0:
        low = step / 1000  # 0 is none of them, and what rounds to it is
    alone = in_steps(np.array(points, dtype=np.float64), step)  # cells of their own
    start, end = in_steps(np.array([low, high]), step)
    if end - start < _FEW and abs(start - round(start)) < _ON_STEP:
        # the last bin is closed: it must not hold two numbers
        cells = np.append(np.arange(round(start), round(end) + 1), round(end) + 0.5)
        kept = with_steps(cells, alone)
        return (*of_steps(kept[:-1], step).tolist(), high + step / 2)
    if kind.spread is not None:
        center, far = kind.typical or 0.0, kind.spread / 3 * np.expm1(_FAR)  # most may lie closer
        inner = np.concatenate([center - far, [center], center + far])
    elif isinstance(kind, (Counts, Amounts, SemiContinuous)) and high > 0:
        start_at = max(low, 0.0)  # most are nearer to it than to the middle
        far = (high - start_at) / _EVEN * np.expm1(_FAR / 2)
        inner = np.concatenate([start_at - far, [start_at], start_at + far])
    else:
        inner = np.linspace(low, high, _EVEN + 1)
    whole = np.append(np.round(inner / step), [0.0] if 0.0 in points else [])
    inside = np.unique(whole[(whole > start) & (whole < end)])
    kept = with_steps(np.array([start, *inside, end]), alone)
    return (low, *of_steps(kept[1:-1], step).tolist(), high)


MOST_EFFECTS_OF_A_COLUMN = 1000
"""Cells of a column times those of what it is measured with; a fit takes their third power."""
SELECTS = ("few", "all")
"""What noisy marginals of a table measure: few tables, or those of all pairs."""
MOST_LEVELS = 30
"""Levels beyond which a column is no predictor, and is synthesized after all others."""
_TABLES, _FEWEST = 30, 3  # of a whole table, about; of a column
_FEW_BINS = 6  # that pairs of numbers are still told by
_PARTS = 10  # that numbers of a reference are cut in


def domains_of(
    kinds: Mapping[str, Kind], reference: pd.DataFrame | None
) -> dict[str, ColumnDomain]:
    """By column; those that have no range, nor one in the reference, are named together."""
    like = {} if reference is None else {str(name): reference[name] for name in reference}
    bare = [
        repr(name)
        for name, kind in kinds.items()
        if isinstance(kind, Real) and None in (kind.lower, kind.upper) and name not in like
    ]
    if bare:
        raise InvalidInput(
            f"column {', '.join(bare)} must have a range for noisy marginals: give lower= and "
            "upper= in its type, or a reference that has it"
        )
    domains = {}
    for name, kind in kinds.items():
        try:
            domains[name] = domain_of(name, kind, like.get(name))
        except InvalidInput as error:
            raise InvalidInput(f"domain of {name!r}: {error}") from None
    return domains


def pairs_are_small(kinds: Mapping[str, Kind], pairs: Mapping[str, Collection[str]]) -> bool:
    """True if each column's model of all its `pairs` is small where numbers have few bins."""
    cells = {name: _cells(name, kind, _FEW_BINS) for name, kind in kinds.items()}
    return max(n_effects(cells, pairs).values()) <= MOST_EFFECTS_OF_A_COLUMN


def few_predictors(
    kinds: Mapping[str, Kind],
    kept: Mapping[str, Kind],
    reference: pd.DataFrame | None = None,
    most: int | None = None,
) -> dict[str, tuple[str, ...]]:
    """Columns that each one is measured with, `most` of them or 30 tables in all, as each takes
    part of epsilon, found without the confidential table: the most associated in a reference, then
    kept and near ones, up to `MOST_EFFECTS_OF_A_COLUMN`."""
    most, usable, predictors = most or max(_FEWEST, _TABLES // len(kinds)), dict(kept), {}
    for name, kind in kinds.items():
        ranked = [*kept, *(other for other in reversed(usable) if other not in kept)]
        if reference is not None and name in reference:
            strength = {other: association(reference[name], reference[other])
                        for other in usable if other in reference}  # fmt: skip
            ranked = sorted(usable, key=lambda other: -strength.get(other, 0.0))  # stable
        rows, columns, chosen = _cells(name, kind), 1, set[str]()
        for other in ranked:
            wider = columns + _cells(other, usable[other])
            if len(chosen) < most and rows * wider <= MOST_EFFECTS_OF_A_COLUMN:
                chosen.add(other)
                columns = wider
        predictors[name] = tuple(other for other in usable if other in chosen)
        if is_predictor(kind):
            usable[name] = kind
    return predictors


def is_predictor(kind: Kind) -> bool:
    """Whether a column of this kind has few enough levels to be a predictor."""
    return not (isinstance(kind, Leveled) and len(kind.levels) > MOST_LEVELS)


def association(one: pd.Series, other: pd.Series) -> float:
    """Mutual information of two columns in nats, numbers by tenths, missing values a level, less
    the bias (R - 1)(C - 1) / 2n of independent ones (Miller 1955)."""
    from sklearn.metrics import mutual_info_score  # half a second to import

    a, b = _coded(one), _coded(other)
    bias = np.unique(a).size - 1, np.unique(b).size - 1
    return float(mutual_info_score(a, b) - bias[0] * bias[1] / (2 * len(a)))


def _coded(column: pd.Series) -> npt.NDArray[np.int64]:
    if is_number(column) and column.nunique() > _PARTS:
        column = pd.qcut(column, _PARTS, labels=False, duplicates="drop")
    return np.asarray(pd.factorize(column, use_na_sentinel=False)[0], dtype=np.int64)


def _cells(name: str, kind: Kind, most_bins: int = MOST_BINS) -> int:
    if isinstance(kind, Leveled):
        return len(kind.levels) + kind.missing
    if isinstance(kind, Real) and None in (kind.lower, kind.upper, kind.decimals):
        return most_bins + kind.missing
    return most_cells(domain_of(name, kind), most_bins)
