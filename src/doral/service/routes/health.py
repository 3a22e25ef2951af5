"""Whether the process is alive, and whether it can do its work."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from doral.service.models.operation import Alive, Ready
from doral.service.operations.readiness import refuse_unless_ready
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
