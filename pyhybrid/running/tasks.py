"""Independent tasks in this process, in its threads, or in worker processes.

A task that fails loses nothing but itself; a worker that dies ends the run.

Products of small matrices are for one thread: OpenBLAS shares even small ones among all processors,
and its threads wait by spinning. Where the processors are busy, a loop over products of a few
thousand rows takes ten times the processor time that it needs, and more of the user's.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyhybrid.core.errors import InvalidInput, SamplingError

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all)."""

_AT_ONCE = 4  # tasks in threads, whatever the machine
_DIED = (
    "a worker process died: it may have run out of memory; a script that uses workers must keep "
    'its calls under if __name__ == "__main__":'
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Done(Generic[Task, Result]):
    """A task that has ended, with its result or with the error that ended it."""

    task: Task
    result: Result | None = None
    error: Exception | None = None


def run_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], *, workers: int = 1
) -> Iterator[Done[Task, Result]]:
    """Yield tasks as they end, failed ones too, from `workers` processes, here in turn with one;
    SamplingError if a worker dies."""
    if workers == 1 or len(tasks) < 2:
        for task in tasks:
            try:
                done = Done(task=task, result=function(task))
            except Exception as error:
                done = Done(task=task, error=error)
            yield done
    else:
        yield from _in_processes(function, tasks, workers)


def in_threads(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """Results in the order of `tasks`, of which so many are held as run at once: memory stays flat.
    For work within numpy, which leaves other threads their time."""
    at_once, waiting = min(os.cpu_count() or 1, _AT_ONCE), deque[Future[Result]]()
    with ThreadPoolExecutor(at_once) as pool:
        for task in tasks:
            waiting.append(pool.submit(function, task))
            if len(waiting) == at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def named_progress(progress: Progress | None, name: str) -> Progress | None:
    """`progress`, if there is one, of steps with a name before their labels."""
    if progress is None:
        return None
    return lambda label, done, total: progress(f"{name}: {label}", done, total)


def _in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[Done[Task, Result]]:
    futures: dict[Future[Result], Task] = {}
    # A fork would copy the locks of threads that a sampler has left running.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_begin_worker) as pool:
        try:
            for task in tasks:
                futures[pool.submit(function, task)] = task
            for future in as_completed(futures):
                try:
                    done = Done(task=futures[future], result=future.result())
                except BrokenProcessPool:
                    raise
                except Exception as error:
                    done = Done(task=futures[future], error=_readable(error))
                yield done
        except BrokenProcessPool:
            raise SamplingError(_DIED) from None
        finally:
            for future in futures:
                future.cancel()


def _readable(error: Exception) -> Exception:
    """The error in a user's words, where a task could not travel to a worker."""
    if re.search(r"(?i)\bcan(no|')t (un)?pickle\b|local object", str(error)):
        return InvalidInput(
            "what is handed to workers must be picklable: define functions and classes at the top "
            f"level of a module, or take one worker ({error})"
        )
    return error


def _begin_worker() -> None:
    """Leave interrupts to the parent, and end with it: a parent that is killed tells nobody."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within, BLAS uses one thread; afterwards as many as before."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
