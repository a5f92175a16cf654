"""Digests of what a release is made of, to tell whether it is as its mechanism made it.

A seal shows carelessness: tables edited after the charge was worked out, a charge replaced by a
cheaper one, a table added. It keeps nobody from writing a file of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.record import Confidential, ReleaseRecord

__all__ = ["content_digest", "earlier_content_digest", "record_digests", "tables_digest"]

_NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean")


def record_digests(record: ReleaseRecord) -> dict[str, str]:
    """Digests of a record by what they are of."""
    return {
        "charge": _digest(record.charge.as_dict()),
        "settings": _digest(
            [
                dict(record.settings),
                record.synthesized,
                record.predictors,
                record.seeded,
                None if record.requested is None else asdict(record.requested),
                asdict(record.provenance),
                None if record.diagnostics is None else asdict(record.diagnostics),
            ]
        ),
        "decisions": _digest([dict(record.exposed), asdict(record.decisions)]),
        "confidential part": _digest(_kept(record.confidential)),
    }


def tables_digest(tables: Sequence[pd.DataFrame]) -> str:
    """Of all values, labels, names and dtypes of the tables, in their order."""
    digest = hashlib.sha256()
    for table in tables:
        names = [[str(name), str(dtype)] for name, dtype in table.dtypes.items()]
        digest.update(json.dumps([len(table), names, list(map(str, table.index.names))]).encode())
        digest.update(_hashed(table.index))
        for place in range(table.shape[1]):
            digest.update(_hashed(table.iloc[:, place]))
    return digest.hexdigest()


def content_digest(
    charge: PrivacyCharge,
    settings: Mapping[str, Any],
    tables: Iterable[pd.DataFrame],
    columns: Iterable[str],
) -> str:
    """SHA-256 of charge, settings and synthesized values: the same after a release was saved.

    Of values, and not of dtypes: whole numbers are the same as floats, texts as categories, and
    whichever pandas reads them. Columns that were not synthesized are left out: their text may come
    back from a file in another form, and no charge covers them.
    """
    return _content_digest(charge, settings, tables, columns, _value_bytes)


def earlier_content_digest(
    charge: PrivacyCharge,
    settings: Mapping[str, Any],
    tables: Iterable[pd.DataFrame],
    columns: Iterable[str],
) -> str:
    """`content_digest` of versions up to 0.2, which named dtypes: stored ones have it."""
    return _content_digest(charge, settings, tables, columns, _pandas_bytes)


def _content_digest(
    charge: PrivacyCharge,
    settings: Mapping[str, Any],
    tables: Iterable[pd.DataFrame],
    columns: Iterable[str],
    bytes_of: Callable[[pd.Series], bytes],
) -> str:
    digest, names = hashlib.sha256(), list(columns)
    for content in (charge.as_dict(), dict(settings)):
        digest.update(json.dumps(content, sort_keys=True, default=str).encode())
    for table in tables:
        for column in names:
            digest.update(column.encode() + bytes_of(table[column]))
    return digest.hexdigest()


def _pandas_bytes(column: pd.Series) -> bytes:
    return pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes()


def _value_bytes(column: pd.Series) -> bytes:
    """Numbers and logicals as floats, other values by their texts; missing ones alike."""
    gone = column.isna().to_numpy(dtype=bool)
    plain = column.astype(object).where(~gone, None)
    if pd.api.types.infer_dtype(plain, skipna=True) in _NUMBERS or gone.all():
        values = plain.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0
        return bytes(values.tobytes())
    texts = ("-" if absent else f"{len(str(v))}:{v}" for v, absent in zip(plain, gone, strict=True))
    return " ".join(texts).encode()


def _kept(kept: Confidential) -> list[Any]:
    arrays = (kept.alpha, kept.lipschitz, kept.censored)
    return [
        *(None if each is None else hashlib.sha256(each.tobytes()).hexdigest() for each in arrays),
        kept.lipschitz_bound,
        str(kept.entropy),
        None if kept.data is None else kept.data.as_dict(),
    ]


def _hashed(values: pd.Series | pd.Index) -> bytes:
    """A hash of each value; of objects, which may have none, by their text."""
    if isinstance(values, pd.Series) and values.dtype == object:
        values = pd.Series([f"{type(each).__name__} {each}" for each in values], dtype=object)
    hashed = pd.util.hash_pandas_object(values, index=False, categorize=False)
    return np.asarray(hashed, dtype=np.uint64).tobytes()


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
