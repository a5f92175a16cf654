"""Checks of a user's whole Stan program: that weights act, and what must not be read.

At random points theta the log density under weights and a cap must differ from that under weights
of 0 by the sum of the (clipped) weighted terms of the program's own log_lik, up to a constant that
theta does not enter (a program may drop normalizing constants).

What a program reads is tried with other values in the place of all numbers that are not declared
public (`OtherValues`), at the same points, with the same random numbers: the parameters and the
replicate must stay as they are, bit for bit; with all weights 0, the log density may move by a
constant in theta only, as what is left of it is the prior; the log_lik of a record must stay when
outcomes of other records are replaced, for every pair.

Functions in Python could reach the records by a variable of their module, a closure, a default or a
file: objects with one value per record are looked for in what they hold, and what they return is
held against the outcome.
"""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import BoolArray, FloatArray
from pyhybrid.core.errors import InvalidInput, PyhybridError, SamplingError
from pyhybrid.engines.base import StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import block_text, declared_names, parameter_names

_SEED, _SEED_OF_FIT = 20220101, 20220102
_ROUNDING = 1e-9  # of the log of a probability of 1
_TRIES, _POINTS = 60, 4
_TOLERANCE, _SAME = 1e-7, 1e-9
_LARGEST = 1e12  # beyond, rounding hides what is looked for
_MOST_OBJECTS, _DEEPEST = 20_000, 6
_FEWEST = 5  # records that show an order
_NO_CODE = (str, bytes, int, float, complex, bool, type(None), type)
_REAL = [(0.1, 0.9), (1.1, 1.9), (2.1, 9.9)]
_REAL += [(1.1 * 10.0**k, 9.9 * 10.0**k) for k in range(1, 7)]
_REAL += [(-0.9, -0.1), (-99.0, -1.0), (-9e4, -1e3)]
_WHOLE = [(0, 1), (1, 2), (0, 5), (1, 9)]
_WHOLE += [(10**k + 1, 10 ** (k + 1)) for k in range(1, 7)]
_WHOLE += [(-9, -1), (-99, -10), (0, 0), (1, 1)]


class NotChecked(Exception):
    """Why a check could not be made. Never leaves `pyhybrid.models`."""


DataBlock = Callable[..., Mapping[str, Any]]
"""``data(alpha, cap=None, *, other=None, records=None, rest=True)``: a program's data block under
weights, one for all or (n,), and a cap; with other values in the place of what is confidential: of
all `records` or those chosen (n,), and of `rest`, what has not one value per record."""


