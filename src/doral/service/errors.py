"""Whatever goes wrong in a request becomes a problem document, or a page for people: one handler for each kind of
error.
"""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response

from doral.errors import DoralError, UnknownName
from doral.service.access.middleware import headers_of_answers
from doral.service.access.refusals import SignInFirst, as_told_to
from doral.service.pages.shell import is_for_page, known_caller, refused_page
from doral.service.requests import refusal
from doral.service.responses import problem_reply
from doral.wire.problems import ServiceError, plain_or_shown

logger = logging.getLogger("doral.service")

_MOST_ERRORS = 20  # that one answer lists
_CLIENT_GONE = 499  # as proxies say; it is never sent
_WORDS = {
    404: "there is nothing at this path: see /v1/openapi.json for what there is",
    405: "this path does not take this method: the header Allow says which it takes",
}


def add_handlers(app: FastAPI) -> None:
    """To an application."""
    app.add_exception_handler(DoralError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unforeseen)


def request_id(request: Request) -> str:
    """By which an answer and the lines of the log are found together; made where nobody has given one yet."""
    given = getattr(request.state, "request_id", None)
    if not isinstance(given, str):
        given = request.state.request_id = secrets.token_hex(8)
    return given


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DoralError)
    if isinstance(error, SignInFirst):
        return RedirectResponse(error.address, status_code=303)
    caller = known_caller(request)
    if is_for_page(request):
        return refused_page(request, caller, error)
    status = 404 if _is_of_path(request, error) else None
    return problem_reply(as_told_to(caller, error), instance=_path(request), status=status)


def _path(request: Request) -> str:
    raw = request.scope.get("raw_path")
    return raw.decode("latin-1").partition("?")[0][:1_000] if isinstance(raw, bytes) else str(request.url.path)


def _is_of_path(request: Request, error: DoralError) -> bool:
    """Whether the path itself names what there is none of."""
    if not isinstance(error, UnknownName):
        return False
    named = {"campaign": "name", "arm": "arm"}.get(error.kind)
    return named is not None and request.path_params.get(named) == error.name


async def _invalid(request: Request, error: Exception) -> Response:
    """What pydantic says of a request; the first fault is the one that is told in the usual members."""
    assert isinstance(error, RequestValidationError)
    faults, body = error.errors(), error.body
    told = refusal([one for one in faults if one["loc"][0] == "body"] or faults, body)
    more = [refusal([one], body) for one in faults[:_MOST_ERRORS]]
    errors = [{"field": one.field, "value": plain_or_shown(one.value), "remedy": one.remedy} for one in more]
    return problem_reply(told, instance=_path(request), more={"errors": errors, "n_errors": len(faults)})


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    try:
        name = HTTPStatus(status).phrase
    except ValueError:
        name = "refused"
    if isinstance(error.__cause__, DoralError):
        return problem_reply(error.__cause__, instance=_path(request))
    words = _WORDS.get(status) or str(error.detail)[:300]
    if status == 404 and is_for_page(request):
        words = "there is no page at this address. Campaigns may have been deleted, or the address is not whole"
    code = "-".join(name.lower().replace("'", "").split())
    told = ServiceError(words, code, status)
    if is_for_page(request):
        return refused_page(request, known_caller(request), told, headers=error.headers)
    return problem_reply(told, instance=_path(request), headers=error.headers)


async def _gone(request: Request, error: Exception) -> Response:
    """In the middle of the body. Nobody hears of it but the log and the numbers: it is no failure of ours."""
    del request, error
    return Response(status_code=_CLIENT_GONE)


async def _unforeseen(request: Request, error: Exception) -> Response:
    """There should be none. What went wrong inside is for the log alone; whoever asked gets a number to tell us."""
    found = request_id(request)
    logger.error("request %s failed: %s", found, type(error).__name__)
    told = ServiceError(f"the service has failed; tell its operator the request id {found}", "failed", 500)
    # This answer is given outside of all that stands around the routes.
    headers = {**headers_of_answers(request.app.state.service.settings), "X-Request-Id": found}
    return problem_reply(told, instance=_path(request), headers=headers, more={"request_id": found})
