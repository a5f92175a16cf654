"""Spark in local mode: counts by an engine of clusters, where nothing of ours is installed.

pip install pyspark; it needs Java 17 or newer.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import pytest

from pyhybrid.sources.rows import read_columns
from pyhybrid.sources.source import open_source
from tests.sources.test_counting import check_counts, parquet, table

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]  # of Spark and of pandas 3


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """An ibis connection to two threads of this machine."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2",
    }  # fmt: skip
    builder = sql.SparkSession.builder.master("local[2]")
    for name, own in settings.items():
        builder = builder.config(name, own)
    session = builder.getOrCreate()
    yield ibis.pyspark.connect(session)
    session.stop()


def test_counts_and_rows_are_those_of_pandas(spark: Any, tmp_path: Path) -> None:
    """Of a folder of Parquet files that Spark reads, every kind of column, to the last record."""
    df, names = table(), ["age", "region", "income", "flag"]
    persons = spark.read_parquet(parquet(df, tmp_path / "a"))
    with open_source(persons) as source:
        assert source.engine.startswith("pyspark, through ibis")
        check_counts(source, df)
    found = read_columns(persons, names, outcomes=["age"])
    expected = df[names].sort_values([*names[1:], "age"], ignore_index=True)
    ordered = found.sort_values([*names[1:], "age"], ignore_index=True)
    pd.testing.assert_frame_equal(ordered, expected, check_dtype=False)
