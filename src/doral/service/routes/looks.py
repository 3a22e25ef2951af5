"""Looking at a campaign: report, ledger, facts, health, verification."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from doral.live.state.parts import Ledger
from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.models.looks import FactsShown, HealthShown, LedgerShown, ReportShown, VerificationShown
from doral.service.replies import reply
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
