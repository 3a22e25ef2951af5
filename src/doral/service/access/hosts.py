"""By which name the service was called: a stranger's name that leads to this machine is not served."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from doral.service.access.answering import refuse
from doral.service.access.binding import served_names
from doral.service.settings import ServiceSettings
from doral.wire.problems import ServiceError

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
