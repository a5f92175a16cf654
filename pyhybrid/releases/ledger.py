"""A ledger: the budget of one confidential data set, and every release that drew on it.

It takes charges from releases only: from a `Release` or from the answer of a primitive, each of
which carries the charge that its mechanism wrote. The charge is checked against what the release
itself says of its cost, and the entry holds a hash of what was released, so that a release can be
held against the ledger later. The entry is on disk before the data are: a crash between the two
costs budget, and never leaves a release without an entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.checks import check_choice, check_finite, check_flag, check_positive
from pyhybrid.errors import BudgetExceeded, InvalidInput
from pyhybrid.primitives.answer import PrivateAnswer
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import KINDS, RELATIONS, add_epsilons, epsilon_text
from pyhybrid.releases.chained_file import ChainedFile, Line, locked_file
from pyhybrid.releases.release import Release

__all__ = ["Ledger", "LedgerEntry"]

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One release in a ledger.

    Attributes
    ----------
    number : int
        From 1, in the order of the releases.
    time : str
        When it was entered, UTC, ISO 8601.
    made_by : str
        Mechanism or primitive.
    epsilon : float
        Nats.
    kind, relation : str
        As in `pyhybrid.PrivacyCharge`.
    charge : mapping
        The public part of the charge.
    identifier, content_sha256 : str
        Name of the release, and hash of its charge, settings and released values.
    sha256 : str
        Hash of this entry and of all before it.
    """

    number: int
    time: str
    made_by: str
    epsilon: float
    kind: str
    relation: str
    charge: Mapping[str, Any]
    identifier: str
    content_sha256: str
    sha256: str


