"""What a page says when it refuses: in words, with a way back."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from doral.errors import DoralError, UnknownName
from doral.service.access.caller import Caller
from doral.service.access.refusals import as_told_to
from doral.service.pages.forms import words_of
from doral.service.pages.shell import shell
from doral.wire.addresses import path_of
from doral.wire.problems import to_problem


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


def refusal(
    request: Request,
    caller: Caller | None,
    error: DoralError,
    *,
    back: str = "/",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A page that says what is wrong, with the status that the API would answer."""
    error = as_told_to(caller, error)
    found = to_problem(error)
    title, status = str(found["title"]), int(found["status"])
    if isinstance(error, UnknownName) and error.kind in ("campaign", "act"):  # it is the address that is wrong
        status = 404
    main = (
        f'<h1>{escape(title)}</h1><p class="told bad" role="alert">{escape(words_of(error, is_at_field=False))}</p>'
        f'<p><a class="button" href="{escape(back)}">{"All campaigns" if back == "/" else "Back"}</a></p>'
    )
    return shell(request, caller, title=title, main=main, status=status, headers=headers)
