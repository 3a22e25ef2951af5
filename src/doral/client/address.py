"""Where a service is, and with which key one speaks to it. The key is shown nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from doral._version import VERSION
from doral.errors import InvalidValue
from doral.wire.addresses import is_loopback

_MOST_CHARACTERS = 1_000


@dataclass(frozen=True, kw_only=True)
class Address:
    """Of a service, checked.

    Attributes:
        url: Without a slash at its end.
        key: None: none is sent.
        is_here: Whether it is on this very host, so that nothing that is sent leaves it.
    """

    url: str
    key: str | None = field(repr=False)
    is_here: bool

    @property
    def headers(self) -> dict[str, str]:
        said = {"User-Agent": f"doral/{VERSION}", "Accept": "application/json"}
        return said if self.key is None else {**said, "Authorization": f"Bearer {self.key}"}


def make_address(url: object, key: object, *, allow_plain_http: bool) -> Address:
    """Whatever is wrong is said here, and the key is not."""
    if not isinstance(url, str):
        raise InvalidValue("url", url, "must be a string such as 'https://doral.example.org'")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise InvalidValue(
            "url",
            _without_secrets(url),
            "must be an address such as 'https://doral.example.org' or 'http://127.0.0.1:8787'",
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidValue("url", _without_secrets(url), "must hold no password: give the key with key=...")
    if key is not None:
        _check_key(key)
    is_here = is_loopback(host)
    if parts.scheme == "http" and key is not None and not is_here and not allow_plain_http:
        remedy = "would carry the key so that anybody on the way can read it: use https, or say allow_plain_http=True"
        raise InvalidValue("url", url, remedy)
    return Address(url=url.rstrip("/"), key=None if key is None else str(key), is_here=is_here)


def _check_key(key: object) -> None:
    is_text = isinstance(key, str) and 0 < len(key) <= _MOST_CHARACTERS
    if not is_text or not all("!" <= one <= "~" for one in str(key)):
        raise InvalidValue("key", Hidden(), "must be a key as the service has given it: letters, digits, - and _")


class Hidden:
    """Stands for a key in messages."""

    def __repr__(self) -> str:
        return "(not shown)"


def _without_secrets(url: str) -> str:
    before, found, after = url.partition("//")
    return url if not found or "@" not in after else f"{before}//***@{after.rpartition('@')[2]}"
