"""What is asked of an engine for many machines, and which one joblib was told to use."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from doral.simulation.workers.packing import Packed

ANSWER_S = 10.0  # nobody starts an experiment on a cluster that takes longer to say a word
STRANDED_S = 60.0  # so long without a single worker, and the work is given up
LOOK_S = 5.0  # how often it is asked whether anybody is left


class Engine(Protocol):
    """Tasks that run elsewhere. Handles are the engine's own, and can be hashed.

    joblib's own ways to Dask and Ray lose what is asked here: the one waits for ever when a task cannot be unpacked or
    its workers keep dying, the other fails with the first worker that dies, and gives no result before the last.
    """

    def workers(self) -> int:
        """How many tasks can run at once, now."""

    def check(self) -> None:
        """Refuse workers that would give other numbers."""

    def share(self, packed: Packed) -> Any:
        """What all tasks need; each worker fetches it once."""

    def submit(self, shared: Any, pieces: bytes) -> Any:
        """One task, packed, which is tried again when its worker dies."""

    def first_done(self, handles: Sequence[Any]) -> Sequence[Any]:
        """Wait for at least one."""

    def result(self, handle: Any) -> bytes:
        """What a finished task found, as `packing.work` says it, or the error that it raised."""

    def forget(self, handles: Iterable[Any]) -> None:
        """Nobody waits for these any more."""


def active() -> Engine | None:
    """That of `joblib.parallel_config("dask")` or `("ray")`; None: joblib computes by itself."""
    if "joblib" not in sys.modules:  # nobody can have told it anything
        return None
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    kind = type(backend).__name__
    if kind == "DaskDistributedBackend":
        from doral.simulation.workers.dask_engine import OnDask

        return OnDask(backend.client)
    if kind == "RayBackend":
        from doral.simulation.workers.ray_engine import OnRay

        return OnRay()
    return None
