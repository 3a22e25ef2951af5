"""What those who carry requests share, whether they wait or are awaited: how httpx2 is asked, and what it says."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from doral.client.address import Address
from doral.client.attempts import Failure, Patience, Reply
from doral.client.calls import Call
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
