"""What a release says of itself, without its tables; and what of it stays with the owner.

Its digests tell whether it is as its mechanism made it. They show carelessness: tables edited after
the charge was worked out, a charge replaced by a cheaper one, a table added. They keep nobody from
writing a file of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Diagnostics, Provenance, SamplerSettings
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession, PosteriorFit
from pyhybrid.models.base import Model
from pyhybrid.primitives.noise import NoiseProvenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.hypothetical_records import PossibleAccount
from pyhybrid.privacy.leave_one_out import Refits
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.data_fingerprint import DataMark
from pyhybrid.releases.estimates import Estimates

Remarks = Mapping[str, Mapping[str, float]]
"""Shares of records by what they are of, under a heading."""
_NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean")


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin:
    """Data and models that the owner's report needs; never saved. Confidential. `session` is shared
    by the fits; `remarks` is the mechanism's word on the data; `compared` sets have its rows;
    `table` names the file, if there is one."""

    data: pd.DataFrame
    model: Model | None = None
    session: FitSession | None = None
    remarks: Callable[[], Remarks] = dict
    compared: Sequence[pd.DataFrame] | None = None
    steps: Sequence[Origin] = ()
    table: str = ""

    def of_step(self, place: int) -> Origin:
        """Where step `place` of a sequence comes from, counted from 0; of this one's data."""
        if not self.steps:
            return self
        own = self.steps[place]
        return replace(self, model=own.model, session=own.session, steps=())

    def __repr__(self) -> str:
        return f"<Origin of a release: {len(self.data)} confidential records>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Confidential:
    """What must stay with the data owner: functions of the data, and the seed.

    Attributes
    ----------
    labels : Index, length n
        Row labels of the records.
    alpha : ndarray, shape (n,)
        Record weights in [0, 1]; of shape (0,) for a mechanism without weights.
    lipschitz : ndarray, shape (n,)
        By-record Lipschitz bounds of the released fit, nats; of shape (0,) without a fit.
    lipschitz_bound : float
        Overall bound, nats.
    entropy : int
        Root of all random streams: the seed.
    censored : ndarray of bool, shape (n,), or None
        Records whose weighted log-likelihood met the cap in some draw, if there is a cap.
    account : LocalAccount or None
        Range and mu by record of the released fit; not saved.
    refits : Refits or None
        Fits without the records of largest mu, if they were asked for; written as
        ``leave_one_out.csv``, and not read back.
    possible : PossibleAccount or None
        The account over records of a declared support; not saved.
    data : DataMark or None
        Which data the release is of, for a ledger; None of a release of an earlier version.
    """

    labels: pd.Index
    alpha: FloatArray
    lipschitz: FloatArray
    lipschitz_bound: float
    entropy: int
    censored: npt.NDArray[np.bool_] | None = None
    account: LocalAccount | None = None
    data: DataMark | None = None
    refits: Refits | None = None
    possible: PossibleAccount | None = None

    def __repr__(self) -> str:
        return f"<Confidential record of {len(self.labels)} records>"


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseRecord:
    """A release without its tables: of a sequential synthesis, what one of its steps did.

    The tables of a sequence hold all of its columns. A step has none of its own, so that they
    cannot be written, or entered in a ledger, at the charge of one column.

    Attributes
    ----------
    charge : PrivacyCharge
        What the release, or the step, costs, all sets together.
    diagnostics : Diagnostics or None
        Convergence of the released fit; None for a mechanism without a sampler. Confidential where
        the charge is strict, which does not cover it.
    settings : mapping
        Public settings of mechanism and model.
    synthesized, predictors : tuple of str
        Columns that were replaced; columns the model read and left as they are.
    provenance : Provenance or NoiseProvenance
        Engine, version, program hash, the settings that ran and (confidential) engine seed; or
        what made the noise.
    requested : SamplerSettings or None
        The sampler settings that were asked for, which the statement gives: those that ran may be
        a second try's, which the data have a say in. None without a sampler.
    seeded : bool
        True if the user gave a seed.
    confidential : Confidential
        Weights, bounds, seed. Never publish.
    exposed : mapping of str to str
        Columns that were not synthesized and must not be published without a decision, with the
        reason; see `pyhybrid.fitting.disclosive_columns`. Not saved.
    decisions : Decisions
        What was decided on columns that were not synthesized.
    fit : PosteriorFit or None
        The released fit; not saved.
    reweighted : Reweighted or None
        The fit before re-weighting and all steps, if there was one; only the steps are saved.
    estimates : Estimates or None
        Of clipped scores: what is released beside the tables. Public.
    """

    charge: PrivacyCharge
    diagnostics: Diagnostics | None
    settings: Mapping[str, Any]
    synthesized: tuple[str, ...]
    predictors: tuple[str, ...]
    provenance: Provenance | NoiseProvenance
    requested: SamplerSettings | None = None
    seeded: bool
    confidential: Confidential
    exposed: Mapping[str, str] = field(default_factory=dict, repr=False)
    decisions: Decisions = field(default_factory=Decisions, repr=False)
    fit: PosteriorFit | None = field(default=None, repr=False)
    reweighted: Reweighted | None = field(default=None, repr=False)
    estimates: Estimates | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """What is saved and sealed, in the types of JSON; arrays and tables aside."""
        optional = {"diagnostics": self.diagnostics, "requested": self.requested}
        data = self.confidential.data
        return {
            "charge": self.charge.as_dict(),
            "settings": dict(self.settings),
            "synthesized": self.synthesized,
            "predictors": self.predictors,
            **{name: None if part is None else asdict(part) for name, part in optional.items()},
            "provenance": asdict(self.provenance),
            "seeded": self.seeded,
            "seed": str(self.confidential.entropy),
            "data": None if data is None else data.as_dict(),
        }

    def __repr__(self) -> str:
        c = self.charge
        return (
            f"<Step of a release, {', '.join(self.synthesized)} by {c.mechanism}: epsilon = "
            f"{c.cost} ({c.kind}, {c.relation} {c.protected})>"
        )

    def save(self, *_: Any, **__: Any) -> None:
        """Refused, always: a step has no tables of its own."""
        raise InvalidInput(
            f"what is saved must be a whole release: this is the step of "
            f"{', '.join(self.synthesized)}, whose charge covers its own column and not the tables "
            "of the sequence; save the release that it is a part of"
        )


