"""BLAS on one thread, and as before afterwards."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pyhybrid.running.tasks import one_blas_thread


def _threads() -> list[int]:
    np.linalg.solve(np.eye(2), np.ones(2))
    return [own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"]


def test_one_thread_within_and_as_many_as_before_after() -> None:
    before = _threads()
    with one_blas_thread():
        assert before
        assert set(_threads()) == {1}
    assert _threads() == before


def test_threads_come_back_after_an_error() -> None:
    before = _threads()
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert _threads() == before
