"""Looking at a campaign: report, ledger, facts, health, verification, alarms, and all decisions as a file."""

from __future__ import annotations

import re
import time
from contextlib import AsyncExitStack
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from doral.errors import UnknownName
from doral.live.storage.service_tables import AlarmRow
from doral.service.access.guard import Admin, Reader, ReaderAnywhere, act_of
from doral.service.event_stream import OwningStream
from doral.service.models.reports import (
    Alarm,
    AlarmMute,
    Alarms,
    AlarmSubject,
    FactsShown,
    HealthShown,
    LedgerShown,
    ReportShown,
    VerificationShown,
)
from doral.service.requests import JsonRoute
from doral.service.responses import iso, reply
from doral.service.service import Shared

router = APIRouter(route_class=JsonRoute)
_MEDIA = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_DAY_S = 86_400.0


@router.get(
    "/v1/campaigns/{name}/report", summary="A campaign at a glance", response_model=ReportShown, tags=["looking"]
)
async def report(name: str, service: Shared, caller: Reader) -> Response:
    """Spend, pace, decisions by state, and what the policy believes of each arm."""
    found = await (await service.queue(name)).read(lambda campaign: campaign.report())
    return reply(await service.run(found.to_dict))


@router.get(
    "/v1/campaigns/{name}/ledger", summary="Where the budget is, exactly", response_model=LedgerShown, tags=["looking"]
)
async def ledger(name: str, service: Shared, caller: Reader) -> Response:
    """Decimals as text: not a digit is lost."""
    found = await (await service.queue(name)).read(lambda campaign: campaign.ledger())
    return reply({name: f"{getattr(found, name):f}" for name in LedgerShown.model_fields})


@router.get(
    "/v1/campaigns/{name}/facts",
    summary="All that the page of a campaign shows",
    response_model=FactsShown,
    tags=["looking"],
)
async def facts(name: str, service: Shared, caller: Reader) -> Response:
    """In plain values. The log is read for it, in parts: decisions go on meanwhile."""
    return reply(await (await service.queue(name)).read(lambda campaign: campaign.facts().to_dict()))


@router.get("/v1/campaigns/{name}/health", summary="What needs attention", response_model=HealthShown, tags=["looking"])
async def health(name: str, service: Shared, caller: Reader) -> Response:
    """A store that cannot be used is told of here, and is no error of this request."""
    return reply(await (await service.queue(name)).read(lambda campaign: campaign.health().to_dict()))


@router.get(
    "/v1/campaigns/{name}/verify",
    summary="Whether the log is what was written",
    response_model=VerificationShown,
    tags=["looking"],
)
async def verify(name: str, service: Shared, caller: Admin) -> Response:
    """Reads the whole log, beside the campaign: decisions go on meanwhile. A damaged log is a problem document."""
    campaign = (await service.queue(name)).campaign
    return reply(await service.run_long(lambda: campaign.verify().to_dict()))


# --- alarms -----------------------------------------------------------------------------------------------------------


@router.get("/v1/alarms", summary="Alarms of all campaigns that the key is for", response_model=Alarms, tags=["alarms"])
async def all_alarms(service: Shared, caller: ReaderAnywhere) -> Response:
    rows = await service.run(lambda: service.store.books.alarms())
    return _alarms_reply([row for row in rows if caller.sees(row.campaign)])


@router.get("/v1/campaigns/{name}/alarms", summary="Alarms of one campaign", response_model=Alarms, tags=["alarms"])
async def alarms(name: str, service: Shared, caller: Reader) -> Response:
    await service.queue(name)  # 404 where there is none
    return _alarms_reply(await service.run(lambda: service.store.books.alarms(campaign=name)))


@router.post(
    "/v1/campaigns/{name}/alarms/acknowledge",
    summary="An alarm was seen",
    response_model=Alarms,
    tags=["alarms"],
)
async def acknowledge_alarm(
    request: Request, name: str, service: Shared, caller: Admin, asked: AlarmSubject
) -> Response:
    """It stays raised until it is over. The first acknowledgement stays, too."""
    await service.queue(name)
    books, act = service.store.books, act_of(request, caller, "alarm acknowledged", name, **asked.model_dump())

    def acknowledge() -> list[AlarmRow]:
        if not books.acknowledge_alarm(name, asked.rule, asked.subject, time.time(), caller.name, act):
            raise UnknownName("alarm", asked.rule, [row.rule for row in books.alarms(campaign=name)])
        return books.alarms(campaign=name)

    return _alarms_reply(await service.run(acknowledge))


@router.post(
    "/v1/campaigns/{name}/alarms/mute",
    summary="Raise no alarm of this rule and subject for some days",
    response_model=Alarms,
    tags=["alarms"],
)
async def mute_alarm(request: Request, name: str, service: Shared, caller: Admin, asked: AlarmMute) -> Response:
    """One that is raised is cleared with the next look. With 0 days it may be raised again."""
    tag = (await service.queue(name)).campaign.session.row.tag
    books, act = service.store.books, act_of(request, caller, "alarm muted", name, **asked.model_dump())
    until = time.time() + asked.days * _DAY_S if asked.days else None

    def mute() -> list[AlarmRow]:
        books.mute_alarm(tag, asked.rule, asked.subject, until, act)
        return books.alarms(campaign=name)

    return _alarms_reply(await service.run(mute))


def _alarms_reply(rows: list[AlarmRow]) -> Response:
    names = Alarm.model_fields
    shown: list[dict[str, Any]] = [{name: one for name, one in vars(row).items() if name in names} for row in rows]
    return reply({"alarms": [{**one, "since_iso": iso(one["since"])} for one in shown]})


# --- all decisions as a file ------------------------------------------------------------------------------------------


@router.get(
    "/v1/campaigns/{name}/export",
    summary="All decisions as a file",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The file. A transfer that breaks off is not whole, and clients report it.",
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
    tags=["looking"],
)
async def export(
    request: Request,
    name: str,
    service: Shared,
    caller: Reader,
    format: Annotated[Literal["parquet", "csv"], Query(description="Of the file.")] = "parquet",  # noqa: A002
) -> Response:
    """As `Campaign.export` writes it. Decisions go on meanwhile, and those that come late may be in it."""
    queue = await service.queue(name)
    person = (await queue.read(lambda campaign: campaign.problem)).person
    headers = {"Content-Disposition": disposition(f"{name}.{format}"), "Cache-Control": "no-store"}
    async with AsyncExitStack() as stack:
        sending = service.exports.sending(queue.campaign, person, format, lambda: service.entrance.holds(request.scope))
        content = await stack.enter_async_context(sending)
        return OwningStream(content, stack.pop_all(), media_type=_MEDIA[format], headers=headers)


def disposition(file_name: str) -> str:
    """A header that saves a file under a name that no file system takes for a path or a command.

    >>> disposition("../a b.csv")
    'attachment; filename="a_b.csv"'
    """
    plain = _UNSAFE.sub("_", file_name).lstrip("._-")
    plain = plain[-100:] if "." in plain.strip(".") else "campaign." + plain
    printable = "".join(one if one.isprintable() else "_" for one in file_name)  # nothing that turns it round
    own = re.sub(r"[_/\\:*?\"<>|]+", "_", printable).lstrip(". ")
    if own.isascii():
        return f'attachment; filename="{plain}"'
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(own, safe='')}"
