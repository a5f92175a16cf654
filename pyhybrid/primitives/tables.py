r"""Noisy contingency tables: how often each level of one thing meets each cell of another.

All tables together are one vector of counts with noise from one mechanism, so that what they cost
is that vector's sensitivity. A record adds 1 to each of T tables, in one cell or shared out over
the cells of public predictors. Leaving it out changes the vector by T in L1 and at most
:math:`\sqrt{T}` in L2, since shares that sum to 1 have squares that sum to at most 1; replacing it
by 2 T and :math:`\sqrt{2 T}`, since two vectors of nonnegative entries are never further apart than
if they had no cell in common.

References
----------
[DR14] sec. 3.3 (Laplace). [BS16] Bun, Steinke (2016), zCDP of Gaussian noise, prop. 1.6.
[CKS20] Canonne, Kamath, Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from pyhybrid.core.checks import FloatArray, check_choice, check_count, check_each, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.primitives.laplace import CHANGED
from pyhybrid.primitives.noise import PrivateAnswer, whole_number_noise
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import RELATIONS, epsilon_of_zcdp, rho_of_zcdp

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CrossTable:
    """Cells that a table counts: how each record is shared out over them, nonnegative whole
    numbers, `unit` in each row. Confidential, but for its number of rows K."""

    codes: IntArray  # (n,) row of the table that each record is in, 0 .. n_rows - 1
    n_rows: int
    cells: sparse.csr_array  # (n, L)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        return self.n_rows, int(self.cells.shape[1])

    def in_blocks(self, block: IntArray) -> CrossTable:
        """The same records in the block (K,) of each row."""
        return replace(self, codes=block[self.codes], n_rows=int(block[-1]) + 1)

    def counts(self, unit: int) -> IntArray:
        """Parts of a record in each cell, shape (K, L); InvalidInput unless each record has `unit`.
        Confidential."""
        codes, cells = self.codes, self.cells
        check_each(
            (codes >= 0) & (codes < self.n_rows),
            f"codes must be whole numbers in 0 .. {self.n_rows - 1}: record {{}} is not",
        )
        shared = np.asarray(cells.sum(axis=1)).ravel()
        if cells.dtype.kind not in "iu" or (cells.data < 0).any() or (shared != unit).any():
            raise InvalidInput(
                f"a table must share each record out in {unit} parts, whole numbers >= 0: more "
                "would change the tables by more than the noise is made for"
            )
        n = codes.size
        rows = sparse.csr_array((np.ones(n, np.int64), (codes, np.arange(n))), (self.n_rows, n))
        return np.asarray((rows @ cells).todense(), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CountedTable:
    """A table (K, L) that was counted where its n `records` are, each in one cell. Confidential."""

    records: IntArray
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        rows, columns = self.records.shape
        return rows, columns

    def in_blocks(self, block: IntArray) -> CountedTable:
        """The same records in the block (K,) of each row."""
        records = np.zeros((int(block[-1]) + 1, self.shape[1]), dtype=np.int64)
        np.add.at(records, block, self.records)
        return replace(self, records=records)

    def counts(self, unit: int) -> IntArray:
        """Parts of a record in each cell, `unit` of each record, shape (K, L)."""
        if (self.records < 0).any() or int(self.records.sum()) != self.n:
            raise InvalidInput(f"a table of {self.n} records must count each in one cell")
        return self.records * unit


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

    def of_one_in(self, rows: int) -> Price:
        """Price of one row if a unit has so many: changes of its rows add in every cell."""
        return self._scaled(1 / rows, 1 / rows**2)

    def _scaled(self, of_epsilon: float, of_rho: float) -> Price:
        if self.rho is None:
            return Price(epsilon=of_epsilon * self.epsilon)
        rho = of_rho * self.rho
        return Price(epsilon=epsilon_of_zcdp(rho, self.delta), delta=self.delta, rho=rho)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NoisyTables(PrivateAnswer):
    """Cells of all tables with noise, in `unit` parts of a record. Sensitivity of all together (L1
    of Laplace, L2 of Gaussian noise, which has a delta) and scale of a cell's noise are in
    records."""

    value: IntArray  # (B,)
    shapes: tuple[tuple[int, int], ...]  # rows and columns of each table
    unit: int
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
        """Of the noise of one cell, in records."""
        if self.charge.delta:  # that of the discrete one is no larger [CKS20, corollary 9]
            return self.scale**2
        q = float(np.exp(-1 / (self.scale * self.unit)))  # weights are exp(-|k| / scale)
        return 2 * q / (1 - q) ** 2 / self.unit**2

    def tables(self) -> list[FloatArray]:
        """Each table in records, shape (K_t, L_t)."""
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])
        parts = np.split(self.value / self.unit, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def noisy_tables(
    tables: Sequence[CrossTable | CountedTable],
    *,
    price: Price,
    relation: str = "replace",
    unit: int = 1,
) -> NoisyTables:
    """All tables over the same records, with discrete noise at the `price` of all together: Laplace
    of scale 2 T / epsilon, or T / epsilon, Gaussian of sqrt(T / rho), or sqrt(T / 2 rho)."""
    parts = check_count(unit, "unit")
    changed = CHANGED[check_choice(relation, "relation", RELATIONS)] * len(tables)
    counts = cross_counts(tables, unit=parts)
    if price.rho is None:
        sensitivity = float(changed)
        measurement, scale = whole_number_noise(changed, price.epsilon, parts)
    else:
        sensitivity = math.nextafter(math.sqrt(changed), math.inf)
        measurement, scale = whole_number_noise(sensitivity, unit=parts, rho=price.rho)
    charge = PrivacyCharge.strict(
        mechanism="noisy_tables",
        epsilon=price.epsilon,
        rho=price.rho,
        delta=price.delta,
        relation=relation,
        facts={"assumes": ["The tables and their cells were fixed without looking at the data."]},
    )
    return NoisyTables(
        value=np.array(measurement(counts.tolist()), dtype=np.int64),
        shapes=tuple(table.shape for table in tables),
        unit=parts,
        sensitivity=sensitivity,
        scale=scale / parts,
        charge=charge,
    )


def size_of_noise(price: Price, relation: str) -> float:
    """Mean absolute size of the noise on a cell of one table at `price`, in records, nearly: the
    scale of Laplace noise, sqrt(2 / pi) of that of Gaussian noise."""
    changed = CHANGED[check_choice(relation, "relation", RELATIONS)]
    return (
        changed / price.epsilon if price.rho is None else math.sqrt(changed / math.pi / price.rho)
    )


def cross_counts(tables: Sequence[CrossTable | CountedTable], *, unit: int = 1) -> IntArray:
    """The counts, in parts of a record, shape (B,); refused unless every record adds exactly `unit`
    to each table. Confidential."""
    if not tables:
        raise InvalidInput("tables must hold at least one table: found none")
    return np.concatenate([table.counts(unit).ravel() for table in tables])
