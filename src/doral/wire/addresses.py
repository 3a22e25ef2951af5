"""Addresses as a service and its clients both write them: paths whose parts may hold any character, and this host."""

from __future__ import annotations

import ipaddress
from urllib.parse import quote


def path_of(*parts: str) -> str:
    """A path of parts that are not encoded yet.

    >>> path_of("v1", "campaigns", "a/b"), path_of("campaigns", "..")
    ('/v1/campaigns/a%2Fb', '/campaigns/%2E%2E')
    """
    return "".join("/" + _encoded(part) for part in parts)


def _encoded(part: str) -> str:
    # Browsers take `..` out of paths, and its encoded form, too; nothing can be done about that here.
    return quote(part, safe="") if part.strip(".") else part.replace(".", "%2E")


def is_loopback(host: str) -> bool:
    """Whether nobody else can reach this address. A name counts only if it is `localhost`.

    >>> is_loopback("127.0.0.1"), is_loopback("[::1]"), is_loopback("0.0.0.0"), is_loopback("")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