def record_digests(record: ReleaseRecord) -> dict[str, str]:
    """Digests of a record by what they are of."""
    saved, kept = record.as_dict(), record.confidential
    public = ("settings", "synthesized", "predictors", "seeded", "requested", "provenance",
              "diagnostics")  # fmt: skip
    arrays = (kept.alpha, kept.lipschitz, kept.censored)
    hashes = [
        None if each is None else hashlib.sha256(each.tobytes()).hexdigest() for each in arrays
    ]
    return {
        "charge": _digest(saved["charge"]),
        "settings": _digest([saved[name] for name in public]),
        "decisions": _digest([dict(record.exposed), asdict(record.decisions)]),
        "confidential part": _digest([*hashes, kept.lipschitz_bound, saved["seed"], saved["data"]]),
    }


def tables_digest(tables: Sequence[pd.DataFrame]) -> str:
    """Of all values, labels, names and dtypes of the tables, in their order."""
    digest = hashlib.sha256()
    for table in tables:
        columns = [table.iloc[:, place] for place in range(table.shape[1])]
        names = [[str(own.name), str(own.dtype)] for own in columns]
        digest.update(json.dumps([len(table), names, list(map(str, table.index.names))]).encode())
        digest.update(_hashed(table.index))
        for own in columns:
            digest.update(_hashed(own))
    return digest.hexdigest()


def content_digest(
    charge: PrivacyCharge,
    settings: Mapping[str, Any],
    tables: Iterable[pd.DataFrame],
    columns: Iterable[str],
    *,
    earlier: bool = False,
) -> str:
    """SHA-256 of charge, settings and synthesized values (not dtypes: any pandas may read them
    back), the same after saving; `earlier` as versions up to 0.2, which named dtypes, have stored
    it."""
    bytes_of = _pandas_bytes if earlier else _value_bytes
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


def _hashed(values: pd.Series | pd.Index) -> bytes:
    """A hash of each value; of objects, which may have none, by their text."""
    if isinstance(values, pd.Series) and values.dtype == object:
        values = pd.Series([f"{type(each).__name__} {each}" for each in values], dtype=object)
    if isinstance(values, pd.MultiIndex):
        hashed = pd.util.hash_pandas_object(values, index=False, categorize=False).to_numpy()
    else:  # the same numbers, without a Series around them
        plain = isinstance(values.dtype, np.dtype)
        hashed = pd.util.hash_array(values.to_numpy() if plain else values.array, categorize=False)
    return np.asarray(hashed, dtype=np.uint64).tobytes()


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
