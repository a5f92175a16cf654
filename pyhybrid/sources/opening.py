"""Where a table is: what a user names, and the source that reads it."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyhybrid.core.errors import EngineUnavailable, InvalidInput, SourceFailed
from pyhybrid.sources.cluster import DaskFrame, SparkFrame
from pyhybrid.sources.dialects import Dialect, dialect_of, header_of
from pyhybrid.sources.ibis_table import IbisTable
from pyhybrid.sources.source import Source

_ENVIRONMENT = "env:"
_SECRET = re.compile(r"://[^/@:]*:[^/@]+@|password=", re.IGNORECASE)
_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".csv.gz")
_HOW = (
    "take 'duckdb://FILE::TABLE', 'env:NAME::TABLE' with a connection string in the environment "
    "variable NAME, a folder or pattern of Parquet or CSV files, an ibis table, or a data frame of "
    "Dask or Spark"
)


def open_source(table: Any, declared: Collection[str] = ()) -> Source:
    """A table that stays where it is.

    Parameters
    ----------
    table : str, path, ibis table, DuckDB relation, or data frame of Dask or Spark
        A folder or pattern (``data/*.parquet``) of Parquet or CSV files, ``duckdb://FILE::TABLE``,
        or ``env:NAME::TABLE``: the environment variable NAME has the connection string, as ibis
        takes it (``postgres://user:password@host/database``), so that no password is in a file, a
        message or a list of processes.
    declared : collection of str
        Columns with declared types, by which the header of CSV files is known, whatever records
        hold.

    Raises
    ------
    InvalidInput
        For what is no table.
    SourceFailed
        If it cannot be reached.
    EngineUnavailable
        Without the extra ``tables``.

    Examples
    --------
    >>> df.to_parquet("visits.parquet")
    >>> table = ph.open_source("*.parquet")
    """
    if isinstance(table, Source):
        return table
    if isinstance(table, (str, os.PathLike)):
        name = os.fspath(table)
        return IbisTable(_in_database(name)) if _is_of_database(name) else _of_files(name, declared)
    home = type(table).__module__.split(".")[0]
    if home == "ibis":
        return IbisTable(table)
    if home in ("dask", "dask_expr"):
        return DaskFrame(table)
    if home == "pyspark":
        return SparkFrame(table)
    if home in ("duckdb", "_duckdb"):
        return IbisTable(_of_relation(table))
    raise InvalidInput(f"a table must be named: found {type(table).__name__}; {_HOW}")


def is_source(data: str) -> bool:
    """True for the name of a table that is more than one file."""
    return _is_of_database(data) or Path(data).is_dir() or any(mark in data for mark in "*?[")


def _is_of_database(name: str) -> bool:
    return "::" in name or "://" in name or name.startswith(_ENVIRONMENT)


def _in_database(name: str) -> Any:
    ibis = _ibis()
    where, found, table = name.rpartition("::")
    if not found or not table:
        raise InvalidInput(f"a table in a database must be named after '::'; {_HOW}")
    if where.startswith(_ENVIRONMENT):
        variable = where.removeprefix(_ENVIRONMENT)
        if variable not in os.environ:
            raise InvalidInput(f"environment variable {variable!r} must be set: it is not")
        where = os.environ[variable]
    elif _SECRET.search(where):
        raise InvalidInput(
            "a password must not be in the name of a table, where others can read it: set an "
            "environment variable NAME to the connection string, and give 'env:NAME::TABLE'"
        )
    file = where.removeprefix("duckdb://")
    if file != where and not Path(file).is_file():
        raise InvalidInput(f"database file {file!r} must exist: it does not")
    schema, _, name_in_schema = table.rpartition(".")
    try:
        read_only = {"read_only": True} if file != where else {}
        connection = ibis.connect(where, **read_only)
        return connection.table(name_in_schema, database=schema or None)
    except Exception as error:  # its text can quote the connection string
        raise SourceFailed(
            f"table {table!r} cannot be opened: {type(error).__name__}; is it there, and is the "
            "connection string right?"
        ) from None


def _of_files(name: str, declared: Collection[str]) -> Source:
    ibis, path = _ibis(), Path(name)
    pattern = str(path / "**") if path.is_dir() else name
    files = sorted(glob.glob(pattern, recursive=True))
    kinds = {kind: [file for file in files if file.lower().endswith(kind)]
             for kind in (_PARQUET, _CSV)}  # fmt: skip
    kinds = {kind: files for kind, files in kinds.items() if files}
    if len(kinds) != 1:
        raise InvalidInput(
            f"{name!r} must hold Parquet files or CSV files, not both: found "
            f"{'both' if kinds else 'none'}; {_HOW}"
        )
    ((kind, paths),) = kinds.items()
    connection = ibis.duckdb.connect()
    try:
        if kind == _PARQUET:
            _check_alike(name, paths)
            return IbisTable(connection.read_parquet(paths, union_by_name=True))
        dialect = _dialect(name, paths, declared)
        table = connection.read_csv(
            paths, all_varchar=True, header=True, delim=dialect.separator, quote=dialect.quote,
            escape=dialect.quote, skip=int(dialect.first_line),
        )  # fmt: skip
    except InvalidInput:
        raise
    except UnicodeError:
        raise InvalidInput(f"files of {name!r} must be UTF-8: write them so") from None
    except Exception as error:
        raise SourceFailed(f"files of {name!r} cannot be read: {type(error).__name__}") from None
    return IbisTable(table, of_texts=True)


def _check_alike(name: str, paths: list[str]) -> None:
    """Refuse Parquet files of which one lacks a column, or has text in it where others have none:
    DuckDB would leave it out, or make levels of all."""
    from pyarrow import parquet

    files = [{field.name: None if str(field.type) == "null" else "string" in str(field.type)
              for field in parquet.read_schema(path)} for path in paths]  # fmt: skip
    for path, types in zip(paths, files, strict=True):
        for column in {**files[0], **types}:
            pair = {types.get(column, "none"), files[0].get(column, "none")}
            if "none" in pair or len(pair - {None}) > 1:
                raise InvalidInput(
                    f"files of {name!r} must have the same columns of the same types: column "
                    f"{column!r} of {path} is not that of {paths[0]}"
                )


def _dialect(name: str, paths: list[str], names: Collection[str]) -> Dialect:
    """The one dialect of files with the same names of columns, read as a single file is."""
    of_files = [dialect_of(Path(path), "utf-8-sig", names=names) for path in paths]
    headers = [header_of(Path(path), own, "utf-8-sig", names)
               for path, own in zip(paths, of_files, strict=True)]  # fmt: skip
    for path, own, header in zip(paths, of_files, headers, strict=True):
        if (own, header) != (of_files[0], headers[0]):
            raise InvalidInput(
                f"files of {name!r} must have the same columns in one order, and the same mark "
                f"between cells: {path} and {paths[0]} differ"
            )
    if of_files[0].blanks:
        raise InvalidInput(f"files of {name!r} must have no blanks after the marks between cells")
    return of_files[0]


def _of_relation(relation: Any) -> Any:
    """A DuckDB relation of the default connection, as an ibis table."""
    import duckdb

    name = f"pyhybrid_{uuid4().hex}"  # of its own: a view of another relation is never read
    try:
        relation.create_view(name, replace=True)
        return _ibis().duckdb.from_connection(duckdb.default_connection()).table(name)
    except Exception as error:
        raise SourceFailed(
            f"the relation cannot be opened: {type(error).__name__}; it must be of DuckDB's "
            "default connection, else give ibis.duckdb.from_connection(connection).table(NAME)"
        ) from None


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise EngineUnavailable(
            "tables in a database and files of any size need ibis: pip install 'pyhybrid[tables]'"
        ) from None
    return ibis
