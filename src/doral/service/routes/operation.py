"""Whether the service works, who asks, what administrators did, and numbers for Prometheus."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from doral.service.access.guard import needs
from doral.service.access.keys import Caller
from doral.service.models.reports import Alive, Me, Ready
from doral.service.operations.lifespan import refuse_unless_ready
from doral.service.operations.metrics import scrape
from doral.service.responses import reply
from doral.service.service import Service, service_of

router = APIRouter(tags=["operation"])
_ALIVE = b'{"status":"alive"}'
_READY = b'{"status":"ready"}'


@router.get("/healthz", summary="Whether the process is alive", response_model=Alive)
async def healthz() -> Response:
    """Asks nothing of the store."""
    return Response(_ALIVE, media_type="application/json")


@router.get(
    "/readyz",
    summary="Whether the store can be read and written",
    response_model=Ready,
    dependencies=[Depends(refuse_unless_ready)],
)
async def readyz(service: Annotated[Service, Depends(service_of)]) -> Response:
    """A store that cannot be used is a problem of status 503; so is a process that starts or stops."""
    await service.try_store()
    return Response(_READY, media_type="application/json")


metrics_router = APIRouter(tags=["operation"])


@metrics_router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, caller: Annotated[Caller, Depends(needs("read"))]) -> Response:
    del caller
    service = service_of(request)
    return Response(await service.run(lambda: scrape(service.store, service.metrics)), media_type=CONTENT_TYPE_LATEST)


me_router = APIRouter(tags=["access"])


@me_router.get("/v1/me", summary="The key that the request was sent with", response_model=Me)
async def me(
    caller: Annotated[Caller, Depends(needs("admin", "decide", "feedback", "read", anywhere=True))],
) -> Response:
    """What it may do, and until when."""
    return reply(
        {
            "key_id": caller.key_id,
            "name": caller.name,
            "roles": sorted(caller.roles),
            "campaigns": None if caller.campaigns is None else sorted(caller.campaigns),
            "expires_at": caller.expires_at,
        }
    )


acts_router = APIRouter(tags=["operation"])
_MOST = 1_000


class Act(BaseModel):
    """An administrative act."""

    number: int
    at: float = Field(description="Seconds since 1970.")
    key_id: str
    key_name: str
    act: str = Field(description='Such as "arm paused".')
    campaign: str | None
    details: dict[str, Any]
    request_id: str
    address: str = Field(description='Where the request came from; "command line" for `doral keys`.')


class Acts(BaseModel):
    """The newest first."""

    acts: list[Act]
    next: int | None = Field(description="To be sent as `before` for those that came earlier; null at the end.")


@acts_router.get("/v1/acts", summary="What administrators have done, the newest first")
async def acts(
    service: Annotated[Service, Depends(service_of)],
    _caller: Annotated[Caller, Depends(needs("admin"))],
    before: Annotated[int | None, Query(ge=1, lt=2**63, description="Only acts with a smaller number.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
) -> Acts:
    rows = await service.run(lambda: service.entrance.books.acts(before=before, limit=limit))
    found = [Act(**{**vars(row), "details": json.loads(row.details)}) for row in rows]
    return Acts(acts=found, next=found[-1].number if len(found) == limit and found[-1].number > 1 else None)
