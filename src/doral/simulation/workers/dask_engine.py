"""Tasks on a Dask cluster."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from distributed import Client, Future, wait
from distributed.client import FutureCancelledError, FuturesCancelledError
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker, NoValidWorkerError

from doral.errors import InvalidValue
from doral.simulation.workers.cluster import GOES_ON, LOOK_S, STRANDED_S, ClusterError
from doral.simulation.workers.tasks import Packed, work

Task: TypeAlias = "Future[Any]"
_LOST = (CommClosedError, FutureCancelledError, FuturesCancelledError, NoValidWorkerError)


def _held(packed: Packed) -> Packed:
    """A task, not data: when the workers that hold it die, others make it again."""
    return packed


class OnDask:
    """Tasks on a Dask cluster, through a connected client."""

    def __init__(self, client: Client) -> None:
        if client.status != "running":
            raise ClusterError(f"cluster: the Dask client of joblib is {client.status}; connect anew")
        if client.asynchronous:
            raise InvalidValue("cluster", client, "is an asynchronous Dask client; give joblib one that is not")
        self._client = client
        self._stranded_since: float | None = None

    @property
    def _address(self) -> str:
        return str(self._client.scheduler.address) if self._client.scheduler is not None else "closed"

    def workers(self) -> int:
        return max(1, sum(self._cores().values()))

    def _cores(self) -> Mapping[str, int]:
        try:
            return dict(self._client.ncores())
        except (*_LOST, OSError) as error:
            raise self._lost(error) from error

    def share(self, packed: Packed) -> Task:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it is large; it is sent once
            return self._client.submit(_held, packed, pure=False)

    def submit(self, shared: Task, pieces: bytes) -> Task:
        return self._client.submit(work, shared, pieces, pure=False)

    def first_done(self, handles: Sequence[Task]) -> Sequence[Task]:
        while True:
            try:
                with self._client.as_current():  # others may have clients in this process, too
                    return list(wait(list(handles), timeout=LOOK_S, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                self._look_around()
            except _LOST as error:
                raise self._lost(error) from error

    def _look_around(self) -> None:
        if self._client.status != "running":
            raise self._lost("its scheduler is gone")
        if self._cores():
            self._stranded_since = None
            return
        self._stranded_since = self._stranded_since or time.monotonic()
        if time.monotonic() - self._stranded_since > STRANDED_S:
            raise self._lost(f"it has had no worker for {STRANDED_S:.0f} s")

    def result(self, handle: Task) -> bytes:
        try:
            return handle.result()
        except KilledWorker as error:
            remedy = "several workers died over the same piece of work: give them more memory, and look at their logs"
            raise ClusterError(f"cluster {self._address}: {remedy}") from error
        except _LOST as error:
            raise self._lost(error) from error

    def forget(self, handles: Iterable[Task]) -> None:
        left = list(handles)
        if left and self._client.status == "running":
            self._client.cancel(left, force=True)

    def _lost(self, why: str | Exception) -> ClusterError:
        if isinstance(why, Exception):  # Dask lists every piece of work after the first line
            is_gone = self._client.status != "running"
            why = "its scheduler is gone" if is_gone else (str(why).splitlines() or [type(why).__name__])[0].rstrip(":")
        return ClusterError(f"cluster {self._address} was lost in the middle of the work: {why}; {GOES_ON}")
