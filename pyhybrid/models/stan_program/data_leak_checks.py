"""What a user's Stan program must not read: checked on data without the outcome.

All numbers that are not declared public are replaced by other values (`pyhybrid.models.
other_values`). At the same points theta, with the same random numbers:

- the parameters and the replicate must stay as they are, bit for bit: what they are made of is
  theta and what is released;
- with all weights 0, the log density may move by a constant in theta only: what is left of it is
  the prior;
- the log_lik of a record must stay as it is when outcomes of other records are replaced, for every
  pair of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, PyhybridError, SamplingError
from pyhybrid.engines.base import StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import parameter_names
from pyhybrid.models.columns.surrogate_values import OtherValues, like_the_data

__all__ = ["NotChecked", "Readable", "all_pairs", "check_reads", "one_split"]

_SAME = 1e-9
_SEED = 20220101
Mask = npt.NDArray[np.bool_]


class NotChecked(Exception):
    """Why a check could not be made. Never leaves `pyhybrid.models`."""


class Readable(Protocol):
    """A program with its data, which can be replaced."""

    @property
    def program(self) -> StanProgram:
        """The user's program."""

    @property
    def n(self) -> int:
        """Number of records."""

    @property
    def outcome(self) -> FloatArray:
        """Confidential values, shape (n,)."""

    @property
    def has_rest(self) -> bool:
        """True if data hold entries that are neither public nor one value per record."""

    def data_with(
        self,
        other: OtherValues | None,
        *,
        weights: float = 1.0,
        records: Mask | None = None,
        rest: bool = True,
    ) -> dict[str, Any]:
        """Data block with all weights `weights`, other values in the place of what is confidential:
        of all `records` or those chosen (n,), and of `rest`, what has not one value per record."""

    def others(self) -> Iterator[OtherValues]:
        """References to draw other values from."""


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """The true data and what is compared with them, at points (S, p)."""

    own: Readable
    points: FloatArray
    truth: Mapping[str, FloatArray]
    prior: FloatArray
    predict: str | None
    log_lik_at: float

    @property
    def name(self) -> str:
        return self.own.program.name


def check_reads(
    own: Readable,
    truth: ProgramAtPoints,
    points: FloatArray,
    *,
    predict: str | None,
    weighted: bool,
    n_references: int,
    splits: Iterable[Mask],
) -> None:
    """Raise InvalidInput for a program that reads what it must not; see the module.

    Parameters
    ----------
    own : Readable
    truth : ProgramAtPoints
        The program with the true data and all weights 1.
    points : ndarray, shape (S, p)
        Unconstrained points where its log density is finite.
    predict : str, optional
        The generated quantity that is the replicate.
    weighted : bool
        The program's log_lik is weighted.
    n_references : int
        References that are tried; with more than one, values in the range of the data's as well.
    splits : iterable of ndarray of bool, shape (n,)
        Records whose values are replaced while those of the others stay; see `all_pairs`.

    Raises
    ------
    NotChecked
        If the program takes no other values, so that nothing can be said.
    """
    checked = _Checked(
        own=own,
        points=points,
        truth=truth.quantities(points, seed=_SEED),
        prior=ProgramAtPoints(own.program, own.data_with(None, weights=0)).log_density(points),
        predict=predict,
        log_lik_at=1.0 if weighted else 0.0,
    )
    if "log_lik" not in checked.truth:
        raise NotChecked("its generated quantities fail")
    taken = list(islice(_taken(checked, own.others()), n_references))
    if not taken:
        raise NotChecked("the program takes no other values in the place of the outcome")
    if n_references > 1:
        taken += _taken(checked, iter(like_the_data(own.outcome)))
    for other, at, where in taken:
        _check_replicates(checked, at, where)
        _check_prior(checked, at)
        _check_rest(checked, other)
    used = [other for other, _, _ in taken]
    for mask in splits:
        _check_others(checked, used, mask)


def _taken(
    checked: _Checked, others: Iterator[OtherValues]
) -> Iterator[tuple[OtherValues, ProgramAtPoints, Mask]]:
    """References that the program takes, with the points that it takes them at."""
    for other in others:
        at = _at(checked, other, weights=0)
        if at is None:
            continue
        if at.n_unconstrained != checked.points.shape[1]:
            raise _reads(checked, "parameters", "their number changes")
        where = np.isfinite(at.log_density(checked.points))
        if where.any():
            yield other, at, where


def _at(checked: _Checked, other: OtherValues, **which: Any) -> ProgramAtPoints | None:
    """The program with other values; None if it does not take them."""
    try:
        return ProgramAtPoints(checked.own.program, checked.own.data_with(other, **which))
    except PyhybridError:
        return None


def _check_replicates(checked: _Checked, at: ProgramAtPoints, where: Mask) -> None:
    """Parameters and replicates at the points `where`, against those with the true data."""
    # A point keeps its place, and with it its random numbers.
    usable = np.where(where[:, None], checked.points, checked.points[np.argmax(where)])
    found = _quantities(at, usable)
    if found is None:
        raise NotChecked("the program fails with other values in the place of the outcome")
    here, there = _only(checked.truth, where), _only(found, where)
    if not all(_equal(here, there, name) for name in parameter_names(checked.own.program)):
        raise _reads(checked, "parameters", "their bounds change")
    if checked.predict is not None and not _equal(here, there, checked.predict):
        _check_weights_unread(checked)
        raise InvalidInput(
            f"{checked.predict!r} of program {checked.name!r} must not read the confidential "
            "outcome: it changes when other values stand in the place of what is not a declared "
            "predictor, which no epsilon covers; draw it from parameters and predictors alone, "
            "before other random numbers of generated quantities. Data with one value per record "
            "come from a function of the table, constants of a data mapping are named in public="
        )


