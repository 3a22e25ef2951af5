"""One process that answers requests, and how it ends."""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from types import FrameType

import uvicorn
from fastapi import FastAPI

from doral.service.operations.listening import BACKLOG, tls_context
from doral.service.operations.protocol import BoundedHttp
from doral.service.settings import ServiceSettings

KEEP_ALIVE_S = 75  # longer than proxies keep theirs, so that none of them sends into a closing connection
_MOST_CONNECTIONS = 8_000
_SPARE_FILES = 256  # for the store, logs and the like
_ENDED_AT_ONCE = 130  # as a shell says of a program that Ctrl-C has ended
_GIVEN_UP = 1
_SPARE_S = 10.0  # beyond `stop_within_s`: for what was handed in to be stored, and snapshots

_logger = logging.getLogger("doral.service")


class Server(uvicorn.Server):
    """Uvicorn's server, which ends with 0 when it was asked to end, and tells its streams."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, *, stop_within_s: float) -> None:
        super().__init__(config)
        self._app = app
        self._giving_up = threading.Timer(stop_within_s + _SPARE_S, _give_up)
        self._giving_up.daemon = True

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            self._giving_up.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # Uvicorn sends the signal to itself again at the end, which makes being stopped look like a failure.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        heard = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) != signal.SIG_IGN]
        before = {one: signal.signal(one, self.handle_exit) for one in heard}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        del frame
        if self.should_exit and sig == signal.SIGINT:
            os._exit(_ENDED_AT_ONCE)  # what is not stored was not acknowledged
        if not self.should_exit:
            self._giving_up.start()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        streams = getattr(self._app.state, "streams", None)
        if streams is not None:
            streams.end()
        await super().shutdown(sockets)


def _give_up() -> None:
    """A store that does not answer, such as a file that somebody else has locked, holds up nobody for ever."""
    _logger.error("the store did not answer in time: ended without waiting for it; what was acknowledged is stored")
    os._exit(_GIVEN_UP)


def make_server(app: FastAPI, settings: ServiceSettings) -> Server:
    """The server of this process."""
    context = tls_context(settings)

    def tls(config: uvicorn.Config, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        del config, default
        assert context is not None
        return context

    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=BoundedHttp,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Only a proxy may say from where a request came: without one, whoever calls could say anything.
        proxy_headers=settings.public_url is not None,
        backlog=BACKLOG,
        limit_concurrency=_room_for_connections(),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(settings.stop_within_s)),
        ssl_context_factory=None if context is None else tls,
    )
    return Server(config, app, stop_within_s=settings.stop_within_s)


def _room_for_connections() -> int:
    """As many as there may be files; the limit of this process is raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_CONNECTIONS + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(16, min(_MOST_CONNECTIONS, soft - _SPARE_FILES))
