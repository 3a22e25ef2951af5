"""What stands around every page of the service: templates, looks and scripts, who is signed in, what was done just now.

Every page is a template with autoescape, and nothing in one is inline, neither scripts nor looks: whatever a name may
hold, the browser runs none of it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment

from doral.errors import DoralError, UnknownName
from doral.live.errors import ArchiveMissing, BrokenLog, CampaignGone, StorageError, UnknownDecision
from doral.live.page.file import page_name
from doral.live.page.page import FILTERS
from doral.live.views.text import moment
from doral.pages.names import short
from doral.pages.shell import asset
from doral.pages.templates import add_filters, environment
from doral.service.access.keys import Caller
from doral.service.access.refusals import as_told_to
from doral.service.pages.forms import fresh_key, words_of
from doral.wire.problems import ServiceError, to_problem
from doral.wire.values import path_of

router = APIRouter(include_in_schema=False)

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",  # it tells of people, and of who looked
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


# --- pages ------------------------------------------------------------------------------------------------------------


def templates() -> Environment:
    """The templates of the service, and those of the page of a campaign."""
    own: dict[str, Callable[..., object]] = {"moment": partial(moment, clock="seconds"), "page_name": page_name}
    own["urlquote"] = partial(quote, safe="")
    made = add_filters(environment("doral.service.pages", "doral.live.page"), {**FILTERS, **own})
    made.globals.update(campaign_path=campaign_path, fresh_key=fresh_key)
    return made


def render(
    request: Request,
    caller: Caller | None,
    template: str,
    *,
    title: str,
    scripts: Sequence[str] = (),
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: object,
) -> HTMLResponse:
    """A page of the service.

    Args:
        request: That asked for it.
        caller: Who is signed in; None: nobody.
        template: Name of the template.
        title: Of the page, as text.
        scripts: Names of assets, such as "sorting.js".
        status: Of the answer.
        headers: Beside those that every page has.
        values: What the template asks for.
    """
    text = (
        templates()
        .get_template(template)
        .render(
            title=title,
            caller=caller,
            here=request.url.path,
            url_of=url_of,
            scripts=[url_of(name) for name in scripts],
            message="" if caller is None else message(request, caller),
            **values,
        )
    )
    return HTMLResponse(text, status_code=status, headers={**_HEADERS, **(headers or {})})


def refused_page(
    request: Request,
    caller: Caller | None,
    error: DoralError,
    *,
    back: str = "/",
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """In words, with what to do about it and a way back; the status is the one that the API would answer.

    Args:
        request: That asked.
        caller: Who is signed in, if anybody.
        error: What is wrong.
        back: Where to go on.
        headers: More headers.
    """
    error = as_told_to(caller, error)
    title, words, status = _told(error)
    return render(
        request,
        caller,
        "refused.html",
        title=title,
        status=status,
        headers=headers,
        words=words,
        detail=short(words_of(error, is_at_field=False), 600),
        back=back,
    )


def _told(error: DoralError) -> tuple[str, str, int]:
    """The title, what else to know, and the status."""
    found = to_problem(error)
    title, status = str(found["title"]), int(found["status"])
    if isinstance(error, CampaignGone):
        return "This campaign was deleted", "Nothing of it is left in this store; a backup may still have it.", status
    if isinstance(error, UnknownName) and error.kind == "campaign":
        return "No such campaign", "It may have been deleted, or never been.", 404
    if isinstance(error, UnknownName) and error.kind == "act":  # it is the address that is wrong
        return title, "", 404
    if isinstance(error, UnknownDecision):
        return "No such decision", "This campaign has no decision of that id.", status
    if isinstance(error, ArchiveMissing):
        words = (
            "Old events are in a file of an earlier version that could not be read: put it back, and start the service "
            "again."
        )
        return "An archive is missing", words, status
    if isinstance(error, BrokenLog):
        words = (
            "What is stored is not what was written: nothing is shown, rather than something wrong. "
            "Look with `doral campaign verify`, and restore a backup."
        )
        return "The log is damaged", words, status
    if isinstance(error, StorageError):
        return "The store cannot be used", "Nothing is lost by that. Try again in a while.", status
    if isinstance(error, ServiceError):
        return title, "", status
    return title, "", status


# --- where pages are --------------------------------------------------------------------------------------------------


def campaign_path(name: str, *more: str) -> str:
    """Of the page of a campaign, or of something below it. Names may hold anything, slashes too."""
    return path_of("campaigns", name, *more)


def see(path: str) -> RedirectResponse:
    """After a form: look at the result, so that loading it again sends nothing twice."""
    return RedirectResponse(path, status_code=303, headers={"Cache-Control": "no-store"})


def is_for_page(request: Request) -> bool:
    """Whether a person is told, who sees a page, and no program."""
    return not request.url.path.startswith("/v1/") and "text/html" in request.headers.get("accept", "")


def known_caller(request: Request) -> Caller | None:
    """Who is signed in, where that was found out before something went wrong."""
    found = getattr(request.state, "caller", None)
    return found if isinstance(found, Caller) else None


# --- what was done just now -------------------------------------------------------------------------------------------
# The words are ours; what the address carries only chooses among them. An address can be written by anybody, so it is
# signed with the caller's own secret for forms: a link from elsewhere cannot have a page claim that something happened.

_WORDS = {
    "created": "The campaign is created. It decides from now on.",
    "campaign-paused": "The campaign is paused: every arrival is skipped until it is resumed.",
    "campaign-resumed": "The campaign decides again.",
    "paused": "The option {of} is paused: it is not offered until it is resumed.",
    "resumed": "The option {of} is offered again.",
    "retired": "The option {of} is retired. Answers to it are still taken.",
    "added": "The option {of} is added.",
    "topped-up": "The budget is raised by {of}.",
    "extended": "The campaign is extended: {of}.",
    "expired": "Settled: {of}.",
    "closed": "The campaign is closed. Answers to open decisions are still taken.",
    "cancelled": "The decision is cancelled; what was reserved for it is back in the budget.",
    "acknowledged": "The alarm is acknowledged.",
    "muted": "The alarm is muted {of}.",
    "unmuted": "The alarm can be raised again.",
}
_LONG = 80


def telling(caller: Caller, path: str, code: str, of: str = "") -> str:
    """The path of a page that then says so."""
    return f"{path}?{urlencode({'did': code, 'of': of, 'mark': _mark(caller, path, code, of)})}"


def message(request: Request, caller: Caller) -> str:
    """What was done just now; nothing where nothing was, or where the address was made elsewhere."""
    code, of, mark = (request.query_params.get(name, "") for name in ("did", "of", "mark"))
    words = _WORDS.get(code)
    if words is None or caller.csrf is None:
        return ""
    if not hmac.compare_digest(mark.encode(), _mark(caller, _raw_path(request), code, of).encode()):
        return ""
    return words.format(of=short(of, _LONG))


def _mark(caller: Caller, path: str, code: str, of: str) -> str:
    content = "\0".join((path, code, of)).encode()
    return hmac.new((caller.csrf or "").encode(), content, hashlib.sha256).hexdigest()[:24]


def _raw_path(request: Request) -> str:
    """As it was asked for: what is decoded no longer tells a slash in a name from one between names."""
    raw = request.scope.get("raw_path")
    return raw.decode("ascii") if isinstance(raw, bytes) else request.url.path


# --- looks and scripts ------------------------------------------------------------------------------------------------

_FOREVER = "public, max-age=31536000, immutable"  # another content has another name
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_PACKAGE = "doral.service.pages"
# What each file is made of: the looks of a static page come first, so that a live one looks the same.
_PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "service.css": (
        ("shell.css", "doral.pages"),
        ("page.css", "doral.live.page"),
        ("service.css", _PACKAGE),
        ("forms.css", _PACKAGE),
    ),
    "theme.js": (("theme.js", _PACKAGE),),
    "sorting.js": (("sorting.js", "doral.pages"),),
    "live.js": (("vendor/idiomorph.min.js", _PACKAGE), ("local_times.js", "doral.pages"), ("live.js", _PACKAGE)),
    "times.js": (("local_times.js", "doral.pages"),),
    "forms.js": (("forms.js", _PACKAGE),),
    "mark.svg": (("mark.svg", _PACKAGE),),
}
_DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root \{([^}]*)\}\s*\}")


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file as it is sent; its name changes with what is in it."""

    url: str
    content: bytes
    media_type: str


