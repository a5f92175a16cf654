"""Whether the records to be released are those that a calibration was made from.

A calibration keeps a digest of each of its records under a key of its own. Records of another
database coincide with them by chance, often so where values are few; what chance explains is worked
out from how often each record occurs in both databases together:

If both were drawn from one population, any split of the pooled records into parts of n_0 and n_1 is
as likely as any other. A record that occurs t times in all is then found c_1 times in the new data,
c_1 hypergeometric, and min(c_1, t - c_1) of its occurrences coincide. The sum over distinct records
has a mean and a variance under chance alone; records are shared if it is more than 3 standard
deviations above its mean, or if the two databases hold exactly the same records. Ten records that
occur in both and nowhere twice in one are found among any number of others. Two databases with few
distinct records are told apart by their other columns, or not at all: a part of a binary column is
what any other column of its kind would be. So this is a help, and no charge rests on it: that a
reference holds no released record its owner has to say.

**How often half is found.** Two databases of 400 records that share half of them, in one column of
so many values (200 pairs; standard error at most .035): 1,000 equally likely values 1.00, 100 of
them .94, counts about 100 (Poisson) .31, about 5 .01, about 1 never, a negative binomial with a
long tail .01, a binary column .04, of which .02 by chance. Where nine tenths are shared: counts
about 100 1.00, about 5 .50, about 1 never.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.models.base import BoundModel
from pyhybrid.releases.data_fingerprint import normalized

__all__ = [
    "ReferenceRecords",
    "more_alike_than_by_chance",
    "reference_records",
    "shares_records",
]

Digests = npt.NDArray[np.uint64]
_STANDARD_DEVIATIONS = 3.0


@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceRecords:
    """Keyed digests of the records of a reference database. Confidential, and so is the key.

    Attributes
    ----------
    key : str
        Hexadecimal digits.
    columns : tuple of str
        All columns of the reference, in alphabetical order.
    of_model : ndarray of uint64, shape (n,)
        Digests of outcome and predictors, in ascending order.
    of_row : ndarray of uint64, shape (n,)
        Digests of all columns, in ascending order.
    """

    key: str = field(repr=False)
    columns: tuple[str, ...]
    of_model: Digests
    of_row: Digests

    def __repr__(self) -> str:
        return f"<ReferenceRecords: digests of {self.of_model.size} records>"

    def shared_with(self, bound: BoundModel) -> bool:
        """True if more of the records of `bound` are in the reference than chance explains.

        The order of records and of columns, and dtypes, make no difference. Whole rows are
        compared, too, where the table has the columns of the reference.
        """
        if more_alike_than_by_chance(self.of_model, _of_model(bound, self.key)):
            return True
        return _columns(bound.table) == self.columns and more_alike_than_by_chance(
            self.of_row, _digests(bound.table, self.columns, self.key)
        )


def reference_records(bound: BoundModel) -> ReferenceRecords:
    """Digests of the records of `bound`, under a new key."""
    key, columns = secrets.token_hex(16), _columns(bound.table)
    return ReferenceRecords(
        key=key,
        columns=columns,
        of_model=_of_model(bound, key),
        of_row=_digests(bound.table, columns, key),
    )


def more_alike_than_by_chance(one: Digests, other: Digests) -> bool:
    """True if two sets of records (n_0,) and (n_1,) share more than chance explains."""
    if not one.size or not other.size:
        return False
    from scipy import stats  # slow to import

    records, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    in_one = np.bincount(place[: one.size], minlength=records.size)
    in_other = np.bincount(place[one.size :], minlength=records.size)
    if np.array_equal(in_one, in_other):
        return True
    shared = int(np.minimum(in_one, in_other).sum())
    mean, variance = 0.0, 0.0
    times, records_of = np.unique(in_one + in_other, return_counts=True)
    for t, n_records in zip(times.tolist(), records_of.tolist(), strict=True):
        found = np.arange(t + 1)
        chance = stats.hypergeom(one.size + other.size, t, other.size).pmf(found)
        alike = np.minimum(found, t - found)
        own_mean = float(chance @ alike)
        mean += n_records * own_mean
        variance += n_records * (float(chance @ alike**2) - own_mean**2)
    return shared - mean > _STANDARD_DEVIATIONS * math.sqrt(max(variance, 0.0))


def shares_records(one: pd.DataFrame, other: pd.DataFrame, columns: Sequence[str]) -> bool:
    """True if two tables share more records, in these columns, than chance explains."""
    key = secrets.token_hex(16)
    own = [_digests(table, columns, key) for table in (one, other)]
    return more_alike_than_by_chance(own[0], own[1])


def _of_model(bound: BoundModel, key: str) -> Digests:
    return _digests(bound.table, [*bound.synthesized, *bound.predictors], key)


def _columns(table: pd.DataFrame) -> tuple[str, ...]:
    return tuple(sorted(str(name) for name in table.columns))


def _digests(table: pd.DataFrame, columns: Sequence[str], key: str) -> Digests:
    """One digest for each record, of the columns given, shape (n,), in ascending order."""
    secret = bytes.fromhex(key)

    def digest(content: bytes) -> bytes:
        return hashlib.blake2b(content, key=secret, digest_size=8).digest()

    place = {str(name): i for i, name in enumerate(table.columns)}
    coded = np.empty((len(table), len(columns)), dtype=np.uint64)
    for i, name in enumerate(columns):
        values = normalized(table.iloc[:, place[name]])
        distinct, code = np.unique(values, return_inverse=True)
        texts = [each.tobytes() if values.dtype.kind == "f" else str(each).encode()
                 for each in distinct]  # fmt: skip
        own = np.frombuffer(b"".join(map(digest, texts)), dtype=np.uint64)
        coded[:, i] = own[code]
    rows = b"".join(digest(row.tobytes()) for row in coded)
    return np.sort(np.frombuffer(rows, dtype=np.uint64))