def _check_weights_unread(checked: _Checked) -> None:
    """What a replicate moves with: the weights alone?"""
    assert checked.predict is not None
    at = ProgramAtPoints(checked.own.program, checked.own.data_with(None, weights=0))
    there = _quantities(at, checked.points)
    if there is not None and not _equal(checked.truth, there, checked.predict):
        raise InvalidInput(
            f"{checked.predict!r} of program {checked.name!r} must not read the weights, which are "
            "confidential: it changes with them"
        )


def _only(quantities: Mapping[str, FloatArray], where: Mask) -> dict[str, FloatArray]:
    return {name: value[where] for name, value in quantities.items()}


def _check_prior(checked: _Checked, at: ProgramAtPoints) -> None:
    moved = _moved(checked, at)
    if moved is None:
        raise NotChecked("with all weights 0 the log density is not finite for other outcomes")
    if moved:
        raise InvalidInput(
            f"the prior of program {checked.name!r} must not read the confidential outcome: with "
            "all weights 0 the log density still changes with it, and no weight bounds that; "
            "give constants that are known beforehand (those of a data mapping are named in "
            "public=), and multiply every term of a record by its weight"
        )


def _moved(checked: _Checked, at: ProgramAtPoints) -> bool | None:
    """True if the log density, all weights 0, moved by more than a constant; None if unknown."""
    there = at.log_density(checked.points)
    finite = np.isfinite(there) & np.isfinite(checked.prior)
    if finite.sum() < min(2, len(checked.points)):
        return None
    step = there[finite] - checked.prior[finite]
    size = 1 + np.abs(there[finite]) + np.abs(checked.prior[finite])
    return bool((np.abs(step - step[0]) > _SAME * (size + size[0])).any())


def _check_rest(checked: _Checked, other: OtherValues) -> None:
    """log_lik must not read entries of a mapping that belong to no record and are not public."""
    nobody = np.zeros(checked.own.n, dtype=bool)
    if not checked.own.has_rest:
        return
    kept = _kept(checked, other, nobody, rest=True)
    if kept is False:
        raise InvalidInput(
            f"log_lik of program {checked.name!r} must not read entries of data that are not known "
            "to be public and have not one value per record: name constants in public="
        )
    if kept is None:
        raise NotChecked("the program does not take other values of entries of data")


def _check_others(checked: _Checked, others: Sequence[OtherValues], mask: Mask) -> None:
    """log_lik of the records outside `mask` when those inside have other outcomes, by the first
    reference that the program takes."""
    answers = (_kept(checked, other, mask) for other in others)
    kept = next((own for own in answers if own is not None), None)
    if kept is None:
        raise NotChecked("the program does not take other values for some of the records")
    if not kept:
        raise InvalidInput(
            f"log_lik of program {checked.name!r} must not read the outcome of other records: with "
            "other values there, a record's own log_lik changes, so that its weight does not bound "
            "what it adds; give centers, scales and counts as constants that are known beforehand"
        )


def _kept(checked: _Checked, other: OtherValues, mask: Mask, *, rest: bool = False) -> bool | None:
    """Whether log_lik stays as it is outside `mask`; None if the program does not take the data."""
    weights = checked.log_lik_at
    at = _at(checked, other, weights=weights, records=mask, rest=rest)
    if at is None or at.n_unconstrained != checked.points.shape[1]:
        return None
    there = _quantities(at, checked.points[:2])
    log_lik = None if there is None else there.get("log_lik")
    if log_lik is None or there is None or log_lik.shape[1:] != mask.shape:
        return None
    before, after = checked.truth["log_lik"][:2, ~mask], there["log_lik"][:, ~mask]
    return bool(np.allclose(before, after, rtol=_SAME, atol=_SAME, equal_nan=True))


def all_pairs(n: int) -> Iterator[Mask]:
    """Splits in which every record is replaced while any other one is not: by the bits of its
    place, and their complements."""
    for bit in range(max(1, (n - 1).bit_length())):
        mask = (np.arange(n) >> bit) % 2 == 1
        yield from (mask, ~mask)


def one_split(n: int) -> Iterator[Mask]:
    """A half of the records at random, and the other half."""
    mask = np.random.default_rng(_SEED).permutation(np.arange(n) < n // 2)
    yield from (mask, ~mask)


def _quantities(at: ProgramAtPoints, points: FloatArray) -> dict[str, FloatArray] | None:
    try:
        return at.quantities(points, seed=_SEED)
    except SamplingError:
        return None


def _equal(here: Mapping[str, FloatArray], there: Mapping[str, FloatArray], name: str) -> bool:
    if name not in here or name not in there:  # of size 0, or refused where it is used
        return name not in here and name not in there
    return bool(np.array_equal(here[name], there[name], equal_nan=True))


def _reads(checked: _Checked, what: str, how: str) -> InvalidInput:
    return InvalidInput(
        f"{what} of program {checked.name!r} must not read the confidential outcome: {how} when "
        "other values stand in its place; declare bounds and sizes by constants (those of a data "
        "mapping are named in public=)"
    )
