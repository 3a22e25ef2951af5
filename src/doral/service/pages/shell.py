"""What stands around every page of the service: its name, the way to all campaigns, who is signed in, the theme.

Nothing in a page is inline, neither scripts nor looks: whatever somebody may smuggle into a name, the browser runs
none of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from string import Template

from fastapi import Request
from fastapi.responses import HTMLResponse

from doral.pages.names import short
from doral.pages.shell import asset
from doral.service.access.keys import Caller
from doral.service.pages.assets import url_of

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
CSRF_FIELD = "csrf"
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",  # it tells of people, and of who looked
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


def shell(
    request: Request,
    caller: Caller | None,
    *,
    title: str,
    main: str,
    scripts: Sequence[str] = (),
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """A page of the service.

    Args:
        request: That asked for it.
        caller: Who is signed in; None: nobody.
        title: Of the page, as text.
        main: Markup; it holds a `<h1>`.
        scripts: Names of assets, such as "sorting.js".
        status: Of the answer.
        headers: Beside those that every page has.
    """
    text = Template(asset("shell.html", package=__package__)).substitute(
        title=f"{escape(short(title, 80))} \N{MIDDLE DOT} DORAL",
        icon=url_of("mark.svg"),
        css=url_of("service.css"),
        theme=url_of("theme.js"),
        scripts="\n".join(f'<script src="{url_of(name)}" defer></script>' for name in scripts),
        menu=_menu(request, caller),
        who=_who(caller),
        sign_out=_sign_out(caller),
        main=f'<main id="main" tabindex="-1">\n{main}\n</main>',
    )
    return HTMLResponse(text, status_code=status, headers={**_HEADERS, **(headers or {})})


def csrf_field(caller: Caller) -> str:
    """What every form holds: whoever sends it has read one of our pages."""
    return f'<input type="hidden" name="{CSRF_FIELD}" value="{escape(caller.csrf or "")}">'


def _menu(request: Request, caller: Caller | None) -> str:
    if caller is None:
        return ""
    links = [("/", "Campaigns")]
    if caller.may("admin"):
        links.append(("/new", "New campaign"))
    here = request.url.path
    mark = ' aria-current="page"'
    shown = "".join(f'<li><a href="{path}"{mark if path == here else ""}>{words}</a></li>' for path, words in links)
    return f'<nav aria-label="Service"><ul>{shown}</ul></nav>'


def _who(caller: Caller | None) -> str:
    if caller is None:
        return ""
    name = escape(short(caller.name, 24))
    return f'<span class="signed-in"><span class="unseen">Signed in as </span>{name}</span>'


def _sign_out(caller: Caller | None) -> str:
    if caller is None or caller.csrf is None:
        return ""
    return f'<form method="post" action="/sign-out">{csrf_field(caller)}<button type="submit">Sign out</button></form>'
