"""Campaigns: created, listed, shown, and changed while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from doral.live.campaign import Campaign
from doral.problem import Arm
from doral.service.access.guard import Admin, Known, KnownAnywhere, act_of
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
from doral.service.requests import IdempotencyKey, JsonRoute, key_of, moment
from doral.service.responses import reply
from doral.service.service import Shared, shown
from doral.wire.values import path_of

router = APIRouter(tags=["campaigns"], route_class=JsonRoute)
changes = APIRouter(prefix="/v1/campaigns/{name}", tags=["changes"], route_class=JsonRoute)


@router.get("/v1/campaigns", summary="Campaigns that the key is for", response_model=Campaigns)
async def list_campaigns(
    service: Shared,
    caller: KnownAnywhere,
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
)
async def create_campaign(
    request: Request, service: Shared, caller: Admin, asked: CampaignGiven, key: IdempotencyKey
) -> Response:
    """With the header Idempotency-Key, a repeated request is answered with what is there, if that is what it asks for.
    Without it, a name that is taken is refused.
    """
    act = act_of(request, caller, "campaign created", asked.name)

    def make() -> tuple[dict[str, Any], bool]:
        made, is_new = create(service.store, wanted_by(asked), may_be_there=key is not None, act=act)
        return shown(made), is_new

    made, is_new = await service.run(make)
    headers = {"Location": path_of("v1", "campaigns", asked.name)}
    return reply(made, status=201 if is_new else 200, headers=headers)


@router.get("/v1/campaigns/{name}", summary="What a campaign is, and where it stands", response_model=CampaignShown)
async def show_campaign(name: str, service: Shared, caller: Known) -> Response:
    """The problem with the arms that were added, the policy with all its options, and a summary."""
    return reply(await (await service.queue(name)).read(shown))


# --- changes while it runs --------------------------------------------------------------------------------------------


class _Change:
    """Who changes which campaign; a dependency of routes."""

    def __init__(self, request: Request, service: Shared, name: str, caller: Admin, header: IdempotencyKey) -> None:
        self._request, self._service, self._name, self._caller = request, service, name, caller
        self._header = header

    def key(self, asked: Any) -> str | None:
        """Of the request: what its body and its header say."""
        return key_of(self._header, None if asked is None else asked.key)

    async def make(self, act: str, change: Callable[[Campaign], object], **details: Any) -> Response:
        """Make a change and note who has made it, in one transaction; the campaign as it is after that."""

        def ask(campaign: Campaign) -> dict[str, Any]:
            with campaign.session.noting(lambda _: self._act(act, **details)):
                change(campaign)
            return shown(campaign)

        return reply(await (await self._service.queue(self._name)).write(ask))

    async def count(self, act: str, change: Callable[[Campaign], int], note: Callable[[Any], dict[str, Any]]) -> int:
        """The same for what gives a number; `note` makes the details of it."""

        def ask(campaign: Campaign) -> int:
            with campaign.session.noting(lambda found: self._act(act, **note(found))):
                return change(campaign)

        return await (await self._service.queue(self._name)).write(ask)

    def _act(self, act: str, **details: Any) -> Any:
        return act_of(self._request, self._caller, act, self._name, **details)


Change = Annotated[_Change, Depends(_Change)]


@changes.post("/arms", summary="Add an arm", response_model=CampaignShown)
async def add_arm(change: Change, asked: ArmGiven) -> Response:
    """Nothing is known about it. It joins a race that still runs; later it is accepted at once."""
    arm, key = Arm(asked.name, features=asked.features, cost=asked.cost), change.key(asked)
    return await change.make(
        "arm added", lambda campaign: campaign.add_arm(arm, key=key), arm=asked.name, cost=asked.cost, key=key
    )


@changes.post("/arms/{arm}/pause", summary="Stop offering an arm until it is resumed", response_model=CampaignShown)
async def pause_arm(change: Change, arm: str, asked: Nothing | None = None) -> Response:
    """An arm that is paused stays so."""
    key = change.key(asked)
    return await change.make("arm paused", lambda campaign: campaign.pause_arm(arm, key), arm=arm)


@changes.post("/arms/{arm}/resume", summary="Offer a paused arm again", response_model=CampaignShown)
async def resume_arm(change: Change, arm: str, asked: Nothing | None = None) -> Response:
    """An arm that is offered stays so."""
    key = change.key(asked)
    return await change.make("arm resumed", lambda campaign: campaign.resume_arm(arm, key), arm=arm)


@changes.post("/arms/{arm}/retire", summary="Stop offering an arm for good", response_model=CampaignShown)
async def retire_arm(change: Change, arm: str, asked: Nothing | None = None) -> Response:
    """Answers to it are still taken."""
    key = change.key(asked)
    return await change.make("arm retired", lambda campaign: campaign.retire_arm(arm, key), arm=arm)


@changes.post("/budget", summary="Add to the budget", response_model=CampaignShown)
async def top_up(change: Change, asked: TopUp) -> Response:
    """Give a key: a repeated request then adds it once."""
    amount, key = asked.amount, change.key(asked)
    return await change.make(
        "budget topped up", lambda campaign: campaign.top_up(amount, key=key), amount=amount, key=key
    )


@changes.post("/horizon", summary="Expect more arrivals, or end later", response_model=CampaignShown)
async def extend(change: Change, asked: Extension) -> Response:
    """Give a key: a repeated request then counts once."""
    key, details = change.key(asked), {"rounds": asked.rounds, "until": asked.until}
    return await change.make(
        "campaign extended",
        lambda campaign: campaign.extend(asked.rounds, key=key, until=asked.until),
        **details,
        key=key,
    )


@changes.post("/pause", summary="Skip every arrival until the campaign is resumed", response_model=CampaignShown)
async def pause_campaign(change: Change, asked: Nothing | None = None) -> Response:
    """Decisions are skips with the reason code "paused"; answers are taken. A campaign that is paused stays so."""
    key = change.key(asked)
    return await change.make("campaign paused", lambda campaign: campaign.pause(key))


@changes.post("/resume", summary="Decide again after a pause", response_model=CampaignShown)
async def resume_campaign(change: Change, asked: Nothing | None = None) -> Response:
    """A campaign that is not paused stays as it is."""
    key = change.key(asked)
    return await change.make("campaign resumed", lambda campaign: campaign.resume(key))


@changes.post("/close", summary="End a campaign", response_model=CampaignShown)
async def close_campaign(change: Change, asked: Nothing | None = None) -> Response:
    """No more decisions; answers to open ones are still taken. A campaign that is closed stays so."""
    key = change.key(asked)
    return await change.make("campaign closed", lambda campaign: campaign.close(key))


@changes.post("/expire", summary="Settle decisions that are too old for an answer to count", response_model=Expired)
async def expire(change: Change, asked: Expiry | None = None) -> Response:
    """The service does this by itself now and then, too."""
    key, said = change.key(asked), None if asked is None else asked.now
    now = moment("now", said)
    found = await change.count(
        "decisions expired",
        lambda campaign: campaign.expire(now, key),
        lambda expired: {"now": said, "key": key, "expired": expired},
    )
    return reply({"expired": found})


@changes.post("/clock", summary="Set the campaign's clock back", response_model=CampaignShown)
async def repair_clock(change: Change, asked: ClockSetting | None = None) -> Response:
    """After a wrong one has carried it away."""
    key, said = change.key(asked), None if asked is None else asked.to
    to = moment("to", said)
    return await change.make("clock set back", lambda campaign: campaign.repair_clock(to, key), to=said)


@changes.post("/forget", summary="Erase keys, and what is known of people", response_model=Forgotten)
async def forget(change: Change, asked: Forgetting) -> Response:
    """The decisions and the ledger stay. A forgotten key still answers as used."""
    key = change.key(asked)
    found = await change.count(
        "keys forgotten",
        lambda campaign: campaign.forget(asked.keys, key),
        lambda forgotten: {"forgotten": forgotten.n_keys},  # how many, and never which
    )
    return reply({"forgotten": found})
