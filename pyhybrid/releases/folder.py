"""Releases on disk: tables and JSON, no pickle; there whole or not at all.

==================================== ==========================================================
public/synthetic_1.csv ...           the synthetic tables
public/privacy_statement.md          what is and what is not protected
public/charge.json                   the charge without the bound
public/schema.json                   dtypes and category levels
public/metadata.json                 files, variables and protection, for catalogs (DDI names)
confidential/records.csv             label, alpha, lipschitz of each record
confidential/run.json                full charge, seed, diagnostics, provenance
confidential/leave_one_out.csv       what refits without single records found, if there were any
confidential/step_1/ ...             the same of each column of a sequential synthesis
==================================== ==========================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid
from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Provenance, SamplerSettings
from pyhybrid.primitives.noise import NoiseProvenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.data_fingerprint import DataMark
from pyhybrid.releases.metadata import public_metadata
from pyhybrid.releases.parts import (
    read_diagnostics,
    read_json,
    read_names,
    read_records,
    read_released,
    table_schema,
    write_json,
    write_table,
)
from pyhybrid.releases.published import published
from pyhybrid.releases.record import Confidential, ReleaseRecord
from pyhybrid.running.files import folder_aside, make_private, whole_only

__all__ = ["FORMATS", "StoredRelease", "load_release", "save_release"]

FORMATS = ("csv", "parquet")
_VERSION = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredRelease:
    """What a folder holds.

    Attributes
    ----------
    record : ReleaseRecord
    tables : list of DataFrame
    parts : tuple of ReleaseRecord
    identifier : str
    content_sha256 : str or None
        Digest of what was saved; None in a folder of an earlier version.
    """

    record: ReleaseRecord
    tables: list[pd.DataFrame]
    parts: tuple[ReleaseRecord, ...]
    identifier: str
    content_sha256: str | None


def save_release(
    folder: str | os.PathLike[str],
    *,
    record: ReleaseRecord,
    tables: Sequence[pd.DataFrame],
    parts: Sequence[ReleaseRecord],
    statement: str,
    notes: Mapping[str, Any],
    overwrite: bool,
    file_format: str,
    attachments: Mapping[str, str],
) -> None:
    """Write a release; see `pyhybrid.Release.save`. `notes` are further fields of run.json."""
    with folder_aside(folder, overwrite=overwrite, private=False) as aside:
        bare = [published(table, record.synthesized) for table in tables]
        _write_public(aside / "public", record, bare, statement, file_format)
        _write_confidential(aside / "confidential", record, parts, notes, attachments)


def load_release(folder: str | os.PathLike[str]) -> StoredRelease:
    """Read a release; see `pyhybrid.Release.load`."""
    with whole_only(folder, "release"):
        return _load(Path(folder))


def _load(root: Path) -> StoredRelease:
    confidential = root / "confidential"
    run = read_json(confidential / "run.json")
    if run.get("format") != _VERSION:
        raise InvalidInput(
            f"{root} must hold a release of format {_VERSION}: found {run.get('format')!r}; "
            f"this is pyhybrid {pyhybrid.__version__}"
        )
    schema = read_json(root / "public" / "schema.json")
    tables = [
        read_released(root / "public" / f"synthetic_{place}.{schema['file_format']}", schema)
        for place in range(1, run["charge"]["n_synthetic"] + 1)
    ]
    steps = [confidential / f"step_{place}" for place in range(1, run.get("n_parts", 0) + 1)]
    labels = tables[0].index
    return StoredRelease(
        record=_record(confidential, run, labels),
        tables=tables,
        parts=tuple(_record(step, read_json(step / "run.json"), labels) for step in steps),
        identifier=_text(run["identifier"]),
        content_sha256=None if "content_sha256" not in run else _text(run["content_sha256"]),
    )


def _record(folder: Path, run: dict[str, Any], labels: pd.Index) -> ReleaseRecord:
    charge, records = PrivacyCharge.from_dict(run["charge"]), read_records(folder / "records.csv")
    asked = run.get("requested")
    return ReleaseRecord(
        charge=charge.sealed(),
        diagnostics=read_diagnostics(run["diagnostics"]),
        settings=dict(run["settings"]),
        synthesized=read_names(run, "synthesized"),
        predictors=read_names(run, "predictors"),
        provenance=_provenance(run["provenance"]),
        requested=None if asked is None else SamplerSettings(**asked),
        seeded=run["seeded"],
        confidential=Confidential(
            labels=labels,
            alpha=_numbers(records, "alpha"),
            lipschitz=_numbers(records, "lipschitz"),
            lipschitz_bound=charge.bound,
            entropy=int(run["seed"]),
            censored=(records["censored"] == "True").to_numpy() if "censored" in records else None,
            data=None if run.get("data") is None else DataMark.from_dict(run["data"]),
        ),
        decisions=Decisions.of(**run.get("decisions", {})),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _provenance(fields: dict[str, Any]) -> Provenance | NoiseProvenance:
    if "library" in fields:
        return NoiseProvenance(**fields)
    settings, notes = SamplerSettings(**fields.pop("settings")), tuple(fields.pop("notes"))
    return Provenance(settings=settings, notes=notes, **fields)


def _numbers(records: pd.DataFrame, name: str) -> FloatArray:
    """A column of the records, shape (n,); of shape (0,) if the mechanism has none."""
    return records[name].astype(float).to_numpy() if name in records else np.empty(0)


def _write_public(
    folder: Path,
    record: ReleaseRecord,
    tables: Sequence[pd.DataFrame],
    statement: str,
    file_format: str,
) -> None:
    folder.mkdir(mode=0o755)
    for place, table in enumerate(tables, start=1):
        write_table(table, folder / f"synthetic_{place}.{file_format}")
    (folder / "privacy_statement.md").write_text(statement, encoding="utf-8")
    charge = record.charge
    write_json(folder / "charge.json", charge.public())
    write_json(folder / "schema.json", table_schema(tables[0], file_format))
    told = public_metadata(charge, record.synthesized, record.settings, tables, file_format)
    write_json(folder / "metadata.json", told)


def _write_confidential(
    folder: Path,
    record: ReleaseRecord,
    parts: Sequence[ReleaseRecord],
    notes: Mapping[str, Any],
    attachments: Mapping[str, str],
) -> None:
    folder.mkdir(mode=0o700)
    kept = record.confidential
    records = pd.DataFrame({"label": kept.labels.to_numpy()})
    if kept.alpha.size:
        records["alpha"], records["lipschitz"] = kept.alpha, kept.lipschitz
    if kept.censored is not None:
        records["censored"] = kept.censored
    run = {
        "format": _VERSION,
        "pyhybrid": pyhybrid.__version__,
        "charge": record.charge.as_dict(),
        "settings": dict(record.settings),
        "synthesized": record.synthesized,
        "predictors": record.predictors,
        "diagnostics": None if record.diagnostics is None else asdict(record.diagnostics),
        "provenance": asdict(record.provenance),
        "requested": None if record.requested is None else asdict(record.requested),
        "reweighting_steps": _steps(record),
        "seeded": record.seeded,
        "seed": str(kept.entropy),
        "data": None if kept.data is None else kept.data.as_dict(),
        "n_parts": len(parts),
        **notes,
    }
    if record.decisions.as_dict():
        run["decisions"] = record.decisions.as_dict()
    records.to_csv(folder / "records.csv", index=False)
    if kept.refits is not None:
        pd.DataFrame(kept.refits.rows()).to_csv(folder / "leave_one_out.csv", index=False)
    write_json(folder / "run.json", run)
    for name, text in attachments.items():
        (folder / name).write_text(text, encoding="utf-8")
    for place, part in enumerate(parts, start=1):
        _write_confidential(folder / f"step_{place}", part, (), {}, {})
    make_private(folder)


def _steps(release: ReleaseRecord) -> list[dict[str, Any]]:
    """Re-weighting steps as JSON: numbers that were not computed are null."""
    steps = release.reweighted.steps if release.reweighted is not None else ()
    rows = (asdict(step) for step in steps)
    return [{k: None if v != v else v for k, v in row.items()} for row in rows]
