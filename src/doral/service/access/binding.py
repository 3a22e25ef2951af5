"""On which addresses a service may listen, and what people may call it. Decided before anything is opened."""

from __future__ import annotations

from urllib.parse import urlsplit

from doral.errors import InvalidValue
from doral.service.settings import ServiceSettings
from doral.wire.addresses import is_loopback

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
