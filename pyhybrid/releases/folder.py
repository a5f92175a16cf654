"""Releases on disk: tables and JSON, no pickle; there whole or not at all.

==================================== ==========================================================
public/synthetic_1.csv ...           the synthetic tables
public/privacy_statement.md          what is and what is not protected
public/charge.json                   the charge without the bound
public/schema.json                   dtypes and category levels, and which columns were drawn
public/estimates.json                estimates and their covariance, of clipped scores
confidential/records.csv             label, alpha, lipschitz of each record
confidential/run.json                full charge, seed, diagnostics, provenance
confidential/refits.csv              what refits without single records found, if there were any
confidential/step_1/ ...             the same of each column of a sequential synthesis
public/synthetic_1/part-00001...     in place of a table: parts of one that was released in parts
==================================== ==========================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import pyhybrid
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import ConvergenceRule, Diagnostics, Provenance, SamplerSettings
from pyhybrid.models.formula.values import with_columns
from pyhybrid.primitives.noise import NoiseProvenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.record import Confidential, Estimates, ReleaseRecord
from pyhybrid.releases.statement import stated_charge
from pyhybrid.running.files import make_private

_NUMBERS = re.compile(r"(?i:u?int|float)\d+(\[pyarrow\])?|double\[pyarrow\]")
_AS_TEXT = ("interval", "bytes", "Sparse")  # dtypes that CSV cannot bring back
# pyarrow's own exceptions of these names are among them.
_NOT_AS_PARQUET = (TypeError, ValueError, OverflowError, NotImplementedError)
FORMATS = ("csv", "parquet")
_VERSION = 2


def published(table: pd.DataFrame, declared: Collection[str] = ()) -> pd.DataFrame:
    """`table` as it may be written: without levels that no row has, notes (`attrs`), fill values
    and axis names, which records not in it would explain. All levels of `declared` columns stay."""
    kept = [name for name, dtype in table.dtypes.items()
            if str(name) in declared and not isinstance(dtype, pd.SparseDtype)]  # fmt: skip
    written = with_columns(table, {n: _in_use(table[n]) for n in table.columns.drop(kept)})
    written.attrs = {}
    written.columns.names = [None] * written.columns.nlevels
    index = written.index
    levels = [pd.Index(_in_use(level.to_series())) for level in map(
        index.get_level_values, range(index.nlevels))]  # fmt: skip
    several = len(levels) > 1
    written.index = pd.MultiIndex.from_arrays(levels, names=index.names) if several else levels[0]
    return written


def with_drawn_levels(tables: Sequence[pd.DataFrame], columns: Collection[str]) -> list[Any]:
    """Tables whose `columns` of categories have the levels that some table has, and no others: the
    data's own could be those of records that were left out."""
    leveled = list(tables)
    for name in (name for name in tables[0].columns if str(name) in columns):
        kinds = {isinstance(table[name].dtype, pd.CategoricalDtype) for table in leveled}
        if kinds == {True}:
            drawn = {level for table in leveled for level in table[name].dropna().unique()}
            held = [level for level in leveled[0][name].cat.categories if level in drawn]
            leveled = [with_columns(t, {name: t[name].cat.set_categories(held)}) for t in leveled]
    return leveled


