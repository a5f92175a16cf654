r"""Noisy contingency tables: how often each level of one thing meets each cell of another.

All tables together are one vector of counts with noise from one mechanism, so that what they cost
is that vector's sensitivity. A record is in one cell of each of T tables: leaving it out changes
the vector by T in L1 and by :math:`\sqrt{T}` in L2; replacing it by 2 T and :math:`\sqrt{2 T}` at
most [DR14] sec. 3.3 (Laplace), [BS16] prop. 1.6 (Gaussian), [CKS20].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyhybrid.core.checks import FloatArray, IntArray, check_choice, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.noise import PrivateAnswer, whole_number_noise
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import CHANGED, RELATIONS, epsilon_of_zcdp, rho_of_zcdp

_ASSUMED = "The tables and their cells were fixed without looking at the data."


def cross_table(codes: Sequence[IntArray], shape: Sequence[int]) -> IntArray:
    """How many records are in each cell of a table of this `shape`, by the code of each record
    (n,) along each side. Confidential."""
    try:
        cells = np.ravel_multi_index(tuple(codes), tuple(shape))
    except ValueError:
        raise InvalidInput("codes must be whole numbers within the table: some are not") from None
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


@dataclass(frozen=True, kw_only=True)
class Price:
    """Price of tables, in nats: epsilon alone (Laplace noise), delta being 0 and rho None; or rho
    of zCDP, at a public delta (Gaussian)."""

    epsilon: float
    delta: float = 0.0
    rho: float | None = None

    @classmethod
    def of(cls, epsilon: float, delta: float | None = None) -> Price:
        """The price of an epsilon above 0, and of a delta in (0, 1) if given."""
        eps = check_positive(epsilon, "epsilon")
        rho = None if delta is None else rho_of_zcdp(eps, delta)
        return cls(epsilon=eps, delta=float(delta or 0), rho=rho)

    def part(self, share: float) -> Price:
        """A part of it: parts whose shares add to 1 cost no more than the price."""
        share *= 1 - 2**-50  # whatever sums and products of floats round up
        return self._scaled(share, share)

    def of_one_in(self, rows: float) -> Price:
        """Price of one row if a unit has so many: changes of its rows add in every cell."""
        return self._scaled(1 / rows, 1 / rows**2)

    def _scaled(self, of_epsilon: float, of_rho: float) -> Price:
        if self.rho is None:
            return Price(epsilon=of_epsilon * self.epsilon)
        rho = of_rho * self.rho
        return Price(epsilon=epsilon_of_zcdp(rho, self.delta), delta=self.delta, rho=rho)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyTables(PrivateAnswer):
    """Cells of all tables with noise; sensitivity of all together (L1 of Laplace, L2 of Gaussian
    noise, which has a delta), and scale of a cell's noise."""

    value: IntArray  # (B,)
    shapes: tuple[tuple[int, ...], ...]  # rows and columns of each table
    sensitivity: float
    scale: float

    @property
    def noise(self) -> str:
        """Distribution of the noise."""
        return "discrete Gaussian" if self.charge.delta else "discrete Laplace"

    def cost(self) -> float:
        """Sensitivity / scale; of Gaussian noise what its rho costs at delta."""
        if self.charge.delta:
            return epsilon_of_zcdp(self.rho, self.charge.delta)
        return self.sensitivity / self.scale

    @property
    def rho(self) -> float:
        """Of Gaussian noise, squared sensitivity / 2 scale squared."""
        return (self.sensitivity / self.scale) ** 2 / 2

    @property
    def variance(self) -> float:
        """Of the noise of one cell."""
        if self.charge.delta:  # that of the discrete one is no larger [CKS20, corollary 9]
            return self.scale**2
        q = math.exp(-1 / self.scale)  # weights are exp(-|k| / scale)
        return 2 * q / (1 - q) ** 2

    def tables(self) -> list[FloatArray]:
        """Each table, shape (K_t, L_t)."""
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])
        parts = np.split(self.value.astype(np.float64), ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def noisy_tables(
    tables: Sequence[IntArray], *, price: Price, relation: str = "replace"
) -> NoisyTables:
    """All tables over the same records, with discrete noise at the `price` of all together: Laplace
    of scale 2 T / epsilon, or T / epsilon, Gaussian of sqrt(T / rho), or sqrt(T / 2 rho)."""
    changed = CHANGED[check_choice(relation, "relation", RELATIONS)] * len(tables)
    alike = len({int(table.sum()) for table in tables}) == 1
    if not alike or any((table < 0).any() for table in tables):
        raise InvalidInput("tables must be at least one, over the same records")
    if price.rho is None:
        sensitivity = float(changed)
        measurement, scale = whole_number_noise(changed, price.epsilon)
    else:
        sensitivity = math.nextafter(math.sqrt(changed), math.inf)
        measurement, scale = whole_number_noise(sensitivity, rho=price.rho)
    counts = np.concatenate([table.ravel() for table in tables])
    return NoisyTables(
        value=np.array(measurement(counts.tolist()), dtype=np.int64),
        shapes=tuple(table.shape for table in tables),
        sensitivity=sensitivity,
        scale=scale,
        charge=PrivacyCharge.strict(
            mechanism="noisy_tables", relation=relation,
            epsilon=price.epsilon, rho=price.rho, delta=price.delta,
            facts={"assumes": [_ASSUMED]},
        ),
    )  # fmt: skip


def size_of_noise(price: Price, relation: str) -> float:
    """Mean absolute size of the noise on a cell of one table at `price`, in records, nearly: the
    scale of Laplace noise, sqrt(2 / pi) of that of Gaussian noise."""
    changed = CHANGED[check_choice(relation, "relation", RELATIONS)]
    if price.rho is None:
        return changed / price.epsilon
    return math.sqrt(changed / math.pi / price.rho)