@dataclass(frozen=True, kw_only=True)
class OtherValues:
    """Values in the place of confidential ones: uniform reals on `real`, whole numbers on `whole`,
    the same for the same `seed`. An order of the same values would leave sums, ranks and extremes
    in place. With `whole_reals`, reals get whole numbers as well; with `levels`,
    that many different values, so that there are ties."""

    real: tuple[float, float]
    whole: tuple[int, int]
    whole_reals: bool = False
    levels: int | None = None
    seed: int = _SEED

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
    both, every pair, in the order of the sum of their places. Several, as it depends on a program's
    constraints which it takes; on the data depends the kind of number alone, which is public."""
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


# --- weights -------------------------------------------------------------------------------------


def check_declares(program: StanProgram) -> None:
    """Raise InvalidInput unless the text has `weights` in data and `log_lik` at the end."""
    if "weights" not in declared_names(program, "data"):
        raise InvalidInput(
            f"program {program.name!r} must declare weights in its data block, e.g. "
            "'vector<lower=0, upper=1>[n] weights;', and multiply each record's log-likelihood by "
            "its weight"
        )
    if not re.search(r"\blog_lik\b", block_text(program, r"generated\s+quantities")):
        raise InvalidInput(
            f"program {program.name!r} must yield log_lik in its generated quantities: a vector "
            "with the log-likelihood of each record, not weighted"
        )


def check_weights_act(
    program: StanProgram, data: DataBlock, n: int, *, weighted: bool, capped: bool
) -> None:
    """Hold the program's log density against its log_lik, `weighted` or not, for n records, at
    random points; if it takes a cap, clipping as well."""
    rng = np.random.default_rng(_SEED)
    positive, with_zeros = rng.uniform(0.2, 1, n), rng.uniform(0, 1, n)
    with_zeros[:: max(2, n // 5)] = 0
    terms = _Terms.at_random(program, data, rng, weighted)
    check_yielded(program, terms.log_lik, (len(terms.points), n), density_above_one=True)
    finite = np.asarray(np.isfinite(terms.log_lik).all(axis=1))
    if not finite.any():
        raise InvalidInput(
            f"log_lik of program {program.name!r} must be finite: it is not, at any point tried"
        )
    terms = terms.chosen(finite)
    cap = float(np.median(np.abs(positive * terms.log_lik)))
    prior = terms.hold(positive, None)
    for alpha, clip in ((with_zeros, None), *([(positive, cap)] if capped else [])):
        density = terms.at(alpha, clip).log_density(terms.points)
        terms.compare(density - prior, alpha, clip)


def check_acts_at(
    program: StanProgram,
    data: DataBlock,
    others: Iterable[OtherValues],
    alpha: FloatArray,
    cap: float | None,
    *,
    weighted: bool,
) -> None:
    """Hold the log density at the very weights `alpha` (n,) and cap of a fit against log_lik, with
    the data's outcome and with another, and what is left with weights of 0; InvalidInput if the
    program does another thing there than at the weights tried when it was bound."""
    terms = _Terms.at_random(program, data, np.random.default_rng(_SEED_OF_FIT), weighted)
    prior = terms.hold(alpha, cap)
    for other in others:
        with_other = replace(terms, data=partial(data, other=other))
        try:
            log_lik = with_other.at(1.0).quantities(terms.points)["log_lik"]
            bare, there = with_other.at(0.0, cap), with_other.at(alpha, cap)
        except PyhybridError:
            continue
        left, density = bare.log_density(terms.points), there.log_density(terms.points)
        usable = np.isfinite(left) & np.isfinite(density)
        if usable.sum() < min(2, len(terms.points)):
            continue
        left, density, before = left[usable], density[usable], prior[usable]
        replace(terms.chosen(usable), log_lik=log_lik[usable]).compare(density - left, alpha, cap)
        within = _TOLERANCE * (1 + np.abs(left).max() + np.abs(before).max())
        if not np.allclose(left - before, (left - before)[0], rtol=0, atol=within):
            raise InvalidInput(
                f"the prior of program {program.name!r} must not read the confidential outcome: at "
                "the weights and the cap of this fit the log density changes with it, all weights "
                "taken away"
            )
        return


@dataclass(frozen=True, eq=False)
class _Terms:
    """Terms of the records: log_lik (S, n) with all weights 1 at points (S, p), where the size of
    the log density is `size` (S,)."""

    program: StanProgram
    data: DataBlock
    weighted: bool
    points: FloatArray
    size: FloatArray
    log_lik: FloatArray

    @classmethod
    def at_random(
        cls, program: StanProgram, data: DataBlock, rng: np.random.Generator, weighted: bool
    ) -> _Terms:
        at = ProgramAtPoints(program, data(1.0))
        points, density = usable_points(at, rng, program)
        log_lik = at.quantities(points)["log_lik"]
        return cls(program, data, weighted, points, np.abs(density), log_lik)

    def chosen(self, which: BoolArray) -> _Terms:
        """The terms at some of the points."""
        parts = (self.points[which], self.size[which], self.log_lik[which])
        return _Terms(self.program, self.data, self.weighted, *parts)

    def at(self, alpha: FloatArray | float, cap: float | None = None) -> ProgramAtPoints:
        return ProgramAtPoints(self.program, self.data(alpha, cap))

    def hold(self, alpha: FloatArray, cap: float | None) -> FloatArray:
        """The log density with weights of 0, after that with `alpha` was held against log_lik."""
        at, name = self.at(alpha, cap), self.program.name
        given = at.quantities(self.points)["log_lik"]
        if self.weighted and not np.allclose(given, alpha * self.log_lik, rtol=1e-6, atol=1e-9):
            raise InvalidInput(
                f"log_lik of program {name!r} must be weights times the log-likelihood, as "
                "log_lik_weighted=True says: it is not; leave the flag out if it is not weighted"
            )
        if not self.weighted and not np.allclose(given, self.log_lik, rtol=1e-6, atol=1e-9):
            raise InvalidInput(
                f"log_lik of program {name!r} must not depend on weights: it does; take the "
                "weights out of generated quantities, or give log_lik_weighted=True"
            )
        prior = self.at(0.0, cap).log_density(self.points)
        self.compare(at.log_density(self.points) - prior, alpha, cap)
        return prior

    def compare(self, moved: FloatArray, alpha: FloatArray, cap: float | None) -> None:
        """Differences of log densities (S,) against the sum of the weighted terms, each clipped;
        those of weight 0 count nothing."""
        terms = np.where(alpha > 0, alpha * self.log_lik, 0.0)
        expected = (terms if cap is None else np.clip(terms, -cap, cap)).sum(axis=1)
        error = moved - expected
        error = np.abs(error - error.mean() if error.size > 1 else error)
        if (error <= _TOLERANCE * (1 + self.size + np.abs(expected))).all():
            return
        if cap is not None:
            raise InvalidInput(
                f"the cap of program {self.program.name!r} must clip each record's weights[i] * "
                "log_lik[i] to [-cap, cap] where use_cap is 1: the log density does not move as it "
                "should"
            )
        still = bool((np.abs(moved - moved.mean()) <= _TOLERANCE * (1 + self.size)).all())
        why = "weights do not act at all" if still else "they act otherwise"
        raise InvalidInput(
            f"weights of program {self.program.name!r} must multiply each record's log_lik in the "
            f"model block: {why}. Between two weight vectors the log density must differ by the "
            "difference of the weighted log_lik; write 'target += weights[i] * ..._lpdf(y[i] | "
            "...);' with the same term as in log_lik"
        )


def check_yielded(
    program: StanProgram, log_lik: FloatArray, shape: tuple[int, int], *, density_above_one: bool
) -> None:
    """Raise InvalidInput for another shape than (S, n), or for what the user's flag denies."""
    if log_lik.shape != shape:
        raise InvalidInput(
            f"log_lik of program {program.name!r} must have one value per record, {shape[1]}: "
            f"found {log_lik.shape[1:]}"
        )
    if not density_above_one and (log_lik > _ROUNDING).any():
        raise InvalidInput(
            f"log_lik of program {program.name!r} must be at most 0 where "
            "density_above_one=False: it is not; leave the flag out"
        )


