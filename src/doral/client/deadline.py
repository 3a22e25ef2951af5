"""A deadline for a whole answer. Time-outs of sockets begin anew with every byte: a head that drips would have no end.

(The asynchronous client needs none of this: asyncio ends whatever it waits for.)
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2


class _Deadline(threading.local):
    until_s = math.inf


_deadline = _Deadline()


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Whatever this thread receives inside the block, through a client that is bounded, is here by then."""
    _deadline.until_s = time.monotonic() + seconds
    try:
        yield
    finally:
        _deadline.until_s = math.inf


def bounded(client: httpx2.Client) -> httpx2.Client:
    """Have a client's connections obey deadlines."""
    for transport in (client._transport, *client._mounts.values()):
        pool: Any = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _Backend(pool._network_backend)
    return client


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, backend: httpcore2.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(self, *args: Any, **options: Any) -> httpcore2.NetworkStream:
        return _Stream(self._backend.connect_tcp(*args, **options))

    def connect_unix_socket(self, *args: Any, **options: Any) -> httpcore2.NetworkStream:
        return _Stream(self._backend.connect_unix_socket(*args, **options))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left_s = _deadline.until_s - time.monotonic()
        if left_s <= 0:
            raise httpcore2.ReadTimeout("the answer did not come in time")
        if left_s < math.inf:
            timeout = left_s if timeout is None else min(timeout, left_s)
        return self._stream.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, *args: Any, **options: Any) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(*args, **options))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
