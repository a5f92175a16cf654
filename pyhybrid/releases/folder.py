"""Releases on disk: tables and JSON, no pickle; there whole or not at all.

==================================== ==========================================================
public/synthetic_1.csv ...           the synthetic tables
public/privacy_statement.md          what is and what is not protected
public/charge.json                   the charge without the bound
public/schema.json                   dtypes and category levels
confidential/records.csv             label, alpha, lipschitz of each record
confidential/run.json                full charge, seed, diagnostics, provenance
confidential/step_1/ ...             the same of each column of a sequential synthesis
==================================== ==========================================================
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid
from pyhybrid.checks import FloatArray, check_choice, check_output_folder
from pyhybrid.engines import Provenance, SamplerSettings
from pyhybrid.errors import InvalidInput, SaveFailed
from pyhybrid.primitives.library import NoiseProvenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.ledger import Ledger, LedgerEntry
from pyhybrid.releases.parts import (
    read_diagnostics,
    read_json,
    read_names,
    read_records,
    read_table,
    table_schema,
    write_json,
    write_table,
)
from pyhybrid.releases.release import Confidential, Release
from pyhybrid.running.private_folder import private_folder

__all__ = ["FORMATS", "folder_aside", "load_release", "save_confidential", "save_release"]

FORMATS = ("csv", "parquet")
_VERSION = 1


def save_release(
    release: Release,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool,
    file_format: str,
    attachments: Mapping[str, str],
    ledger: Ledger | None = None,
) -> None:
    """Write `release`; see `Release.save`."""
    check_choice(file_format, "file_format", FORMATS)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidInput(f"ledger must be a Ledger: found {type(ledger).__name__}")
    check_output_folder(folder, overwrite=overwrite)
    # First, so that nothing is written past the budget, and no data are without an entry.
    entry = None if ledger is None else ledger.add(release)
    with folder_aside(folder, overwrite=overwrite, mode=0o755) as aside:
        _write_public(release, aside / "public", file_format)
        _write_confidential(release, aside / "confidential", attachments, entry)


@contextlib.contextmanager
def folder_aside(folder: str | os.PathLike[str], *, overwrite: bool, mode: int) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `folder` if nothing is raised.

    Parameters
    ----------
    folder : path
        New or empty, unless `overwrite`.
    overwrite : bool
        Replace what is in `folder`.
    mode : int
        Permissions of the folder; until it is in place only its owner can read it.

    Raises
    ------
    InvalidInput
        If the folder is not empty.
    SaveFailed
        On a disk error; nothing is left behind.
    """
    check_output_folder(folder, overwrite=overwrite)
    target = Path(folder).absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with private_folder(target.parent, f".{target.name}.partial-") as aside:
            yield aside
            _swap(aside, target, mode)
    except OSError as error:
        raise SaveFailed(f"{folder} could not be saved: {error}") from None


def save_confidential(
    folder: str | os.PathLike[str], contents: Mapping[str, str | bytes], *, overwrite: bool
) -> None:
    """Write files by name into a folder that only its owner can read; see `folder_aside`."""
    with folder_aside(folder, overwrite=overwrite, mode=0o700) as aside:
        for name, content in contents.items():
            data = content.encode() if isinstance(content, str) else content
            (aside / name).write_bytes(data)
            (aside / name).chmod(0o600)


def load_release(folder: str | os.PathLike[str]) -> Release:
    """Read a release; see `Release.load`."""
    with whole_only(folder, "release"):
        return _load(Path(folder))


