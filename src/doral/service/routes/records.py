"""Decisions that were made elsewhere, or before."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.bodies import (
    answer,
    in_thread_if_many,
    moment,
    read_body,
    read_large_body,
    refuse_too_many,
    takes,
)
from doral.service.idempotency import header_key, item_key, key_of
from doral.service.models.decisions import DecisionList, DecisionModel, Record, Records
from doral.service.service import service_of
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
    body = await read_body(request, Record)
    found = _record(body)
    found["key"] = key_of(header_key(request), body.key)
    desk = await service_of(request).desk(name)
    return answer(decision_to_dict((await desk.record_many([found]))[0]))


@router.post(
    "/records/batch",
    summary="Many decisions that were made elsewhere, all or none",
    responses={200: {"model": DecisionList}},
    openapi_extra=takes(Records),
)
async def record_many(request: Request, name: str, caller: Annotated[Caller, Depends(needs("decide"))]) -> Response:
    del caller
    service = service_of(request)
    body = await read_large_body(request, Records, service.run)
    refuse_too_many("records", body.records, service.settings.limits.batch)
    header, n = header_key(request), len(body.records)
    records = await in_thread_if_many(service.run, n, lambda: _records(body, header))
    made = await (await service.desk(name)).record_many(records)
    return await in_thread_if_many(
        service.run, n, lambda: answer({"decisions": [decision_to_dict(one) for one in made]})
    )


def _records(body: Records, header: str | None) -> list[dict[str, Any]]:
    found = [_record(one) for one in body.records]
    for index, one in enumerate(found):
        one["key"] = item_key(header, index, one["key"])
    return found


def _record(body: Record) -> dict[str, Any]:
    found = dict(vars(body))
    for field in ("at", "answered_at"):
        if isinstance(found[field], str):
            found[field] = moment(field, found[field])
    return found
