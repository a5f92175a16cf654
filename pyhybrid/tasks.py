"""Independent tasks in this process, in worker processes, or on any executor."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from pyhybrid.errors import SamplingError

__all__ = ["run_tasks"]

Task = TypeVar("Task")
Result = TypeVar("Result")


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int = 1,
    executor: Executor | None = None,
) -> Iterator[tuple[Task, Result]]:
    """Yield (task, result) as tasks finish.

    A task that raises stops the ones not yet begun; the others' results are yielded first.

    Parameters
    ----------
    function : callable
        At the top level of a module; its tasks and results can be pickled.
    tasks : sequence
    workers : int, default 1
        Processes; with 1 the tasks run here, one after the other.
    executor : Executor, optional
        In place of `workers`; it is not shut down.

    Raises
    ------
    SamplingError
        If a worker process dies.
    """
    if executor is not None:
        yield from _submitted(function, tasks, executor)
    elif workers == 1 or len(tasks) < 2:
        yield from ((task, function(task)) for task in tasks)
    else:
        # A fork would copy the locks of threads that a sampler has left running.
        pool = ProcessPoolExecutor(
            min(workers, len(tasks)),
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_leave_interrupts_to_the_parent,
        )
        with pool:
            yield from _submitted(function, tasks, pool)


def _submitted(
    function: Callable[[Task], Result], tasks: Sequence[Task], executor: Executor
) -> Iterator[tuple[Task, Result]]:
    futures: dict[Future[Result], Task] = {}
    failure: BaseException | None = None
    try:
        for task in tasks:
            futures[executor.submit(function, task)] = task
        for future in as_completed(futures):
            if future.cancelled():
                continue
            error = future.exception()
            if error is None:
                yield futures[future], future.result()
            elif failure is None:
                failure = error
                _cancel(futures)
    finally:
        _cancel(futures)
    if isinstance(failure, BrokenProcessPool):
        raise SamplingError(
            "a worker process died: it may have run out of memory; a script that uses workers "
            'must keep its calls under if __name__ == "__main__":'
        ) from None
    if failure is not None:
        raise failure


def _cancel(futures: dict[Future[Result], Task]) -> None:
    for future in futures:
        future.cancel()


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
