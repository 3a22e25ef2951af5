"""What administrators have done."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.service import Service, service_of

router = APIRouter(tags=["operation"])
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


@router.get("/v1/acts", summary="What administrators have done, the newest first")
async def acts(
    service: Annotated[Service, Depends(service_of)],
    _caller: Annotated[Caller, Depends(needs("admin"))],
    before: Annotated[int | None, Query(ge=1, lt=2**63, description="Only acts with a smaller number.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
) -> Acts:
    rows = await service.run(lambda: service.entrance.books.acts(before=before, limit=limit))
    found = [Act(**{**vars(row), "details": json.loads(row.details)}) for row in rows]
    return Acts(acts=found, next=found[-1].number if len(found) == limit and found[-1].number > 1 else None)
