"""`doral.connect` and `doral.connect_async`: campaigns behind a service, as if they were here."""

from __future__ import annotations

import ssl
import uuid
from typing import TYPE_CHECKING

from doral import _check
from doral.client.address import make_address
from doral.errors import InvalidValue
from doral.wire.errors import ServiceError

if TYPE_CHECKING:
    from doral.client.remote import RemoteStore
    from doral.client.remote_async import AsyncStore
    from doral.client.transport import Wiring

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
