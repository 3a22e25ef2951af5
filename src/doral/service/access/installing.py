"""What stands around all routes of an application for the sake of access."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from doral.errors import DoralError
from doral.service.access.bodies import Bodies
from doral.service.access.headers import Headers
from doral.service.access.hosts import Hosts
from doral.service.access.refusals import SignInFirst, headers_of
from doral.service.pages.forms_answers import is_for_page, known_caller, refusal
from doral.service.settings import ServiceSettings
from doral.wire.problems import MEDIA_TYPE, ServiceError, to_problem


def install(app: FastAPI, settings: ServiceSettings) -> None:
    """Answers for those who are not let in, and what is looked at before any route. To be called last."""
    app.add_exception_handler(ServiceError, _refused)
    app.add_exception_handler(SignInFirst, _to_sign_in)
    app.add_middleware(Bodies, limits=settings.limits)
    app.add_middleware(Hosts, settings=settings)
    app.add_middleware(Headers, settings=settings)  # the last one stands outermost: refusals have them, too


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DoralError)
    if is_for_page(request):
        return refusal(request, known_caller(request), error, headers=headers_of(error))
    found = to_problem(error, instance=request.url.path)
    return JSONResponse(found, status_code=found["status"], media_type=MEDIA_TYPE, headers=headers_of(error))


async def _to_sign_in(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, SignInFirst)
    return RedirectResponse(error.address, status_code=303)
