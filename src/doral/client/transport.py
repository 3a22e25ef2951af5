"""What those who carry requests share, whether they wait or are awaited: how httpx2 is asked, and what it says.

Time-outs of sockets begin anew with every byte: a head that drips would have no end. So the synchronous client's
connections obey a deadline for a whole answer. (The asynchronous one needs none: asyncio ends whatever it waits for.)
"""

from __future__ import annotations

import math
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

from doral.client.attempts import Failure, Patience, Reply
from doral.client.calls import Call
from doral.client.connect import Address
from doral.errors import InvalidValue

MOST_CONNECTIONS = 100
SILENCE_S = 60.0  # a stream of events on which nothing comes, not even a sign of life, is lost
ERRORS = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)
_BEFORE_SENDING = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """To whom, and how patiently."""

    address: Address
    patience: Patience
    tls: ssl.SSLContext | None = None

    def client_options(self) -> dict[str, Any]:
        """Of an httpx2 client. Nobody is followed elsewhere with the key."""
        is_here = self.address.is_here
        return {
            "headers": self.address.headers,
            "follow_redirects": False,
            "verify": True if self.tls is None else self.tls,
            "trust_env": not is_here,  # what goes to this host goes through no proxy
            "limits": httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS),
        }

    def url_of(self, path: str) -> str:
        return self.address.url + path


def headers_of(call: Call[Any]) -> dict[str, str]:
    said = {} if call.body is None else {"Content-Type": "application/json"}
    return said if call.header_key is None else {**said, "Idempotency-Key": call.header_key}


def looking(path: str) -> Call[None]:
    """A request whose answer is read elsewhere, as it comes; what is left of it is whether it came."""
    return Call(method="GET", path=path, read=_all_came, is_long=True)


def _all_came(given: object) -> None:
    if given is not None:
        raise ValueError("it is none of what was asked for")


ALL_CAME = Reply(status=204, headers={}, body=b"")


def reply_of(status: int, headers: Mapping[str, str], body: bytes) -> Reply:
    return Reply(status=status, headers={name.lower(): value for name, value in headers.items()}, body=body)


def streams_events(response: httpx2.Response) -> bool:
    """Whether events come; whatever else is said with success is read as an answer that is not understood."""
    kind = response.headers.get("content-type", "")
    return response.status_code == httpx2.codes.OK and kind.startswith("text/event-stream")


def failure_of(error: Exception, url: str) -> Failure:
    """What is known when no answer came. InvalidValue where that is no matter of waiting."""
    if isinstance(error, httpx2.InvalidURL):
        raise InvalidValue("url", url, f"cannot be used: {error}") from None
    if (refused := _untrusted(error)) is not None:
        raise InvalidValue("url", url, f"is not trusted: {refused.verify_message}; give tls=... if it can be") from None
    if _speaks_plainly(error):
        remedy = "does not speak TLS: begin with http://, or give the address that does"
        raise InvalidValue("url", url, remedy) from None
    said = str(error) or type(error).__name__
    if isinstance(error, httpx2.RemoteProtocolError) and url.startswith("http://"):
        said += "; does it speak TLS? Then begin with https://"
    return Failure(
        words=f"the service at {url} gave no answer: {said}",
        may_have_arrived=not isinstance(error, _BEFORE_SENDING),
        is_unconnected=isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout),
    )


def too_slow(url: str, timeout_s: float) -> Failure:
    return Failure(words=f"the service at {url} gave no answer within {timeout_s:.3g} s", may_have_arrived=True)


def _speaks_plainly(error: BaseException | None) -> bool:
    """Whether something answered, and not in TLS: it will not do so later either."""
    while error is not None:
        if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
            return True
        error = error.__cause__ or error.__context__
    return False


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error
        error = error.__cause__ or error.__context__
    return None


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
