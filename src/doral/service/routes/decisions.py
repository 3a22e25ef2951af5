"""Decisions: asked for one by one or many at once, looked up, taken back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.routing import Route

from doral.errors import InvalidValue
from doral.live.events.event import STATE_NAMES
from doral.live.views.decision_pages import MAX_PAGE
from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.bodies import takes
from doral.service.given import given_item, given_items
from doral.service.models.decisions import Arrival, Arrivals, Cancellation, DecisionList, DecisionModel, DecisionPart
from doral.service.quick import quick_route
from doral.service.replies import decisions_reply, reply
from doral.service.service import service_of
from doral.service.threads import in_thread_if_many
from doral.wire.values import decision_to_dict

_CAMPAIGN = "/v1/campaigns/{name}"
router = APIRouter(prefix=_CAMPAIGN, tags=["decisions"])


def quick_routes() -> list[Route]:
    """What is asked most."""
    return [quick_route(f"{_CAMPAIGN}/decisions", decide, needs("decide"))]


@router.post(
    "/decisions",
    summary="Decide for one arrival",
    responses={200: {"model": DecisionModel}},
    openapi_extra=takes(Arrival),
)
async def decide(request: Request, name: str, caller: Annotated[Caller, Depends(needs("decide"))]) -> Response:
    del caller
    arrival = await given_item(request, Arrival)
    desk = await service_of(request).desk(name)
    return reply(decision_to_dict(await desk.decide(arrival)))


@router.post(
    "/decisions/batch",
    summary="Decide for many arrivals, all or none",
    responses={200: {"model": DecisionList}},
    openapi_extra=takes(Arrivals),
)
async def decide_many(request: Request, name: str, caller: Annotated[Caller, Depends(needs("decide"))]) -> Response:
    del caller
    service = service_of(request)
    _, arrivals = await given_items(request, Arrivals, "arrivals")
    made = await (await service.desk(name)).decide_many(arrivals)
    return await in_thread_if_many(service.run, len(made), lambda: decisions_reply(made))


@router.get("/decisions", summary="Decisions, page by page", responses={200: {"model": DecisionPart}})
async def decisions(
    request: Request,
    name: str,
    caller: Annotated[Caller, Depends(needs("read"))],
    state: Annotated[str | None, Query(description=f"Only those that are {', '.join(STATE_NAMES)}.")] = None,
    key: Annotated[str | None, Query(description="Only the one that was made with this key.")] = None,
    after: Annotated[str | None, Query(description="What the page before gave as `next`.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    del caller
    desk = await service_of(request).desk(name)
    if key is not None:
        if state is not None or after is not None:
            raise InvalidValue("key", key, "names one decision: leave out state and after")
        one = await desk.read(lambda campaign: campaign.decision_with_key(key))
        return reply({"decisions": [] if one is None else [decision_to_dict(one)], "next": None})
    page = await desk.read(lambda campaign: campaign.decision_page(after, state, limit))
    return reply({"decisions": [decision_to_dict(one) for one in page.decisions], "next": page.next})


@router.get("/decisions/{decision_id}", summary="One decision as it stands", responses={200: {"model": DecisionModel}})
async def decision(
    request: Request,
    name: str,
    decision_id: str,
    caller: Annotated[Caller, Depends(needs("read", "decide", "feedback"))],
) -> Response:
    del caller
    desk = await service_of(request).desk(name)
    return reply(decision_to_dict(await desk.read(lambda campaign: campaign.decision(decision_id))))


@router.post(
    "/decisions/{decision_id}/cancel",
    summary="A decision was not carried out: its budget comes back",
    responses={200: {"model": DecisionModel}},
    openapi_extra=takes(Cancellation, may_be_empty=True),
)
async def cancel(
    request: Request, name: str, decision_id: str, caller: Annotated[Caller, Depends(needs("decide"))]
) -> Response:
    del caller
    found = await given_item(request, Cancellation, may_be_empty=True)
    desk = await service_of(request).desk(name)
    return reply(decision_to_dict(await desk.cancel(decision_id, found["key"], found["at"])))
