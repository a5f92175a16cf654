"""A ledger: the budget of one confidential data set, and every release that drew on it.

It takes charges from releases only: from a `Release` or from the answer of a primitive, each of
which carries the charge that its mechanism wrote. The file is text, a line of JSON for each entry,
which is written whole and forced to disk under a lock before the data are written: a crash between
the two costs budget, and never leaves a release without an entry.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

from pyhybrid.core.checks import check_choice, check_nonnegative, check_positive
from pyhybrid.core.errors import BudgetExceeded, InvalidInput, SaveFailed
from pyhybrid.privacy.charge import PrivacyCharge, Spent
from pyhybrid.privacy.conversions import (
    KINDS,
    RELATIONS,
    STRICT,
    check_delta,
    epsilon_text,
    round_up,
)
from pyhybrid.running.files import lock, unlock

_DELTA = 1e-6
_BEGUN, _WAIT = 0.2, 10.0  # seconds
_FORMAT = 2
_UNLIKE = "a sum of unlike charges is no guarantee"
_UNITS = "unlike units do not add up to a guarantee for a person: give unit= to all"
_DELTAS = "give the mechanism that delta, or start another file with it"


@runtime_checkable
class Charged(Protocol):
    """What a ledger takes: something released, with the charge that its maker gave it."""

    @property
    def charge(self) -> PrivacyCharge: ...

    @property
    def identifier(self) -> str: ...


@runtime_checkable
class ChargedTables(Charged, Protocol):
    """Synthetic tables, which say with which random numbers they were made."""

    @property
    def settings(self) -> Mapping[str, Any]: ...

    @property
    def entropy(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One release in a ledger: the public part of its charge, with the mechanism or primitive and
    the time (UTC, ISO 8601). `made_with` are digests of seed and settings of tables, under a key of
    the ledger; entries are numbered from 1."""

    number: int
    time: str
    made_by: str
    identifier: str
    charge: Mapping[str, Any]
    made_with: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_nonnegative(self.charge["epsilon"], "epsilon")
        check_choice(self.charge["kind"], "kind", KINDS)
        check_choice(self.charge["relation"], "relation", RELATIONS)
        self.spent.epsilon(delta=check_nonnegative(self.charge.get("delta", 0.0), "delta"))

    @property
    def epsilon(self) -> float:
        return float(self.charge["epsilon"])

    @property
    def spent(self) -> Spent:
        """What it adds to others: epsilon, rho and mu."""
        return Spent(**self.charge["spent"])


def _left(budget: float, spent: float) -> float:
    """Budget less what is spent, >= 0, exactly as decimals."""
    return max(0.0, float(Decimal(repr(budget)) - Decimal(repr(spent))))