def _in_use(values: pd.Series) -> pd.Series:
    """The values in a dtype that holds no more than them."""
    dtype: Any = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return values.cat.remove_unused_categories()
    if isinstance(dtype, pd.SparseDtype):
        return pd.Series(values.sparse.to_dense())  # type: ignore[attr-defined]
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("dictionary"):
        return values.astype(pd.ArrowDtype(dtype.pyarrow_dtype.value_type))
    return values


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def read_names(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of names in a saved record."""
    return tuple(str(entry) for entry in fields[name])


def read_provenance(fields: Mapping[str, Any]) -> Provenance:
    """What ran, as a saved record has it."""
    settings, notes = SamplerSettings(**fields["settings"]), tuple(fields["notes"])
    return Provenance(**{**fields, "settings": settings, "notes": notes})


def table_schema(
    table: pd.DataFrame, file_format: str, synthesized: Collection[str]
) -> dict[str, Any]:
    """What CSV cannot say: dtype and levels of the columns, and of the index if it is written; and
    which columns were drawn."""
    index = table.index.to_frame(index=False) if _index_is_written(table) else pd.DataFrame()
    return {
        "file_format": file_format,
        "index_names": list(table.index.names) if index.shape[1] else [],
        "index": [_column_schema(str(name), index[name]) for name in index.columns],
        "columns": [
            {**_column_schema(str(name), table[name]), "synthesized": str(name) in synthesized}
            for name in table.columns
        ],
    }


def _index_is_written(table: pd.DataFrame) -> bool:
    return not table.index.equals(pd.RangeIndex(len(table))) or table.index.name is not None


def _column_schema(name: str, values: pd.Series) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "dtype": str(values.dtype)}
    if isinstance(values.dtype, pd.CategoricalDtype):
        entry["levels"] = values.dtype.categories.tolist()
        entry["ordered"] = bool(values.dtype.ordered)
    return entry


def write_table(table: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        table.to_csv(path, index=_index_is_written(table))
        return
    try:
        table.to_parquet(path)
    except _NOT_AS_PARQUET:
        # What pyarrow says quotes the value that it trips over.
        raise InvalidInput(
            "the table cannot be written as Parquet: a column, or the index, holds values that "
            "Parquet has no type for; save as csv, or make them of one type"
        ) from None


def _read_table(path: Path, schema: Mapping[str, Any]) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    text = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    entries, levels = [*schema["index"], *schema["columns"]], len(schema["index"])
    columns = (text.iloc[:, place] for place in range(text.shape[1]))
    typed = [_typed(*pair) for pair in zip(columns, entries, strict=True)]
    table = pd.concat(typed[levels:], axis=1)
    table.columns = pd.Index([entry["name"] for entry in schema["columns"]])
    arrays, names = [level.array for level in typed[:levels]], schema["index_names"]
    if levels == 1:
        table.index = pd.Index(arrays[0], name=names[0])
    elif levels:
        table.index = pd.MultiIndex.from_arrays(arrays, names=names)
    return table


def formulas_in(column: pd.Series) -> npt.NDArray[np.bool_]:
    """Which cells are texts that begin as formulas of a spreadsheet do, shape (n,)."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return np.zeros(len(column), dtype=bool)
    texts = column.astype(object).where(column.notna(), "").map(str)
    numbers = pd.to_numeric(texts, errors="coerce").notna()
    return np.asarray(texts.str.match(r"[=+@\t\r-].").astype(bool) & ~numbers)


def escaped(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before such cells: to a spreadsheet a mark of text."""
    columns = {}
    for name, column in table.items():
        if (cells := formulas_in(column)).any():
            text = column.astype(object)
            columns[name] = text.where(~cells, "'" + text.astype(str))
    return with_columns(table, columns)


def write_tables(
    folder: Path, tables: Sequence[pd.DataFrame], file_format: str, synthesized: Collection[str],
    *, excel_safe: bool = False,
) -> None:  # fmt: skip
    """Synthetic tables with the schema they share; names that are formulas with an apostrophe."""
    for place, table in enumerate(tables, start=1):
        if excel_safe and file_format == "csv":
            names = escaped(table.columns.to_frame(index=False)).iloc[:, 0]
            table = table.set_axis(names.tolist(), axis=1)
        write_table(table, folder / f"synthetic_{place}.{file_format}")
    write_json(folder / "schema.json", table_schema(tables[0], file_format, synthesized))


def read_tables(folder: Path, n_synthetic: int) -> list[pd.DataFrame]:
    """Inverse of `write_tables`."""
    schema = read_json(folder / "schema.json")
    names = [folder / f"synthetic_{place}" for place in range(1, n_synthetic + 1)]
    if names[0].is_dir():
        parts = [map(pd.read_parquet, sorted(name.glob("part-*.parquet"))) for name in names]
        return [pd.concat(of_set, ignore_index=True) for of_set in parts]
    return [_read_table(Path(f"{name}.{schema['file_format']}"), schema) for name in names]


def write_private(
    folder: Path, run: Mapping[str, Any], attachments: Mapping[str, str | bytes]
) -> None:
    """The record of a run and what is attached to it, for the owner of the folder only."""
    write_json(folder / "run.json", run)
    for name, content in attachments.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    make_private(folder)


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
    if dtype == "str":  # pandas before 3 has no such dtype, and would write missing values as text
        return values
    return values if dtype.startswith(_AS_TEXT) else values.astype(dtype)


def write_beside(
    aside: Path,
    record: ReleaseRecord,
    *,
    statement: str,
    notes: Mapping[str, Any],
    attachments: Mapping[str, str],
    parts: Sequence[ReleaseRecord] = (),
) -> None:
    """Write all of a release but its tables and their schema, which are in the folder `aside`;
    `notes` are further fields of run.json."""
    public = aside / "public"
    (public / "privacy_statement.md").write_text(statement, encoding="utf-8")
    write_json(public / "charge.json", stated_charge(record.charge))
    if record.estimates is not None:
        write_json(public / "estimates.json", record.estimates.as_dict())
    _write_confidential(aside / "confidential", record, parts, notes, attachments)


def read_run(root: Path) -> dict[str, Any]:
    """What `pyhybrid.Release.save` wrote of a run."""
    run = read_json(root / "confidential" / "run.json")
    if run.get("format") != _VERSION:
        raise InvalidInput(
            f"{root} must hold a release of format {_VERSION}: found {run.get('format')!r}; "
            f"this is pyhybrid {pyhybrid.__version__}"
        )
    return run


def read_records(
    root: Path, run: dict[str, Any], labels: pd.Index
) -> tuple[ReleaseRecord, list[ReleaseRecord]]:
    """The record of a whole release, with its estimates, and those of the steps of a sequence."""
    record, estimates = _record(root / "confidential", run, labels), root / "public/estimates.json"
    if estimates.is_file():
        record = replace(record, estimates=Estimates.from_dict(read_json(estimates)))
    steps = [root / f"confidential/step_{k}" for k in range(1, run.get("n_parts", 0) + 1)]
    return record, [_record(step, read_json(step / "run.json"), labels) for step in steps]


def _record(folder: Path, run: dict[str, Any], labels: pd.Index) -> ReleaseRecord:
    # As text: Python reads numbers back exactly, C parsers may not.
    records = pd.read_csv(folder / "records.csv", dtype=str)
    there = records.columns.intersection(["alpha", "lipschitz"])  # none if the mechanism has none
    by_record = {name: records[name].astype(float).to_numpy() for name in there}
    met = (records["censored"] == "True").to_numpy() if "censored" in records else None
    charge, asked = PrivacyCharge.from_dict(run["charge"]), run.get("requested")
    diagnostics, made = run["diagnostics"], run["provenance"]
    if diagnostics is not None:
        problems, rule = read_names(diagnostics, "problems"), ConvergenceRule(**diagnostics["rule"])
        diagnostics = Diagnostics(**{**diagnostics, "problems": problems, "rule": rule})
    return ReleaseRecord(
        charge=charge,
        diagnostics=diagnostics,
        settings=dict(run["settings"]),
        synthesized=read_names(run, "synthesized"),
        predictors=read_names(run, "predictors"),
        provenance=NoiseProvenance(**made) if "library" in made else read_provenance(made),
        requested=None if asked is None else SamplerSettings(**asked),
        seeded=run["seeded"],
        confidential=Confidential(
            labels=labels,
            lipschitz_bound=charge.bound or 0.0,
            entropy=int(run["seed"]),
            censored=met,
            **by_record,
        ),
        decisions=Decisions.of(**run.get("decisions", {})),
    )


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
    steps = [] if record.reweighted is None else map(asdict, record.reweighted.steps)
    run = {
        "format": _VERSION,
        "pyhybrid": pyhybrid.__version__,
        **record.as_dict(),
        # Numbers that were not computed are null.
        "reweighting_steps": [
            {k: None if v != v else v for k, v in step.items()} for step in steps
        ],
        "n_parts": len(parts),
        **notes,
    }
    if record.decisions.as_dict():
        run["decisions"] = record.decisions.as_dict()
    records.to_csv(folder / "records.csv", index=False)
    if kept.loss is not None and kept.loss.refits:
        pd.DataFrame(map(asdict, kept.loss.refits)).to_csv(folder / "refits.csv", index=False)
    for place, part in enumerate(parts, start=1):
        _write_confidential(folder / f"step_{place}", part, (), {}, {})
    write_private(folder, run, attachments)
