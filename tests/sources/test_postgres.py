"""A live PostgreSQL server: counts, credentials, a snapshot, nothing written."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import psycopg
import pytest

from pyhybrid.core.errors import InvalidInput
from pyhybrid.sources.counting import Counted
from pyhybrid.sources.rows import read_columns
from pyhybrid.sources.source import open_source
from tests.conftest import require
from tests.refusals import refuses
from tests.sources import postgres
from tests.sources.test_counting import DOMAIN, check_counts, table

pytestmark = pytest.mark.long
TYPES = {
    "age": "smallint", "income": "numeric(12, 2)", "change": "real", "rate": "double precision",
    "region": "text", "flag": "boolean", "code": "numeric", "born": "date", "kids": "int[]",
}  # fmt: skip


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    require(
        postgres.programs() is not None, "PostgreSQL is not installed (tests/install_postgres.sh)"
    )
    with postgres.server() as own:
        yield own


def filled(url: str) -> pd.DataFrame:
    """A table "survey"."Persons", and the same in pandas."""
    df = table()
    with psycopg.connect(url) as connection:
        named = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
        connection.execute("DROP SCHEMA IF EXISTS survey CASCADE; CREATE SCHEMA survey")
        connection.execute(f'CREATE TABLE survey."Persons" ({named})')
        plain = df.astype(object).where(df.notna(), None)
        with connection.cursor().copy('COPY survey."Persons" FROM STDIN') as copy:
            for row in plain.itertuples(index=False):
                copy.write_row((*row, None, None))
        connection.execute("UPDATE survey.\"Persons\" SET rate = 'NaN' WHERE rate IS NULL AND flag")
    return df


def test_rows_are_those_of_pandas(url: str) -> None:
    df, others = filled(url), ["region", "income", "flag"]
    found = read_columns(f"{url}::survey.Persons", ["age", *others], outcomes=["age"])
    expected = df[["age", *others]].sort_values([*others, "age"], ignore_index=True)
    ordered = found.sort_values([*others, "age"], ignore_index=True)
    pd.testing.assert_frame_equal(ordered, expected, check_dtype=False)


def test_counts_are_those_of_pandas_in_one_snapshot(url: str) -> None:
    df = filled(url)
    with open_source(f"{url}::survey.Persons") as source, psycopg.connect(url) as other:
        counted = Counted(source, DOMAIN)
        other.execute('DELETE FROM survey."Persons" WHERE flag')
        other.commit()
        check_counts(source, df)
        assert len(counted) == len(df)
        with pytest.raises(InvalidInput, match=r"must be readable: ReadOnlySqlTransaction$"):
            source.answer('DELETE FROM survey."Persons" RETURNING age')
        for name, kind in {"born": "date", "kids": r"int4\[\]"}.items():
            refuses(f"{name!r} of .*: found {kind}", Counted, source, {name: DOMAIN["code"]})


def test_no_word_has_a_credential(url: str) -> None:
    filled(url)
    own = url.replace("owner@", "owner:p%40ss-word@")
    with open_source(f"{own}::survey.Persons") as source:
        assert not {"owner", "ss-word"} & {*re.split(r"\W", repr(source))}
        assert "PostgreSQL" in repr(source)
    for wrong in (own.replace("host=", "host=/nowhere"), f"{own}&application_name=%zz"):
        refuses("", open_source, f"{wrong}::survey.Persons", hidden=["ss-word"])
    unreadable = pytest.raises(InvalidInput, match="must be readable: UndefinedTable")
    with unreadable, open_source(f"{url}::nothing") as source:
        source.check_columns(["x"])


def test_one_command_from_a_server(url: str, tmp_path: Path) -> None:
    filled(url)
    line = [
        sys.executable, "-m", "pyhybrid", "synthesize", f"{url}::survey.Persons", "--epsilon", "2",
    ]  # fmt: skip
    run = [*line, "--drop", "born,kids", "--out", "released"]
    first = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "Persons.types.json was written" in first.stderr, first.stderr
    again = [*run, "--types", "survey.Persons.types.json"]
    done = subprocess.run(again, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "3,000 records" in done.stdout, done.stderr
    assert "by PostgreSQL" in (tmp_path / "released/public/privacy_statement.md").read_text()
    refused = [word.replace("owner@", "owner:secret@") for word in again]
    done = subprocess.run(refused, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "must have no password" in done.stderr
    assert "secret" not in done.stderr
