"""A real Dask cluster of separate processes, on this machine alone; and a policy that kills its worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest
from distributed import Client

import doral
from tests.cli.processes import environment

START_S = 90.0


class Dask:
    """A scheduler, and workers of one thread each, that come and go."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        self._scheduler = _started(environment(), "scheduler", "--port", port)
        self._workers: list[subprocess.Popen[bytes]] = []

    def add_worker(self, **more: str) -> subprocess.Popen[bytes]:
        one = _started({**environment(), **more}, "worker", self.address, "--nthreads", "1", "--no-nanny")
        self._workers.append(one)
        return one

    def workers(self) -> list[subprocess.Popen[bytes]]:
        return [one for one in self._workers if one.poll() is None]

    def kill_one(self) -> None:
        self.workers()[0].send_signal(signal.SIGKILL)

    def kill_scheduler(self) -> None:
        self._scheduler.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        for one in (*self._workers, self._scheduler):
            if one.poll() is None:
                one.kill()
            one.wait()


def _started(env: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def until(is_so: Callable[[], bool], *, what: str) -> None:
    ends = time.monotonic() + START_S
    while not is_so():
        assert time.monotonic() < ends, what
        time.sleep(0.02)


@pytest.fixture(scope="module")  # its processes are never idle
def dask_processes() -> Iterator[Dask]:
    made = Dask()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def client(dask_processes: Dask) -> Iterator[Client]:
    with Client(dask_processes.address, timeout=START_S, set_as_default=False) as made:
        yield made


@pytest.fixture
def dask(dask_processes: Dask, client: Client) -> Iterator[Dask]:
    """With two workers, whatever the last test did to them; joblib is told to use it."""
    while len(dask_processes.workers()) < 2:
        dask_processes.add_worker()
    pids = {one.pid for one in dask_processes.workers()}
    until(lambda: set(client.run(os.getpid).values()) == pids, what="two workers")
    with joblib.parallel_config("dask", client=client):
        yield dask_processes


def deadly(mark: Path) -> Any:
    """A policy that does as little as possible; the first process that plays it dies of it."""

    class Deadly:
        def __init__(self, problem: doral.Problem, seed: int) -> None:
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                return
            os.kill(os.getpid(), signal.SIGKILL)

        def decide(self, arrival: doral.Arrival) -> int | None:
            return arrival.available[0] if arrival.round % 7 == 0 and arrival.available else None

        def observe(self, answer: doral.Answer) -> None:
            pass

    return Deadly
