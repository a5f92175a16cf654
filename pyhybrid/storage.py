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
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pyhybrid
from pyhybrid.accounting import PrivacyCharge
from pyhybrid.engines import ConvergenceRule, Diagnostics, Provenance, SamplerSettings
from pyhybrid.engines.private import private_folder
from pyhybrid.errors import InvalidInput, SaveFailed
from pyhybrid.ledger import Ledger, LedgerEntry
from pyhybrid.primitives.library import NoiseProvenance
from pyhybrid.release import Confidential, Release
from pyhybrid.validation import FloatArray, check_choice, check_output_folder

__all__ = ["FORMATS", "folder_aside", "load_release", "save_confidential", "save_release"]

FORMATS = ("csv", "parquet")
_VERSION = 1
_NUMBERS = re.compile(r"(?i:u?int|float)\d+(\[pyarrow\])?|double\[pyarrow\]")
_AS_TEXT = ("interval", "bytes", "Sparse")  # dtypes that CSV cannot bring back


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


def read_names(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of names in a saved record."""
    names = tuple(fields[name])
    if not all(isinstance(each, str) for each in names):
        raise TypeError(name)
    return names


def _load(root: Path) -> Release:
    run = _read_json(root / "confidential" / "run.json")
    if run.get("format") != _VERSION:
        raise InvalidInput(
            f"{root} must hold a release of format {_VERSION}: found {run.get('format')!r}; "
            f"this is pyhybrid {pyhybrid.__version__}"
        )
    schema = _read_json(root / "public" / "schema.json")
    tables = [
        _read_table(root / "public" / f"synthetic_{place}.{schema['file_format']}", schema)
        for place in range(1, run["charge"]["n_synthetic"] + 1)
    ]
    return _release(root / "confidential", run, tables)


def _release(folder: Path, run: dict[str, Any], tables: list[pd.DataFrame]) -> Release:
    """The release whose record is `run` in `folder`, with the parts in its subfolders."""
    charge, records = PrivacyCharge.from_dict(run["charge"]), _records(folder / "records.csv")
    steps = [folder / f"step_{place}" for place in range(1, run.get("n_parts", 0) + 1)]
    return Release(
        synthetic=tables,
        charge=charge,
        diagnostics=_diagnostics(run["diagnostics"]),
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
        parts=tuple(_release(step, _read_json(step / "run.json"), tables) for step in steps),
    )


def _records(path: Path) -> pd.DataFrame:
    """The per-record table as text: Python reads numbers back exactly, C parsers may not."""
    try:
        return pd.read_csv(path, dtype=str)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} must be a file of a saved release: {error}") from None


def _diagnostics(fields: dict[str, Any] | None) -> Diagnostics | None:
    if fields is None:
        return None
    problems, rule = read_names(fields, "problems"), ConvergenceRule(**fields["rule"])
    numbers = {n: v for n, v in fields.items() if n not in ("problems", "rule", "worst")}
    for name, value in (numbers | asdict(rule)).items():
        if not isinstance(value, (int, float)) and (name, value) != ("n_elsewhere", None):
            raise TypeError(name)
    return Diagnostics(problems=problems, rule=rule, worst=str(fields["worst"]), **numbers)


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
        _write_table(table, folder / f"synthetic_{place}.{file_format}")
    (folder / "privacy_statement.md").write_text(release.statement, encoding="utf-8")
    _write_json(folder / "charge.json", release.charge.public())
    _write_json(folder / "schema.json", _schema(release.synthetic[0], file_format))


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
    _write_json(folder / "run.json", run)
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


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} must be a file of a saved release: {error}") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{path} must be a file of a saved release: it holds no object")
    return content


def _schema(table: pd.DataFrame, file_format: str) -> dict[str, Any]:
    """What CSV cannot say: dtype and levels of the columns, and of the index if it is written."""
    index = table.index.to_frame(index=False) if _index_is_written(table) else pd.DataFrame()
    return {
        "file_format": file_format,
        "index_names": list(table.index.names) if index.shape[1] else [],
        "index": [_column_schema(str(name), index[name]) for name in index.columns],
        "columns": [_column_schema(str(name), table[name]) for name in table.columns],
    }


def _index_is_written(table: pd.DataFrame) -> bool:
    return not table.index.equals(pd.RangeIndex(len(table))) or table.index.name is not None


def _column_schema(name: str, values: pd.Series) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "dtype": str(values.dtype)}
    if isinstance(values.dtype, pd.CategoricalDtype):
        entry["levels"] = values.dtype.categories.tolist()
        entry["ordered"] = bool(values.dtype.ordered)
    return entry


def _write_table(table: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        table.to_csv(path, index=_index_is_written(table))
        return
    try:
        table.to_parquet(path)
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:  # pyarrow's, too
        reason = str(error).split("\n")[0]
        raise InvalidInput(
            f"the table cannot be written as Parquet: {reason}; save as csv"
        ) from None


def _read_table(path: Path, schema: Mapping[str, Any]) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        text = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    entries = [*schema["index"], *schema["columns"]]
    if text.shape[1] != len(entries):
        raise InvalidInput(f"{path} must have {len(entries)} columns: found {text.shape[1]}")
    typed = [_typed(text.iloc[:, place], entry) for place, entry in enumerate(entries)]
    levels = len(schema["index"])
    table = pd.concat(typed[levels:], axis=1)
    table.columns = pd.Index([entry["name"] for entry in schema["columns"]])
    if levels:
        arrays = [level.array for level in typed[:levels]]
        names = schema["index_names"]
        table.index = (
            pd.Index(arrays[0], name=names[0])
            if levels == 1
            else pd.MultiIndex.from_arrays(arrays, names=names)
        )
    return table


def _typed(values: pd.Series, column: Mapping[str, Any]) -> pd.Series:
    """A column read as text, in the dtype its schema names."""
    dtype: Any = column["dtype"]
    if "levels" in column:
        by_text = {str(level): level for level in column["levels"]}
        kind = pd.CategoricalDtype(column["levels"], ordered=column["ordered"])
        return values.map(by_text).astype(kind)
    if _NUMBERS.fullmatch(dtype):
        return pd.to_numeric(values).astype(dtype)
    if dtype in ("bool", "boolean"):
        return values.map({"True": True, "False": False}).astype(dtype)
    if dtype.startswith("datetime"):
        zone = "," in dtype
        return pd.to_datetime(values, utc=zone, format="ISO8601").astype(dtype)
    return values if dtype.startswith(_AS_TEXT) else values.astype(dtype)