class Ledger:
    """The privacy budget of one confidential data set, kept in a file.

    Parameters
    ----------
    path : path
        File of the ledger; created if it is not there and a budget is given.
    budget : float, optional
        Largest sum of epsilons, above 0, nats. Fixed when the ledger is created.
    kind : {"strict", "asymptotic local"}, optional
        Kind of the charges it takes; fixed when the ledger is created.
    relation : {"remove", "replace"}, optional
        Relation of the charges it takes; fixed when the ledger is created.
    allow_unlike : bool, default False
        Take charges of another kind or relation, too. The sum is then labelled: it is no
        guarantee of either kind.
    wait : float, default 10
        Seconds to wait for another process that uses the file.

    Raises
    ------
    InvalidInput
        If the file is missing and no budget is given, is damaged, or holds another budget, kind or
        relation than those given.
    SaveFailed
        If the file is locked for longer than `wait`.

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
        allow_unlike: bool = False,
        wait: float = 10.0,
    ) -> None:
        self.path = Path(path)
        self.allow_unlike = check_flag(allow_unlike, "allow_unlike")
        self._wait = check_finite(wait, "wait")
        given = _checked_terms(budget, kind, relation)
        with self._file(create=not self.path.exists() and self._may_create(given)) as file:
            lines = file.lines()
            if not lines:
                self._may_create(given)
                lines = [file.append({"format": _FORMAT, **given}, after=[])]
        terms = _terms(lines[0], self.path)
        self.budget: float = terms["budget"]
        self.kind: str = terms["kind"]
        self.relation: str = terms["relation"]
        for name, value in given.items():
            if value is not None and value != terms[name]:
                raise InvalidInput(
                    f"ledger {self.path} has {name} {terms[name]!r}, fixed when it was created: "
                    f"found {value!r}; leave {name} out or start another file"
                )

    def __repr__(self) -> str:
        return (
            f"<Ledger {self.path}: {epsilon_text(self.spent)} of {epsilon_text(self.budget)} "
            f"spent ({self.label})>"
        )

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """All entries, read from the file with its chain checked."""
        with self._file() as file:
            return _entries(file.lines())

    @property
    def head(self) -> str:
        """Hash of the last line: note it elsewhere, and lines that go missing are found."""
        with self._file() as file:
            return file.lines()[-1].sha256

    @property
    def spent(self) -> float:
        """Sum of the epsilons, nats; see `label` for what it means."""
        return _spent(self.entries)

    @property
    def left(self) -> float:
        """Budget less what is spent, nats, >= 0."""
        return _left(self.budget, self.spent)

    @property
    def label(self) -> str:
        """What the sum of the entries is: a guarantee of one kind, or a sum of unlike charges."""
        found = {f"{entry.kind}, {entry.relation}" for entry in self.entries}
        if found <= {f"{self.kind}, {self.relation}"}:
            return f"{self.kind}, {self.relation} one record"
        unlike = "; ".join(sorted(found | {f"{self.kind}, {self.relation}"}))
        return f"sum of unlike charges, no guarantee of any kind: {unlike}"

    def add(self, release: Release | PrivateAnswer) -> LedgerEntry:
        """Enter the charge of a release; one that is in the ledger already costs nothing more.

        Parameters
        ----------
        release : Release or PrivateAnswer
            What a mechanism or primitive returned. `Release.save` with ``ledger=`` calls this
            before it writes.

        Returns
        -------
        LedgerEntry

        Raises
        ------
        BudgetExceeded
            If the epsilon is more than what is left; nothing is entered.
        InvalidInput
            For a number, a bare charge or anything else that is no release; for a charge that does
            not belong to its release; for an unlike kind or relation; for a damaged file.
        SaveFailed
            If the file is locked or cannot be written.
        """
        charge, made_by = _charge_of(release)
        content = _content_hash(release)
        with self._file() as file:
            lines = file.lines()
            entries = _entries(lines)
            for entry in entries:
                if entry.identifier == release.identifier:
                    return _same(entry, content, self.path)
            self._check(charge, entries)
            line = file.append(
                {
                    "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                    "made_by": made_by,
                    "identifier": release.identifier,
                    "content_sha256": content,
                    "charge": charge.public(),
                },
                after=lines,
            )
        return _entry(line)

    def _check(self, charge: PrivacyCharge, entries: tuple[LedgerEntry, ...]) -> None:
        found, own = (charge.kind, charge.relation), (self.kind, self.relation)
        if found != own and not self.allow_unlike:
            raise InvalidInput(
                f"charges in ledger {self.path} must be {', '.join(own)}: found "
                f"{', '.join(found)}; a sum of unlike charges is no guarantee. allow_unlike=True "
                "(--allow-unlike) adds it all the same and labels the sum"
            )
        left = _left(self.budget, _spent(entries))
        if Decimal(repr(charge.epsilon)) > Decimal(repr(left)):
            raise BudgetExceeded(
                f"the release must cost at most what is left in ledger {self.path}, "
                f"{epsilon_text(left)} of {epsilon_text(self.budget)}: it costs "
                f"{epsilon_text(charge.epsilon)}. Nothing was written; lower its epsilon, or do "
                "not release it"
            )

    def _may_create(self, given: Mapping[str, Any]) -> bool:
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise InvalidInput(
                f"ledger {self.path} must exist, or be given budget, kind and relation to be "
                f"created: found no {missing[0]}"
            )
        return True

    @contextlib.contextmanager
    def _file(self, *, create: bool = False) -> Iterator[ChainedFile]:
        with locked_file(self.path, create=create, wait=self._wait) as file:
            yield file


def _checked_terms(budget: float | None, kind: str | None, relation: str | None) -> dict[str, Any]:
    return {
        "budget": None if budget is None else check_positive(budget, "budget"),
        "kind": None if kind is None else check_choice(kind, "kind", KINDS),
        "relation": None if relation is None else check_choice(relation, "relation", RELATIONS),
    }


def _terms(first: Line, path: Path) -> dict[str, Any]:
    """Budget, kind and relation from the first line."""
    terms = dict(first.content)
    found = terms.pop("format", None)
    if isinstance(found, int) and found > _FORMAT:
        raise InvalidInput(
            f"ledger {path} must be of format {_FORMAT}: found {found}, of a later pyhybrid"
        )
    known = found == _FORMAT and set(terms) == {"budget", "kind", "relation"}
    if not known or None in _checked_terms(**terms).values():
        raise InvalidInput(f"{path} must be a ledger of format {_FORMAT}: it is none")
    return terms


def _entries(lines: list[Line]) -> tuple[LedgerEntry, ...]:
    return tuple(_entry(line) for line in lines[1:])


def _entry(line: Line) -> LedgerEntry:
    try:
        return _read_entry(line)
    except (KeyError, TypeError, InvalidInput) as error:
        raise InvalidInput(
            f"entry {line.number} of the ledger must be one that pyhybrid wrote: {error}; was it "
            "written by another version or program?"
        ) from None


def _read_entry(line: Line) -> LedgerEntry:
    content = line.content
    charge = content["charge"]
    if check_finite(charge["epsilon"], "epsilon") < 0:
        raise InvalidInput(f"epsilon must be >= 0: found {charge['epsilon']:g}")
    check_choice(charge["kind"], "kind", KINDS)
    check_choice(charge["relation"], "relation", RELATIONS)
    return LedgerEntry(
        number=line.number,
        time=content["time"],
        made_by=content["made_by"],
        epsilon=charge["epsilon"],
        kind=charge["kind"],
        relation=charge["relation"],
        charge=charge,
        identifier=content["identifier"],
        content_sha256=content["content_sha256"],
        sha256=line.sha256,
    )


def _spent(entries: tuple[LedgerEntry, ...]) -> float:
    return add_epsilons(entry.epsilon for entry in entries)


def _left(budget: float, spent: float) -> float:
    return max(0.0, float(Decimal(repr(budget)) - Decimal(repr(spent))))


def _same(entry: LedgerEntry, content: str, path: Path) -> LedgerEntry:
    if entry.content_sha256 != content:
        raise InvalidInput(
            f"the release must be as it was when entry {entry.number} of ledger {path} was made: "
            "its values, settings or charge have changed; release anew"
        )
    return entry


def _charge_of(release: Any) -> tuple[PrivacyCharge, str]:
    """The charge of a release, after checking that it is one and that the charge is its own."""
    if isinstance(release, PrivateAnswer):
        release.check_charge()
        return release.charge, release.charge.mechanism
    if not isinstance(release, Release):
        raise InvalidInput(
            "a ledger takes charges from releases only: give the Release, or the answer of a "
            f"primitive, found {type(release).__name__}"
        )
    charge, kept = release.charge, release.confidential
    wrong = {
        "mechanism": release.settings.get("mechanism") != charge.mechanism,
        "number of data sets": len(release.synthetic) != charge.n_synthetic,
        "Lipschitz bound": not kept.lipschitz_bound <= charge.bound,
    }
    if any(wrong.values()):
        name = next(name for name, is_wrong in wrong.items() if is_wrong)
        raise InvalidInput(f"the charge must be the release's own: its {name} is another")
    return charge, charge.mechanism


def _content_hash(release: Release | PrivateAnswer) -> str:
    """SHA-256 of charge, settings and released values."""
    digest = hashlib.sha256()

    def add(content: Any) -> None:
        digest.update(json.dumps(content, sort_keys=True, default=str).encode())

    add(release.charge.as_dict())
    if isinstance(release, PrivateAnswer):
        value = np.ascontiguousarray(release.value)
        add([str(value.dtype), value.shape])
        digest.update(value.tobytes())
        return digest.hexdigest()
    add(dict(release.settings))
    for table in release.synthetic:
        for column in release.synthesized:
            hashed = pd.util.hash_pandas_object(table[column], index=False)
            digest.update(column.encode() + hashed.to_numpy().tobytes())
    return digest.hexdigest()
