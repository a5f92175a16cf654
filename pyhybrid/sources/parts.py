"""A release written part by part: complete or absent, and resumed after a stopped run.

What rows are drawn from, functions of noisy counts alone, is written first, beside the folder that
is to be, with the charge; then the charge is entered in the ledger; then parts are drawn, each from
a random stream of its own, so that one is the same whenever and wherever it is drawn. A part is a
file under its name only once it is whole. The folder is put in its place when the last one is.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid
from pyhybrid.core.checks import FloatArray, IntArray, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.randomness import Streams
from pyhybrid.mechanisms.marginals.domain import ColumnDomain
from pyhybrid.mechanisms.marginals.log_linear import Factors
from pyhybrid.mechanisms.marginals.noisy_marginals import rows_of
from pyhybrid.primitives.noise import NoiseProvenance, opendp_version
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.data_fingerprint import DataMark
from pyhybrid.releases.folder import (
    PARTS,
    read_json,
    read_released,
    record_of_run,
    table_schema,
    write_json,
)
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.record import Confidential, ReleaseRecord, content_digest
from pyhybrid.releases.statement import privacy_statement, public_metadata
from pyhybrid.running.files import (
    file_aside,
    lock,
    make_private,
    put_in_place,
    whole_only,
    write_files,
)
from pyhybrid.running.resumable import fingerprint
from pyhybrid.running.tasks import Progress, finished_tasks

_MODEL = Path("confidential", "model.json")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Drawn(ABC):
    """All that a release in parts is made of, and its charge: plain JSON. Confidential for the root
    of all random streams, its `entropy`, and its mark of the data."""

    identifier: str
    begun_with: str
    n_records: int
    rows_per_part: int
    file_format: str
    entropy: str
    charge: Mapping[str, Any]
    settings: Mapping[str, Any]
    sets: Sequence[Mapping[str, Any]]
    format: str = PARTS

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @property
    @abstractmethod
    def record(self) -> ReleaseRecord:
        """What the release says of itself."""

    @abstractmethod
    def rows(self, place: int, part: int) -> pd.DataFrame:
        """Part `part` of set `place`, both counted from 1."""

    @property
    def n_parts(self) -> int:
        """Parts of each set."""
        return -(-self.n_records // self.rows_per_part)

    def size_of(self, part: int) -> int:
        """Rows of a part."""
        return min(self.rows_per_part, self.n_records - (part - 1) * self.rows_per_part)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DrawnFromCells(Drawn):
    """A whole table from noisy counts. `sets` have effects and shares of each column, `few` are the
    cells that effects are of; `columns` the names in the order of the table, of which `ids` are
    running numbers."""

    columns: Sequence[str]
    ids: Sequence[str]
    dropped: Sequence[str]
    noise: str
    counted: str
    data: Mapping[str, Any]
    order: Mapping[str, Sequence[str]]
    domain: Mapping[str, Any]
    few: Mapping[str, Any]

    @property
    def record(self) -> ReleaseRecord:
        """What the release says of itself."""
        charge = PrivacyCharge.from_dict(dict(self.charge)).sealed()
        return ReleaseRecord(
            charge=charge,
            diagnostics=None,
            settings=self.settings,
            synthesized=tuple(name for name in self.columns if name not in self.ids),
            predictors=(),
            provenance=NoiseProvenance(
                library="OpenDP", version=opendp_version(), noise=self.noise, counts="tables",
                counted=self.counted,
            ),
            seeded=False,
            confidential=Confidential(
                labels=pd.RangeIndex(self.n_records),
                alpha=np.empty(0),
                lipschitz=np.empty(0),
                lipschitz_bound=charge.bound,
                entropy=int(self.entropy),
                data=DataMark.from_dict(self.data),
            ),
            decisions=Decisions.of(self.dropped, (), self.ids),
        )  # fmt: skip

    def rows(self, place: int, part: int) -> pd.DataFrame:
        """Part `part` of set `place`, both counted from 1."""
        start = (part - 1) * self.rows_per_part
        index = pd.RangeIndex(self.size_of(part))
        whole, few = (
            {name: ColumnDomain.from_dict(own) for name, own in domain.items()}
            for domain in (self.domain, self.few)
        )
        own = self.sets[place - 1]
        factors = Factors(order=self.order, domain=few, effects=_arrays(own["effects"]))
        streams = Streams(entropy=int(self.entropy), seeded=False)
        made = rows_of(
            factors, _arrays(own["shares"]), whole, streams.child(f"set {place}, part {part}"),
            index, even=len(self.sets) == 1,
        )  # fmt: skip
        for name in self.ids:
            made[name] = np.arange(start + 1, start + 1 + len(index))
        rows: pd.DataFrame = made[list(self.columns)]
        return rows


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DrawnByFormula(Drawn):
    """Columns of which a model has drawn one. `sets` are distinct rows, values by column with their
    `dtypes`, and so many `times` that each was drawn; `run` is the record of the release."""

    run: Mapping[str, Any]
    decisions: Mapping[str, Sequence[str]]

    @property
    def record(self) -> ReleaseRecord:
        """What the release says of itself."""
        none: FloatArray = np.empty(0)
        labels = pd.RangeIndex(self.n_records)
        made = record_of_run(dict(self.run), labels, alpha=none, lipschitz=none)
        return replace(made, decisions=Decisions.of(**self.decisions))

    def rows(self, place: int, part: int) -> pd.DataFrame:
        """Part `part` of set `place`: every n_parts-th of its rows, in an order by chance."""
        own, streams = self.sets[place - 1], Streams(entropy=int(self.entropy), seeded=False)
        last = np.cumsum(np.array(own["times"], dtype=np.int64))
        at = np.searchsorted(last, np.arange(part - 1, last[-1], self.n_parts), side="right")
        shuffled = streams.generator(f"set {place}, part {part}, order").permutation(at)
        table = {
            name: pd.Series(np.array(values, dtype=object), dtype=own["dtypes"][name])
            for name, values in own["values"].items()
        }
        made: pd.DataFrame = pd.DataFrame(table).iloc[shuffled].reset_index(drop=True)
        return made

    def size_of(self, part: int) -> int:
        return -(-(self.n_records - part + 1) // self.n_parts)


def plain_rows(table: pd.DataFrame, times: IntArray) -> dict[str, Any]:
    """Distinct rows as one of the `sets` of `DrawnByFormula`."""
    bare = table.astype(object).where(table.notna(), None)
    return {
        "values": {str(name): bare[name].tolist() for name in table.columns},
        "dtypes": {str(name): str(table[name].dtype) for name in table.columns},
        "times": times.tolist(),
    }


def _arrays(given: Mapping[str, Any]) -> dict[str, FloatArray]:
    return {name: np.array(own, dtype=np.float64) for name, own in given.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseInParts:
    """A release that is on disk in parts, and was never in memory as a whole.

    Attributes
    ----------
    folder : Path
        ``public/synthetic_1/part_00001.parquet`` ..., with statement, schema and metadata;
        ``confidential/`` to keep.
    n_records : int
        Rows of each set.
    charge : PrivacyCharge
        What it cost, all sets together.
    identifier : str
        Tells this release from every other one.
    """

    folder: Path
    n_records: int
    charge: PrivacyCharge
    identifier: str
    record: ReleaseRecord = field(repr=False)
    digest: str = field(repr=False)

    def __repr__(self) -> str:
        return (
            f"<ReleaseInParts in {self.folder}: "
            f"{number_of(self.charge.n_synthetic, 'synthetic set')} of {self.n_records} records: "
            f"{self.charge.cost} ({self.charge.kind})>"
        )

    @staticmethod
    def of(drawn: Drawn, folder: Path) -> ReleaseInParts:
        """The release that is drawn into `folder`."""
        record = drawn.record
        return ReleaseInParts(
            folder=folder,
            n_records=drawn.n_records,
            charge=record.charge,
            identifier=drawn.identifier,
            record=record,
            digest=_digest(drawn),
        )

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> ReleaseInParts:
        """The release that is in a folder; InvalidInput if none is, or what its rows were drawn
        from has changed since."""
        return ReleaseInParts.of(_drawn_in(Path(folder)), Path(folder))

    @property
    def statement(self) -> str:
        """The privacy statement in plain words (Markdown), fit to be published."""
        return privacy_statement(self.record, n_records=self.n_records)

    @property
    def data(self) -> DataMark | None:
        """Which data it is of, by counts. Confidential."""
        return self.record.confidential.data

    @property
    def synthetic(self) -> list[Path]:
        """Folders of the sets, which measures take in place of data frames."""
        sets = range(1, self.charge.n_synthetic + 1)
        return [self.folder / "public" / f"synthetic_{place}" for place in sets]

    @property
    def synthesized(self) -> tuple[str, ...]:
        """Columns that were replaced."""
        return self.record.synthesized

    @property
    def settings(self) -> Mapping[str, Any]:
        """Public settings."""
        return self.record.settings

    @property
    def entropy(self) -> int:
        """Root of its random numbers. Confidential."""
        return self.record.confidential.entropy

    def check_seal(self) -> None:
        """Raise InvalidInput unless the charge is as it was made."""
        if not self.charge.is_sealed:
            raise InvalidInput("the charge of a release must be as its mechanism made it")

    def content_digest(self) -> str:
        """SHA-256 of charge, settings and all that rows are drawn from."""
        return self.digest

    def is_known_as(self, digest: str) -> bool:
        """True if `digest` is its `content_digest`."""
        return digest == self.digest

    def sample(self, n: int = 10_000, *, synthetic: int = 1) -> pd.DataFrame:
        """The first n rows of a set; rows are in no order."""
        found: list[pd.DataFrame] = []
        schema = read_json(self.folder / "public" / "schema.json")
        for path in sorted((self.folder / "public" / f"synthetic_{synthetic}").iterdir()):
            found.append(read_released(path, schema))
            if sum(map(len, found)) >= n:
                break
        whole: pd.DataFrame = pd.concat(found, ignore_index=True).head(n)
        return whole


def _digest(drawn: Drawn) -> str:
    settings = {**drawn.settings, "drawn from": fingerprint(drawn.as_dict())}
    return content_digest(PrivacyCharge.from_dict(dict(drawn.charge)), settings, (), ())


# --- On disk ------------------------------------------------------------------------------------


def release_in_parts(
    target: Path,
    begun_with: str,
    make: Callable[[], Drawn],
    *,
    overwrite: bool,
    ledger: Ledger | None,
    progress: Progress | None,
    workers: int,
    executor: Executor | None,
) -> ReleaseInParts:
    """Write what `make` has charged into `target`, or go on with what was begun with the same."""
    folder = target.absolute().parent / f".{target.name}.parts"  # until all parts are there
    with _only_run(folder):
        drawn, new = _begun(folder, begun_with), False
        try:
            if drawn is None:
                new = True
                drawn = make()
                _begin(folder, drawn)
            release = ReleaseInParts.of(drawn, target)
            entry = _charged(release, ledger)
        except BaseException:
            if new:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        _draw_all(folder, drawn, workers=workers, executor=executor, progress=progress)
        _finish(folder, release, drawn, entry)
        put_in_place(folder, target.absolute(), overwrite=overwrite)
    return release


@contextlib.contextmanager
def _only_run(folder: Path) -> Iterator[None]:
    """Refuse a second process that draws into the same folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not lock(handle):
            raise InvalidInput(f"{folder} must not be in use: another process draws into it")
        yield
    finally:
        os.close(handle)


