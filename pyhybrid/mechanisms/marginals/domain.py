"""Public cells: of the domain of a column, declared beforehand, and of its predictors.

A domain that is read from the confidential column would be a function of its records that no
epsilon covers. It comes from a codebook, from a law, or from a reference table that is public.

A number that is published as it is needs no bins: each record is shared out between the two knots
next to its value, in proportion to how near they are (linear B-splines). Its shares sum to 1, so
that it costs what a record in one bin costs, and effects are linear between knots in place of
steps, which would weaken them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from pyhybrid.core.checks import FloatArray, check_count, check_finite, check_flag, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import (
    Form,
    check_levels_given,
    number_in,
    numbers_in,
    places_of_levels,
)
from pyhybrid.models.columns.support import decimals_of, of_steps, snapped
from pyhybrid.models.formula.values import is_number, row_label
from pyhybrid.privacy.histogram import in_steps

IntArray = npt.NDArray[np.int64]
_HUGE = np.float64(1e300)  # beyond any edge
_LARGEST_WHOLE = 2**53  # floats beyond it skip whole numbers
_MOST_SINGLES = 10_000
_FEWEST = 0.25  # records of a merged bin, in parts of what it would have if all had the same
_FEW = 10  # numbers of a reference with at most so many values are levels
_DENSE_GAIN = 16  # of a dense product beside a sum over pairs that are not 0, for each of them
_MOST_PAIRS = 2**24  # rows times squared outcomes
PARTS = 16
"""Parts that a record is shared out in: whole numbers, as the noise is made for."""
ALONE = ""
"""Stands among predictors for none: the column's own counts."""
_KNOTS = 5


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
        Ascending edges of bins, at least two. Bins are closed on the left and open on the right,
        the last one closed on both sides.
    step : float, optional
        Numbers drawn within a bin are multiples of it: 0.01, or 100 for amounts given in hundreds.
        If omitted, they are whole where all edges and levels are whole numbers, and real numbers
        otherwise. Values between two steps are rounded before they are counted. The dtype of the
        data does not count: it is a function of the records.
    missing : bool, default False
        Missing values are a cell of their own. Otherwise they are refused.
    ordered : bool, default False
        The levels are in their order; neighboring ones are then expected to be alike. Bins are
        in any case.
    clamp : bool, default False
        Numbers beyond the bins are counted in the first or last one. Otherwise they are refused.
    center, unit : float, optional
        A typical value, and a typical difference, above 0, public: where noise hides the bins,
        numbers are expected about them. Both or none.

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

    def __post_init__(self) -> None:
        if isinstance(self.levels, str) or not isinstance(self.levels, Sequence):
            raise InvalidInput(f"levels must be a tuple: found {type(self.levels).__name__}")
        object.__setattr__(self, "levels", check_levels_given(self.levels, len(self.levels)))
        if isinstance(self.bins, str) or not isinstance(self.bins, (Sequence, np.ndarray)):
            raise InvalidInput(f"bins must be edges in a tuple: found {type(self.bins).__name__}")
        edges = tuple(check_finite(edge, "an edge of bins") for edge in self.bins)
        if len(edges) == 1 or any(b <= a for a, b in itertools.pairwise(edges)):
            raise InvalidInput("bins must be two edges or more that ascend")
        object.__setattr__(self, "bins", edges)
        check_flag(self.missing, "missing")
        check_flag(self.ordered, "ordered")
        check_flag(self.clamp, "clamp")
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
    def n_cells(self) -> int:
        """Number of cells K."""
        return len(self.levels) + max(0, len(self.bins) - 1) + self.missing

    @property
    def positions(self) -> FloatArray:
        """Place of each cell on the scale of ordered ones, 0 .. 1, shape (K,); NaN if it has none.

        Neighbors are as far apart as any others: by rank, not by value.
        """
        at = np.full(self.n_cells, np.nan)
        n_bins, first = max(0, len(self.bins) - 1), len(self.levels)
        if n_bins:
            at[first : first + n_bins] = np.linspace(0, 1, n_bins) if n_bins > 1 else 0.5
        elif self.ordered:
            at[:first] = np.linspace(0, 1, first)
        return at

    @property
    def blocks(self) -> IntArray:
        """Block of each cell, shape (K,), for tails: bins whose distance from the center, or from
        where most are expected, is alike within a factor of 2; levels and missing values alone."""
        first, n_bins, edges = len(self.levels), max(0, len(self.bins) - 1), np.array(self.bins)
        block = np.arange(self.n_cells)
        if not n_bins:
            return block
        low, high = edges[0], edges[-1]
        expected = max(low, 0.0) if low >= 0 or self.levels else (low + high) / 2
        center = expected if self.center is None else self.center
        least = max((self.unit or (high - low) / 100) / 2, self.step or 0.0)
        far = least * 2.0 ** np.arange(np.ceil(np.log2(max((high - low) / least, 1))) + 1)
        cuts = np.concatenate([center - far, [center], center + far])
        at = np.unique(np.searchsorted(edges[1:-1], np.sort(cuts)))
        block[first : first + n_bins] = first + np.searchsorted(at, np.arange(n_bins), side="left")
        return np.unique(block, return_inverse=True)[1].astype(np.int64)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types; what is not given is left out."""
        shown = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        return {k: v for k, v in shown.items() if not (v is None or v is False or v == [])}

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
        return cls(**{**fields, **tuples})

    def places(self, values: pd.Series) -> IntArray:
        """Cell of each record, shape (n,).

        Raises
        ------
        InvalidInput
            For a value outside of the domain; names the column and the first row, not the value.
        """
        name, place = str(values.name), np.full(len(values), -1, dtype=np.int64)
        absent = values.isna().to_numpy()
        present = values[~absent]
        place[~absent] = self.cells_of(present)
        if self.missing:
            place[absent] = self.n_cells - 1
        wrong = np.flatnonzero(place < 0)
        if wrong.size:
            row = row_label(values.index, int(wrong[0]))
            if absent[wrong[0]]:
                raise InvalidInput(
                    f"column {name!r} must not be missing: {row} is; declare missing=True in its "
                    "domain (its type, of a plan: --types FILE, beside --reference as well), which "
                    "makes missing values a cell of their own"
                )
            raise InvalidInput(
                f"column {name!r} must lie in its domain: {row} does not; levels and bins are part "
                "of the guarantee, so declare all that can occur (--types FILE, beside --reference "
                "as well), or change such values by a rule that does not look at the others"
            )
        return place

    def cells_of(self, present: pd.Series) -> IntArray:
        """Cell of each value, which none of the others has a say in, -1 for none, shape (n,)."""
        if not self.bins:
            return places_of_levels(present, self.levels)
        y = numbers_in(present)
        if y.size and np.isnan(y).all():
            raise InvalidInput(
                f"column {present.name!r} must be numeric to have bins: found {present.dtype}"
            )
        edges, levels = self._points(str(present.name))
        if self.clamp:
            own = y if self._step is None else snapped(y, self._step)
            y = np.where(np.isin(own, levels), y, np.clip(own, edges[0], edges[-1]))
        y = self._rounded(y, edges)
        place = np.searchsorted(edges, y, side="right") - 1
        place = np.where(y == edges[-1], edges.size - 2, place)
        place = np.where((y >= edges[0]) & (y <= edges[-1]), place + levels.size, -1)
        for cell, level in enumerate(levels):
            place[y == level] = cell
        return place.astype(np.int64)

    def _points(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Edges and levels, on the step."""
        known = [check_finite(own, f"a level of {name!r}, which has bins,") for own in self.levels]
        edges, levels = np.array(self.bins), np.array(known)
        if self._step is None:
            return edges, levels
        return snapped(edges, self._step), snapped(levels, self._step)

    def _rounded(self, y: FloatArray, edges: FloatArray) -> FloatArray:
        """Numbers as they are counted: within the bins what is between two steps is rounded, as
        released values are. No larger number comes before a smaller one."""
        if self._step is None:
            return y
        y = snapped(y, self._step)
        nearest = of_steps(np.rint(in_steps(y, self._step)), self._step)
        inside = (y >= edges[0]) & (y <= edges[-1])
        return np.where(inside, np.clip(nearest, edges[0], edges[-1]), y)

    def cuts(self, name: str) -> tuple[FloatArray, IntArray]:
        """Ascending numbers (T,) from each of which on another cell begins, and the cells (T + 1,)
        before, between and after them, -1 for none: what `places` does to any number, by
        comparisons alone, which every database engine does alike."""
        if self.bins:
            edges, levels = self._points(name)
            points = np.unique(np.concatenate([edges, levels]))
            starts = self._starts(points, edges)
        else:
            points = np.array([*map(number_in, self.levels)])
            points = points[np.isfinite(points)]
            starts = np.unique(np.concatenate([points, np.nextafter(points, np.inf)]))
        held: pd.Series = pd.Series([-_HUGE, *starts.tolist()], name=name, dtype=np.float64)
        cells = self.cells_of(held)
        new = np.flatnonzero(cells[1:] != cells[:-1])
        return starts[new], cells[np.append(0, new + 1)]

    def _starts(self, points: FloatArray, edges: FloatArray) -> FloatArray:
        """The first float that counts as each point or more, and the first that counts as more, by
        halves of all floats in their order."""

        def rank(y: FloatArray) -> IntArray:
            held = self._rounded(y, edges)
            below = np.searchsorted(points, held, "left")
            return np.asarray(below + np.searchsorted(points, held, "right"), dtype=np.int64)

        wanted = np.arange(1, 2 * points.size + 1)
        low, high = (np.full(wanted.size, end) for end in (_place_of(-_HUGE), _place_of(_HUGE)))
        for _ in range(64):
            middle = (low >> 1) + (high >> 1) + (low & high & 1)  # their difference is too large
            reached = rank(_float_at(middle)) >= wanted
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return np.unique(_float_at(high))

    @property
    def singles(self) -> FloatArray:
        """Numbers, in steps, that many records may share: all that can occur, or round ones where
        these are too many; none if each bin holds one alone. Shape (M,)."""
        if self._step is None or not self.bins:
            return np.zeros(0)
        low, high = in_steps(np.array([self.bins[0], self.bins[-1]]), self._step)
        first, last = math.ceil(low), math.floor(high)
        if last - first < len(self.bins) - 1:
            return np.zeros(0)
        sizes = (digit * 10**power for power in itertools.count() for digit in (1, 5))
        size = next(own for own in sizes if (last - first) / own < _MOST_SINGLES)
        return np.asarray(size * np.arange(-(-first // size), last // size + 1.0))

    def single_of(self, values: pd.Series) -> IntArray:
        """Place of each record among the M `singles`, M for all others, shape (n,)."""
        singles, y = self.singles, np.rint(in_steps(numbers_in(values), self._step or 1.0))
        y = np.clip(y, singles[0], singles[-1]) if self.clamp else y
        place = np.minimum(np.searchsorted(singles, y), singles.size - 1)
        return np.where(singles[place] == y, place, singles.size).astype(np.int64)

    def with_singles(self, found: FloatArray) -> ColumnDomain:
        """A domain in which each of the numbers `found`, in steps, ascending, is a bin alone."""
        step = self._step or 1.0
        edges, points = (in_steps(np.array(own, dtype=np.float64), step)
                         for own in (self.bins, self.levels))  # fmt: skip
        if found.size and found[-1] == np.floor(edges[-1]):  # the last bin is closed
            edges[-1] = max(edges[-1], found[-1] + 0.5)  # no value of a record is left outside
        own = np.concatenate([edges, found, found + 1])
        inside = np.unique(own[(own >= edges[0]) & (own <= edges[-1])])
        kept = with_steps(inside, np.sort(points[points == np.rint(points)])) * step
        inner, last = snapped(kept[1:-1], step).tolist(), max(self.bins[-1], float(kept[-1]))
        return replace(self, bins=(self.bins[0], *inner, last), step=step)

    def least(self) -> FloatArray:
        """The smallest number in each cell but that of missing values, shape (K,)."""
        places = np.arange(self.n_cells - self.missing)
        return self._numbers(places, np.zeros(places.size), "")

    @property
    def form(self) -> Form:
        """What released values look like: decimals of the step, or the type of the levels."""
        if not self.bins:
            return Form(levels=self.levels, missing=self.missing, ordered=self.ordered)
        step, own = self._step, [check_finite(level, "a level") for level in self.levels]
        decimals = None if step is None else decimals_of(np.array([step, *own]))
        return Form(decimals=decimals, missing=self.missing)

    def values(
        self,
        places: IntArray,
        rng: np.random.Generator,
        like: pd.Series,
        *,
        even: bool = False,
    ) -> pd.Series:
        """A column in the declared form: levels, numbers drawn uniformly within bins, missing.

        Parameters
        ----------
        places : ndarray of int, shape (n,)
            Cells.
        like : Series, length n
            For index and name. Nothing else is read: its dtype is a function of the records.
        even : bool, default False
            Spread the numbers of each bin over it, in place of one by one.
        """
        absent = places == self.n_cells - 1 if self.missing else np.zeros(places.size, bool)
        held = np.where(absent, 0, places)
        values: Any
        if self.bins:
            at = spread(places, rng) if even else rng.random(places.size)
            values = np.where(absent, np.nan, self._numbers(held, at, str(like.name)))
        else:
            known = np.empty(len(self.levels), dtype=object)
            known[:] = self.levels
            values = known[held]
            values[absent] = None
        return self.form.cast(pd.Series(values, index=like.index, name=like.name))

    def check_values(self, name: str) -> None:
        """Raise `InvalidInput` unless each bin holds numbers of the declared form."""
        if self.bins:
            self._numbers(np.zeros(0, dtype=np.int64), np.zeros(0), name)

    @property
    def _step(self) -> float | None:
        """The step, or the one that whole edges and levels declare."""
        known = (*self.bins, *self.levels)
        whole = all(isinstance(own, int | float) and own % 1 == 0 for own in known)
        return self.step if self.step is not None else 1.0 if whole else None

    def _numbers(self, places: IntArray, at: FloatArray, name: str) -> FloatArray:
        edges: FloatArray = np.array(self.bins, dtype=np.float64)
        n_levels = len(self.levels)
        bins = np.clip(places - n_levels, 0, edges.size - 2)
        if self._step is None:
            numbers = edges[bins] + at * (edges[bins + 1] - edges[bins])
        else:
            whole = self._multiples(bins, at, self._step, name)
            numbers = of_steps(whole.astype(np.float64), self._step)
        if n_levels:
            points = np.array(self.levels, dtype=np.float64)
            numbers = np.where(places < n_levels, points[np.minimum(places, n_levels - 1)], numbers)
        return np.asarray(numbers, dtype=np.float64)

    def _multiples(self, bins: IntArray, at: FloatArray, step: float, name: str) -> IntArray:
        """Multiples of `step`, at shares `at` of bins [a, b), the last [a, b], but for levels."""
        edges = in_steps(np.array(self.bins), step)
        if np.abs(edges).max() > _LARGEST_WHOLE:
            raise InvalidInput(
                f"bins of {name!r} must lie within {_LARGEST_WHOLE} steps of {step:g} from 0"
            )
        first = np.ceil(edges).astype(np.int64)
        past = first[1:].copy()
        past[-1] = np.floor(edges[-1]) + 1
        points = in_steps(np.array(self.levels, dtype=np.float64), step)
        points = np.sort(points[points == np.rint(points)])
        held = np.array(
            [np.sum((a <= points) & (points < b)) for a, b in zip(first[:-1], past, strict=True)]
        )
        empty = np.flatnonzero(past - first[:-1] - held <= 0)
        if empty.size:
            raise InvalidInput(
                f"each bin of {name!r} must hold a multiple of its step {step:g} that is no level: "
                f"bin {empty[0] + 1} holds none; edges that are whole numbers declare a step of 1, "
                "step= another"
            )
        many = (past - held - first[:-1])[bins]
        drawn: IntArray = first[bins] + np.minimum((at * many).astype(np.int64), many - 1)
        for point in points.astype(np.int64):  # ascending: each level is stepped over
            drawn += (drawn >= point) & (first[bins] <= point) & (point < past[bins])
        return drawn


def _place_of(number: np.float64) -> int:
    """Place of a float among all, in their order, from that of 0."""
    bits = int(np.abs(number).view(np.int64))
    return -bits if number < 0 else bits


def _float_at(places: IntArray) -> FloatArray:
    """Inverse of `_place_of`."""
    return np.copysign(np.abs(places).view(np.float64), np.where(places < 0, -1.0, 1.0))


def read_domain(domain: Any) -> dict[str, ColumnDomain]:
    """Domain by column, of what `ColumnDomain.from_dict` takes."""
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
        except InvalidInput as error:
            raise InvalidInput(f"domain of {name!r}: {error}") from None
    return named


def reference_domain(
    reference: pd.DataFrame, columns: Sequence[str], *, n_bins: int = 12
) -> dict[str, ColumnDomain]:
    """Domains of columns as a public reference table has them: levels that occur, bins by quantile.

    Parameters
    ----------
    reference : DataFrame
        Public, or of an earlier release. Never the table that is to be released: its domain is a
        function of its records, and no charge covers it.
    columns : sequence of str
    n_bins : int, default 12
        Of numbers with more than 10 values; fewer where quantiles coincide. A value that at least
        one record in `n_bins` holds, 0 in most amounts, is a level beside the bins.

    Returns
    -------
    dict of str to ColumnDomain
        For `NoisyMarginals(domain=...)`; check that it holds all that can occur, and widen its ends
        (`dataclasses.replace`) where it does not: a value outside is refused.
    """
    check_count(n_bins, "n_bins", at_least=2)
    domains = {}
    for name in columns:
        if name not in reference.columns:
            raise InvalidInput(f"reference must have the column {name!r}: it has not")
        domains[name] = _domain_of(reference[name], n_bins)
    return domains


def _domain_of(values: pd.Series, n_bins: int) -> ColumnDomain:
    present, absent = values.dropna(), bool(values.isna().any())
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return ColumnDomain(
            levels=tuple(dtype.categories.tolist()), missing=absent, ordered=bool(dtype.ordered)
        )
    number = is_number(values)
    levels = sorted(present.unique().tolist(), key=str) if not number else np.unique(present)
    if not number or len(levels) <= _FEW:
        plain = tuple(own.item() if isinstance(own, np.generic) else own for own in levels)
        return ColumnDomain(levels=plain, missing=absent)
    y = present.to_numpy(dtype=np.float64)
    held, times = np.unique(y, return_counts=True)
    masses = held[times * n_bins >= y.size]
    cuts = np.quantile(y[~np.isin(y, masses)], np.linspace(0, 1, n_bins + 1))
    decimals = decimals_of(y)
    step = None if decimals is None else 1 if decimals == 0 else 10.0**-decimals
    if step is None or np.abs(y).max() / step > _LARGEST_WHOLE:
        step, edges = None, np.unique(cuts)
    else:
        whole = np.unique(np.floor(in_steps(cuts, step)))
        edges = of_steps(with_steps(whole, in_steps(masses, step)), step)
    return ColumnDomain(
        levels=tuple(masses.tolist()), bins=tuple(edges.tolist()), step=step, missing=absent
    )


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictor:
    """Cells of one predictor, `cells` (n, L) with `PARTS` in each row at `positions` (L,);
    `synthesized` if its values are confidential, and were drawn anew."""

    name: str
    cells: sparse.csr_array
    positions: FloatArray
    synthesized: bool

    def __repr__(self) -> str:
        return f"<Predictor {self.name!r}, {self.cells.shape[1]} cells>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Distinct rows of all predictors together: `cells` (R, L) are shares, 1 for each predictor.

    `times` (R,) records have them; `of_record` (n,) is the place of each record among them."""

    cells: sparse.csr_array
    times: FloatArray
    of_record: IntArray

    def __repr__(self) -> str:
        return f"<Rows: {self.times.size} distinct ones of {self.of_record.size}>"


def of_nothing(n: int) -> Predictor:
    """One cell that all n records are in: for a column without predictors."""
    return of_cells(ALONE, np.zeros(n, np.int64), 1, np.full(1, np.nan), synthesized=False)


def of_cells(
    name: str, places: IntArray, n_cells: int, positions: FloatArray, *, synthesized: bool
) -> Predictor:
    """A predictor whose records are each in one cell, at `places` (n,)."""
    n = places.size
    cells = sparse.csr_array(
        (np.full(n, PARTS, np.int64), places, np.arange(n + 1)), shape=(n, n_cells)
    )
    return Predictor(name=name, cells=cells, positions=positions, synthesized=synthesized)


def of_public(values: pd.Series, domain: ColumnDomain | None = None) -> Predictor:
    """A predictor published as it is: its declared cells, its levels, or knots of numbers, read
    from the column, which is public; missing values are a cell of their own."""
    name = str(values.name)
    if domain is not None:
        own = domain.places(values)
        return of_cells(name, own, domain.n_cells, domain.positions, synthesized=False)
    number = is_number(values)
    if number and values.nunique() > _KNOTS:
        return _of_numbers(name, values.to_numpy(dtype=np.float64, na_value=np.nan))
    if not all(isinstance(value, Hashable) for value in values):
        raise InvalidInput(
            f"column {name!r} must hold texts, logicals, categories or numbers to be read: found "
            f"{values.dtype} of lists or the like; leave it out of given"
        )
    codes, levels = pd.factorize(values, sort=number, use_na_sentinel=False)
    at = np.full(len(levels), np.nan)
    if number:  # few numbers: in their order, the missing ones aside
        present = int(pd.Series(levels).notna().sum())
        at[:present] = np.linspace(0, 1, present) if present > 1 else 0.5
    return of_cells(name, codes.astype(np.int64), len(levels), at, synthesized=False)


def _of_numbers(name: str, x: FloatArray) -> Predictor:
    present = np.isfinite(x)
    knots = np.unique(np.quantile(x[present], np.linspace(0, 1, _KNOTS)))
    absent, n_knots = ~present, knots.size
    own = np.where(present, x, knots[0])
    left = np.clip(np.searchsorted(knots, own, side="right") - 1, 0, n_knots - 2)
    share = (own - knots[left]) / (knots[left + 1] - knots[left])
    parts = np.rint(share * PARTS).astype(np.int64)
    rows = np.arange(x.size)
    there = rows[present]
    cells = sparse.csr_array(
        (
            np.concatenate([PARTS - parts[there], parts[there], np.full(absent.sum(), PARTS)]),
            (
                np.concatenate([there, there, rows[absent]]),
                np.concatenate([left[there], left[there] + 1, np.full(absent.sum(), n_knots)]),
            ),
        ),
        shape=(x.size, n_knots + int(absent.any())),
    )
    cells.eliminate_zeros()
    at = np.full(cells.shape[1], np.nan)
    at[:n_knots] = np.linspace(0, 1, n_knots)
    return Predictor(name=name, cells=cells, positions=at, synthesized=False)


def stacked(predictors: Sequence[Predictor]) -> Rows:
    """All predictors side by side, each distinct row once."""
    ends = np.cumsum([each.cells.shape[1] for each in predictors])
    # two of a million rows fall together with probability 3e-8, which costs accuracy, never privacy
    words = np.random.default_rng(20230101).integers(0, 2**64, ends[-1], dtype=np.uint64)
    keys = np.zeros(predictors[0].cells.shape[0], dtype=np.uint64)
    for each, own in zip(predictors, np.split(words, ends[:-1]), strict=True):
        keys += each.cells.astype(np.uint64) @ own
    _, first, of_record, times = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    cells = sparse.hstack([each.cells[first] for each in predictors], format="csr")
    return Rows(
        cells=sparse.csr_array(cells / PARTS),
        times=times.astype(np.float64),
        of_record=of_record.astype(np.int64),
    )


def pairs_of(design: FloatArray, n_outcomes: int) -> sparse.csr_array | None:
    """Products of all pairs of columns of a row of `design` (R, B), shape (R, B^2), where so few
    are not 0 that sums over them take less time than those of dense products, or None."""
    own = sparse.csr_array(design)
    held, width = np.diff(own.indptr), design.shape[1]
    ends = np.concatenate([[0], np.cumsum(held**2)])
    if ends[-1] * _DENSE_GAIN > design.size * width or held.size * n_outcomes**2 > _MOST_PAIRS:
        return None
    left = np.repeat(np.arange(own.nnz), np.repeat(held, held))
    place = np.arange(ends[-1]) - np.repeat(ends[:-1], held**2)
    right = np.repeat(own.indptr[:-1], held**2) + place % np.repeat(held, held**2)
    columns = own.indices[left].astype(np.int64) * width + own.indices[right]
    products = own.data[left] * own.data[right]
    return sparse.csr_array((products, columns, ends), shape=(held.size, width**2))


def spread(
    groups: npt.NDArray[np.int64], rng: np.random.Generator, at: FloatArray | None = None
) -> FloatArray:
    """Numbers in [0, 1) for each record, evenly spread among those of its group, in the order of
    `at` (n,), in [0, 1), or at random, shape (n,)."""
    order = np.argsort(groups + (rng.random(groups.size) if at is None else at))
    times = np.bincount(groups)
    own = groups[order]
    place = np.arange(groups.size) - (np.cumsum(times) - times)[own]
    numbers = np.empty(groups.size)
    numbers[order] = (place + rng.random(groups.size)) / times[own]
    return numbers


def most_cells(domain: ColumnDomain, most_bins: int | None) -> int:
    """Cells of a column in tables with predictors, at most."""
    merged_bins = 0 if most_bins is None else max(0, len(domain.bins) - 1 - most_bins)
    return domain.n_cells - merged_bins


def merged(domain: ColumnDomain, shares: FloatArray, most_bins: int) -> ColumnDomain:
    """The domain with neighboring bins merged to at most so many, of equal parts of the root of
    share times width: equal shares would put a whole tail into one bin, equal widths nearly all
    records."""
    first, n_bins = len(domain.levels), len(domain.bins) - 1
    if n_bins <= most_bins:
        return domain
    held = shares[first : first + n_bins]
    along = np.cumsum(np.sqrt(held * np.diff(domain.bins)))
    inner = np.searchsorted(along, along[-1] * np.arange(1, most_bins) / most_bins) + 1
    # where all are in the last bin two are left, as a domain needs
    inner = np.unique(inner[inner < n_bins] if (inner < n_bins).any() else n_bins - 1)
    cuts = _with_records([0, *inner, n_bins], held, most_bins)
    return replace(domain, bins=tuple(domain.bins[cut] for cut in cuts))


def _with_records(cuts: Sequence[int], shares: FloatArray, most_bins: int) -> list[int]:
    """Cuts without the bins that hold too little, the thinnest first; two bins are left."""
    least = _FEWEST * shares.sum() / most_bins
    below = np.concatenate([[0.0], np.cumsum(shares)])
    kept = list(cuts)
    while len(kept) > 3:
        held = np.diff(below[kept])
        thin = int(np.argmin(held))
        if held[thin] >= least:
            break
        left = thin > 0 and (thin == len(held) - 1 or held[thin - 1] <= held[thin + 1])
        del kept[thin if left else thin + 1]
    return kept
