"""Campaigns: created, listed, shown."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from doral.service.access.audit import act_of
from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.bodies import takes
from doral.service.creating import create, wanted_by
from doral.service.given import given
from doral.service.idempotency import header_key
from doral.service.models.campaigns import CampaignGiven, Campaigns, CampaignShown
from doral.service.replies import reply
from doral.service.service import Service, service_of
from doral.service.summaries import shown
from doral.wire.addresses import path_of

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