def _begun(folder: Path, begun_with: str) -> Drawn | None:
    """What an earlier run began, if it did with the same settings."""
    if not (folder / _MODEL).is_file():
        return None
    drawn = _drawn_in(folder)
    if drawn.begun_with != begun_with:
        raise InvalidInput(
            f"{folder} holds parts of a release that was begun with other data or settings: give "
            "the same to go on with it, or remove that folder (what its ledger was charged stays)"
        )
    return drawn


def _drawn_in(folder: Path) -> Drawn:
    with whole_only(folder, "release that was begun"):
        content = read_json(folder / _MODEL)
        if content.pop("seal") != fingerprint(content):
            raise ValueError("seal")
        return DrawnByFormula(**content) if "run" in content else DrawnFromCells(**content)


def _begin(folder: Path, drawn: Drawn) -> None:
    """Write what parts are drawn from, before the charge is entered and anything is drawn."""
    (folder / _MODEL).parent.mkdir(mode=0o700, exist_ok=True)
    shutil.rmtree(folder / "public", ignore_errors=True)  # of a run whose model is gone
    content = drawn.as_dict()
    sealed = {"seal": fingerprint(content), **content}
    write_files({folder / _MODEL: json.dumps(sealed)}, private=True)


@dataclass(frozen=True, kw_only=True)
class _Part:
    folder: str
    place: int
    part: int
    path: str


