"""What every answer says to browsers: what a page may do, who may show it, and that nothing is kept."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doral.service.access.cookies import is_encrypted
from doral.service.settings import ServiceSettings
from doral.wire.addresses import is_loopback

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
