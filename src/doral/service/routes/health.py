"""Whether the process is alive, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter, Response

router = APIRouter(tags=["operation"])
_ALIVE = b'{"status":"alive"}'


@router.get("/healthz", summary="Whether the process is alive")
async def healthz() -> Response:
    return Response(_ALIVE, media_type="application/json")