def _draw_all(
    folder: Path,
    drawn: Drawn,
    *,
    workers: int,
    executor: Executor | None,
    progress: Progress | None,
) -> None:
    """Draw the parts that are not there yet."""
    for torn in folder.rglob(".*.tmp"):  # by a kill
        torn.unlink(missing_ok=True)
    parts = []
    for place in range(1, len(drawn.sets) + 1):
        own = folder / "public" / f"synthetic_{place}"
        own.mkdir(mode=0o755, parents=True, exist_ok=True)
        for part in range(1, drawn.n_parts + 1):
            path = own / f"part_{part:05d}.{drawn.file_format}"
            if not path.exists():
                parts.append(_Part(folder=str(folder), place=place, part=part, path=str(path)))
    there = drawn.n_parts * len(drawn.sets) - len(parts)
    work: Any = {"workers": workers, "executor": executor, "progress": progress}
    for _ in finished_tasks(_draw, parts, "parts", before=there, **work):
        pass


def _draw(part: _Part) -> None:
    """Draw and write one part; runs in any process."""
    rows = _cached(part.folder).rows(part.place, part.part)
    with file_aside(part.path, private=False) as aside:
        if part.path.endswith(".csv"):
            rows.to_csv(aside, index=False)
        else:
            rows.to_parquet(aside, index=False)