def usable_points(
    program_at: ProgramAtPoints, rng: np.random.Generator, program: StanProgram
) -> tuple[FloatArray, FloatArray]:
    """A few points where the log density is finite, and that density."""
    points = rng.uniform(-1, 1, (_TRIES, program_at.n_unconstrained))
    values = program_at.log_density(points)
    usable = np.flatnonzero(np.abs(values) < _LARGEST)[:_POINTS]  # not of NaN
    if not usable.size:
        raise InvalidInput(
            f"the log density of program {program.name!r} must be finite somewhere, and below "
            f"{_LARGEST:g} in size: it is not at {_TRIES} random points; see its constraints and "
            "its data"
        )
    return points[usable], values[usable]


# --- reads ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Reads:
    """Reads of a program at unconstrained points (S, p), with the true data and other values of its
    outcome, from `others`. `has_rest`: data that are neither public nor one value per record."""

    program: StanProgram
    data: DataBlock
    outcome: FloatArray
    others: Callable[[], Iterator[OtherValues]]
    has_rest: bool
    points: FloatArray
    predict: str | None
    weighted: bool

    def check(self, *, n_references: int, splits: Iterable[BoolArray]) -> None:
        """Raise InvalidInput for a program that reads what it must not, NotChecked if it takes no
        other values; `splits` (n,) are records whose values alone are replaced, see `all_pairs`."""
        if "log_lik" not in self._truth:
            raise NotChecked("its generated quantities fail")
        taken = list(islice(self._taken(self.others()), n_references))
        if not taken:
            raise NotChecked("the program takes no other values in the place of the outcome")
        if n_references > 1:
            taken += self._taken(like_the_data(self.outcome))
        nobody = np.zeros(self.outcome.size, dtype=bool)
        for other, at, where in taken:
            self._check_replicates(at, where)
            self._check_prior(at)
            if self.has_rest:
                self._check_log_lik([other], nobody, rest=True)
        for mask in splits:
            self._check_log_lik([other for other, _, _ in taken], mask, rest=False)

    @cached_property
    def _truth(self) -> dict[str, FloatArray]:
        return ProgramAtPoints(self.program, self.data(1.0)).quantities(self.points, seed=_SEED)

    @cached_property
    def _prior(self) -> FloatArray:
        return ProgramAtPoints(self.program, self.data(0.0)).log_density(self.points)

    def _at(self, other: OtherValues, weights: float, **which: Any) -> ProgramAtPoints | None:
        """The program with other values; None if it does not take them."""
        try:
            return ProgramAtPoints(self.program, self.data(weights, other=other, **which))
        except PyhybridError:
            return None

    def _taken(
        self, others: Iterable[OtherValues]
    ) -> Iterator[tuple[OtherValues, ProgramAtPoints, BoolArray]]:
        """References that the program takes, with the points that it takes them at."""
        for other in others:
            at = self._at(other, 0.0)
            if at is None:
                continue
            if at.n_unconstrained != self.points.shape[1]:
                raise self._read_by_parameters("their number changes")
            where = np.isfinite(at.log_density(self.points))
            if where.any():
                yield other, at, where

    def _check_replicates(self, at: ProgramAtPoints, where: BoolArray) -> None:
        """Parameters and replicates at the points `where`, against those with the true data."""
        # A point keeps its place, and with it its random numbers.
        usable = np.where(where[:, None], self.points, self.points[np.argmax(where)])
        there = _quantities(at, usable)
        if there is None:
            raise NotChecked("the program fails with other values in the place of the outcome")
        if not all(self._stays(there, name, where) for name in parameter_names(self.program)):
            raise self._read_by_parameters("their bounds change")
        if self.predict is None or self._stays(there, self.predict, where):
            return
        unweighted = _quantities(ProgramAtPoints(self.program, self.data(0.0)), self.points)
        if unweighted is not None and not self._stays(unweighted, self.predict):
            raise InvalidInput(
                f"{self.predict!r} of program {self.program.name!r} must not read the weights, "
                "which are confidential: it changes with them"
            )
        raise InvalidInput(
            f"{self.predict!r} of program {self.program.name!r} must not read the confidential "
            "outcome: it changes when other values stand in the place of what is not a declared "
            "predictor, which no epsilon covers; draw it from parameters and predictors alone, "
            "before other random numbers of generated quantities. Data with one value per record "
            "come from a function of the table, constants of a data mapping are named in public="
        )

    def _stays(
        self, there: Mapping[str, FloatArray], name: str, where: BoolArray | slice = slice(None)
    ) -> bool:
        """True if a variable is what it is with the true data, at the points `where`."""
        if name not in self._truth or name not in there:  # of size 0, or refused where it is used
            return name not in self._truth and name not in there
        return np.array_equal(self._truth[name][where], there[name][where], equal_nan=True)

    def _read_by_parameters(self, how: str) -> InvalidInput:
        return InvalidInput(
            f"parameters of program {self.program.name!r} must not read the confidential outcome: "
            f"{how} when other values stand in its place; declare bounds and sizes by constants "
            "(those of a data mapping are named in public=)"
        )

    def _check_prior(self, at: ProgramAtPoints) -> None:
        """The log density, all weights 0, may move by a constant."""
        there = at.log_density(self.points)
        finite = np.isfinite(there) & np.isfinite(self._prior)
        if finite.sum() < min(2, len(self.points)):
            raise NotChecked("with all weights 0 the log density is not finite for other outcomes")
        here, there = self._prior[finite], there[finite]
        step, size = there - here, 1 + np.abs(there) + np.abs(here)
        if (np.abs(step - step[0]) > _SAME * (size + size[0])).any():
            raise InvalidInput(
                f"the prior of program {self.program.name!r} must not read the confidential "
                "outcome: with all weights 0 the log density still changes with it, and no weight "
                "bounds that; give constants that are known beforehand (those of a data mapping "
                "are named in public=), and multiply every term of a record by its weight"
            )

    def _check_log_lik(self, others: Sequence[OtherValues], mask: BoolArray, *, rest: bool) -> None:
        """log_lik of the records outside `mask` must stay when those inside have other outcomes, or
        the `rest` of the data other values, by the first reference that the program takes."""
        answers = (self._keeps_log_lik(other, mask, rest=rest) for other in others)
        kept = next((answer for answer in answers if answer is not None), None)
        if kept is None:
            what = "of entries of data" if rest else "for some of the records"
            raise NotChecked(f"the program does not take other values {what}")
        if not kept:
            what = (
                "entries of data that are not known to be public and have not one value per "
                "record: name constants in public="
                if rest
                else "the outcome of other records: with other values there, a record's own "
                "log_lik changes, so that its weight does not bound what it adds; give centers, "
                "scales and counts as constants that are known beforehand"
            )
            raise InvalidInput(f"log_lik of program {self.program.name!r} must not read {what}")

    def _keeps_log_lik(self, other: OtherValues, mask: BoolArray, *, rest: bool) -> bool | None:
        """True if log_lik stays outside `mask`; None if the program does not take the data."""
        at = self._at(other, 1.0 if self.weighted else 0.0, records=mask, rest=rest)
        if at is None or at.n_unconstrained != self.points.shape[1]:
            return None
        there = (_quantities(at, self.points[:2]) or {}).get("log_lik")
        if there is None or there.shape[1:] != mask.shape:
            return None
        before, after = self._truth["log_lik"][:2, ~mask], there[:, ~mask]
        return bool(np.allclose(before, after, rtol=_SAME, atol=_SAME, equal_nan=True))


