"""What a ledger takes: anything released that carries its charge under a seal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.data_fingerprint import DataMark

__all__ = ["Charged", "ChargedTables"]


@runtime_checkable
class Charged(Protocol):
    """What a ledger takes: something released, with the charge that its maker gave it."""

    @property
    def charge(self) -> PrivacyCharge:
        """What it costs."""

    @property
    def identifier(self) -> str:
        """Its name, which nothing else has."""

    def check_seal(self) -> None:
        """Raise InvalidInput unless it is as it was made, its charge among the rest."""

    def content_digest(self) -> str:
        """SHA-256 of what was released and of its charge."""

    def is_known_as(self, digest: str) -> bool:
        """True if `digest` is its content's, by this version or an earlier one."""


@runtime_checkable
class ChargedTables(Charged, Protocol):
    """Synthetic tables, which say of which data and with which random numbers they were made."""

    @property
    def data(self) -> DataMark | None:
        """Mark of the confidential table; None if it was not noted."""

    @property
    def synthesized(self) -> tuple[str, ...]:
        """Columns that were replaced."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of mechanism and model."""

    @property
    def entropy(self) -> int:
        """Root of the random numbers. Confidential."""
