"""Where a table stays: Parquet files, DuckDB, PostgreSQL, or anything that ibis reads.

A source is read and never written to: files are opened for reading, a DuckDB file in its read-only
mode, PostgreSQL in one read-only transaction of one snapshot. What is asked is written as ibis
expressions, which ibis puts in the words of the engine. No answer is larger than a table of counts,
but for the sample that a draft of types is made from.

What an engine says of an error can quote a record, and a connection string a password: messages
have the class of the error alone, or, where no record was read yet, its words without the secrets.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyhybrid.core.checks import did_you_mean
from pyhybrid.core.errors import EngineUnavailable, InvalidInput

_NAME = "records"
_POSTGRES = ("postgres", "postgresql")
_MEMORY = "1GB"
READ = ("number", "text", "logical")
"""Kinds of columns whose values are read."""
_NULL, _DOUBLE = '"NULL"', "DOUBLE"
_NUMERIC = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN")
_SETTING = re.compile(r"[?&]([^=&]*)=([^&]*)")  # of a URL
_SECRET = re.compile(r"(?i)(pass|password|passwd|pwd|token|secret|(^|_)key)$")
_KINDS = {
    "is_numeric": "number", "is_string": "text", "is_boolean": "logical",
    "is_null": "number",  # without any value: one record more may give it another type
}  # fmt: skip
_BY_COLLATION = ("mysql", "mssql")
"""Engines, by ibis's names, whose texts have no bytes that ibis asks for whole."""
_OF_DUCKDB = {
    "TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32", "BIGINT": "int64",
    "HUGEINT": "decimal", "UTINYINT": "uint8", "USMALLINT": "uint16", "UINTEGER": "uint32",
    "UBIGINT": "uint64", "UHUGEINT": "decimal", "FLOAT": "float32", "DOUBLE": "float64",
    "DECIMAL": "decimal", "VARCHAR": "string", "ENUM": "string", "BOOLEAN": "boolean",
    _NULL: "float64",
}  # fmt: skip
_OF_POSTGRES = {
    "int2": "int16", "int4": "int32", "int8": "int64", "float4": "float32", "float8": "float64",
    "numeric": "decimal", "text": "string", "varchar": "string", "bpchar": "string",
    "bool": "boolean",
}  # fmt: skip


