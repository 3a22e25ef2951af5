"""What a page says when it refuses: in words, with a way back."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from doral.errors import DoralError
from doral.service.access.caller import Caller
from doral.service.pages.forms import words_of
from doral.service.pages.shell import shell
from doral.wire.problems import ServiceError, to_problem


def campaign_path(name: str, *more: str) -> str:
    """Of the page of a campaign, or of something below it. Names may hold anything, slashes too."""
    return "/".join(["/campaigns", quote(name, safe=""), *(quote(one, safe="") for one in more)])


def see(path: str) -> RedirectResponse:
    """After a form: look at the result, so that loading it again sends nothing twice."""
    return RedirectResponse(path, status_code=303, headers={"Cache-Control": "no-store"})


def forbidden(caller: Caller, what: str) -> ServiceError:
    """The caller's key may not do this."""
    words = f"the key {caller.name!r} may not {what}; ask whoever gave it to you for one that may"
    return ServiceError(words, "forbidden", 403)


def refusal(request: Request, caller: Caller | None, error: DoralError, *, back: str = "/") -> Response:
    """A page that says what is wrong, with the status that the API would answer."""
    found = to_problem(error)
    main = (
        f'<h1>{escape(str(found["title"]))}</h1><p class="told bad" role="alert">{escape(words_of(error))}</p>'
        f'<p><a class="button" href="{escape(back)}">Back</a></p>'
    )
    return shell(request, caller, title=str(found["title"]), main=main, status=int(found["status"]))