@functools.lru_cache(maxsize=1)
def _cached(folder: str) -> Drawn:
    return _drawn_in(Path(folder))


def _finish(
    folder: Path, release: ReleaseInParts, drawn: Drawn, ledger_entry: Mapping[str, Any] | None
) -> None:
    """Write what belongs to the parts."""
    public, confidential = folder / "public", folder / "confidential"
    path = public / "synthetic_1" / f"part_00001.{drawn.file_format}"
    # A file of CSV does not say that a level "01" is no number.
    first = drawn.rows(1, 1) if path.suffix == ".csv" else pd.read_parquet(path)
    write_json(public / "schema.json", table_schema(first, drawn.file_format))
    (public / "privacy_statement.md").write_text(release.statement, encoding="utf-8")
    write_json(public / "charge.json", release.charge.public())
    described = public_metadata(release.record, [first], drawn.file_format)
    described["fileDscr"] = [
        {
            "fileName": f"synthetic_{place}/part_{part:05d}.{drawn.file_format}",
            "caseQnty": drawn.size_of(part),
            "varQnty": first.shape[1],
        }
        for place in range(1, len(drawn.sets) + 1)
        for part in range(1, drawn.n_parts + 1)
    ]
    write_json(public / "metadata.json", described)
    run = {
        "format": PARTS,
        "pyhybrid": pyhybrid.__version__,
        **release.record.as_dict(),
        "identifier": release.identifier,
        "content_sha256": release.digest,
        "ledger": ledger_entry,
    }
    write_json(confidential / "run.json", run)
    make_private(confidential)


def _charged(release: ReleaseInParts, ledger: Ledger | None) -> dict[str, Any] | None:
    """The release's entry in the ledger, one however often it is asked for."""
    if ledger is None:
        return None
    entry = ledger.add(release)
    return {"entry": entry.number, "sha256": entry.sha256}
