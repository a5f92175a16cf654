"""Public cells: of the domain of a column, declared beforehand, and of its predictors.

A domain read from the confidential column would be a function of its records that no epsilon
covers. It comes from a codebook, from a law, or from a public reference table.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_finite, check_flag, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Form, check_levels_given, numbers_in, places_of_levels
from pyhybrid.models.columns.kinds import Dates, kind_from_dict
from pyhybrid.models.columns.support import LARGEST, decimals_of, of_steps, snapped
from pyhybrid.models.formula.values import is_number
from pyhybrid.privacy.histogram import in_steps
from pyhybrid.sources.source import ColumnCells

IntArray = npt.NDArray[np.int64]
NO_PREDICTOR = ""
"""Stands among predictors for none: the column's own counts."""
_CUTS = 8  # of a public number
_BESIDE = (-1.5, -1, -0.75, -0.5, -0.3, 0, 0.3, 0.5, 0.75, 1, 1.5)  # steps from an edge or level


@dataclass(frozen=True, kw_only=True)
class ColumnDomain:
    """Values that a column can hold, public, cut into cells: levels first, then bins, then missing.

    A value that is one of the levels is in that level's cell, also where it lies in a bin: zero
    incomes beside bins of incomes. All else must lie in a bin.

    Parameters
    ----------
    levels : sequence
        Single values: texts, numbers, logicals.
    bins : sequence of float
        Ascending edges, at least two. Bins are closed on the left, the last one on both sides.
    step : float, optional
        Numbers drawn within a bin are multiples of it: 0.01, or 100 for amounts given in hundreds;
        values between two are rounded before they are counted. If omitted, they are whole where all
        edges and levels are, and real numbers otherwise.
    missing : bool, default False
        Missing values are a cell of their own. Otherwise they are refused.
    ordered : bool, default False
        The levels are in their order: neighboring ones are expected to be alike, as bins are.
    clamp : bool, default False
        Numbers beyond the bins are counted in the first or last one. Otherwise they are refused.
    center, unit : float, optional
        A typical value, and a typical difference above 0, public: where noise hides the bins,
        numbers are expected about them. Both or none.
    dates : Dates, optional
        Of a column of dates: how they are read as the numbers of `levels` and `bins`, and written.

    Examples
    --------
    >>> ColumnDomain(levels=(0,), bins=(1, 10_000, 50_000, 1_000_000), step=100).n_cells
    4
    """

    levels: tuple[Any, ...] = ()
    bins: tuple[float, ...] = ()
    step: float | None = None
    missing: bool = False
    ordered: bool = False
    clamp: bool = False
    center: float | None = None
    unit: float | None = None
    dates: Dates | None = None

    def __post_init__(self) -> None:
        n_levels = len(self.levels) if isinstance(self.levels, Sequence) else 0
        levels = () if self.levels is None else self.levels
        object.__setattr__(self, "levels", check_levels_given(levels, n_levels))
        if isinstance(self.bins, str) or not isinstance(self.bins, (Sequence, np.ndarray)):
            raise InvalidInput(f"bins must be edges in a tuple: found {type(self.bins).__name__}")
        edges = tuple(check_finite(edge, "an edge of bins") for edge in self.bins)
        if len(edges) == 1 or any(b <= a for a, b in itertools.pairwise(edges)):
            raise InvalidInput("bins must be two edges or more that ascend")
        object.__setattr__(self, "bins", edges)
        for level in self.levels if edges else ():
            check_finite(level, "a level of a domain with bins")
        for name in ("missing", "ordered", "clamp"):
            check_flag(getattr(self, name), name)
        if self.step is not None:
            check_positive(self.step, "step")
        if (self.center is None) != (self.unit is None):
            raise InvalidInput("center and unit must both be given, or neither")
        if self.center is not None and self.unit is not None:
            check_finite(self.center, "center")
            check_positive(self.unit, "unit")
        if self.n_cells < 2:
            raise InvalidInput(
                f"a domain must have two cells or more: found {self.n_cells}; a column of one "
                "value is no secret, and need not be synthesized"
            )

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return max(0, len(self.bins) - 1)

    @property
    def n_cells(self) -> int:
        """Number of cells K."""
        return len(self.levels) + self.n_bins + self.missing

    @property
    def binned(self) -> slice:
        """The cells of bins."""
        return slice(len(self.levels), len(self.levels) + self.n_bins)

    @property
    def positions(self) -> FloatArray:
        """Place of each ordered cell on the scale 0 .. 1, by rank, (K,); NaN if it has none."""
        at = np.full(self.n_cells, np.nan)
        if self.n_bins:
            at[self.binned] = _ranks(self.n_bins)
        elif self.ordered:
            at[: len(self.levels)] = _ranks(len(self.levels))
        return at

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types; what is not given is left out."""
        shown = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}
        shown["dates"] = None if self.dates is None else self.dates.as_dict()
        return {k: v for k, v in shown.items() if v is not None and v is not False and v != []}

    @classmethod
    def from_dict(cls, fields: Any) -> ColumnDomain:
        """Inverse of `as_dict`; a list stands for its levels."""
        if isinstance(fields, ColumnDomain):
            return fields
        if isinstance(fields, (list, tuple)):
            return cls(levels=tuple(fields))
        known = set(cls.__dataclass_fields__)
        if not isinstance(fields, Mapping) or not set(fields) <= known:
            raise InvalidInput(
                f"a domain must be levels, or have the keys {', '.join(sorted(known))}"
            )
        tuples = {k: tuple(fields[k]) for k in ("levels", "bins") if k in fields}
        dates: Any = fields.get("dates")
        dates = kind_from_dict(dates) if isinstance(dates, Mapping) else dates
        return cls(**{**fields, **tuples, "dates": dates})

    def cells(self, name: str, starts: IntArray | None = None) -> ColumnCells:
        """The cells as a source counts them; merged, if `starts` has the first of each merged cell,
        and their number."""
        n_cells = self.n_cells if starts is None else starts.size - 1
        return ColumnCells(
            column=name,
            n_cells=n_cells,
            cut=partial(self._merged_cells_of, starts),
            missing=n_cells - 1 if self.missing else None,
            changes_near=self._changes_near if self.bins and self.dates is None else None,
        )

    @property
    def _changes_near(self) -> FloatArray:
        """Numbers between any two neighbors of which the cell changes once at most."""
        points = np.array([*self.bins, *self.levels], dtype=np.float64)
        near = [np.nextafter(points, -np.inf), points, np.nextafter(points, np.inf)]
        step = self.released_step
        if step is not None:
            whole = np.floor(points / step)
            near += [part for k in _BESIDE for part in ((whole + k) * step, points + k * step)]
        return np.unique(np.concatenate(near))

    def places(self, values: pd.Series) -> IntArray:
        """Cell of each record, shape (n,).

        Raises
        ------
        InvalidInput
            For a value outside of the domain; names the column and the first row, not the value.
        """
        return self.cells(str(values.name)).places(values, named=True)

    def cells_of(self, present: pd.Series) -> IntArray:
        """Cell of each value, which none of the others has a say in, -1 for none, shape (n,)."""
        if not self.bins:
            return places_of_levels(present, self.levels)
        numbers = numbers_in(present) if self.dates is None else self.dates.numbers(present)
        step, given = self.released_step, (numbers, self.bins, self.levels)
        own = (np.asarray(some, dtype=np.float64) for some in given)
        y, edges, levels = own if step is None else (snapped(some, step) for some in own)
        if y.size and np.isnan(y).all():
            must = "numeric to have bins"
            must = must if self.dates is None else f"dates written as {self.dates.format}"
            raise InvalidInput(f"column {present.name!r} must be {must}: found {present.dtype}")
        if self.clamp:
            y = np.where(np.isin(y, levels), y, np.clip(y, edges[0], edges[-1]))
        if step is not None and 0 < edges[0] < step / 2:  # all above 0 round to what it rounds to
            y = np.where((numbers > 0) & (y < edges[0]), edges[0], y)
        inside = (y >= edges[0]) & (y <= edges[-1])
        if step is not None:  # values between two steps are rounded within the bins
            nearest = of_steps(np.rint(in_steps(y, step)), step)
            y = np.where(inside, np.clip(nearest, edges[0], edges[-1]), y)
        place = np.minimum(np.searchsorted(edges, y, side="right") - 1, edges.size - 2)
        place = np.where(inside, place + levels.size, -1)
        for cell, level in enumerate(levels):
            place[y == level] = cell
        return place.astype(np.int64)

    def _merged_cells_of(self, starts: IntArray | None, present: pd.Series) -> IntArray:
        cells = self.cells_of(present)
        return cells if starts is None else np.searchsorted(starts, cells, side="right") - 1

    @property
    def released_step(self) -> float | None:
        """The step, or the one that whole edges and levels declare."""
        whole = all(isinstance(number, int | float) and number % 1 == 0
                    for number in (*self.bins, *self.levels))  # fmt: skip
        return self.step if self.step is not None else 1.0 if whole else None

    @property
    def form(self) -> Form:
        """What released values look like: decimals of the step, or the type of the levels."""
        if not self.bins:
            return Form(levels=self.levels, missing=self.missing, ordered=self.ordered)
        if self.dates is not None:
            return self.dates
        step = self.released_step
        decimals = None if step is None else decimals_of(np.array([step, *self.levels], float))
        return Form(decimals=decimals, missing=self.missing)

    def values(
        self, places: IntArray, at: FloatArray, *, name: str, index: pd.Index | None = None
    ) -> pd.Series:
        """A column of cells (n,) in the declared form: levels, missing, and the numbers at shares
        `at` (n,) in [0, 1) of their bins."""
        if not self.bins:
            known = [*self.levels, *([None] if self.missing else [])]
            levels = self.form.cast(pd.Series(known, dtype=object)).array
            column: pd.Series = pd.Series(levels.take(places), index=index, name=name)
            return column
        absent = places == self.n_cells - 1 if self.missing else np.zeros(places.size, bool)
        numbers = np.where(absent, np.nan, self.numbers(np.where(absent, 0, places), at))
        like: pd.Series = pd.Series(numbers, index=index, name=name)
        return self.form.cast(like) if self.dates is None else self.dates.values(numbers, like)

    def numbers(self, places: IntArray, at: FloatArray) -> FloatArray:
        """The number at the share `at` of each cell but that of missing values, shape (n,)."""
        edges, n_levels, step = np.array(self.bins), len(self.levels), self.released_step
        bins = np.clip(places - n_levels, 0, edges.size - 2)
        if step is None:
            numbers = edges[bins] + at * (edges[bins + 1] - edges[bins])
        else:
            numbers = of_steps(self._multiples(bins, at, step).astype(np.float64), step)
        if n_levels:
            points = np.array(self.levels, dtype=np.float64)
            numbers = np.where(places < n_levels, points[np.minimum(places, n_levels - 1)], numbers)
        return np.asarray(numbers, dtype=np.float64)

    def _multiples(self, bins: IntArray, at: FloatArray, step: float) -> IntArray:
        """Multiples of `step`, at shares `at` of bins [a, b), the last [a, b], but for levels."""
        edges = in_steps(np.array(self.bins), step)
        if np.abs(edges).max() > LARGEST:
            raise InvalidInput(f"bins must lie within {LARGEST:.0f} steps of {step:g} from 0")
        first = np.ceil(edges).astype(np.int64)
        past = np.append(first[1:-1], np.floor(edges[-1]) + 1).astype(np.int64)
        points = in_steps(np.array(self.levels, dtype=np.float64), step)
        points = np.sort(points[points == np.rint(points)])
        many = past - first[:-1] - np.diff(np.searchsorted(points, np.append(first[:-1], past[-1])))
        for empty in np.flatnonzero(many <= 0)[:1]:
            raise InvalidInput(
                f"each bin must hold a multiple of its step {step:g} that is no level: bin "
                f"{empty + 1} holds none; edges that are whole numbers declare a step of 1, step= "
                "another"
            )
        drawn: IntArray = first[bins] + np.minimum(
            (at * many[bins]).astype(np.int64), many[bins] - 1
        )
        for point in points.astype(np.int64):  # ascending: each level is stepped over
            drawn += (drawn >= point) & (first[bins] <= point) & (point < past[bins])
        return drawn


def _ranks(n: int) -> FloatArray:
    return np.linspace(0, 1, n) if n > 1 else np.full(n, 0.5)


def starts_of(domain: ColumnDomain, few: ColumnDomain) -> IntArray:
    """The first cell of `domain` in each cell of `few`, and the number of cells, (K_few + 1,)."""
    first = len(domain.levels)
    inner = first + np.searchsorted(domain.bins, few.bins[:-1])
    missing = [domain.n_cells - 1] if domain.missing else []
    return np.array([*range(first), *inner, *missing, domain.n_cells], dtype=np.int64)


def with_steps(edges: FloatArray, levels: FloatArray) -> FloatArray:
    """Edges, in steps, without those of bins that hold no multiple of the step but levels."""
    first, kept = np.ceil(edges), [0]
    for place in range(1, edges.size - 1):
        held = first[place] - first[kept[-1]]
        if held > np.sum((first[kept[-1]] <= levels) & (levels < first[place])):
            kept.append(place)
    while len(kept) > 1:
        held = np.floor(edges[-1]) - first[kept[-1]] + 1
        if held > np.sum((first[kept[-1]] <= levels) & (levels <= edges[-1])):
            break
        kept.pop()
    return np.asarray(edges[[*kept, -1]])


def read_domain(domain: Any) -> dict[str, ColumnDomain]:
    """Domain by column, of what `ColumnDomain.from_dict` takes; each bin must hold a number."""
    if not isinstance(domain, Mapping) or not domain:
        raise InvalidInput(
            "domain must map each column to synthesize to its public domain: found "
            f"{type(domain).__name__}; it is never read from the data, it is part of the guarantee"
        )
    named: dict[str, ColumnDomain] = {}
    for name, fields in domain.items():
        if not isinstance(name, str):
            raise InvalidInput(f"domain must be of named columns: found {name!r}")
        try:
            named[name] = ColumnDomain.from_dict(fields)
            if named[name].bins:
                named[name].numbers(np.zeros(0, np.int64), np.zeros(0))  # each bin holds one
        except InvalidInput as error:
            raise InvalidInput(f"domain of {name!r}: {error}") from None
    return named


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Predictor:
    """The cell of each record by one predictor, `cells` (n,), at `positions` (L,); `synthesized` if
    its values are confidential, and were drawn anew."""

    cells: IntArray
    positions: FloatArray
    synthesized: bool = False

    @classmethod
    def of_public(cls, values: pd.Series, domain: ColumnDomain | None = None) -> Predictor:
        """A predictor published as it is: its declared cells, its levels, or eighths of numbers,
        read from the column, which is public; missing values are a cell of their own."""
        if domain is not None:
            return cls(cells=domain.places(values), positions=domain.positions)
        number = is_number(values)
        if not number and not all(isinstance(value, Hashable) for value in values):
            raise InvalidInput(
                f"column {values.name!r} must hold texts, logicals, categories or numbers to be "
                f"read: found {values.dtype} of lists or the like; leave it out of given"
            )
        if number and values.nunique() > _CUTS:
            x = values.to_numpy(dtype=np.float64, na_value=np.nan)
            x = np.where(np.isfinite(x), x, np.nan)
            inner = np.unique(np.nanquantile(x, np.arange(1, _CUTS) / _CUTS))
            cut = np.searchsorted(inner, x)
            values = pd.Series(np.where(np.isnan(x), np.nan, cut))
        codes, levels = pd.factorize(values, sort=number, use_na_sentinel=False)
        at = np.full(len(levels), np.nan)
        if number:  # in their order, the missing ones aside
            present = int(pd.Series(levels).notna().sum())
            at[:present] = _ranks(present)
        return cls(cells=codes.astype(np.int64), positions=at)

    def rows(self, kept: IntArray | slice) -> Predictor:
        """The same of some records."""
        return replace(self, cells=self.cells[kept])
