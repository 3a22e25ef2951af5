"""Campaigns: created, listed, shown, and changed while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from doral.live.campaign import Campaign
from doral.problem import Arm
from doral.service.access.guard import act_of, needs
from doral.service.access.keys import Caller
from doral.service.creation import create, wanted_by
from doral.service.models.campaigns import (
    ArmGiven,
    CampaignGiven,
    Campaigns,
    CampaignShown,
    ClockSetting,
    Expired,
    Expiry,
    Extension,
    Forgetting,
    Forgotten,
    Nothing,
    TopUp,
)
from doral.service.requests import given, header_key, moment, takes
from doral.service.responses import reply
from doral.service.service import Service, service_of, shown
from doral.wire.values import path_of

router = APIRouter(tags=["campaigns"])
Shared = Annotated[Service, Depends(service_of)]
_ANY = ("admin", "decide", "feedback", "read")


@router.get("/v1/campaigns", summary="Campaigns that the key is for", response_model=Campaigns)
async def list_campaigns(
    service: Shared,
    caller: Annotated[Caller, Depends(needs(*_ANY, anywhere=True))],
    after: Annotated[str | None, Query(max_length=200, description="Only names that follow this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Response:
    """By name, a page at a time. What a summary does not say was not read for it: ask for the campaign itself."""
    names = [name for name in await service.run(service.store.list) if caller.sees(name)]
    following = sorted(name for name in names if after is None or name > after)
    page = following[:limit]
    summaries = await service.summaries(page)
    return reply({"campaigns": summaries, "next": page[-1] if len(following) > limit else None})


@router.post(
    "/v1/campaigns",
    summary="Create a campaign",
    status_code=201,
    response_model=CampaignShown,
    responses={
        201: {"headers": {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}},
        200: {"model": CampaignShown, "description": "It was created before, by the same request."},
    },
    openapi_extra=takes(CampaignGiven),
)
async def create_campaign(
    request: Request,
    service: Shared,
    caller: Annotated[Caller, Depends(needs("admin"))],
    asked: Annotated[CampaignGiven, Depends(given(CampaignGiven))],
) -> Response:
    """With the header Idempotency-Key, a repeated request is answered with what is there, if that is what it asks for.
    Without it, a name that is taken is refused.
    """
    may_be_there = header_key(request) is not None
    act = act_of(request, caller, "campaign created", asked.name)

    def make() -> tuple[dict[str, Any], bool]:
        made, is_new = create(service.store, wanted_by(asked), may_be_there=may_be_there, act=act)
        return shown(made), is_new

    made, is_new = await service.run(make)
    headers = {"Location": path_of("v1", "campaigns", asked.name)}
    return reply(made, status=201 if is_new else 200, headers=headers)


@router.get("/v1/campaigns/{name}", summary="What a campaign is, and where it stands", response_model=CampaignShown)
async def show_campaign(name: str, service: Shared, caller: Annotated[Caller, Depends(needs(*_ANY))]) -> Response:
    """The problem with the arms that were added, the policy with all its options, and a summary."""
    del caller
    return reply(await (await service.desk(name)).read(shown))


changes_router = APIRouter(tags=["changes"])
Admin = Annotated[Caller, Depends(needs("admin"))]


async def _changed(
    request: Request, caller: Caller, name: str, act: str, change: Callable[[Campaign], object], **details: Any
) -> Response:
    """Make a change and note who has made it, in one transaction; the campaign as it is after that."""

    def ask(campaign: Campaign) -> dict[str, Any]:
        with campaign.session.noting(lambda _: act_of(request, caller, act, name, **details)):
            change(campaign)
        return shown(campaign)

    return reply(await (await service_of(request).desk(name)).write(ask))


@changes_router.post(
    "/v1/campaigns/{name}/arms", summary="Add an arm", response_model=CampaignShown, openapi_extra=takes(ArmGiven)
)
async def add_arm(
    request: Request, name: str, caller: Admin, asked: Annotated[ArmGiven, Depends(given(ArmGiven))]
) -> Response:
    """Nothing is known about it. It joins a race that still runs; later it is accepted at once."""
    arm = Arm(asked.name, features=asked.features, cost=asked.cost)

    def change(campaign: Campaign) -> None:
        campaign.add_arm(arm, key=asked.key)

    return await _changed(request, caller, name, "arm added", change, arm=asked.name, cost=asked.cost, key=asked.key)


NoBody = Annotated[Nothing, Depends(given(Nothing, may_be_empty=True))]


@changes_router.post(
    "/v1/campaigns/{name}/arms/{arm}/pause",
    summary="Stop offering an arm until it is resumed",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def pause_arm(request: Request, name: str, arm: str, caller: Admin, asked: NoBody) -> Response:
    """An arm that is paused stays so."""
    return await _changed(
        request, caller, name, "arm paused", lambda campaign: campaign.pause_arm(arm, asked.key), arm=arm
    )


@changes_router.post(
    "/v1/campaigns/{name}/arms/{arm}/resume",
    summary="Offer a paused arm again",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def resume_arm(request: Request, name: str, arm: str, caller: Admin, asked: NoBody) -> Response:
    """An arm that is offered stays so."""
    return await _changed(
        request, caller, name, "arm resumed", lambda campaign: campaign.resume_arm(arm, asked.key), arm=arm
    )


@changes_router.post(
    "/v1/campaigns/{name}/arms/{arm}/retire",
    summary="Stop offering an arm for good",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def retire_arm(request: Request, name: str, arm: str, caller: Admin, asked: NoBody) -> Response:
    """Answers to it are still taken."""
    return await _changed(
        request, caller, name, "arm retired", lambda campaign: campaign.retire_arm(arm, asked.key), arm=arm
    )


@changes_router.post(
    "/v1/campaigns/{name}/budget", summary="Add to the budget", response_model=CampaignShown, openapi_extra=takes(TopUp)
)
async def top_up(
    request: Request, name: str, caller: Admin, asked: Annotated[TopUp, Depends(given(TopUp))]
) -> Response:
    """Give a key: a repeated request then adds it once."""

    def change(campaign: Campaign) -> None:
        campaign.top_up(asked.amount, key=asked.key)

    return await _changed(request, caller, name, "budget topped up", change, amount=asked.amount, key=asked.key)


@changes_router.post(
    "/v1/campaigns/{name}/horizon",
    summary="Expect more arrivals, or end later",
    response_model=CampaignShown,
    openapi_extra=takes(Extension),
)
async def extend(
    request: Request, name: str, caller: Admin, asked: Annotated[Extension, Depends(given(Extension))]
) -> Response:
    """Give a key: a repeated request then counts once."""

    def change(campaign: Campaign) -> None:
        campaign.extend(asked.rounds, key=asked.key, until=asked.until)

    details = {"rounds": asked.rounds, "until": asked.until, "key": asked.key}
    return await _changed(request, caller, name, "campaign extended", change, **details)


@changes_router.post(
    "/v1/campaigns/{name}/pause",
    summary="Skip every arrival until the campaign is resumed",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def pause_campaign(request: Request, name: str, caller: Admin, asked: NoBody) -> Response:
    """Decisions are skips with the reason code "paused"; answers are taken. A campaign that is paused stays so."""
    return await _changed(request, caller, name, "campaign paused", lambda campaign: campaign.pause(asked.key))


@changes_router.post(
    "/v1/campaigns/{name}/resume",
    summary="Decide again after a pause",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def resume_campaign(request: Request, name: str, caller: Admin, asked: NoBody) -> Response:
    """A campaign that is not paused stays as it is."""
    return await _changed(request, caller, name, "campaign resumed", lambda campaign: campaign.resume(asked.key))


@changes_router.post(
    "/v1/campaigns/{name}/close",
    summary="End a campaign",
    response_model=CampaignShown,
    openapi_extra=takes(Nothing, may_be_empty=True),
)
async def close_campaign(request: Request, name: str, caller: Admin, asked: NoBody) -> Response:
    """No more decisions; answers to open ones are still taken. A campaign that is closed stays so."""
    return await _changed(request, caller, name, "campaign closed", lambda campaign: campaign.close(asked.key))


@changes_router.post(
    "/v1/campaigns/{name}/expire",
    summary="Settle decisions that are too old for an answer to count",
    response_model=Expired,
    openapi_extra=takes(Expiry, may_be_empty=True),
)
async def expire(
    request: Request,
    name: str,
    caller: Admin,
    asked: Annotated[Expiry, Depends(given(Expiry, may_be_empty=True))],
) -> Response:
    """The service does this by itself now and then, too."""
    now = moment("now", asked.now)
    desk = await service_of(request).desk(name)

    def ask(campaign: Campaign) -> int:
        said = {"now": asked.now, "key": asked.key}
        with campaign.session.noting(
            lambda expired: act_of(request, caller, "decisions expired", name, **said, expired=expired)
        ):
            return campaign.expire(now, asked.key)

    return reply({"expired": await desk.write(ask)})


@changes_router.post(
    "/v1/campaigns/{name}/clock",
    summary="Set the campaign's clock back",
    response_model=CampaignShown,
    openapi_extra=takes(ClockSetting, may_be_empty=True),
)
async def repair_clock(
    request: Request,
    name: str,
    caller: Admin,
    asked: Annotated[ClockSetting, Depends(given(ClockSetting, may_be_empty=True))],
) -> Response:
    """After a wrong one has carried it away."""
    to = moment("to", asked.to)
    return await _changed(
        request, caller, name, "clock set back", lambda campaign: campaign.repair_clock(to, asked.key), to=asked.to
    )


@changes_router.post(
    "/v1/campaigns/{name}/forget",
    summary="Erase keys, and what is known of people",
    response_model=Forgotten,
    openapi_extra=takes(Forgetting),
)
async def forget(
    request: Request, name: str, caller: Admin, asked: Annotated[Forgetting, Depends(given(Forgetting))]
) -> Response:
    """The decisions and the ledger stay. A forgotten key still answers as used."""
    desk = await service_of(request).desk(name)

    def ask(campaign: Campaign) -> int:
        with campaign.session.noting(  # how many, and never which
            lambda found: act_of(request, caller, "keys forgotten", name, forgotten=found.n_keys)
        ):
            return campaign.forget(asked.keys, asked.key)

    return reply({"forgotten": await desk.write(ask)})
