"""Decisions and answers, one by one or many at once; and decisions that were made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.routing import Route

from doral.errors import DoralError, InvalidValue
from doral.live.events.event import STATE_NAMES
from doral.live.views.decision import Decision
from doral.live.views.decision_pages import MAX_PAGE
from doral.service.access.guard import needs
from doral.service.access.keys import Caller
from doral.service.models.decisions import (
    Answer,
    AnswerResults,
    Answers,
    Arrival,
    Arrivals,
    Cancellation,
    DecisionList,
    DecisionModel,
    DecisionPart,
    Record,
    Records,
)
from doral.service.quick import quick_route
from doral.service.requests import given_item, given_items, takes
from doral.service.responses import decisions_reply, in_thread_if_many, reply
from doral.service.service import service_of
from doral.wire.problems import to_problem
from doral.wire.values import decision_to_dict

_CAMPAIGN = "/v1/campaigns/{name}"
decisions_router = APIRouter(prefix=_CAMPAIGN, tags=["decisions"])


def decision_routes() -> list[Route]:
    """What is asked most."""
    return [quick_route(f"{_CAMPAIGN}/decisions", decide, needs("decide"))]


@decisions_router.post(
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


@decisions_router.post(
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


@decisions_router.get("/decisions", summary="Decisions, page by page", responses={200: {"model": DecisionPart}})
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


@decisions_router.get(
    "/decisions/{decision_id}", summary="One decision as it stands", responses={200: {"model": DecisionModel}}
)
async def decision(
    request: Request,
    name: str,
    decision_id: str,
    caller: Annotated[Caller, Depends(needs("read", "decide", "feedback"))],
) -> Response:
    del caller
    desk = await service_of(request).desk(name)
    return reply(decision_to_dict(await desk.read(lambda campaign: campaign.decision(decision_id))))


@decisions_router.post(
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


answers_router = APIRouter(prefix=_CAMPAIGN, tags=["feedback"])


def answer_routes() -> list[Route]:
    """What is asked most."""
    return [quick_route(f"{_CAMPAIGN}/feedback", feedback, needs("feedback"))]


@answers_router.post(
    "/feedback",
    summary="The answer to a decision",
    responses={200: {"model": DecisionModel}},
    openapi_extra=takes(Answer),
)
async def feedback(request: Request, name: str, caller: Annotated[Caller, Depends(needs("feedback"))]) -> Response:
    del caller
    found = await given_item(request, Answer)
    desk = await service_of(request).desk(name)
    return reply(decision_to_dict(await desk.feedback(found)))


@answers_router.post(
    "/feedback/correct",
    summary="A later, better value for an answer",
    responses={200: {"model": DecisionModel}},
    openapi_extra=takes(Answer),
)
async def correct(request: Request, name: str, caller: Annotated[Caller, Depends(needs("feedback"))]) -> Response:
    del caller
    found = await given_item(request, Answer)
    desk = await service_of(request).desk(name)
    return reply(decision_to_dict(await desk.correct(found)))


@answers_router.post(
    "/feedback/batch",
    summary="Many answers; what is wrong with one does not keep the others out",
    responses={200: {"model": AnswerResults}},
    openapi_extra=takes(Answers),
)
async def feedback_many(request: Request, name: str, caller: Annotated[Caller, Depends(needs("feedback"))]) -> Response:
    del caller
    service = service_of(request)
    body, answers = await given_items(request, Answers, "answers")
    desk = await service.desk(name)
    found: Sequence[Decision | DoralError]
    found = await (desk.feedback_many(answers) if body.all_or_none else desk.feedback_each(answers))
    return await in_thread_if_many(service.run, len(found), lambda: _results(found))


def _results(found: Sequence[Decision | DoralError]) -> Response:
    results = [
        {"problem": to_problem(one)} if isinstance(one, DoralError) else {"decision": decision_to_dict(one)}
        for one in found
    ]
    refused = sum("problem" in one for one in results)
    return reply({"results": results, "accepted": len(results) - refused, "refused": refused})


records_router = APIRouter(prefix="/v1/campaigns/{name}", tags=["records"])


@records_router.post(
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


@records_router.post(
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
