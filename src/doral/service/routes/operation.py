"""Whether the service works, who asks, what administrators did, and numbers for Prometheus."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from doral.service.access.guard import Admin, KnownAnywhere, Reader
from doral.service.models.reports import Acts, Alive, Me, Ready
from doral.service.operations.lifespan import refuse_unless_ready
from doral.service.operations.metrics import scrape
from doral.service.responses import iso, reply
from doral.service.service import Shared

probes = APIRouter(tags=["operation"])  # which need no key
router = APIRouter(tags=["operation"])
_MOST_ACTS = 1_000


@probes.get("/healthz", summary="Whether the process is alive", response_model=Alive)
async def healthz() -> Response:
    """Asks nothing of the store."""
    return Response(b'{"status":"alive"}', media_type="application/json")


@probes.get(
    "/readyz",
    summary="Whether the store can be read and written",
    response_model=Ready,
    dependencies=[Depends(refuse_unless_ready)],
)
async def readyz(service: Shared) -> Response:
    """A store that cannot be used is a problem of status 503; so is a process that starts or stops."""
    await service.try_store()
    return Response(b'{"status":"ready"}', media_type="application/json")


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(service: Shared, caller: Reader) -> Response:
    return Response(await service.run(lambda: scrape(service.store, service.metrics)), media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/me", summary="The key that the request was sent with", response_model=Me)
async def me(caller: KnownAnywhere) -> Response:
    """What it may do, and until when."""
    return reply(
        {
            "key_id": caller.key_id,
            "name": caller.name,
            "roles": sorted(caller.roles),
            "campaigns": None if caller.campaigns is None else sorted(caller.campaigns),
            "expires_at": caller.expires_at,
            "expires_at_iso": iso(caller.expires_at),
        }
    )


@router.get("/v1/acts", summary="What administrators have done, the newest first", response_model=Acts)
async def acts(
    service: Shared,
    caller: Admin,
    before: Annotated[int | None, Query(ge=1, lt=2**63, description="Only acts with a smaller number.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_ACTS)] = 100,
) -> Response:
    rows = await service.run(lambda: service.entrance.books.acts(before=before, limit=limit))
    found = [{**vars(row), "at_iso": iso(row.at), "details": json.loads(row.details)} for row in rows]
    last = rows[-1].number if rows else 1
    return reply({"acts": found, "next": last if len(rows) == limit and last > 1 else None})
