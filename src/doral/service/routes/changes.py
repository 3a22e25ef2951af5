"""Changes while a campaign runs: arms, budget, end, expiry, clock, forgetting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from doral.live.campaign import Campaign
from doral.problem import Arm
from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.bodies import moment, takes
from doral.service.given import given
from doral.service.models.campaigns import CampaignShown
from doral.service.models.changes import (
    ArmGiven,
    ClockSetting,
    Expired,
    Expiry,
    Extension,
    Forgetting,
    Forgotten,
    Nothing,
    TopUp,
)
from doral.service.replies import reply
from doral.service.service import Service, service_of
from doral.service.summaries import shown

router = APIRouter(tags=["changes"])
Shared = Annotated[Service, Depends(service_of)]
Admin = Annotated[Caller, Depends(needs("admin"))]


async def _changed(service: Service, name: str, change: Callable[[Campaign], object]) -> Response:
    """Make a change; the campaign as it is after that."""

    def ask(campaign: Campaign) -> dict[str, Any]:
        change(campaign)
        return shown(campaign)

    return reply(await (await service.desk(name)).write(ask))


@router.post(
    "/v1/campaigns/{name}/arms", summary="Add an arm", response_model=CampaignShown, openapi_extra=takes(ArmGiven)
)
async def add_arm(
    name: str, service: Shared, caller: Admin, asked: Annotated[ArmGiven, Depends(given(ArmGiven))]
) -> Response:
    """Nothing is known about it. It joins a race that still runs; later it is accepted at once."""
    del caller
    arm = Arm(asked.name, features=asked.features, cost=asked.cost)
    return await _changed(service, name, lambda campaign: campaign.add_arm(arm, key=asked.key))


NoBody = Annotated[Nothing, Depends(given(Nothing, may_be_empty=True))]


@router.post(
    "/v1/campaigns/{name}/arms/{arm}/pause",
    summary="Stop offering an arm until it is resumed",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def pause_arm(name: str, arm: str, service: Shared, caller: Admin, _: NoBody) -> Response:
    """An arm that is paused stays so."""
    del caller
    return await _changed(service, name, lambda campaign: campaign.pause_arm(arm))


@router.post(
    "/v1/campaigns/{name}/arms/{arm}/resume",
    summary="Offer a paused arm again",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def resume_arm(name: str, arm: str, service: Shared, caller: Admin, _: NoBody) -> Response:
    """An arm that is offered stays so."""
    del caller
    return await _changed(service, name, lambda campaign: campaign.resume_arm(arm))


@router.post(
    "/v1/campaigns/{name}/arms/{arm}/retire",
    summary="Stop offering an arm for good",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def retire_arm(name: str, arm: str, service: Shared, caller: Admin, _: NoBody) -> Response:
    """Answers to it are still taken."""
    del caller
    return await _changed(service, name, lambda campaign: campaign.retire_arm(arm))


@router.post(
    "/v1/campaigns/{name}/budget", summary="Add to the budget", response_model=CampaignShown, openapi_extra=takes(TopUp)
)
async def top_up(name: str, service: Shared, caller: Admin, asked: Annotated[TopUp, Depends(given(TopUp))]) -> Response:
    """Give a key: a repeated request then adds it once."""
    del caller
    return await _changed(service, name, lambda campaign: campaign.top_up(asked.amount, key=asked.key))


@router.post(
    "/v1/campaigns/{name}/horizon",
    summary="Expect more arrivals, or end later",
    response_model=CampaignShown,
    openapi_extra=takes(Extension),
)
async def extend(
    name: str, service: Shared, caller: Admin, asked: Annotated[Extension, Depends(given(Extension))]
) -> Response:
    """Give a key: a repeated request then counts once."""
    del caller

    def change(campaign: Campaign) -> None:
        campaign.extend(asked.rounds, key=asked.key, until=asked.until)

    return await _changed(service, name, change)


@router.post(
    "/v1/campaigns/{name}/expire",
    summary="Settle decisions that are too old for an answer to count",
    response_model=Expired,
    openapi_extra=takes(Expiry, may_be_empty=True),
)
async def expire(
    name: str, service: Shared, caller: Admin, asked: Annotated[Expiry, Depends(given(Expiry, may_be_empty=True))]
) -> Response:
    """The service does this by itself now and then, too."""
    del caller
    now = moment("now", asked.now)
    desk = await service.desk(name)
    return reply({"expired": await desk.write(lambda campaign: campaign.expire(now, asked.release))})


@router.post(
    "/v1/campaigns/{name}/clock",
    summary="Set the campaign's clock back",
    response_model=CampaignShown,
    openapi_extra=takes(ClockSetting, may_be_empty=True),
)
async def repair_clock(
    name: str,
    service: Shared,
    caller: Admin,
    asked: Annotated[ClockSetting, Depends(given(ClockSetting, may_be_empty=True))],
) -> Response:
    """After a wrong one has carried it away."""
    del caller
    to = moment("to", asked.to)
    return await _changed(service, name, lambda campaign: campaign.repair_clock(to))


@router.post(
    "/v1/campaigns/{name}/forget",
    summary="Erase keys, and what is known of people",
    response_model=Forgotten,
    openapi_extra=takes(Forgetting),
)
async def forget(
    name: str, service: Shared, caller: Admin, asked: Annotated[Forgetting, Depends(given(Forgetting))]
) -> Response:
    """The decisions and the ledger stay. A forgotten key still answers as used."""
    del caller
    desk = await service.desk(name)
    return reply({"forgotten": await desk.write(lambda campaign: campaign.forget(asked.keys))})
