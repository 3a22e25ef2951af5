"""Looking at a campaign: report, ledger, facts, health, verification, alarms, and all decisions as a file."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from doral.live.state.parts import Ledger
from doral.live.storage.service_tables import AlarmRow
from doral.service.access.guard import needs
from doral.service.access.keys import Caller
from doral.service.event_stream import OwningStream
from doral.service.models.reports import FactsShown, HealthShown, LedgerShown, ReportShown, VerificationShown
from doral.service.responses import reply
from doral.service.service import Service, service_of

router = APIRouter(tags=["looking"])
Shared = Annotated[Service, Depends(service_of)]
Reader = Annotated[Caller, Depends(needs("read"))]


@router.get("/v1/campaigns/{name}/report", summary="A campaign at a glance", response_model=ReportShown)
async def report(name: str, service: Shared, caller: Reader) -> Response:
    """Spend, pace, decisions by state, and what the policy believes of each arm."""
    del caller
    found = await (await service.desk(name)).read(lambda campaign: campaign.report())
    return reply(await service.run(found.to_dict))


@router.get("/v1/campaigns/{name}/ledger", summary="Where the budget is, exactly", response_model=LedgerShown)
async def ledger(name: str, service: Shared, caller: Reader) -> Response:
    """Decimals as text: not a digit is lost."""
    del caller
    found = await (await service.desk(name)).read(lambda campaign: campaign.ledger())
    return reply(_digits(found))


def _digits(ledger: Ledger) -> dict[str, str]:
    return {name: f"{getattr(ledger, name):f}" for name in LedgerShown.model_fields}


@router.get("/v1/campaigns/{name}/facts", summary="All that the page of a campaign shows", response_model=FactsShown)
async def facts(name: str, service: Shared, caller: Reader) -> Response:
    """In plain values. The log is read for it, in parts: decisions go on meanwhile."""
    del caller
    return reply(await (await service.desk(name)).read(lambda campaign: campaign.facts().to_dict()))


@router.get("/v1/campaigns/{name}/health", summary="What somebody should look after", response_model=HealthShown)
async def health(name: str, service: Shared, caller: Reader) -> Response:
    """A store that cannot be used is told of here, and is no error of this request."""
    del caller
    return reply(await (await service.desk(name)).read(lambda campaign: campaign.health().to_dict()))


@router.get(
    "/v1/campaigns/{name}/verify", summary="Whether the log is what was written", response_model=VerificationShown
)
async def verify(name: str, service: Shared, caller: Annotated[Caller, Depends(needs("admin"))]) -> Response:
    """Reads the whole log, beside the campaign: decisions go on meanwhile. A damaged log is a problem document."""
    del caller
    campaign = (await service.desk(name)).campaign
    return reply(await service.run_long(lambda: campaign.verify().to_dict()))


alarms_router = APIRouter(tags=["alarms"])


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


@alarms_router.get("/v1/alarms", summary="Alarms of all campaigns that the key is for")
async def all_alarms(request: Request, caller: Annotated[Caller, Depends(needs("read", anywhere=True))]) -> Alarms:
    service = service_of(request)
    rows = await service.run(lambda: service.store.books.alarms())
    return Alarms(alarms=[_shown(row) for row in rows if caller.sees(row.campaign)])


@alarms_router.get("/v1/campaigns/{name}/alarms", summary="Alarms of one campaign")
async def alarms(request: Request, name: str, caller: Annotated[Caller, Depends(needs("read"))]) -> Alarms:
    del caller
    service = service_of(request)
    await service.desk(name)  # 404 where there is none
    rows = await service.run(lambda: service.store.books.alarms(campaign=name))
    return Alarms(alarms=[_shown(row) for row in rows])


def _shown(row: AlarmRow) -> Alarm:
    return Alarm(campaign=row.campaign, rule=row.rule, subject=row.subject, since=row.since, words=row.words)


export_router = APIRouter(tags=["looking"])
_MEDIA = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@export_router.get(
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
)
async def export(
    request: Request,
    name: str,
    service: Annotated[Service, Depends(service_of)],
    caller: Annotated[Caller, Depends(needs("read"))],
    format: Annotated[Literal["parquet", "csv"], Query(description="Of the file.")] = "parquet",  # noqa: A002
) -> Response:
    """As `Campaign.export` writes it. Decisions go on meanwhile, and those that come late may be in it."""
    del caller
    desk = await service.desk(name)
    person = (await desk.read(lambda campaign: campaign.problem)).person
    headers = {"Content-Disposition": disposition(f"{name}.{format}"), "Cache-Control": "no-store"}
    async with AsyncExitStack() as stack:
        sending = service.exports.sending(desk.campaign, person, format, lambda: service.entrance.holds(request.scope))
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
