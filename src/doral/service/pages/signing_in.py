"""`/sign-in` and `/sign-out`: people show a key once, and then have a session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.service.access.guard import form_needs, safe_next, sign_in, sign_out
from doral.service.access.keys import Caller
from doral.service.access.refusals import headers_of
from doral.service.pages.forms import Mistakes, read_form, words_of
from doral.service.pages.shell import render, see
from doral.wire.problems import ServiceError

router = APIRouter(include_in_schema=False)
_UNKNOWN = "This key is not known here, or was revoked. Is it whole, from doral_ to its last letter?"


@router.get("/sign-in")
async def ask(request: Request) -> Response:
    """The form."""
    wanted = safe_next(request.query_params.get("next"))
    return render(request, None, "sign_in.html", title="Sign in", wanted=wanted, mistakes=Mistakes())


@router.post("/sign-in")
async def take(request: Request) -> Response:
    """Let a person with a key in, and lead to the page that was asked for."""
    sent = await read_form(request)
    wanted = safe_next(sent.raw("next"))
    try:
        if not sent.one("key"):
            raise ServiceError("Paste your key here.", "no-key", 422)
        _, cookie = await sign_in(request, sent.one("key"))
    except ServiceError as error:
        mistakes = Mistakes()
        mistakes.add("key", _UNKNOWN if error.code == "unknown-key" else words_of(error), label="Key")
        headers = {name: value for name, value in headers_of(error).items() if name != "WWW-Authenticate"}
        return render(
            request,
            None,
            "sign_in.html",
            title="Sign in",
            status=error.status,
            headers=headers,
            wanted=wanted,
            mistakes=mistakes,
        )
    answer = see(wanted)
    answer.headers["Set-Cookie"] = cookie
    return answer


@router.post("/sign-out")
async def leave(request: Request, caller: Annotated[Caller, Depends(form_needs(anywhere=True))]) -> Response:
    """End the session, everywhere."""
    answer = see("/sign-in")
    answer.headers["Set-Cookie"] = await sign_out(request, caller)
    return answer
