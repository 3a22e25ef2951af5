"""Where pages are, where a form leads, and who is told of an answer: a person or a program."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import RedirectResponse

from doral.service.access.keys import Caller
from doral.wire.values import path_of


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
