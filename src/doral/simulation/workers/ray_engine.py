"""Tasks on Ray."""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from doral.simulation.workers.cluster import GOES_ON, LOOK_S, STRANDED_S, ClusterError
from doral.simulation.workers.tasks import Packed, work

TRIES_AGAIN = 5  # when the process or the machine of a task dies; its own errors are never tried again
# Ray takes 127.0.0.1 for a wish to be reached from elsewhere, and puts the machine's address in its place.
_LOOPBACK = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"


class OnRay:
    """On the Ray that this process has joined; where it has joined none, on one that is started here."""

    def __init__(self) -> None:
        if not ray.is_initialized():
            start(os.environ.get("RAY_ADDRESS"))
        self._work = ray.remote(num_cpus=1, max_retries=TRIES_AGAIN)(work)

    def workers(self) -> int:
        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def share(self, packed: Packed) -> Any:
        return ray.put(packed)

    def submit(self, shared: Any, pieces: bytes) -> Any:
        return self._work.remote(shared, pieces)

    def first_done(self, handles: Sequence[Any]) -> Sequence[Any]:
        stranded_since: float | None = None
        while True:
            done, _ = ray.wait(list(handles), num_returns=1, timeout=LOOK_S)
            if done:
                return done
            now = time.monotonic()
            if ray.cluster_resources().get("CPU", 0.0) >= 1.0:
                stranded_since = None
            elif now - (stranded_since := stranded_since or now) > STRANDED_S:
                why = f"it has had no processor for {STRANDED_S:.0f} s; start one: ray start --address=HOST:6379"
                raise ClusterError(f"cluster ray: {why}")

    def result(self, handle: Any) -> bytes:
        try:
            return ray.get(handle)
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None
        except RayError as error:
            raise ClusterError(f"Ray was lost in the middle of the work: {error}; {GOES_ON}") from error

    def forget(self, handles: Iterable[Any]) -> None:
        for one in handles:
            ray.cancel(one, force=True)


def start(address: str | None) -> None:
    """Join the Ray at an address; without one, start Ray here, for this machine alone and until this process ends.

    Without usage statistics, without a dashboard.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the first error is raised; the others are the same
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns of what it will do some day
    if address is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it then raises
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        return
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _node_ip_address=_LOOPBACK,
    )
