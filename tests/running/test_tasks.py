"""Tasks on processes: what fails loses only itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.running.tasks import Done, in_threads, one_blas_thread, run_tasks
from tests.refusals import fails

TASKS = [2, 3, -1, 4, 5]


def _square_or_fail(x: int, error: type[BaseException] = SamplingError) -> int:
    if x < 0:
        raise error("negative")
    return x * x


def _die(_: int) -> int:
    os._exit(1)


def _by_task(ended: list[Done[int, int]]) -> dict[int, int | str]:
    return {d.task: d.result if d.error is None else type(d.error).__name__ for d in ended}  # type: ignore[misc]


def test_a_task_that_fails_loses_only_itself() -> None:
    for workers in (1, 2):
        ended = list(run_tasks(_square_or_fail, TASKS, workers=workers))
        assert _by_task(ended) == {2: 4, 3: 9, -1: "SamplingError", 4: 16, 5: 25}


def test_threads_keep_the_order_and_hold_few_tasks() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    results = in_threads(_square_or_fail, tasks())
    for number, result in enumerate(results):
        assert result == number**2
        assert len(taken) <= number + 1 + 4
    fails(SamplingError, "negative", list, in_threads(_square_or_fail, TASKS))


def test_what_cannot_travel_to_a_worker_is_named() -> None:
    ended = list(run_tasks(abs, [1, lambda: None, 2], workers=2))  # type: ignore[list-item]
    assert {d.task: d.result for d in ended if d.error is None} == {1: 1, 2: 2}
    (error,) = [d.error for d in ended if d.error is not None]
    assert isinstance(error, InvalidInput)
    assert "must be picklable" in str(error)


@pytest.mark.long
def test_a_worker_that_dies_is_a_typed_error() -> None:
    fails(SamplingError, "a worker process died", list, run_tasks(_die, [1, 2, 3, 4], workers=2))


@pytest.mark.long
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import os, time\nfrom pyhybrid.running.tasks import run_tasks\n"
        "def task(x):\n    print(os.getpid(), flush=True)\n    time.sleep(0.5)\n"
        "if __name__ == '__main__':\n    list(run_tasks(task, range(99), workers=2))\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    parent.stdout.readline()
    parent.kill()
    parent.communicate(timeout=30)  # ends when nobody is left to write


def test_an_interrupt_is_no_failure_of_a_task() -> None:
    interrupted = partial(_square_or_fail, error=KeyboardInterrupt)
    fails(KeyboardInterrupt, "", list, run_tasks(interrupted, [1, -1, 2]))


def _threads() -> list[int]:
    np.linalg.solve(np.eye(2), np.ones(2))
    return [own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"]


def test_one_thread_within_and_as_many_as_before_after_also_an_error() -> None:
    before = _threads()
    with one_blas_thread():
        assert before
        assert set(_threads()) == {1}
    assert _threads() == before
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert _threads() == before
