"""Decisions that were made elsewhere, or before."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.bodies import takes
from doral.service.given import given_item, given_items
from doral.service.models.decisions import DecisionList, DecisionModel, Record, Records
from doral.service.replies import decisions_reply, reply
from doral.service.service import service_of
from doral.service.threads import in_thread_if_many
from doral.wire.values import decision_to_dict

router = APIRouter(prefix="/v1/campaigns/{name}", tags=["records"])


@router.post(
    "/records",
    summary="A decision that was made elsewhere",
    responses={200: {"model": DecisionModel}},
    openapi_extra=takes(Record),
)
async def record(request: Request, name: str, caller: Annotated[Caller, Depends(needs("decide"))]) -> Response:
    del caller
    found = await given_item(request, Record)
    desk = await service_of(request).desk(name)
    return reply(decision_to_dict((await desk.record_many([found]))[0]))


@router.post(
    "/records/batch",
    summary="Many decisions that were made elsewhere, all or none",
    responses={200: {"model": DecisionList}},
    openapi_extra=takes(Records),
)
async def record_many(request: Request, name: str, caller: Annotated[Caller, Depends(needs("decide"))]) -> Response:
    del caller
    service = service_of(request)
    _, records = await given_items(request, Records, "records")
    made = await (await service.desk(name)).record_many(records)
    return await in_thread_if_many(service.run, len(made), lambda: decisions_reply(made))
