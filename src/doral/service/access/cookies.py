"""The cookie of a page's session, and how a form shows that it is one of our own pages'."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from doral.service.access.keys import Presented
from doral.service.settings import ServiceSettings

CSRF_FIELD = "csrf"
_PURPOSE = b"doral form"


def is_encrypted(settings: ServiceSettings) -> bool:
    """Whether people reach the service over TLS: its own, or that of the proxy before it."""
    if settings.public_url is not None:
        return urlsplit(settings.public_url).scheme == "https"
    return settings.tls_cert is not None


def cookie_name(settings: ServiceSettings) -> str:
    """Over TLS a name that browsers take from this very host alone."""
    return "__Host-doral" if is_encrypted(settings) else "doral"


def set_cookie(settings: ServiceSettings, value: str, *, seconds: int) -> str:
    """The header `Set-Cookie`; 0 seconds: it is taken back."""
    secure = "; Secure" if is_encrypted(settings) else ""
    return f"{cookie_name(settings)}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}"


def cookie_in(header: str, name: str) -> str | None:
    """The value of the first cookie of this name."""
    for one in header.split(";"):
        found, _, value = one.strip().partition("=")
        if found == name:
            return value
    return None


def csrf_of(session: Presented) -> str:
    """What forms have to send: only pages of this session can know it, and it gives nothing away of the session."""
    return hmac.new(session.secret.encode(), _PURPOSE, hashlib.sha256).hexdigest()


def is_same_text(given: object, wanted: str) -> bool:
    """Compared in a time that does not tell how far they agree."""
    return isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def origin_of(url: str) -> str:
    """Scheme, host and port, as browsers send them: without the port that goes without saying."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + ("" if parts.port in (None, usual) else f":{parts.port}")
