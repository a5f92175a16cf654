"""Products of small matrices on one thread.

OpenBLAS shares even small products among all processors, and its threads wait by spinning: where
the processors are busy, a loop over products of a few thousand rows takes ten times the processor
time that it needs, and more of the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within, BLAS uses one thread; afterwards as many as before."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