def _quantities(at: ProgramAtPoints, points: FloatArray) -> dict[str, FloatArray] | None:
    try:
        return at.quantities(points, seed=_SEED)
    except SamplingError:
        return None


def all_pairs(n: int) -> Iterator[BoolArray]:
    """Splits in which every record is replaced while any other one is not: by the bits of its
    place, and their complements."""
    for bit in range(max(1, (n - 1).bit_length())):
        mask = (np.arange(n) >> bit) % 2 == 1
        yield from (mask, ~mask)


def one_split(n: int) -> Iterator[BoolArray]:
    """A half of the records at random, and the other half."""
    mask = np.random.default_rng(_SEED).permutation(np.arange(n) < n // 2)
    yield from (mask, ~mask)


# --- functions in Python -------------------------------------------------------------------------


def check_holds_no_records(
    function: Any, name: str, outcome: FloatArray, public: tuple[str, ...]
) -> None:
    """Raise InvalidInput if `function`, called `name` in messages, can reach an object with one
    value per record of the outcome (n,) that is not named in `public`."""
    seen: set[int] = set()
    queue: list[tuple[str, Any, int]] = [(name, function, 0)]
    while queue and len(seen) < _MOST_OBJECTS:
        said, thing, depth = queue.pop()
        if isinstance(thing, _NO_CODE) or id(thing) in seen or said in public:
            continue
        seen.add(id(thing))
        if _has_records(thing, outcome):
            raise InvalidInput(
                f"{name} must not hold one value per record: it reaches {said!r}, which has "
                f"{outcome.size} of them or the outcome's values; read columns from the table "
                f"that the function is given, or name it in public=({said!r},) if it is public"
            )
        if depth < _DEEPEST:
            queue += [(inner, each, depth + 1) for inner, each in _reached(thing, said)]


def check_follows_rows(
    data_of: Callable[[pd.DataFrame], Mapping[str, Any]],
    table: pd.DataFrame,
    public: tuple[str, ...] = (),
) -> None:
    """Raise InvalidInput if an entry of `data_of(table)` has a value per record that stays where
    it is when the rows change places: it then comes from elsewhere."""
    order = np.random.default_rng(20220101).permutation(len(table))
    moved = data_of(table.iloc[order].reset_index(drop=True))
    for name, value in data_of(table).items():
        here, there = np.asarray(value), np.asarray(moved.get(name))
        by_record = name not in public and here.shape[:1] == (len(table),)
        if by_record and np.array_equal(here, there) and not np.array_equal(here[order], here):
            raise InvalidInput(
                f"data must follow the rows of the table: entry {name!r} has one value per record "
                "and stays as it is when the rows change places; compute it from the columns"
            )


def check_no_copy(made: FloatArray, outcome: FloatArray, name: str) -> None:
    """Raise InvalidInput if replicates (R, n) of several parameters and seeds are the outcome (n,),
    or a function of it, whatever the draw."""
    values, counts = np.unique(outcome, return_counts=True)
    alone = np.isin(outcome, values[counts == 1])
    same = np.isclose(made, outcome, rtol=1e-12, atol=0).all(axis=0)
    still = np.flatnonzero((made == made[0]).all(axis=0))
    if (alone & same).any() or is_copy(made[0, still], outcome[still]):
        raise InvalidInput(
            f"{name} returns the confidential outcome or a function of it: its values stay the "
            "same whatever the parameters and the random numbers; draw them from the parameters"
        )


def is_copy(made: FloatArray, outcome: FloatArray) -> bool:
    """True if `made` (n,) rises, or falls, with the outcome (n,): a function of it."""
    if np.unique(made).size < _FEWEST or np.unique(outcome).size < _FEWEST:
        return False
    steps = np.diff(made[np.lexsort((made, outcome))])
    back = np.diff(made[np.lexsort((-made, outcome))])
    return bool((steps >= 0).all() or (back <= 0).all())


def _has_records(thing: Any, outcome: FloatArray) -> bool:
    """True for a table, array or collection with n rows, or with all values of the outcome."""
    n = outcome.size
    if isinstance(thing, (pd.Series, pd.Index)):
        thing = thing.to_frame()
    if isinstance(thing, pd.DataFrame):
        columns = [column.to_numpy() for _, column in thing.items()]
        return len(thing) == n or any(_contains(values, outcome) for values in columns)
    if isinstance(thing, np.ndarray):
        return n in thing.shape or _contains(thing, outcome)
    if not isinstance(thing, (Mapping, list, tuple, set, frozenset)):
        return False
    elements = list(thing.values() if isinstance(thing, Mapping) else thing)
    if len(elements) == n:
        return True
    try:
        return _contains(np.asarray(elements, dtype=np.float64), outcome)
    except (TypeError, ValueError):
        return False


def _contains(values: npt.NDArray[Any], outcome: FloatArray) -> bool:
    """True if every value of the outcome occurs in `values`, as often as in the outcome."""
    if values.size < outcome.size or values.dtype.kind not in "fiu":
        return False
    wanted, often = np.unique(outcome, return_counts=True)
    present, counts = np.unique(values, return_counts=True)
    place = np.searchsorted(present, wanted).clip(0, present.size - 1)
    return bool(((present[place] == wanted) & (counts[place] >= often)).all())


def _reached(thing: Any, said: str) -> Iterator[tuple[str, Any]]:
    """Objects that an object leads to: names of a function's code, attributes, elements."""
    if isinstance(thing, functools.partial):
        yield from [(said, each) for each in (thing.func, *thing.args)]
        yield from thing.keywords.items()
    elif isinstance(thing, types.MethodType):
        yield from ((said, thing.__func__), (said, thing.__self__))
    elif isinstance(thing, types.FunctionType):
        if not _is_library(thing):
            yield from _of_function(thing, said)
    elif isinstance(thing, (Mapping, list, tuple, set, frozenset)):
        elements = thing.values() if isinstance(thing, Mapping) else thing
        yield from [(said, element) for element in elements]
    elif not isinstance(thing, (types.ModuleType, pd.DataFrame, pd.Series, np.ndarray)):
        yield from getattr(thing, "__dict__", {}).items()
        called = vars(type(thing)).get("__call__")
        if isinstance(called, types.FunctionType):
            yield said, called


def _of_function(function: types.FunctionType, said: str) -> Iterator[tuple[str, Any]]:
    codes, names = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        yield from [(said, each) for each in code.co_consts if isinstance(each, (tuple, frozenset))]
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, types.ModuleType) and not _is_library(value):
            yield from [(inner, getattr(value, inner)) for inner in names if hasattr(value, inner)]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
    yield from [(said, each) for each in function.__defaults__ or ()]
    yield from (function.__kwdefaults__ or {}).items()
    yield from [(name, each) for name, each in vars(function).items() if name != "__wrapped__"]
    if hasattr(function, "__wrapped__"):
        yield said, function.__wrapped__


def _is_library(thing: Any) -> bool:
    """True for code that was installed, not written by the user."""
    where = getattr(thing, "__module__", None) or getattr(thing, "__name__", "")
    module = sys.modules.get(str(where))
    path = str(getattr(module, "__file__", "") or "")
    root = str(where).partition(".")[0]
    installed = sys.stdlib_module_names - {"__main__"} | {"pyhybrid"}
    return root in installed or "site-packages" in path
