"""Who asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.models.operation import Me
from doral.service.replies import reply

router = APIRouter(tags=["access"])


@router.get("/v1/me", summary="The key that the request was sent with", response_model=Me)
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
