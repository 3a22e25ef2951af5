"""What takes a while is done in a thread: nothing blocks the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")
_MANY = 500  # items that take about a millisecond


class Run(Protocol):
    """Has something done in a thread."""

    def __call__(self, work: Callable[[], Result]) -> Awaitable[Result]: ...


async def in_thread_if_many(run: Run, n_items: int, work: Callable[[], Result]) -> Result:
    """Something to be done for many items, such as writing them as JSON: in a thread where it takes long.

    Args:
        run: Has something done in a thread.
        n_items: How many there are.
        work: What is to be done.
    """
    return work() if n_items <= _MANY else await run(work)
