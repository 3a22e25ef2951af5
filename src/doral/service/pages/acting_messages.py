"""What a page says after something was done. The words are ours; what the address carries only chooses among them.

An address can be written by anybody. It is signed with the caller's own secret for forms, so that a link from elsewhere
cannot have a page claim that something happened.
"""

from __future__ import annotations

import hashlib
import hmac
from html import escape
from urllib.parse import urlencode

from fastapi import Request

from doral.pages.names import short
from doral.service.access.keys import Caller

_WORDS = {
    "created": "The campaign is created. It decides from now on.",
    "paused": "The arm {of} is paused: it is not offered until somebody resumes it.",
    "resumed": "The arm {of} is offered again.",
    "retired": "The arm {of} is retired. Answers to it are still taken.",
    "added": "The arm {of} is added.",
    "topped-up": "The budget is raised by {of}.",
    "extended": "The campaign is extended: {of}.",
    "expired": "Settled: {of}.",
    "closed": "The campaign is closed. Answers to open decisions are still taken.",
    "cancelled": "The decision is cancelled; what was reserved for it is back in the budget.",
}
_LONG = 80


def telling(caller: Caller, path: str, code: str, of: str = "") -> str:
    """The path of a page that then says so."""
    return f"{path}?{urlencode({'did': code, 'of': of, 'mark': _mark(caller, path, code, of)})}"


def message(request: Request, caller: Caller) -> str:
    """What was done just now, as markup; nothing where nothing was, or where the address was made elsewhere."""
    code, of, mark = (request.query_params.get(name, "") for name in ("did", "of", "mark"))
    words = _WORDS.get(code)
    if words is None or caller.csrf is None:
        return ""
    if not hmac.compare_digest(mark.encode(), _mark(caller, _raw_path(request), code, of).encode()):
        return ""
    return f'<p class="told good" role="status">{escape(words.format(of=short(of, _LONG)))}</p>'


def _mark(caller: Caller, path: str, code: str, of: str) -> str:
    content = "\0".join((path, code, of)).encode()
    return hmac.new((caller.csrf or "").encode(), content, hashlib.sha256).hexdigest()[:24]


def _raw_path(request: Request) -> str:
    """As it was asked for: what is decoded no longer tells a slash in a name from one between names."""
    raw = request.scope.get("raw_path")
    return raw.decode("ascii") if isinstance(raw, bytes) else request.url.path