class Ledger:
    """The privacy budget of one confidential data set, kept in a file.

    Parameters
    ----------
    path : path
        File of the ledger; created if it is not there and a budget is given.
    budget : float, optional
        Largest sum of epsilons, above 0, nats. It, kind and relation are fixed when the ledger is
        created.
    kind : {"strict", "asymptotic local"}, optional
    relation : {"remove", "replace"}, optional
    delta : float, optional
        Public. Of local charges by the Gaussian limit, which add by squares of their mu; 1e-6 if
        omitted when the ledger is created. Of a strict ledger, if given: the budget is then of
        (epsilon, delta), and many small charges cost less than their sum (`pyhybrid.compose`);
        without, epsilons add, and charges of Gaussian noise are refused.

    Notes
    -----
    A ledger is for one data set, which the owner answers for: other people's data have a ledger of
    their own; the same people's in another form share it. Epsilons add where random numbers are
    independent: another mechanism's release that shares its seed with an entry is refused.

    Raises
    ------
    InvalidInput
        If the file is missing and no budget is given, is damaged, or holds another budget, kind or
        relation than those given.
    SaveFailed
        If another process has it locked for ten seconds.

    Examples
    --------
    >>> ledger = Ledger("survey.ledger", budget=10, kind="strict", relation="replace")
    >>> release.save("out", ledger=ledger)      # refused, with nothing written, past the budget
    >>> ledger.left
    9.0
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        budget: float | None = None,
        kind: str | None = None,
        relation: str | None = None,
        delta: float | None = None,
    ) -> None:
        self.path = Path(path)
        given = _checked_terms({"budget": budget, "kind": kind, "relation": relation})
        delta = None if delta is None else check_delta(delta)
        new = not self.path.exists()
        missing = [name for name, value in given.items() if value is None]
        if new and missing:
            raise InvalidInput(
                f"ledger {self.path} must exist, or be given budget, kind and relation to be "
                f"created: found no {missing[0]}"
            )
        if not new and self.path.is_file() and not self.path.stat().st_size:
            time.sleep(_BEGUN)  # another process may be about to write its first line
        with _locked(self.path, create=new) as file:
            lines = _lines_of(file, self.path)
            if not lines and not new:
                raise InvalidInput(
                    f"ledger {self.path} is damaged: it is empty. Restore it from a backup; "
                    "only if nothing was ever released on it, remove it"
                )
            if not lines:
                at = _DELTA if delta is None and given["kind"] != STRICT else delta
                first = {"format": _FORMAT, **given, "delta": at, "key": secrets.token_hex(16)}
                lines = [{name: value for name, value in first.items() if value is not None}]
                _append(file, lines[0], self.path)
        terms = _terms(lines[0], self.path)
        self.budget: float = terms["budget"]
        self.kind: str = terms["kind"]
        self.relation: str = terms["relation"]
        self.delta: float | None = terms["delta"]
        self._key: str = terms["key"]
        for name, value in {**given, "delta": delta}.items():
            if value is not None and value != terms[name]:
                raise InvalidInput(
                    f"ledger {self.path} has {name} {terms[name]!r}, fixed when it was "
                    f"created: found {value!r}; leave {name} out or start another file"
                )

    def __repr__(self) -> str:
        spent = f"{epsilon_text(self.spent)} of {epsilon_text(self.budget)} spent"
        return f"<Ledger {self.path}: {spent} ({self.label})>"

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All entries, read from the file."""
        with _locked(self.path) as file:
            return _entries_in(_lines_of(file, self.path))

    @property
    def spent(self) -> float:
        """Epsilon of all entries, nats: those with a mu by squares at `delta`, the others added;
        in a strict ledger with a delta by rho, where that is less."""
        return self._spent_on(self.entries)

    @property
    def left(self) -> float:
        """Budget less what is spent, nats, >= 0."""
        return _left(self.budget, self.spent)

    @property
    def label(self) -> str:
        """The guarantee that the sum of the entries is."""
        entries = self.entries
        with_delta = self.kind == STRICT or any(entry.spent.needs_delta for entry in entries)
        at = f" at delta = {self.delta:g}" if with_delta and self.delta is not None else ""
        unit = entries[0].charge.get("unit") if entries else None
        return f"{self.kind}{at}, {self.relation} one {unit or 'record'}"

    def _spent_on(self, entries: Sequence[LedgerEntry], *more: Spent) -> float:
        spent = Spent.of([*(entry.spent for entry in entries), *more])
        return round_up(spent.epsilon(delta=self.delta or 0.0), kind=self.kind)

    def add(self, release: Charged) -> LedgerEntry:
        """Enter the charge of a release, which a mechanism or primitive returned; one that is in
        the ledger already costs nothing more. `Release.save` with ``ledger=`` does so first.

        Raises
        ------
        BudgetExceeded
            If the epsilon is more than what is left; nothing is entered.
        InvalidInput
            For anything that is no whole release; one whose charge was changed since it was
            entered, or is of unlike kind, relation or unit; for a damaged file.
        SaveFailed
            If the file is locked or cannot be written.
        """
        if not isinstance(release, Charged):
            raise InvalidInput(
                "a ledger takes charges from releases only: give the whole Release, or the answer "
                f"of a primitive, found {type(release).__name__}"
            )
        charge, made_with = release.charge, self._made_with(release)
        with _locked(self.path) as file:
            lines = _lines_of(file, self.path)
            entries = _entries_in(lines)
            for entry in entries:
                if entry.identifier == release.identifier:
                    if entry.charge != json.loads(json.dumps(charge.public())):
                        raise InvalidInput(
                            f"the release must have the charge of entry {entry.number} of ledger "
                            f"{self.path}: it was changed since; release anew"
                        )
                    return entry
                shared = made_with and entry.made_with.get("seed") == made_with["seed"]
                if shared and entry.made_with != made_with:
                    raise InvalidInput(
                        f"releases in ledger {self.path} must have random numbers of their own: "
                        f"this one shares those of entry {entry.number}, another mechanism's of "
                        "the same session or seed; release it anew, without a seed"
                    )
            self._check(charge, entries)
            fields: dict[str, Any] = {
                "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "made_by": charge.mechanism,
                "identifier": release.identifier,
                "charge": charge.public(),
                **({"made_with": made_with} if made_with else {}),
            }
            _append(file, fields, self.path)
        return LedgerEntry(number=len(lines), **fields)

    def _made_with(self, release: Charged) -> dict[str, str]:
        """Digests of seed and settings of synthetic tables."""
        if not isinstance(release, ChargedTables):
            return {}
        settings = json.dumps(dict(release.settings), sort_keys=True, default=str)
        return {
            name: hmac.new(self._key.encode(), text.encode(), hashlib.sha256).hexdigest()
            for name, text in {"seed": str(release.entropy), "settings": settings}.items()
        }

    def check(self, *, relation: str, delta: float | None, epsilon: float | None = None) -> None:
        """Refuse, before any work, a release that it would not take: of another relation, counted
        at another `delta`, or beyond what is left, by its `epsilon` if that is known."""
        self._must_be("for the relation ", self.relation, relation, _UNLIKE)
        self._must_be("counted at its delta, ", self.delta or "none", delta or self.delta or "none",
                      _DELTAS)  # fmt: skip
        adds, left = self.kind == STRICT and self.delta is None, self.left  # else it may cost less
        if left == 0 or (adds and (epsilon or 0.0) > left):
            raise BudgetExceeded(
                f"a release must cost at most what is left in ledger {self.path}, "
                f"{epsilon_text(left)} of {epsilon_text(self.budget)}"
            )

    def _must_be(self, what: str, wanted: object, found: object, why: str) -> None:
        if wanted != found:
            raise InvalidInput(
                f"charges in ledger {self.path} must be {what}{wanted}: found {found}; {why}"
            )

    def _check(self, charge: PrivacyCharge, entries: tuple[LedgerEntry, ...]) -> None:
        unit, rows = entries[0].charge.get("unit") if entries else charge.unit, "single rows"
        kinds = f"{self.kind}, {self.relation}", f"{charge.kind}, {charge.relation}"
        self._must_be("", *kinds, _UNLIKE)
        self._must_be("of one unit of privacy, ", unit or rows, charge.unit or rows, _UNITS)
        self._must_be("counted at its delta, ", self.delta or "none",
                      charge.delta or self.delta or "none", _DELTAS)  # fmt: skip
        if charge.kind == STRICT and not (charge.converged and charge.draw_quantile == 1):
            raise InvalidInput(
                "a strict charge must be of chains that have converged, all of whose draws are "
                f"kept: found converged={charge.converged}, draw_quantile={charge.draw_quantile:g}"
            )
        before, cost = self._spent_on(entries), self._spent_on(entries, charge.spent)
        if Decimal(repr(cost)) > Decimal(repr(self.budget)):
            raise BudgetExceeded(
                f"the release must cost at most what is left in ledger {self.path}, "
                f"{epsilon_text(_left(self.budget, before))} of {epsilon_text(self.budget)}: it "
                f"costs {epsilon_text(_left(cost, before))}. Nothing was written; lower its "
                "epsilon, or do not release it"
            )


