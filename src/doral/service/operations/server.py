"""`serve`: a service from the first socket to the last answer."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from doral.errors import InvalidValue
from doral.live.store import open as open_store
from doral.service.access.middleware import check_binding
from doral.service.app import make_app
from doral.service.operations.logs import set_up_logs
from doral.service.settings import ServiceSettings

BACKLOG = 2048  # connections that wait for a process
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2: forward secrecy and authenticated encryption only


def check(settings: ServiceSettings) -> None:
    """InvalidValue where the service cannot, or should not, be run so."""
    if not 0 <= settings.port <= 65535:
        raise InvalidValue("port", settings.port, "must be from 0 to 65535; 0: any that is free")
    check_binding(settings)
    if settings.webhook is not None and not settings.webhook.startswith(("http://", "https://")):
        raise InvalidValue("webhook", "...", "must begin with http:// or https://")
    if settings.webhook is not None and not settings.webhook_secret:
        raise InvalidValue("webhook_secret", None, "is needed with a webhook: what is sent there is signed with it")


def listen(settings: ServiceSettings) -> socket.socket:
    """Bound, and nobody is let in yet."""
    host = settings.host.strip("[]")
    try:
        found = socket.getaddrinfo(host or None, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InvalidValue("host", settings.host, f"is no address of this machine ({error})") from error
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise _refused(settings, error) from error
    return listening


def _refused(settings: ServiceSettings, error: OSError) -> InvalidValue:
    if error.errno == errno.EADDRINUSE:
        return InvalidValue("port", settings.port, "somebody listens there already: give another, or 0 for any")
    if error.errno == errno.EACCES:
        return InvalidValue("port", settings.port, "may not be used by this user: give one above 1023")
    return InvalidValue("host", settings.host, f"cannot be listened on ({error.strerror})")


def url_of(settings: ServiceSettings, listening: socket.socket) -> str:
    """By which a browser on this machine reaches it."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    shown = f"[{host}]" if ":" in host else host
    return f"{'http' if settings.tls_cert is None else 'https'}://{shown}:{port}"


def tls_context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """TLS 1.2 and 1.3 with what is held to be safe; None: plain HTTP."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    for field, path in (("tls_cert", settings.tls_cert), ("tls_key", settings.tls_key)):
        _refuse_unreadable(field, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    try:
        # A password would be asked for at the terminal, where nobody may be: a key that has one is refused.
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password=lambda: "")
    except (ssl.SSLError, OSError) as error:
        raise InvalidValue(
            "tls_cert", str(settings.tls_cert), f"and --tls-key: not a certificate with its own key ({error})"
        ) from error
    return context


def _refuse_unreadable(field: str, path: Path) -> None:
    try:
        path.read_bytes()
    except OSError as error:
        raise InvalidValue(field, str(path), f"cannot be read ({error.strerror})") from error


KEEP_ALIVE_S = 75  # longer than balancers keep theirs, so that none of them sends into a closing connection
_MOST_CONNECTIONS = 8_000
_SPARE_FILES = 256  # for the store, logs and the like
_ENDED_AT_ONCE = 130  # as a shell says of a program that Ctrl-C has ended
_GIVEN_UP = 1
_LOOK_S = 0.2
_SPARE_S = 10.0  # beyond `stop_within_s`: for what was handed in to be stored, and snapshots
# A thread that stores lets others run with every statement, and then waits this long for its turn: Python's own 5 ms
# would cost a group of requests more than the disk does.
_SWITCH_S = 0.0001

_logger = logging.getLogger("doral.service")


def make_server(app: FastAPI, settings: ServiceSettings) -> uvicorn.Server:
    """Uvicorn, as it is. Slow heads and huge requests from the open internet are the balancer's to refuse."""
    context = tls_context(settings)
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Only a balancer may say from where a request came: without one, a caller could say anything.
        proxy_headers=settings.public_url is not None,
        backlog=BACKLOG,
        limit_concurrency=_room_for_connections(),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(settings.stop_within_s)),
        ssl_context_factory=None if context is None else lambda *_: context,
    )
    server = uvicorn.Server(config)
    app.state.is_stopping = lambda: server.should_exit
    return server


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
    set_up_logs(log_format=settings.log_format)
    server = make_server(app, settings)
    threading.Thread(target=_give_up_late, args=(server, settings.stop_within_s), daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn hears them, and sends them again when it has ended
            signal.signal(number, lambda *_: None)
    server.run(sockets=[listening])
    if server.force_exit:
        os._exit(_ENDED_AT_ONCE)  # what is not stored was not acknowledged


def _give_up_late(server: uvicorn.Server, stop_within_s: float) -> None:
    """A store that does not answer, such as a file that another process has locked, delays no stop for ever."""
    while not server.should_exit:
        time.sleep(_LOOK_S)
    time.sleep(stop_within_s + _SPARE_S)
    _logger.error("the store did not answer in time: ended without waiting for it; what was acknowledged is stored")
    os._exit(_GIVEN_UP)
