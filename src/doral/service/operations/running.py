"""`serve`: a service from the first socket to the last answer."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable

from doral.live.store import open as open_store
from doral.service.app import make_app
from doral.service.operations.listening import check, listen, tls_context, url_of
from doral.service.operations.logs import set_up_logs
from doral.service.operations.server import make_server
from doral.service.settings import ServiceSettings

# A thread that stores lets others run with every statement, and then waits this long for its turn: Python's own 5 ms
# would cost a group of requests more than the disk does.
_SWITCH_S = 0.0001


def serve(settings: ServiceSettings, *, when_ready: Callable[[str], None] | None = None) -> None:
    """Run until SIGTERM or Ctrl-C; returns when everything that was acknowledged is stored and all has ended.

    What is wrong with the settings, the port or the store is raised before anybody is let in.

    Args:
        settings: How it is run.
        when_ready: Called once with the URL, when decisions can be made quickly.
    """
    check(settings)
    tls_context(settings)
    with listen(settings) as listening:
        url = url_of(settings, listening)

        def tell() -> None:
            if when_ready is not None:
                when_ready(url)

        _run(settings, listening, tell)


def _run(settings: ServiceSettings, listening: socket.socket, when_ready: Callable[[], None]) -> None:
    sys.setswitchinterval(_SWITCH_S)
    app = make_app(settings, open_store(settings.storage, code=settings.code))
    app.state.when_ready = when_ready
    lines = set_up_logs(log_format=settings.log_format)
    try:
        make_server(app, settings).run(sockets=[listening])
    finally:
        lines.flush()
