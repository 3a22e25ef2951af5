"""What stands around all routes: headers of answers, names of hosts, and bounds of bodies.

Nothing is read of a body before the key of the request was looked at.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doral.errors import DoralError, InvalidValue
from doral.service.access.entrance import is_encrypted
from doral.service.responses import problem_reply
from doral.service.service import Service
from doral.service.settings import Limits, ServiceSettings
from doral.wire.problems import ServiceError
from doral.wire.values import is_loopback


async def refuse(scope: Scope, receive: Receive, send: Send, error: DoralError, *, is_last: bool = False) -> None:
    """Answer with a problem; `is_last`: nothing else can come through this connection."""
    headers = {"Connection": "close"} if is_last else None
    await problem_reply(error, instance=str(scope.get("path", ""))[:1_000], headers=headers)(scope, receive, send)


# --- on which addresses, and by which names ---------------------------------------------------------------------------

LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))


def check_binding(settings: ServiceSettings) -> None:
    """InvalidValue where keys could be read on their way, or where what was said contradicts itself."""
    if (settings.tls_cert is None) != (settings.tls_key is None):
        given = "tls_cert" if settings.tls_key is None else "tls_key"
        raise InvalidValue(given, str(getattr(settings, given)), "give both --tls-cert and --tls-key, or neither")
    if settings.public_url is not None:
        _check_public_url(settings.public_url)
    if settings.tls_cert is None and not settings.allow_plain_http and not is_loopback(settings.host):
        raise InvalidValue(
            "host",
            settings.host,
            "others can reach this address, and could read keys on their way: give --tls-cert and --tls-key; or "
            "--allow-plain-http, where a proxy that speaks TLS stands before it",
        )
    is_direct = settings.tls_cert is not None and settings.public_url is None and not is_loopback(settings.host)
    if is_direct and not settings.allow_direct:
        raise InvalidValue(
            "host",
            settings.host,
            "others can reach this address, and no balancer stands before it, which bounds slow and endless requests: "
            "see deploy/nginx.conf, and give --public-url; or say --direct, where only a network that you trust does",
        )


def served_names(settings: ServiceSettings) -> frozenset[str] | None:
    """The names by which requests may call this service, in lower case; None: any.

    On the loopback no others are taken: the page of a stranger that makes its own name lead to 127.0.0.1 would be
    of the same origin as ours.
    """
    if settings.public_url is not None:
        public = (urlsplit(settings.public_url).hostname or "").lower()
        return LOOPBACK_NAMES | {public, settings.host.strip("[]").lower()}
    if is_loopback(settings.host):
        return LOOPBACK_NAMES | {settings.host.strip("[]").lower()}
    return None


def _check_public_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_right = False
    if not is_right or parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidValue("public_url", url, "must be scheme and host, as in https://campaigns.example.org")


# --- headers ----------------------------------------------------------------------------------------------------------

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
ASSETS = "/assets/"
_ALWAYS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    # Nothing is told to other sites. (With `no-referrer`, browsers send `Origin: null` with our own forms, too.)
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_POLICY = b"content-security-policy"  # of several, browsers obey all
_YEAR_S = 365 * 86_400


def headers_of_answers(settings: ServiceSettings) -> dict[str, str]:
    """Of all but assets."""
    return {**_of_assets(settings), "cache-control": "no-store"}


def _of_assets(settings: ServiceSettings) -> dict[str, str]:
    found = dict(_ALWAYS)
    # Not for this machine alone: browsers would ask for TLS of everything else that runs on it.
    if is_encrypted(settings) and (settings.public_url is not None or not is_loopback(settings.host)):
        found["strict-transport-security"] = f"max-age={_YEAR_S}"
    return found


class Headers:
    """Adds them. No route can say otherwise: its own policy for a page holds beside this one, the rest is replaced."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._asset = _encoded(_of_assets(settings))
        self._other = _encoded(headers_of_answers(settings))
        self._asset_names = frozenset(name for name, _ in self._asset if name != _POLICY)
        self._other_names = self._asset_names | {b"cache-control"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_asset = scope["path"].startswith(ASSETS)

        async def send_all(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_kept = is_asset and message["status"] < 400
                own, names = (self._asset, self._asset_names) if is_kept else (self._other, self._other_names)
                message["headers"] = [one for one in message.get("headers", ()) if one[0] not in names] + own
            await send(message)

        await self._app(scope, receive, send_all)


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


# --- hosts ------------------------------------------------------------------------------------------------------------

_PROBES = frozenset(("/healthz", "/readyz"))  # asked by machines that know an address and no name
_MOST_SEEN = 100


class Hosts:
    """Looks at the header Host, where names are known."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app = app
        self._names = served_names(settings)
        self._seen: set[bytes] = set()  # headers that were found to be right

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._names is not None and scope["type"] == "http":
            given = [value for name, value in scope["headers"] if name == b"host"]
            if not (len(given) == 1 and self._is_served(given[0])) and scope["path"] not in _PROBES:
                words = "this service does not go by that name: use the address that it printed when it began"
                await refuse(scope, receive, send, ServiceError(words, "misdirected-request", 421), is_last=True)
                return
        await self._app(scope, receive, send)

    def _is_served(self, given: bytes) -> bool:
        if given in self._seen:
            return True
        if self._names is None or host_of(given) not in self._names:
            return False
        if len(self._seen) < _MOST_SEEN:
            self._seen.add(given)
        return True


def host_of(header: bytes) -> str:
    """Without its port.

    >>> host_of(b"LOCALHOST:8787"), host_of(b"[::1]:80"), host_of(b"10.0.0.1"), host_of(b"::1:8")
    ('localhost', '::1', '10.0.0.1', '')
    """
    text = header.decode("latin-1").strip().lower()
    if text.startswith("["):
        name, bracket, port = text[1:].partition("]")
        return name if bracket and (not port or (port[0] == ":" and port[1:].isdigit())) else ""
    name, colon, port = text.partition(":")
    return "" if colon and not port.isdigit() else name.removesuffix(".")


# --- bodies -----------------------------------------------------------------------------------------------------------

STRANGER_BYTES = 64 * 1024  # of a form by somebody who has not signed in: a key has 62 characters
# A few large bodies at once fill no memory, and hundreds would: then only small ones are taken, such as decisions.
_MOST_TOGETHER = 16  # as large as one may be
_SMALL_BYTES = 64 * 1024
_RETRY_S = 1.0
_WITHOUT_BODY = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
_API = "/v1/"


class Bodies:
    """Around all routes that take something."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits
        self._room = _Room(_MOST_TOGETHER * limits.body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _WITHOUT_BODY:
            await self._app(scope, receive, send)
            return
        try:
            most = await self._most_bytes(scope)
            length = _declared_length(scope)
            if length is not None and length > most:
                raise _too_large(most)
        except DoralError as error:
            await refuse(scope, receive, send, error, is_last=True)  # what it was about to send may still come
            return
        if length == 0:
            await self._app(scope, receive, send)
            return
        within_s = self._limits.body_s
        await _Bounded(scope, receive, send, room=self._room, most=most, within_s=within_s).run(self._app)

    async def _most_bytes(self, scope: Scope) -> int:
        """How much this caller may send. The API answers strangers here; pages ask them to sign in."""
        service: Service = scope["app"].state.service
        if scope["path"].startswith(_API):
            await service.entrance.caller(scope)
            return self._limits.body_bytes
        try:
            await service.entrance.page_caller(scope)
        except ServiceError as error:
            if error.retry_after_s is not None:
                raise
            return min(STRANGER_BYTES, self._limits.body_bytes)
        return self._limits.body_bytes


class _Room:
    """Bytes of bodies that are here now, of all requests together."""

    __slots__ = ("most", "taken")

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0


class _Bounded:
    """One request, of which so much is read within so many seconds. Whoever exceeds it is told at once.

    One timer for the whole body: nearly always all of it is there already, and it is never heard of.
    """

    __slots__ = ("_has_begun", "_is_late", "_is_refused", "_left", "_most", "_receive", "_room", "_scope", "_send",
                 "_timer", "_waiting", "_within_s")  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, room: _Room, most: int, within_s: float) -> None:
        self._scope, self._receive, self._send, self._room = scope, receive, send, room
        self._most, self._left, self._within_s = most, most, within_s
        self._has_begun = self._is_refused = self._is_late = False
        self._waiting: asyncio.Task[object] | None = None  # that waits for more of the body
        self._timer: asyncio.TimerHandle | None = asyncio.get_running_loop().call_later(within_s, self._be_late)

    async def run(self, app: ASGIApp) -> None:
        try:
            await app(self._scope, self.receive, self.send)
        except ServiceError:
            if not self._is_refused:
                raise
        finally:
            self._stop_timer()
            self._room.taken -= self._most - self._left

    def _be_late(self) -> None:
        self._is_late = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def receive(self) -> Message:
        if self._timer is None:  # the body is whole
            return await self._receive()
        message = await self._more()
        got = len(message.get("body", b""))
        self._left -= got
        self._room.taken += got
        if self._left < 0:
            raise await self._refuse(_too_large(self._most))
        if self._room.taken > self._room.most and self._most - self._left > _SMALL_BYTES:
            raise await self._refuse(_no_room())
        if not message.get("more_body", False):
            self._stop_timer()
        return message

    async def _more(self) -> Message:
        if self._is_late:
            raise await self._refuse(_too_late(self._within_s))
        self._waiting = asyncio.current_task()
        try:
            return await self._receive()
        except asyncio.CancelledError:
            if not self._was_cancelled_here():
                raise
        finally:
            self._waiting = None
        raise await self._refuse(_too_late(self._within_s))

    def _was_cancelled_here(self) -> bool:
        """By our timer, and by nobody else as well, as when the service is stopped."""
        return self._is_late and self._waiting is not None and self._waiting.uncancel() == 0

    async def send(self, message: Message) -> None:
        if self._is_refused:
            return  # what somebody makes of a body that broke off
        self._has_begun = True
        await self._send(message)

    async def _refuse(self, error: ServiceError) -> ServiceError:
        if not self._has_begun and not self._is_refused:
            self._is_refused = True
            await refuse(self._scope, self._receive, self._send, error, is_last=True)
        return error


def _declared_length(scope: Scope) -> int | None:
    """None where it is not said: in pieces, or not at all."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else None
        if name == b"transfer-encoding":
            return None
    return 0


def _too_large(most: int) -> ServiceError:
    return ServiceError(f"the body has more than {most:,} bytes: send less at once", "content-too-large", 413)


def _no_room() -> ServiceError:
    words = "too many large bodies are being sent at once: try again a little later, or send less at once"
    return ServiceError(words, "overloaded", 503, _RETRY_S)


def _too_late(within_s: float) -> ServiceError:
    words = f"the body did not arrive within {within_s:g} s: send less at once, or over a better line"
    return ServiceError(words, "request-timeout", 408)


def install(app: FastAPI, settings: ServiceSettings) -> None:
    """What is looked at before any route. To be called last."""
    app.add_middleware(Bodies, limits=settings.limits)
    app.add_middleware(Hosts, settings=settings)
    app.add_middleware(Headers, settings=settings)  # the last one stands outermost: refusals have them, too