@contextlib.contextmanager
def _locked(path: Path, *, create: bool = False) -> Iterator[BinaryIO]:
    """The open file, locked; other processes wait for some seconds, and then raise SaveFailed."""
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise InvalidInput(f"ledger {path} cannot be opened: {error.strerror}") from None
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        if not lock(file.fileno(), wait=_WAIT):
            raise SaveFailed(f"ledger {path} is locked: another process is using it; try again")
        try:
            yield file
        finally:
            unlock(file.fileno())


def _lines_of(file: BinaryIO, path: Path) -> list[dict[str, Any]]:
    """The terms and all entries; of a damaged file, which line, and what to do."""
    file.seek(0)
    *texts, rest = file.read().split(b"\n")
    damaged = f"ledger {path} is damaged: "
    if rest:
        raise InvalidInput(
            f"{damaged}its last line, {len(texts) + 1}, is incomplete. Restore the file from a "
            "backup; only if the program was stopped while it wrote that line was nothing released "
            "on it: keep a copy, then delete that line"
        )
    lines = []
    for number, text in enumerate(texts, start=1):
        try:
            lines.append(dict(json.loads(text)))
        except (TypeError, ValueError):
            raise InvalidInput(
                f"{damaged}line {number} cannot be read. Restore the file from a backup"
            ) from None
    return lines


def _entries_in(lines: Sequence[Mapping[str, Any]]) -> tuple[LedgerEntry, ...]:
    """The entries by line, from the second: all of the ledger's kind and relation, and one unit."""
    entries = []
    for number, line in enumerate(lines[1:], start=1):
        try:
            entries.append(LedgerEntry(number=number, **line))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"entry {number} of the ledger must be one that pyhybrid wrote: {error}; was it "
                "written by another version or program?"
            ) from None
    terms = [(e.charge["kind"], e.charge["relation"], e.charge.get("unit")) for e in entries]
    if {*terms} - {(lines[0]["kind"], lines[0]["relation"], unit) for *_, unit in terms[:1]}:
        raise InvalidInput(
            "entries of a ledger must be of its kind and relation, and of one unit of privacy: "
            f"some are of others; {_UNLIKE}"
        )
    return tuple(entries)


def _append(file: BinaryIO, fields: Mapping[str, Any], path: Path) -> None:
    """Write one line, on disk on return; on a disk error the file is as it was."""
    size, text = file.seek(0, os.SEEK_END), json.dumps(fields).encode() + b"\n"
    try:
        if file.write(text) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            file.truncate(size)
        raise SaveFailed(f"ledger {path} could not be written: {error}") from None


def _checked_terms(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Budget, kind and relation, those that are given checked."""
    budget, kind, relation = (terms.get(name) for name in ("budget", "kind", "relation"))
    return {
        "budget": None if budget is None else check_positive(budget, "budget"),
        "kind": None if kind is None else check_choice(kind, "kind", KINDS),
        "relation": None if relation is None else check_choice(relation, "relation", RELATIONS),
    }


def _terms(first: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Budget, kind, relation, delta and key from the first line."""
    delta, key = first.get("delta"), first.get("key")
    known = delta is None or (isinstance(delta, float) and 0 < delta < 1)
    fixed = _checked_terms(first)
    if first.get("format") != _FORMAT or None in (*fixed.values(), key) or not known:
        raise InvalidInput(
            f"{path} must be a ledger of format {_FORMAT}: it is none, or of another pyhybrid"
        )
    return {**fixed, "delta": delta, "key": str(key)}
