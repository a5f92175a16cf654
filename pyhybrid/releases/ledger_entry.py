"""What a ledger has a line for: the entry of a release, as it is read from the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyhybrid.core.checks import check_choice, check_finite, check_flag
from pyhybrid.core.errors import InvalidInput
from pyhybrid.privacy.conversions import KINDS, RELATIONS, mu_of_release
from pyhybrid.releases.chained_file import Line
from pyhybrid.releases.data_fingerprint import DataMark

__all__ = ["LedgerEntry", "data_of", "entries_of", "entry_of"]


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
    delta : float
        Of a charge counted by the Gaussian limit; 0 otherwise.
    mu : float or None
        Of such a charge, all sets together under its relation: what composes by squares.
    charge : mapping
        The public part of the charge.
    identifier, content_sha256 : str
        Name of the release, and hash of its charge, settings and released values.
    sha256 : str
        Hash of this entry and of all before it.
    other_data : bool
        True if it was taken although it is of other data than the ledger's first release.
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
        """Of records whose Gaussian limit does not hold; see `pyhybrid.PrivacyCharge`."""
        return check_finite(self.charge.get("epsilon_failing", 0.0), "epsilon_failing")


def entries_of(lines: list[Line]) -> tuple[LedgerEntry, ...]:
    return tuple(entry_of(line) for line in lines[1:])


def entry_of(line: Line) -> LedgerEntry:
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
        delta=check_finite(charge.get("delta", 0.0), "delta"),
        mu=_mu_of(charge),
        charge=charge,
        identifier=content["identifier"],
        content_sha256=content["content_sha256"],
        sha256=line.sha256,
        other_data=check_flag(content.get("other_data", False), "other_data"),
    )


def _mu_of(charge: Mapping[str, Any]) -> float | None:
    if charge.get("accounting") != "gaussian":
        return None
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
                    f"entry {line.number} of ledger {path} must be one that pyhybrid wrote: what "
                    "it says of the data cannot be read"
                ) from None
    return None
