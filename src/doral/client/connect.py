"""`doral.connect` and `doral.connect_async`: campaigns behind a service, as if they were here."""

from __future__ import annotations

import ssl
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from doral import _check
from doral._version import VERSION
from doral.errors import InvalidValue
from doral.wire.problems import ServiceError
from doral.wire.values import is_loopback

if TYPE_CHECKING:
    from doral.client.remote import RemoteStore
    from doral.client.remote_async import AsyncStore
    from doral.client.transport import Wiring


_MOST_CHARACTERS = 1_000


@dataclass(frozen=True, kw_only=True)
class Address:
    """Of a service, checked.

    Attributes:
        url: Without a slash at its end.
        key: None: none is sent.
        is_here: Whether it is on this very host, so that nothing that is sent leaves it.
    """

    url: str
    key: str | None = field(repr=False)
    is_here: bool

    @property
    def headers(self) -> dict[str, str]:
        said = {"User-Agent": f"doral/{VERSION}", "Accept": "application/json"}
        return said if self.key is None else {**said, "Authorization": f"Bearer {self.key}"}


def make_address(url: object, key: object, *, allow_plain_http: bool) -> Address:
    """Whatever is wrong is said here, and the key is not."""
    if not isinstance(url, str):
        raise InvalidValue("url", url, "must be a string such as 'https://doral.example.org'")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise InvalidValue(
            "url",
            _without_secrets(url),
            "must be an address such as 'https://doral.example.org' or 'http://127.0.0.1:8787'",
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidValue("url", _without_secrets(url), "must hold no password: give the key with key=...")
    if key is not None:
        _check_key(key)
    is_here = is_loopback(host)
    if parts.scheme == "http" and key is not None and not is_here and not allow_plain_http:
        remedy = "would carry the key so that anybody on the way can read it: use https, or say allow_plain_http=True"
        raise InvalidValue("url", url, remedy)
    return Address(url=url.rstrip("/"), key=None if key is None else str(key), is_here=is_here)


def _check_key(key: object) -> None:
    is_text = isinstance(key, str) and 0 < len(key) <= _MOST_CHARACTERS
    if not is_text or not all("!" <= one <= "~" for one in str(key)):
        raise InvalidValue("key", Hidden(), "must be a key as the service has given it: letters, digits, - and _")


class Hidden:
    """Stands for a key in messages."""

    def __repr__(self) -> str:
        return "(not shown)"


def _without_secrets(url: str) -> str:
    before, found, after = url.partition("//")
    return url if not found or "@" not in after else f"{before}//***@{after.rpartition('@')[2]}"


_MISSING = "speaking to a service needs its packages: pip install 'doral[serve]'"


def connect(
    url: str,
    key: str | None = None,
    *,
    timeout_s: float = 60.0,
    try_timeout_s: float = 20.0,
    allow_plain_http: bool = False,
    tls: ssl.SSLContext | None = None,
) -> RemoteStore:
    """Campaigns behind a service that `doral serve` runs, with the calls of a store that `doral.open` gives.

    Nothing is sent yet. Whatever is asked later is sent again, with the same key, until an answer comes or the time is
    up: a lost answer never decides, spends or counts twice.

    Args:
        url: Where the service is, such as "https://doral.example.org".
        key: Says who asks, as `doral keys` has made it; never shown in messages. None: none is sent.
        timeout_s: Seconds for one call, with all its tries and the waiting between them.
        try_timeout_s: Seconds for one try; what reads a whole log may take all of `timeout_s`.
        allow_plain_http: Whether a key may go over plain http to another host, where others can read it.
        tls: Says which certificates are trusted, if not those of the system.
    """
    wiring = _wiring(url, key, timeout_s, try_timeout_s, allow_plain_http=allow_plain_http, tls=tls)
    from doral.client.connection import Connection
    from doral.client.remote import RemoteStore

    return RemoteStore(Connection(wiring), _draw_key)


def connect_async(
    url: str,
    key: str | None = None,
    *,
    timeout_s: float = 60.0,
    try_timeout_s: float = 20.0,
    allow_plain_http: bool = False,
    tls: ssl.SSLContext | None = None,
) -> AsyncStore:
    """As `doral.connect`, for programs that go on meanwhile: every call is awaited, every iterator is an `async for`.

    Args:
        url: Where the service is, such as "https://doral.example.org".
        key: Says who asks, as `doral keys` has made it; never shown in messages. None: none is sent.
        timeout_s: Seconds for one call, with all its tries and the waiting between them.
        try_timeout_s: Seconds for one try; what reads a whole log may take all of `timeout_s`.
        allow_plain_http: Whether a key may go over plain http to another host, where others can read it.
        tls: Says which certificates are trusted, if not those of the system.
    """
    wiring = _wiring(url, key, timeout_s, try_timeout_s, allow_plain_http=allow_plain_http, tls=tls)
    from doral.client.connection_async import AsyncConnection
    from doral.client.remote_async import AsyncStore

    return AsyncStore(AsyncConnection(wiring), _draw_key)


def _wiring(
    url: str,
    key: str | None,
    timeout_s: float,
    try_timeout_s: float,
    *,
    allow_plain_http: bool,
    tls: ssl.SSLContext | None,
) -> Wiring:
    if not isinstance(allow_plain_http, bool):
        raise InvalidValue("allow_plain_http", allow_plain_http, "must be True or False")
    if tls is not None and not isinstance(tls, ssl.SSLContext):
        raise InvalidValue("tls", tls, "must be an ssl.SSLContext, such as ssl.create_default_context(cafile=...)")
    timeout_s = _check.finite_number("timeout_s", timeout_s, above=0)
    try_timeout_s = _check.finite_number("try_timeout_s", try_timeout_s, above=0)
    address = make_address(url, key, allow_plain_http=allow_plain_http)
    try:
        from doral.client.attempts import Patience
        from doral.client.transport import Wiring
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("httpx2"):
            raise
        raise ServiceError(_MISSING, "not-installed") from None
    return Wiring(address=address, patience=Patience(timeout_s=timeout_s, try_timeout_s=try_timeout_s), tls=tls)


def _draw_key() -> str:
    """A key that nobody else draws."""
    return uuid.uuid4().hex
