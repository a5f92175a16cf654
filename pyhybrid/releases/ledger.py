"""A ledger: the budget of one confidential data set, and every release that drew on it.

It takes charges from releases only: from a `Release` or from the answer of a primitive, each of
which carries the charge that its mechanism wrote, under a seal that shows whether anything was
changed since. The entry holds a hash of what was released, so that a release can be held against
the ledger later, and the first one a keyed digest of the confidential table: a ledger is for one
data set. The entry is on disk before the data are: a crash between the two costs budget, and never
leaves a release without an entry.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pyhybrid.core.checks import check_choice, check_finite, check_flag, check_positive
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import epsilon_together, spent
from pyhybrid.privacy.conversions import (
    KINDS,
    RELATIONS,
    STRICT,
    check_delta,
    epsilon_text,
    mu_of_release,
)
from pyhybrid.releases.chained_file import ChainedFile, Line, locked_file
from pyhybrid.releases.data_fingerprint import DataMark, keyed

_DELTA = 1e-6
_BEGUN = 0.2  # seconds
_ENTERED = ("time", "made_by", "identifier", "content_sha256")
_FORMAT = 1


@runtime_checkable
class Charged(Protocol):
    """What a ledger takes: something released, with the charge that its maker gave it."""

    @property
    def charge(self) -> PrivacyCharge: ...

    @property
    def identifier(self) -> str: ...

    def check_seal(self) -> None: ...

    def content_digest(self) -> str: ...

    def is_known_as(self, digest: str) -> bool: ...


@runtime_checkable
class ChargedTables(Charged, Protocol):
    """Synthetic tables, which say of which data and with which random numbers they were made."""

    @property
    def data(self) -> DataMark | None: ...

    @property
    def synthesized(self) -> tuple[str, ...]: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    @property
    def entropy(self) -> int: ...


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
        As in `pyhybrid.arrays.PrivacyCharge`.
    delta : float
        Of a charge counted by the Gaussian limit; 0 otherwise.
    mu : float or None
        Of a charge counted by its mu, all sets together under its relation: it composes by squares.
    charge : mapping
        The public part of the charge.
    identifier, content_sha256 : str
        Name of the release, and hash of its charge, settings and released values.
    sha256 : str
        Hash of this entry and of all before it.
    other_data : bool
        True if its data are not those of the ledger's first release.
    """

    number: int
    time: str
    made_by: str
    epsilon: float
    kind: str
    relation: str
    delta: float
    mu: float | None
    charge: Mapping[str, Any]
    identifier: str
    content_sha256: str
    sha256: str
    other_data: bool = False

    @property
    def epsilon_failing(self) -> float:
        """Of records whose Gaussian limit does not hold; see `pyhybrid.arrays.PrivacyCharge`."""
        return check_finite(self.charge.get("epsilon_failing", 0.0), "epsilon_failing")


def entry_of(line: Line) -> LedgerEntry:
    content = line.content
    try:
        charge = content["charge"]
        if check_finite(charge["epsilon"], "epsilon") < 0:
            raise InvalidInput(f"epsilon must be >= 0: found {charge['epsilon']:g}")
        check_choice(charge["kind"], "kind", KINDS)
        check_choice(charge["relation"], "relation", RELATIONS)
        return LedgerEntry(
            number=line.number,
            mu=_mu_of(charge),
            charge=charge,
            sha256=line.sha256,
            delta=check_finite(charge.get("delta", 0.0), "delta"),
            other_data=check_flag(content.get("other_data", False), "other_data"),
            **{name: charge[name] for name in ("epsilon", "kind", "relation")},
            **{name: content[name] for name in _ENTERED},
        )
    except (KeyError, TypeError, InvalidInput) as error:
        raise InvalidInput(
            f"entry {line.number} of the ledger must be one that pyhybrid wrote: {error}; was it "
            "written by another version or program?"
        ) from None


def _mu_of(charge: Mapping[str, Any]) -> float | None:
    if charge.get("accounting") != "gaussian":
        return None
    if charge["kind"] == STRICT:
        return check_finite(charge["mu"], "mu")
    return mu_of_release(
        check_finite(charge["safety_factor"], "safety_factor") * check_finite(charge["mu"], "mu"),
        n_draws_released=charge["n_draws_released"],
        relation=charge["relation"],
    )


