"""Numbers for Prometheus."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.operations.scraped import scrape
from doral.service.service import service_of

router = APIRouter(tags=["operation"])


@router.get(
    "/metrics",
    summary="Numbers for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, caller: Annotated[Caller, Depends(needs("read"))]) -> Response:
    del caller
    service = service_of(request)
    return Response(await service.run(lambda: scrape(service.store, service.metrics)), media_type=CONTENT_TYPE_LATEST)
