"""What every primitive returns: values with noise, and the charge for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pyhybrid.errors import InvalidInput
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import epsilon_text, round_up
from pyhybrid.randomness import new_identifier

__all__ = ["PrivateAnswer"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrivateAnswer(ABC):
    """An answer with noise and its charge; both may be published.

    A charge below what the answer's own noise costs is refused, so that an answer cannot carry a
    charge that was written by hand.

    Attributes
    ----------
    charge : PrivacyCharge
        Strict, with its neighbour relation.
    identifier : str
        Tells this answer from every other one, also from one that came out the same.
    """

    charge: PrivacyCharge
    identifier: str = field(default_factory=new_identifier)
    value: Any

    def __post_init__(self) -> None:
        self.check_charge()

    def check_charge(self) -> None:
        """Raise InvalidInput unless the charge covers what the noise costs."""
        cost = self.cost()
        # One unit of float rounding: OpenDP states costs that are rounded up in binary.
        if Fraction(self.charge.epsilon) < Fraction(cost) * (1 - Fraction(1, 2**50)):
            raise InvalidInput(
                f"epsilon of the charge must be at least what the noise costs, {round_up(cost)}: "
                f"found {self.charge.epsilon:g}"
            )

    @abstractmethod
    def cost(self) -> float:
        """Epsilon in nats, worked out from the answer's own noise."""

    def __repr__(self) -> str:
        c, value = self.charge, np.asarray(self.value)
        shown = np.array2string(value, threshold=12, separator=", ")
        cost = f"epsilon = {epsilon_text(c.epsilon)} ({c.kind}, {c.relation} one record)"
        return f"<{type(self).__name__} {shown}: {cost}>"