class Source(ABC):
    """A confidential table that stays where it is.

    Attributes
    ----------
    name : str
        What it is called in messages and in its representation: no user, no password.
    engine : str
        What counts in it, with its version.
    """

    name: str
    engine: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}, by {self.engine}: {len(self.columns)} columns>"

    @property
    @abstractmethod
    def table(self) -> Any:
        """The table as an ibis expression."""

    def answer(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a query in the engine's own words, of an engine that is asked in these."""
        raise NotImplementedError

    def in_words(self, expression: Any) -> str:
        """An expression in the engine's own words."""
        raise NotImplementedError

    has_grouping_sets = True
    """Several tables of counts in one pass."""
    has_nan = True
    """Numbers can be NaN, beside missing ones."""
    has_try_cast = False
    """Texts can be read as the numbers that they are, others as missing."""

    @cached_property
    def columns(self) -> dict[str, str]:
        """Kind of each column by its name: number, text, logical, or what else it holds."""
        return {str(name): _kind(dtype) for name, dtype in self.table.schema().items()}

    def exact(self, text: Any) -> Any:
        """A text in a form that no collation equates with another: bytes, where there are any."""
        return text

    def ask(self, expression: Any) -> list[tuple[Any, ...]]:
        """Rows of an expression."""
        return self.answer(self.in_words(expression))

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise InvalidInput for a column that is not there."""
        for name in names:
            if name not in self.columns:
                raise InvalidInput(
                    f"column {name!r} must be in {self.name}: it has "
                    f"{', '.join([*self.columns][:20])}{did_you_mean(name, self.columns)}"
                )

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection."""

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_source(data: Any) -> Source:
    """A table that stays where it is.

    Parameters
    ----------
    data : str, path, ibis table or DuckDB relation
        A folder of Parquet files or a pattern (``"census/*.parquet"``); a table of a DuckDB file
        (``"duckdb:///survey.db::persons"``), of PostgreSQL
        (``"postgres://user@host/survey::persons"``) or of another database that ibis connects to,
        by its URL, ``::`` and the name; an ibis table; a DuckDB relation; a synthetic set of a
        release as CSV (``"released/public/synthetic_1"``). A password belongs into ``PGPASSWORD``
        or ``~/.pgpass``.

    Returns
    -------
    Source
        A context manager.

    Raises
    ------
    InvalidInput
        If nothing that can be read is there.
    EngineUnavailable
        If ibis or the engine is not installed.
    """
    if isinstance(data, Source):
        return data
    load_library("ibis")
    if isinstance(data, (str, os.PathLike)):
        text = os.fspath(data)
        if "://" in text:
            return _by_url(text)
        return ReleasedCSV(text) if _schema_beside(text) else ParquetFiles(files_of(text), text)
    if type(data).__module__.split(".")[0] in ("duckdb", "_duckdb") and hasattr(data, "query"):
        return Relation(data)
    if hasattr(data, "get_backend") and hasattr(data, "schema"):
        return IbisTable(data)
    raise InvalidInput(
        "data must be a pattern of Parquet files, a database URL with ::TABLE, an ibis table or a "
        f"DuckDB relation: found {type(data).__name__}"
    )


@contextlib.contextmanager
def opened(data: Any) -> Iterator[Source]:
    """As `open_source`; closed afterwards, unless the caller had opened it."""
    source = open_source(data)
    try:
        yield source
    finally:
        if source is not data:
            source.close()


def name_of(data: Any) -> str:
    """The name by which a resumed run recognizes its data, without secrets."""
    if isinstance(data, (str, os.PathLike)):
        text = os.fspath(data)
        url, mark, table = text.rpartition("::")
        for secret in _secrets(url):
            url = url.replace(secret, "")
        return url + mark + table if "://" in text else os.path.abspath(text)
    if hasattr(data, "sql_query"):
        return str(data.sql_query())
    if hasattr(data, "get_backend"):
        return str(load_library("ibis").expr.format.pretty(data.op()))
    return data.name if isinstance(data, Source) else type(data).__name__


def stays_where_it_is(data: Any) -> bool:
    """True of what `open_source` takes and `pandas` should not read as one file. InvalidInput for a
    URL with a password, as what a command was given can be read by all users of the machine."""
    text = os.fspath(data)
    if "://" in text and _secrets(text.rpartition("::")[0] or text):
        raise InvalidInput(
            "a table's URL must have no password, which every user of this machine could read: put "
            "it into PGPASSWORD or ~/.pgpass"
        )
    return names_a_source(text)


def names_a_source(text: str) -> bool:
    """True of a URL, and of a folder or a pattern of files."""
    return "://" in text or (
        not os.path.isfile(text) and (glob.has_magic(text) or os.path.isdir(text))
    )


def reads_whole(text: str) -> bool:
    """True of what `open_source` takes, one file of Parquet or of a release included."""
    own = text.lower().endswith((".parquet", ".pq")) or _schema_beside(text) is not None
    return own or names_a_source(text)


def _schema_beside(text: str) -> Path | None:
    """Schema of a release, if `text` is one of its sets as CSV: a file, or a folder of parts."""
    place = Path(text)
    schema = place.parent / "schema.json"
    is_csv = any(place.glob("part_*.csv")) if place.is_dir() else place.suffix == ".csv"
    return schema if is_csv and place.name.startswith("synthetic_") and schema.is_file() else None


def files_of(pattern: str) -> tuple[str, ...]:
    """Parquet files of a folder, with those below it, or of a pattern, in their order."""
    wanted = os.path.join(pattern, "**", "*.parquet") if os.path.isdir(pattern) else pattern
    found = sorted(path for path in glob.glob(wanted, recursive=True) if os.path.isfile(path))
    other = [path for path in found if not path.lower().endswith((".parquet", ".pq"))]
    if not found or other:
        what = f"{other[0]} is none" if other else "there is none"
        raise InvalidInput(
            f"data {pattern} must be Parquet files: {what}; columns of Parquet have types, those "
            "of CSV would be read from the records"
        )
    return tuple(os.path.abspath(path) for path in found)


class _Engine(Source):
    """A table of an engine that is asked in its own SQL, by its names of types not read."""

    connection: Any
    _dialect = "duckdb"
    _database: str | None = None
    _table = _NAME
    _bytes_of: tuple[str, Any, tuple[str, ...]] = ("encode", lambda text: text, ())
    """Name, signature and further arguments of the engine's function from text to bytes."""

    @cached_property
    def _bytes(self) -> Any:
        name, own, told = self._bytes_of
        kinds = (str,) * (1 + len(told))
        return load_library("ibis").udf.scalar.builtin(name=name, signature=(kinds, bytes))(own)

    def exact(self, text: Any) -> Any:
        return self._bytes(text, *self._bytes_of[2])

    def in_words(self, expression: Any) -> str:
        return str(load_library("ibis").to_sql(expression, dialect=self._dialect))

    def answer(self, sql: str) -> list[tuple[Any, ...]]:
        with _in_engine(self.name):
            rows: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return rows

    def close(self) -> None:
        self.connection.close()

    @property
    @abstractmethod
    def _types(self) -> dict[str, tuple[str, str | None]]:
        """The engine's name of each column's type, and that of ibis, of those that are read."""

    @cached_property
    def columns(self) -> dict[str, str]:
        kinds = super().columns
        return {n: own if known is None else kinds[n] for n, (own, known) in self._types.items()}

    @cached_property
    def table(self) -> Any:
        schema = {name: known or "json" for name, (_, known) in self._types.items()}
        return load_library("ibis").table(schema, name=self._table, database=self._database)

    @property
    def _place(self) -> str:
        return ".".join(_quoted(part) for part in (self._database, self._table) if part)


class _DuckDB(_Engine):
    """A table `self.table` behind an own connection to DuckDB."""

    has_try_cast = True

    @cached_property
    def _types(self) -> dict[str, tuple[str, str | None]]:
        with _in_engine(self.name, quoting=True):
            return _types_of(self.connection.sql(f"SELECT * FROM {self._place}"))


def _types_of(relation: Any) -> dict[str, tuple[str, str | None]]:
    """Of a relation of DuckDB: without levels, widths or fields in brackets."""
    told = zip(relation.columns, relation.types, strict=True)
    bases = {name: re.sub(r"(?s)\(.*\)", "", str(own)) for name, own in told}
    return {name: (own.lower(), _OF_DUCKDB.get(own)) for name, own in bases.items()}


class ParquetFiles(_DuckDB):
    """Parquet files, read by DuckDB; `files` can be counted part by part. Whoever writes a file
    gives a column the type of its records, which one of them can change: a column of several types
    is read in one that takes them all."""

    def __init__(self, files: Sequence[str], name: str) -> None:
        self.files, self.name = tuple(files), name
        self.connection, self.engine = _duckdb(":memory:")
        with _in_engine(name, quoting=True):
            alike = self._files_by_types()
            selects = [
                f"SELECT {_in_one_type(types, [*alike])} FROM {_read(files)}"
                for types, files in alike.items()
            ]
            self.connection.execute(f"CREATE VIEW {_NAME} AS {' UNION ALL '.join(selects)}")

    def _files_by_types(self) -> dict[tuple[tuple[str, str], ...], list[str]]:
        """Files by the names of the first one's columns and their types."""
        found: dict[tuple[tuple[str, str], ...], list[str]] = {}
        names: list[str] = []
        for path in self.files:
            told = self.connection.execute(f"DESCRIBE SELECT * FROM {_read([path])}").fetchall()
            types = {name: kind for name, kind, *_ in told}
            names = names or [*types]
            if not types.keys() >= {*names}:
                raise InvalidInput(f"data {self.name} must have all columns in every file")
            found.setdefault(tuple((name, types[name]) for name in names), []).append(path)
        return found


def _read(files: Sequence[str]) -> str:
    return f"read_parquet({_listed(files)}, hive_types_autocast = false)"


def _listed(files: Sequence[str | Path]) -> str:
    return "[" + ", ".join("'" + str(path).replace("'", "''") + "'" for path in files) + "]"


def _in_one_type(own: Sequence[tuple[str, str]], alike: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Columns of files of the types `own`, in types that all files have: numbers and logicals
    of several types as doubles; with others as text, where a whole number has no point."""
    told = []
    for place, (name, of_file) in enumerate(own):
        types, column = {each[place][1] for each in alike} - {_NULL}, _quoted(name)
        numeric = [_NUMERIC.fullmatch(each) for each in types]
        kind = next(iter(types)) if len(types) == 1 else _DOUBLE if all(numeric) else "VARCHAR"
        cast = f"CAST({column} AS {kind})"
        if kind == "VARCHAR" and _NUMERIC.fullmatch(of_file):
            text = f"CAST(CAST({column} AS {_DOUBLE}) AS VARCHAR)"
            cast = f"nullif(regexp_replace({text}, '\\.0$', ''), 'nan')"
        told.append(f"{cast} AS {column}")
    return ", ".join(told)


class ReleasedCSV(_DuckDB):
    """A synthetic set of a release as CSV, one file or in parts: of the types of its schema, which
    was written with it, where those of other CSV files would be read from the records."""

    def __init__(self, text: str) -> None:
        self.name, schema = text, _schema_beside(text)
        self.connection, self.engine = _duckdb(":memory:")
        with _in_engine(text, quoting=True):
            told = json.loads((schema or Path()).read_text(encoding="utf-8"))
            kinds = [_type_of_released(own) for own in told["columns"]]
            columns = [own["name"] for own in told["columns"]]
            first = len(told["index"])
            names = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(first + len(kinds)))
            cells = ", ".join(
                f"CAST(c{at} AS {kind}) AS {_quoted(name)}"
                for at, (name, kind) in enumerate(zip(columns, kinds, strict=True), start=first)
            )
            files = [*Path(text).glob("part_*.csv")] or [Path(text)]
            self.connection.execute(
                f"CREATE VIEW {_NAME} AS SELECT {cells} FROM read_csv({_listed(sorted(files))}, "
                f"columns = {{{names}}}, header = true, auto_detect = false, delim = ',', "
                "quote = '\"', escape = '\"', nullstr = '')"
            )


def _type_of_released(entry: Mapping[str, Any]) -> str:
    """DuckDB's type of a column of a schema; a text may be of digits alone."""
    dtype, levels = str(entry["dtype"]).lower(), entry.get("levels", ())
    if dtype == "category" and levels and not any(isinstance(own, str) for own in levels):
        return _DOUBLE
    kinds = {"int": "BIGINT", "uint": "UBIGINT", "float": _DOUBLE, "bool": "BOOLEAN"}
    return kinds.get(re.sub(r"(ean)?\d*$", "", dtype), "VARCHAR")


class DuckDBTable(_DuckDB):
    """A table of a DuckDB file, opened read-only."""

    def __init__(self, path: str, table: str) -> None:
        self.name = f"duckdb:///{path.lstrip('/')}::{table}"
        if not Path(path).is_file():
            raise InvalidInput(f"data {self.name} must be in a DuckDB file: {path} is none")
        self._database, self._table = _with_schema(table)
        self.connection, self.engine = _duckdb(path, read_only=True)


class Relation(_DuckDB):
    """A relation of a connection of the user's own, which stays open."""

    def __init__(self, relation: Any) -> None:
        self.relation, self.name = relation, "the relation"
        self.engine = f"DuckDB {load_library('duckdb').__version__}"

    def answer(self, sql: str) -> list[tuple[Any, ...]]:
        with _in_engine(self.name):
            rows: list[tuple[Any, ...]] = self.relation.query(_NAME, sql).fetchall()
        return rows

    @cached_property
    def _types(self) -> dict[str, tuple[str, str | None]]:
        return _types_of(self.relation)

    def close(self) -> None:
        """The connection is the user's."""


class PostgresTable(_Engine):
    """A table of PostgreSQL, in one read-only transaction, so that all passes see one snapshot."""

    _dialect = "postgres"
    _bytes_of = ("convert_to", lambda text, encoding: text, ("UTF8",))

    def __init__(self, url: str, table: str) -> None:
        psycopg, self.name = load_library("psycopg"), f"{without_secrets(url)}::{table}"
        self._database, self._table = _with_schema(table)
        with _in_engine(self.name, quoting=True, url=url):
            self.connection = psycopg.connect(url)
            self.connection.read_only = True
            self.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        version = self.connection.info.server_version
        self.engine = f"PostgreSQL {version // 10_000}.{version % 10_000}"

    @cached_property
    def _types(self) -> dict[str, tuple[str, str | None]]:
        with _in_engine(self.name, quoting=True):
            told = self.connection.execute(f"SELECT * FROM {self._place} LIMIT 0").description
        known, names = load_library("psycopg").adapters.types, {}
        for each in told:  # an array is known by the type of its elements
            own = known.get(each.type_code)
            is_array = own is not None and own.oid != each.type_code
            names[each.name] = getattr(own, "name", "a type of its own") + "[]" * is_array
        return {name: (own, _OF_POSTGRES.get(own)) for name, own in names.items()}


class IbisTable(Source):
    """A table of any engine that ibis connects to; its connection is the user's."""

    has_grouping_sets = False

    def __init__(self, table: Any, name: str = "the table") -> None:
        self._own, self.name = table, name
        with _in_engine(name):
            backend = table.get_backend()
            self.has_nan = backend.has_operation(
                importlib.import_module("ibis.expr.operations").IsNan
            )
            self.engine = f"{backend.name}, through ibis {load_library('ibis').__version__}"

    @property
    def table(self) -> Any:
        return self._own

    def exact(self, text: Any) -> Any:
        engine = self.engine.partition(",")[0]
        if engine in _BY_COLLATION:
            raise InvalidInput(
                f"texts of {self.name} must be compared letter by letter: {engine} holds 'A' and "
                "'a' alike, so that one record would change others; copy its columns to Parquet"
            )
        return text.cast("binary") if engine == "sqlite" else text

    def ask(self, expression: Any) -> list[tuple[Any, ...]]:
        with _in_engine(self.name):
            found = expression.to_pyarrow().to_pydict()
        return list(zip(*found.values(), strict=True))

    def close(self) -> None:
        """The connection is the user's."""


def _by_url(text: str) -> Source:
    url, separator, table = text.rpartition("::")
    if not separator or not table:
        raise InvalidInput(
            f"data {without_secrets(text)} must name a table after its URL: add ::TABLE"
        )
    scheme = url.partition("://")[0].lower()
    if scheme == "duckdb":
        return DuckDBTable(_path_of(url), table)
    if scheme == "sqlite":
        if not Path(path := _path_of(url)).is_file():  # it would be made
            raise InvalidInput(f"data {text} must be in a SQLite file: {path} is none")
        url = f"sqlite://{Path(path).absolute()}"
    if scheme in _POSTGRES:
        return PostgresTable(url, table)
    name, ibis = f"{without_secrets(url)}::{table}", load_library("ibis")
    with _in_engine(name, quoting=True, url=url):
        database, own = _with_schema(table)
        return IbisTable(ibis.connect(url).table(own, database=database), name)


def _path_of(url: str) -> str:
    """``duckdb:///file.db`` is beside the caller where there is such a file, else from the root."""
    rest = unquote(url.split("://", 1)[1])
    beside, absolute = rest.lstrip("/"), "/" + rest.lstrip("/")
    from_root = rest.startswith("//") or (not Path(beside).exists() and Path(absolute).exists())
    return absolute if from_root else beside


def _secrets(url: str) -> list[str]:
    """Passwords and tokens of a URL, also with marks that had to be encoded and are not."""
    told = [_user_of(url).partition(":")[2]]
    told += [value for name, value in _SETTING.findall(url) if _SECRET.search(name)]
    return [own for own in told if own]


def _user_of(url: str) -> str:
    """What is before the host."""
    rest = url.partition("://")[2]
    return "" if rest.startswith("/") else rest.rpartition("@")[0]


def without_secrets(url: str) -> str:
    """Scheme, host and database alone."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{re.split('[?#]', rest[len(_user_of(url)) :].removeprefix('@'))[0]}"


def _with_schema(table: str) -> tuple[str | None, str]:
    schema, _, name = table.rpartition(".")
    return schema or None, name


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _kind(dtype: Any) -> str:
    for test, kind in _KINDS.items():
        if getattr(dtype, test)():
            return kind
    return str(dtype).split("(")[0]


def _duckdb(path: str, **options: Any) -> tuple[Any, str]:
    """A connection that fetches nothing, keeps to its memory and leaves nothing on disk."""
    duckdb = load_library("duckdb")
    quiet = {"autoinstall_known_extensions": False, "memory_limit": _MEMORY, "temp_directory": ""}
    with _in_engine(path, quoting=True):
        connection = duckdb.connect(path, config=quiet, **options)
        connection.execute("SET enable_progress_bar = false")  # it writes to standard output
    return connection, f"DuckDB {duckdb.__version__}"


def load_library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise EngineUnavailable(
            f"a table that stays where it is needs {name}, which cannot be imported: "
            "pip install 'pyhybrid[tables]'"
        ) from None


@contextlib.contextmanager
def _in_engine(name: str, *, quoting: bool = False, url: str = "") -> Iterator[None]:
    """Turn what an engine raises into one line; its words are quoted only where no record can be in
    them, without the password of `url`."""
    try:
        yield
    except (InvalidInput, EngineUnavailable):
        raise
    except Exception as error:
        why = type(error).__name__
        if quoting or type(error).__module__.startswith("ibis."):  # said before it is asked
            words = " ".join(str(error).split())
            parts = [part for own in _secrets(url) for part in (own, *re.split(r"[:/@?#&]", own))]
            for secret in sorted(filter(None, {*parts, *map(unquote, parts)}), key=len)[::-1]:
                words = words.replace(secret, "...")
            why = f"{why}: {words[:300]}"
        raise InvalidInput(f"data {name} must be readable: {why}") from None
