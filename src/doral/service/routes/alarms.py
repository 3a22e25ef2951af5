"""Alarms that are raised."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from doral.live.storage.service_tables import AlarmRow
from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.service import service_of

router = APIRouter(tags=["alarms"])


class Alarm(BaseModel):
    """Something that somebody should look after."""

    campaign: str
    rule: str = Field(description="Which rule has found it, such as `arm-silent`.")
    subject: str = Field(description="What it is about, such as an arm; empty: the campaign.")
    since: float = Field(description="Seconds since 1970.")
    words: str = Field(description="What is wrong, and what to do.")


class Alarms(BaseModel):
    """Those that are raised, the newest first."""

    alarms: list[Alarm]


@router.get("/v1/alarms", summary="Alarms of all campaigns that the key is for")
async def all_alarms(request: Request, caller: Annotated[Caller, Depends(needs("read", anywhere=True))]) -> Alarms:
    service = service_of(request)
    rows = await service.run(lambda: service.store.books.alarms())
    return Alarms(alarms=[_shown(row) for row in rows if caller.sees(row.campaign)])


@router.get("/v1/campaigns/{name}/alarms", summary="Alarms of one campaign")
async def alarms(request: Request, name: str, caller: Annotated[Caller, Depends(needs("read"))]) -> Alarms:
    del caller
    service = service_of(request)
    await service.desk(name)  # 404 where there is none
    rows = await service.run(lambda: service.store.books.alarms(campaign=name))
    return Alarms(alarms=[_shown(row) for row in rows])


def _shown(row: AlarmRow) -> Alarm:
    return Alarm(campaign=row.campaign, rule=row.rule, subject=row.subject, since=row.since, words=row.words)