def data_of(lines: list[Line], path: Path) -> tuple[str, DataMark] | None:
    """Key and mark of the data that the ledger is for, once it has been told."""
    for line in lines[1:]:
        fields = line.content.get("data")
        if fields is not None:
            try:
                return str(fields["key"]), DataMark.from_dict(fields)
            except (KeyError, TypeError, ValueError):
                raise InvalidInput(
                    f"entry {line.number} of ledger {path} must be one that pyhybrid wrote: its "
                    "digests of the data cannot be read"
                ) from None
    return None


def spent_on(
    entries: Sequence[LedgerEntry], delta: float | None, more: PrivacyCharge | None = None
) -> float:
    """Epsilon of all entries at `delta`, and of one more charge: Gaussian charges by squares of mu,
    others added; strict ones, in a ledger with a delta, by rho of zero-concentrated privacy where
    that is less."""
    charges = [entry.charge for entry in entries]
    gaussian = [(entry.mu, entry.epsilon_failing) for entry in entries if entry.mu is not None]
    plain = [entry.epsilon for entry in entries if entry.mu is None]
    kinds = {entry.kind for entry in entries}
    if more is not None:
        charges, kinds = [*charges, more.public()], {*kinds, more.kind}
        if more.accounting == "gaussian":
            gaussian.append((more.mu_of_release, more.epsilon_failing))
        else:
            plain.append(more.epsilon)
    if delta is not None and kinds <= {STRICT}:
        return epsilon_together(charges, delta)
    return spent(gaussian, plain, delta)


