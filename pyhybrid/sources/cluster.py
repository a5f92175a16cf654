"""Data frames of Dask and Spark: sums are a map over partitions, on the workers.

Workers see their records and public numbers, and return whole numbers. Noise is drawn once, on the
machine of the owner, and never on a worker.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any

import pandas as pd

from pyhybrid.core.errors import InvalidInput, PyhybridError, SourceFailed
from pyhybrid.sources.source import BATCH, SAMPLED, Source


class _ClusterFrame(Source):
    """A data frame whose partitions workers hold."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.columns = tuple(str(name) for name in frame.columns)

    @abstractmethod
    def _sampled(self, columns: list[str], share: float) -> pd.DataFrame:
        """A random share of the records."""

    def sample(self, columns: Sequence[str], n: int = SAMPLED) -> pd.DataFrame:
        self.check_columns(columns)
        share = min(1.0, 1.1 * n / max(self.count(), 1))
        with _by_type_alone():
            table: pd.DataFrame = self._sampled([*columns], share).reset_index(drop=True).iloc[:n]
        return table


class DaskFrame(_ClusterFrame):
    """A Dask data frame; sums run on the cluster of the current client, if there is one."""

    def sums(self, of_batch: Callable[[pd.DataFrame], Any], columns: Sequence[str]) -> Any:
        import dask

        self.check_columns(columns)
        parts = self._frame[[*columns]].to_delayed()
        with _by_type_alone():
            answers = dask.compute(*(dask.delayed(_answer)(of_batch, part) for part in parts))
        return _total(answers)

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        self.check_columns(columns)
        for part in self._frame[[*columns]].to_delayed():
            with _by_type_alone():
                batch = part.compute()
            yield batch

    def _sampled(self, columns: list[str], share: float) -> pd.DataFrame:
        table: pd.DataFrame = self._frame[columns].sample(frac=share).compute()
        return table


class SparkFrame(_ClusterFrame):
    """A Spark data frame."""

    def sums(self, of_batch: Callable[[pd.DataFrame], Any], columns: Sequence[str]) -> Any:
        self.check_columns(columns)

        def answers(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                yield pd.DataFrame({"answer": [pickle.dumps(_answer(of_batch, batch))]})

        with _by_type_alone():
            rows = self._frame.select(*columns).mapInPandas(answers, "answer binary").collect()
        return _total([pickle.loads(bytes(row.answer)) for row in rows])

    def batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        self.check_columns(columns)
        with _by_type_alone():
            rows = self._frame.select(*columns).toLocalIterator()
            while batch := [*itertools.islice(rows, BATCH)]:
                yield pd.DataFrame(batch, columns=[*columns])

    def _sampled(self, columns: list[str], share: float) -> pd.DataFrame:
        table: pd.DataFrame = self._frame.select(*columns).sample(share).toPandas()
        return table


def _answer(of_batch: Callable[[pd.DataFrame], Any], batch: pd.DataFrame) -> Any:
    """What is added, or the error that says why there is nothing."""
    if not len(batch):
        return None
    try:
        return of_batch(batch)
    except PyhybridError as error:
        return error


def _total(answers: Sequence[Any]) -> Any:
    for answer in answers:
        if isinstance(answer, PyhybridError):
            raise answer
    known = [answer for answer in answers if answer is not None]
    if not known:
        raise InvalidInput("the table must have rows: found none")
    return reduce(add, known)


@contextlib.contextmanager
def _by_type_alone() -> Iterator[None]:
    """The error of a cluster by its type: its text can quote values."""
    try:
        yield
    except PyhybridError:
        raise
    except Exception as error:
        raise SourceFailed(
            f"the cluster could not sum over the table: {type(error).__name__}; are its workers "
            "there, with this version of pyhybrid?"
        ) from None
