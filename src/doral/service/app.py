"""The application: routes, what stands around them, and how it begins and ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI

from doral._version import VERSION
from doral.live.store import Store
from doral.live.store import open as open_store
from doral.service import errors, openapi
from doral.service.access.middleware import install
from doral.service.demo.feeding import begin as begin_demo
from doral.service.demo.feeding import feeding, link_router
from doral.service.demo.population import MAIN
from doral.service.operations.lifespan import operating
from doral.service.operations.observed import observe
from doral.service.pages import acts as page_acts
from doral.service.pages import campaign, creating, decision, overview, shell, signing_in
from doral.service.paths import WholeNames
from doral.service.routes import campaigns, decisions, events, operation, reports
from doral.service.service import Service
from doral.service.settings import ServiceSettings

# All that the service answers to, beside the probes; a part adds its own here.
API: tuple[APIRouter, ...] = (
    decisions.quick,  # first: routes are tried one after the other
    decisions.router,
    campaigns.router,
    campaigns.changes,
    operation.router,
    reports.router,
    events.router,
)
PAGES: tuple[APIRouter, ...] = (
    shell.router,
    signing_in.router,
    overview.router,
    campaign.router,
    decision.router,
    creating.router,
    page_acts.router,
)


def make_app(settings: ServiceSettings, store: Store | None = None) -> FastAPI:
    """The application on a store; one that is given is not opened anew, and still closed at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = Service(open_store(settings.storage, code=settings.code) if store is None else store, settings)
        app.state.service = service
        try:
            crowds = await begin_demo(service) if settings.is_demo else []
            async with operating(app, service), feeding(service, crowds):
                yield
        finally:
            await service.following.close()
            await service.drain()
            service.close()

    app = FastAPI(
        title="DORAL",
        version=VERSION,
        description=openapi.DESCRIPTION,
        summary="Spend a limited budget well when answers come back late, or never.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        openapi_tags=openapi.TAGS,
        redirect_slashes=False,
    )
    app.include_router(operation.probes, responses=openapi.refusals(400, 421, 500, 503))
    for router in API:
        app.include_router(router, responses=openapi.refusals())
    for router in PAGES:
        app.include_router(router)
    if settings.demo_token is not None:
        app.include_router(link_router(settings.demo_token, leads_to=f"/campaigns/{MAIN}"))
    openapi.describe(app)
    errors.add_handlers(app)
    # The last one stands outermost.
    app.add_middleware(WholeNames)
    install(app, settings)
    observe(app)
    return app