def left_of(budget: float, spent: float) -> float:
    """Budget less what is spent, >= 0, exactly as decimals."""
    return max(0.0, float(Decimal(repr(budget)) - Decimal(repr(spent))))


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
    delta : float, optional
        Of a ledger of asymptotic local charges: the public delta at which charges counted by the
        Gaussian limit are added, by squares of their mu; 1e-6 if omitted when the ledger is
        created. Of a strict ledger, if given: the budget is then of (epsilon, delta), and many
        small charges cost less than their sum (`pyhybrid.compose`); without, epsilons add, and
        charges of Gaussian noise are refused.
    allow_unlike : bool, default False
        Take charges of another kind or relation, too. The sum is then labeled: it is no
        guarantee of either kind.
    allow_other_data : bool, default False
        Take releases of other tables than that of the first release, too: of a part of its
        records, or of the same ones recoded. The sum is then labeled.
    wait : float, default 10
        Seconds to wait for another process that uses the file.

    Notes
    -----
    The first release binds the ledger to its data: the entry keeps a digest of each column under a
    key of the ledger's own (HMAC-SHA-256). Later releases must be of a table with as many records
    in which the column that is synthesized, and most of the other columns that both have, hold the
    same values, in any order. Columns may be added, dropped, renamed or recoded, and dtypes may
    change; another year of a survey, or some of the records, are another data set. Answers of
    primitives come without a table: the owner declares their data.

    Epsilons add where random numbers are independent. Another mechanism's release that shares its
    seed with an entry (from one session, or with the same ``seed=``) is refused.

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
        delta: float | None = None,
        allow_unlike: bool = False,
        allow_other_data: bool = False,
        wait: float = 10.0,
    ) -> None:
        self.path = Path(path)
        self.allow_other_data = check_flag(allow_other_data, "allow_other_data")
        self.allow_unlike = check_flag(allow_unlike, "allow_unlike")
        self._wait = check_finite(wait, "wait")
        given = _checked_terms(budget, kind, relation)
        if delta is not None:
            check_delta(delta)
        new = not self.path.exists() and self._may_create(given)
        if not new and self.path.is_file() and not self.path.stat().st_size:
            time.sleep(_BEGUN)  # another process may be about to write its first line
        with self._file(create=new) as file:
            lines = file.lines()
            if not lines:
                if not new:
                    raise InvalidInput(
                        f"ledger {self.path} is damaged: it is empty. Restore it from a backup; "
                        "only if nothing was ever released on it, remove it"
                    )
                if delta is None and given["kind"] != STRICT:
                    delta = _DELTA
                at = {} if delta is None else {"delta": float(delta)}
                lines = [file.append({"format": _FORMAT, **given, **at}, after=[])]
        terms = _terms(lines[0], self.path)
        self.budget: float = terms["budget"]
        self.kind: str = terms["kind"]
        self.relation: str = terms["relation"]
        self.delta: float | None = terms.get("delta")
        for name, value in {**given, "delta": delta}.items():
            if value is not None and value != terms.get(name):
                raise InvalidInput(
                    f"ledger {self.path} has {name} {terms.get(name)!r}, fixed when it was "
                    f"created: found {value!r}; leave {name} out or start another file"
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
            return tuple(map(entry_of, file.lines()[1:]))

    @property
    def head(self) -> str:
        """Hash of the last line: note it elsewhere, and lines that go missing are found."""
        with self._file() as file:
            return file.lines()[-1].sha256

    @property
    def spent(self) -> float:
        """Epsilon of all entries, nats: those with a mu by squares at `delta`, the others added;
        in a strict ledger with a delta by rho, where that is less.

        See `label` for what it means.
        """
        return spent_on(self.entries, self.delta)

    @property
    def left(self) -> float:
        """Budget less what is spent, nats, >= 0."""
        return left_of(self.budget, self.spent)

    @property
    def label(self) -> str:
        """What the sum of the entries is: a guarantee of one kind, or a sum of unlike charges."""
        entries = self.entries
        found = {f"{entry.kind}, {entry.relation}" for entry in entries}
        units = {entry.charge.get("unit") for entry in entries}
        if len(units) > 1:
            found |= {f"unit {unit or 'row'}" for unit in units}
        data = "; releases of more than one data set" if any(e.other_data for e in entries) else ""
        if found <= {f"{self.kind}, {self.relation}"}:
            told = self.kind == STRICT or any(e.mu is not None for e in entries)
            at = f" at delta = {self.delta:g}" if told and self.delta is not None else ""
            whose = next(iter(units), None) or "record"
            return f"{self.kind}{at}, {self.relation} one {whose}{data}"
        unlike = "; ".join(sorted(found | {f"{self.kind}, {self.relation}"}))
        return f"sum of unlike charges, no guarantee of any kind: {unlike}{data}"

    def add(self, release: Charged) -> LedgerEntry:
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
            For a number, a bare charge, a step of a sequence or anything else that is no release;
            for a release whose charge, tables or settings were changed since it was made; for one
            of other data; for an unlike kind or relation; for a damaged file.
        SaveFailed
            If the file is locked or cannot be written.
        """
        if not isinstance(release, Charged):
            raise InvalidInput(
                "a ledger takes charges from releases only: give the whole Release, or the answer "
                f"of a primitive, found {type(release).__name__}"
            )
        release.check_seal()
        charge, content = release.charge, release.content_digest()
        with self._file() as file:
            lines = file.lines()
            entries = tuple(map(entry_of, lines[1:]))
            for entry in entries:
                if entry.identifier == release.identifier:
                    if not release.is_known_as(entry.content_sha256):
                        raise InvalidInput(
                            f"the release must be as it was when entry {entry.number} of ledger "
                            f"{self.path} was made: its values, settings or charge have changed; "
                            "release anew"
                        )
                    return entry
            self._check(charge, entries)
            line = file.append(
                {
                    "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                    "made_by": charge.mechanism,
                    "identifier": release.identifier,
                    "content_sha256": content,
                    "charge": charge.public(),
                    **(
                        self._bindings(release, lines) if isinstance(release, ChargedTables) else {}
                    ),
                },
                after=lines,
            )
        return entry_of(line)

    def _bindings(self, release: ChargedTables, lines: list[Line]) -> dict[str, Any]:
        """What ties an entry to the data, whose keyed mark the first one has, and to its seed."""
        mark, bound = release.data, data_of(lines, self.path)
        if mark is None:
            raise InvalidInput(
                "a release must name its data: this one was saved by an earlier version "
                "of pyhybrid, which did not note it; release anew"
            )
        key = secrets.token_hex(16) if bound is None else bound[0]
        own = mark.keyed(key)
        made_with = {
            "seed": keyed(key, str(release.entropy)),
            "settings": keyed(key, json.dumps(dict(release.settings), sort_keys=True, default=str)),
        }
        self._check_random_numbers(made_with, lines)
        if bound is None:
            return {"data": {"key": key, **own.as_dict()}, "made_with": made_with}
        if own.is_of_the_data_of(bound[1], release.synthesized):
            return {"made_with": made_with}
        if not self.allow_other_data:
            raise InvalidInput(
                f"releases in ledger {self.path} must be of the data of its first release: this "
                "one is of other records, of some of them, or of values that were recoded. Other "
                "people's data have a ledger of their own; for the same people's, "
                "allow_other_data=True adds it and labels the sum"
            )
        return {"other_data": True, "made_with": made_with}

    def _check_random_numbers(self, made_with: Mapping[str, str], lines: list[Line]) -> None:
        """Epsilons add for random numbers that are independent; fits of one seed share theirs."""
        for line in lines[1:]:
            earlier = line.content.get("made_with")
            if not isinstance(earlier, Mapping) or earlier.get("seed") != made_with["seed"]:
                continue
            if earlier.get("settings") != made_with["settings"]:
                raise InvalidInput(
                    f"releases in ledger {self.path} must have random numbers of their own: this "
                    f"one shares those of entry {line.number}, another mechanism's of the same "
                    "session or seed, and epsilons add only where they are independent; release "
                    "it anew, without a seed"
                )

    def _check(self, charge: PrivacyCharge, entries: tuple[LedgerEntry, ...]) -> None:
        found, own = (charge.kind, charge.relation), (self.kind, self.relation)
        if found != own and not self.allow_unlike:
            raise InvalidInput(
                f"charges in ledger {self.path} must be {', '.join(own)}: found "
                f"{', '.join(found)}; a sum of unlike charges is no guarantee. allow_unlike=True "
                "(--allow-unlike) adds it anyway and labels the sum"
            )
        units = {entry.charge.get("unit") for entry in entries}
        if units and charge.unit not in units and not self.allow_unlike:
            whose = " and ".join(sorted(str(unit or "single rows") for unit in units))
            raise InvalidInput(
                f"charges in ledger {self.path} must have one unit of privacy, {whose}: found "
                f"{charge.unit or 'single rows'}; the two do not add up to a guarantee for "
                "a person. Give unit= to all, or allow_unlike=True, which labels the sum"
            )
        if charge.kind == STRICT and not (charge.converged and charge.draw_quantile == 1):
            raise InvalidInput(
                "a strict charge must be of chains that have converged, all of whose draws are "
                f"kept: found converged={charge.converged}, draw_quantile={charge.draw_quantile:g}"
            )
        if charge.delta and charge.delta != self.delta:
            raise InvalidInput(
                f"charges in ledger {self.path} must be counted at its delta, "
                f"{self.delta or 'none'}: found {charge.delta:g}; give the mechanism that delta, "
                "accounting='range' where the ledger has none, or start another file"
            )
        before, cost = spent_on(entries, self.delta), spent_on(entries, self.delta, charge)
        left = left_of(self.budget, before)
        if Decimal(repr(cost)) > Decimal(repr(self.budget)):
            raise BudgetExceeded(
                f"the release must cost at most what is left in ledger {self.path}, "
                f"{epsilon_text(left)} of {epsilon_text(self.budget)}: it costs "
                f"{epsilon_text(left_of(cost, before))}. Nothing was written; lower its epsilon, "
                "or do not release it"
            )

    def _may_create(self, given: Mapping[str, Any]) -> bool:
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise InvalidInput(
                f"ledger {self.path} must exist, or be given budget, kind and relation to be "
                f"created: found no {missing[0]}"
            )
        return True

    def _file(self, *, create: bool = False) -> AbstractContextManager[ChainedFile]:
        return locked_file(self.path, create=create, wait=self._wait)


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
    delta = terms.pop("delta", None)
    known = found == _FORMAT and set(terms) == {"budget", "kind", "relation"}
    if (
        not known
        or None in _checked_terms(**terms).values()
        or not (delta is None or (isinstance(delta, float) and 0 < delta < 1))
    ):
        raise InvalidInput(f"{path} must be a ledger of format {_FORMAT}: it is none")
    return terms if delta is None else {**terms, "delta": delta}
