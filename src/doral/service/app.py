"""The application: routes, what stands around them, and how it begins and ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from doral._version import VERSION
from doral.errors import DoralError
from doral.live.store import Store
from doral.live.store import open as open_store
from doral.service.access.installing import install
from doral.service.demo.feeding import begin as begin_demo
from doral.service.demo.feeding import feeding
from doral.service.operations.observed import observe
from doral.service.operations.operating import operating
from doral.service.pages import assets, creating
from doral.service.routes import acts, answers, decisions, health, metrics, records
from doral.service.service import Service
from doral.service.settings import ServiceSettings
from doral.wire.problems import MEDIA_TYPE, to_problem

# All that the service answers to; a part adds its own here.
ROUTERS = (
    health.router,
    metrics.router,
    acts.router,
    decisions.router,
    answers.router,
    records.router,
    assets.router,
    creating.router,
)


def make_app(settings: ServiceSettings, store: Store | None = None) -> FastAPI:
    """The application on a store; one that is given is not opened anew, and still closed at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = Service(open_store(settings.storage) if store is None else store, settings)
        app.state.service = service
        try:
            crowds = await begin_demo(service) if settings.is_demo else []
            async with operating(app, service), feeding(service, crowds):
                yield
        finally:
            service.close()

    app = FastAPI(
        title="DORAL",
        version=VERSION,
        summary="Spend a limited budget well when answers come back late, or never.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    for one in ROUTERS:
        app.include_router(one)
    app.add_exception_handler(DoralError, _refused)
    install(app, settings)
    observe(app)
    return app


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, DoralError)
    found = to_problem(error, instance=request.url.path)
    return JSONResponse(found, status_code=found["status"], media_type=MEDIA_TYPE)