@contextlib.contextmanager
def whole_only(folder: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn whatever a damaged file makes its reader raise into InvalidInput, without its values."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        lost = f"{error} is missing" if isinstance(error, KeyError) else "a file was changed"
        raise InvalidInput(f"{folder} must hold a {what}, whole and as saved: {lost}") from None


def _load(root: Path) -> Release:
    run = read_json(root / "confidential" / "run.json")
    if run.get("format") != _VERSION:
        raise InvalidInput(
            f"{root} must hold a release of format {_VERSION}: found {run.get('format')!r}; "
            f"this is pyhybrid {pyhybrid.__version__}"
        )
    schema = read_json(root / "public" / "schema.json")
    tables = [
        read_table(root / "public" / f"synthetic_{place}.{schema['file_format']}", schema)
        for place in range(1, run["charge"]["n_synthetic"] + 1)
    ]
    return _release(root / "confidential", run, tables)


def _release(folder: Path, run: dict[str, Any], tables: list[pd.DataFrame]) -> Release:
    """The release whose record is `run` in `folder`, with the parts in its subfolders."""
    charge, records = PrivacyCharge.from_dict(run["charge"]), read_records(folder / "records.csv")
    steps = [folder / f"step_{place}" for place in range(1, run.get("n_parts", 0) + 1)]
    return Release(
        synthetic=tables,
        charge=charge,
        diagnostics=read_diagnostics(run["diagnostics"]),
        settings=dict(run["settings"]),
        synthesized=read_names(run, "synthesized"),
        predictors=read_names(run, "predictors"),
        provenance=_provenance(run["provenance"]),
        seeded=run["seeded"],
        identifier=run["identifier"],
        confidential=Confidential(
            labels=tables[0].index,
            alpha=_numbers(records, "alpha"),
            lipschitz=_numbers(records, "lipschitz"),
            lipschitz_bound=charge.bound,
            entropy=int(run["seed"]),
            censored=(records["censored"] == "True").to_numpy() if "censored" in records else None,
        ),
        parts=tuple(_release(step, read_json(step / "run.json"), tables) for step in steps),
    )


def _provenance(fields: dict[str, Any]) -> Provenance | NoiseProvenance:
    if "library" in fields:
        return NoiseProvenance(**fields)
    settings, notes = SamplerSettings(**fields.pop("settings")), tuple(fields.pop("notes"))
    return Provenance(settings=settings, notes=notes, **fields)


def _numbers(records: pd.DataFrame, name: str) -> FloatArray:
    """A column of the records, shape (n,); of shape (0,) if the mechanism has none."""
    return records[name].astype(float).to_numpy() if name in records else np.empty(0)


def _write_public(release: Release, folder: Path, file_format: str) -> None:
    folder.mkdir(mode=0o755)
    for place, table in enumerate(release.synthetic, start=1):
        write_table(table, folder / f"synthetic_{place}.{file_format}")
    (folder / "privacy_statement.md").write_text(release.statement, encoding="utf-8")
    write_json(folder / "charge.json", release.charge.public())
    write_json(folder / "schema.json", table_schema(release.synthetic[0], file_format))


def _write_confidential(
    release: Release, folder: Path, attachments: Mapping[str, str], entry: LedgerEntry | None
) -> None:
    folder.mkdir(mode=0o700)
    kept = release.confidential
    records = pd.DataFrame({"label": kept.labels.to_numpy()})
    if kept.alpha.size:
        records["alpha"], records["lipschitz"] = kept.alpha, kept.lipschitz
    if kept.censored is not None:
        records["censored"] = kept.censored
    run = {
        "format": _VERSION,
        "pyhybrid": pyhybrid.__version__,
        "identifier": release.identifier,
        "charge": release.charge.as_dict(),
        "settings": dict(release.settings),
        "synthesized": release.synthesized,
        "predictors": release.predictors,
        "diagnostics": None if release.diagnostics is None else asdict(release.diagnostics),
        "provenance": asdict(release.provenance),
        "reweighting_steps": _steps(release),
        "ledger": None if entry is None else {"entry": entry.number, "sha256": entry.sha256},
        "seeded": release.seeded,
        "seed": str(kept.entropy),
        "n_parts": len(release.parts),
    }
    records.to_csv(folder / "records.csv", index=False)
    write_json(folder / "run.json", run)
    for name, text in attachments.items():
        (folder / name).write_text(text, encoding="utf-8")
    for path in folder.iterdir():
        path.chmod(0o600)
    for place, part in enumerate(release.parts, start=1):
        _write_confidential(part, folder / f"step_{place}", {}, None)


def _steps(release: Release) -> list[dict[str, Any]]:
    """Re-weighting steps as JSON: numbers that were not computed are null."""
    steps = release.reweighted.steps if release.reweighted is not None else ()
    rows = (asdict(step) for step in steps)
    return [{k: None if v != v else v for k, v in row.items()} for row in rows]


def _swap(aside: Path, target: Path, mode: int) -> None:
    """Put `aside` in the place of `target`; an older release is moved away first, then removed."""
    aside.chmod(mode)
    if not target.exists():
        aside.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old-", dir=target.parent))
    kept = old / "release"
    try:
        target.rename(kept)
        aside.rename(target)
    except BaseException:  # Ctrl-C, too, must not cost the older release
        if kept.exists() and not target.exists():
            kept.rename(target)
        raise
    finally:
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
