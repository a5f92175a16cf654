"""What every primitive returns: values with noise, and the charge for them."""

from __future__ import annotations

import hashlib
import hmac
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

import numpy as np

from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import new_identifier
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import epsilon_text, round_up

__all__ = ["PrivateAnswer"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrivateAnswer(ABC):
    """An answer with noise and its charge; both may be published.

    A charge that was written by hand, or is below what the answer's own noise costs, is refused;
    an answer whose value, noise or charge was changed after it was made is recognized by its seal.

    Attributes
    ----------
    charge : PrivacyCharge
        Strict, with its neighbor relation.
    identifier : str
        Tells this answer from every other one, also from one that came out the same.
    """

    charge: PrivacyCharge
    identifier: str = field(default_factory=new_identifier)
    value: Any
    seal: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        self.check_charge()
        if not self.seal:
            object.__setattr__(self, "seal", self._digest())

    def check_charge(self) -> None:
        """Raise InvalidInput unless the charge covers what the noise costs."""
        cost = self.cost()
        # One unit of float rounding: OpenDP states costs that are rounded up in binary.
        if Fraction(self.charge.epsilon) < Fraction(cost) * (1 - Fraction(1, 2**50)):
            raise InvalidInput(
                f"epsilon of the charge must be at least what the noise costs, {round_up(cost)}: "
                f"found {self.charge.epsilon:g}"
            )
        if not self.charge.is_sealed:
            raise InvalidInput(
                "the charge of an answer must be as its primitive made it: it was written or "
                "changed by hand"
            )

    def check_seal(self) -> None:
        """Raise InvalidInput unless the answer is as its primitive made it."""
        self.check_charge()
        if not hmac.compare_digest(self.seal, self._digest()):
            raise InvalidInput(
                "an answer must be as its primitive made it: its value, noise or charge has "
                "changed since; ask anew"
            )

    def content_digest(self) -> str:
        """SHA-256 of charge and value, hexadecimal: tells a changed answer from the one charged."""
        digest, value = hashlib.sha256(), np.ascontiguousarray(self.value)
        for content in (self.charge.as_dict(), [str(value.dtype), value.shape]):
            digest.update(json.dumps(content, sort_keys=True, default=str).encode())
        plain = value.dtype.kind != "O"
        digest.update(value.tobytes() if plain else repr(value.tolist()).encode())
        return digest.hexdigest()

    def is_known_as(self, digest: str) -> bool:
        """True if `digest` is its `content_digest`."""
        return hmac.compare_digest(digest, self.content_digest())

    def _digest(self) -> str:
        """Of all fields: the value and the charge by content, the others as they are written."""
        others = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in ("charge", "value", "seal")
        }
        text = json.dumps([self.content_digest(), others], sort_keys=True, default=_plain)
        return hashlib.sha256(text.encode()).hexdigest()

    @abstractmethod
    def cost(self) -> float:
        """Epsilon in nats, worked out from the answer's own noise."""

    def __repr__(self) -> str:
        c, value = self.charge, np.asarray(self.value)
        shown = np.array2string(value, threshold=12, separator=", ")
        cost = f"epsilon = {epsilon_text(c.epsilon)} ({c.kind}, {c.relation} one record)"
        return f"<{type(self).__name__} {shown}: {cost}>"


def _plain(thing: Any) -> Any:
    """An array by its content, anything else as text."""
    return thing.tolist() if isinstance(thing, (np.ndarray, np.generic)) else str(thing)
