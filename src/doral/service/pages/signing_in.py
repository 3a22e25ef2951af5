"""`/sign-in` and `/sign-out`: people show a key once, and then have a session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.service.access.guard import form_needs, safe_next, sign_in, sign_out
from doral.service.access.keys import Caller
from doral.service.access.refusals import headers_of
from doral.service.pages.forms import Mistakes, button, form, hidden, text_field, words_of
from doral.service.pages.forms_answers import see
from doral.service.pages.forms_reading import read_form
from doral.service.pages.shell import shell
from doral.wire.problems import ServiceError

router = APIRouter(include_in_schema=False)
_TITLE = "Sign in"
_HELP = "It begins with doral_ and was shown once, when it was made. It is kept nowhere but in your hands."


@router.get("/sign-in")
async def ask(request: Request) -> Response:
    """The form."""
    return _page(request, safe_next(request.query_params.get("next")), Mistakes())


@router.post("/sign-in")
async def take(request: Request) -> Response:
    """Let whoever has a key in, and bring them to where they wanted to go."""
    sent = await read_form(request)
    wanted = safe_next(sent.raw("next"))
    try:
        if not sent.one("key"):
            raise ServiceError("Paste your key here.", "no-key", 422)
        _, cookie = await sign_in(request, sent.one("key"))
    except ServiceError as error:
        mistakes = Mistakes()
        mistakes.add("key", _words(error), label="Key")
        return _page(request, wanted, mistakes, error)
    answer = see(wanted)
    answer.headers["Set-Cookie"] = cookie
    return answer


@router.post("/sign-out")
async def leave(request: Request, caller: Annotated[Caller, Depends(form_needs(anywhere=True))]) -> Response:
    """End the session, everywhere."""
    answer = see("/sign-in")
    answer.headers["Set-Cookie"] = await sign_out(request, caller)
    return answer


def _words(error: ServiceError) -> str:
    """For people who type, where the API speaks to programs."""
    if error.code == "unknown-key":
        return "This key is not known here, or was revoked. Is it whole, from doral_ to its last letter?"
    return words_of(error)


def _page(request: Request, wanted: str, mistakes: Mistakes, error: ServiceError | None = None) -> Response:
    field = text_field(
        "key",
        "Key",
        help_=_HELP,
        mistakes=mistakes,
        kind="password",
        is_required=True,
        more={
            "autocomplete": "current-password",
            "autofocus": True,
            "spellcheck": "false",
            "autocapitalize": "none",
        },
    )
    inner = f'{hidden("next", wanted)}{field}<div class="send">{button(_TITLE, look="primary")}</div>'
    main = (
        f'<div class="signing-in"><h1>{_TITLE}</h1>'
        '<p class="lead">Campaigns are for people who have a key. Whoever runs the service makes one with '
        f"<code>doral keys create</code>.</p>{form('/sign-in', None, inner)}</div>"
    )
    if error is None:
        return shell(request, None, title=_TITLE, main=main)
    headers = {name: value for name, value in headers_of(error).items() if name != "WWW-Authenticate"}
    return shell(request, None, title=_TITLE, main=main, status=error.status, headers=headers)