@cache
def assets() -> dict[str, Asset]:
    """All of them, by the name that this code has for them."""
    return {name: _made(name) for name in _PARTS}


def url_of(name: str) -> str:
    """Where a page finds it."""
    return assets()[name].url


@router.get("/assets/{name}")
async def send(name: str) -> Response:
    """Whoever has it need never ask again."""
    found = _by_url().get(f"/assets/{name}")
    if found is None:
        return Response("There is no such file.\n", status_code=404, media_type="text/plain")
    headers = {"Cache-Control": _FOREVER, "X-Content-Type-Options": "nosniff"}
    return Response(found.content, media_type=found.media_type, headers=headers)


@cache
def _by_url() -> dict[str, Asset]:
    return {one.url: one for one in assets().values()}


def _made(name: str) -> Asset:
    text = "\n".join(asset(file, package=package) for file, package in _PARTS[name])
    stem, _, kind = name.rpartition(".")
    content = (_with_switch(text) if kind == "css" else text).encode()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(url=f"/assets/{stem}-{digest}.{kind}", content=content, media_type=_TYPES[kind])


def _with_switch(css: str) -> str:
    """Dark colours where the system is dark, unless somebody has chosen; and where somebody has chosen them."""
    return _DARK.sub(
        lambda found: (
            f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{{found[1]}}} }}\n'
            f':root[data-theme="dark"] {{{found[1]}}}'
        ),
        css,
    )
