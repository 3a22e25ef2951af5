"""The socket of a service, and whether it may be opened at all: said before anything else is touched."""

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
from pathlib import Path

from doral.errors import InvalidValue
from doral.service.access.binding import check_binding
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
