"""Decisions and answers, one by one or many at once; and decisions that were made elsewhere.

`rank` and `events/{event_id}/reward` are the two calls of Azure AI Personalizer, for teams whose service is retired.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.events.event import STATE_NAMES
from doral.live.views.decision import Decision
from doral.live.views.decision_pages import MAX_PAGE
from doral.service.access.guard import Answerer, Decider, Known, Reader
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
    RankAsked,
    Ranking,
    Record,
    Records,
    Reward,
)
from doral.service.requests import IdempotencyKey, JsonRoute, QuickRoute, fields_of, fields_of_many
from doral.service.responses import decision_reply, decisions_reply, in_thread_if_many, reply, to_dict
from doral.service.service import Shared
from doral.wire.problems import to_problem

router = APIRouter(prefix="/v1/campaigns/{name}", route_class=JsonRoute)
quick = APIRouter(prefix="/v1/campaigns/{name}", route_class=QuickRoute)


# --- decisions --------------------------------------------------------------------------------------------------------


@quick.post("/decisions", summary="Decide for one arrival", response_model=DecisionModel, tags=["decisions"])
async def decide(service: Shared, name: str, caller: Decider, arrival: Arrival, key: IdempotencyKey) -> Response:
    queue = await service.queue(name)
    return decision_reply(queue, await queue.decide(fields_of(arrival, key)))


@quick.post("/feedback", summary="The answer to a decision", response_model=DecisionModel, tags=["feedback"])
async def feedback(service: Shared, name: str, caller: Answerer, answer: Answer, key: IdempotencyKey) -> Response:
    queue = await service.queue(name)
    return decision_reply(queue, await queue.feedback(fields_of(answer, key)))


@quick.post(
    "/decisions/batch",
    summary="Decide for many arrivals, all or none",
    response_model=DecisionList,
    tags=["decisions"],
)
async def decide_many(
    request: Request, service: Shared, name: str, caller: Decider, asked: Arrivals, key: IdempotencyKey
) -> Response:
    arrivals = fields_of_many(request, "arrivals", asked.arrivals, key)
    queue = await service.queue(name)
    made = await queue.decide_many(arrivals)
    return await in_thread_if_many(service.run, len(made), lambda: decisions_reply(queue, made))


@router.get("/decisions", summary="Decisions, page by page", response_model=DecisionPart, tags=["decisions"])
async def decisions(
    service: Shared,
    name: str,
    caller: Reader,
    state: Annotated[str | None, Query(description=f"Only those that are {', '.join(STATE_NAMES)}.")] = None,
    key: Annotated[str | None, Query(description="Only the one that was made with this key.")] = None,
    after: Annotated[str | None, Query(description="What the page before gave as `next`.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> Response:
    queue = await service.queue(name)
    if key is not None:
        if state is not None or after is not None:
            raise InvalidValue("key", key, "names one decision: leave out state and after")
        one = await queue.read(lambda campaign: campaign.decision_with_key(key))
        return decisions_reply(queue, [] if one is None else [one], next=None)
    page = await queue.read(lambda campaign: campaign.decision_page(after, state, limit))
    return decisions_reply(queue, page.decisions, next=page.next)


@router.get(
    "/decisions/{decision_id}", summary="One decision as it stands", response_model=DecisionModel, tags=["decisions"]
)
async def decision(service: Shared, name: str, decision_id: str, caller: Known) -> Response:
    queue = await service.queue(name)
    return decision_reply(queue, await queue.read(lambda campaign: campaign.decision(decision_id)))


@router.post(
    "/decisions/{decision_id}/cancel",
    summary="A decision was not carried out: its budget comes back",
    response_model=DecisionModel,
    tags=["decisions"],
)
async def cancel(
    service: Shared,
    name: str,
    decision_id: str,
    caller: Decider,
    key: IdempotencyKey,
    asked: Cancellation | None = None,
) -> Response:
    found = fields_of(asked or Cancellation(), key)
    queue = await service.queue(name)
    return decision_reply(queue, await queue.cancel(decision_id, found["key"], found["at"]))


# --- answers ----------------------------------------------------------------------------------------------------------


@router.post(
    "/feedback/correct",
    summary="A later, better value for an answer",
    response_model=DecisionModel,
    tags=["feedback"],
)
async def correct(service: Shared, name: str, caller: Answerer, answer: Answer, key: IdempotencyKey) -> Response:
    queue = await service.queue(name)
    return decision_reply(queue, await queue.correct(fields_of(answer, key)))


@quick.post(
    "/feedback/batch",
    summary="Many answers; what is wrong with one does not keep the others out",
    response_model=AnswerResults,
    tags=["feedback"],
)
async def feedback_many(
    request: Request, service: Shared, name: str, caller: Answerer, asked: Answers, key: IdempotencyKey
) -> Response:
    answers = fields_of_many(request, "answers", asked.answers, key)
    queue = await service.queue(name)
    found: Sequence[Decision | DoralError]
    found = await (queue.feedback_many(answers) if asked.all_or_none else queue.feedback_each(answers))

    def results() -> Response:
        in_seconds = queue.is_in_seconds
        rows = [
            {"problem": to_problem(one)} if isinstance(one, DoralError) else {"decision": to_dict(one, in_seconds)}
            for one in found
        ]
        refused = sum("problem" in one for one in rows)
        return reply({"results": rows, "accepted": len(rows) - refused, "refused": refused})

    return await in_thread_if_many(service.run, len(found), results)


# --- decisions that were made elsewhere -------------------------------------------------------------------------------


@router.post("/records", summary="A decision that was made elsewhere", response_model=DecisionModel, tags=["records"])
async def record(service: Shared, name: str, caller: Decider, asked: Record, key: IdempotencyKey) -> Response:
    queue = await service.queue(name)
    return decision_reply(queue, (await queue.record_many([fields_of(asked, key)]))[0])


@router.post(
    "/records/batch",
    summary="Many decisions that were made elsewhere, all or none",
    response_model=DecisionList,
    tags=["records"],
)
async def record_many(
    request: Request, service: Shared, name: str, caller: Decider, asked: Records, key: IdempotencyKey
) -> Response:
    records = fields_of_many(request, "records", asked.records, key)
    queue = await service.queue(name)
    made = await queue.record_many(records)
    return await in_thread_if_many(service.run, len(made), lambda: decisions_reply(queue, made))


# --- as Personalizer asks ---------------------------------------------------------------------------------------------


@router.post("/rank", summary="Choose one of several actions", status_code=201, response_model=Ranking, tags=["rank"])
async def rank(service: Shared, name: str, caller: Decider, asked: RankAsked) -> Response:
    """Actions are arms of the campaign, by their names. Of the context features, `context` names the context; the
    others are what is known of the person. `rewardActionId` is null where the budget is better spent elsewhere.
    """
    event_id = asked.eventId or uuid.uuid4().hex
    features = {name: value for part in asked.contextFeatures for name, value in part.items()}
    context = features.pop("context", None)
    excluded = set(asked.excludedActions)
    names = [one.id for one in asked.actions]
    queue = await service.queue(name)
    arrival = Arrival(
        context=None if context is None else str(context),
        available=[one for one in names if one not in excluded],
        features=features or None,
    )
    made = await queue.decide(fields_of(arrival, event_id))
    probabilities = {made.arm: made.probability} if made.arm is not None else {}
    ordered = sorted(names, key=lambda one: one != made.arm)
    ranking = [{"id": one, "probability": probabilities.get(one)} for one in ordered]
    return reply({"ranking": ranking, "eventId": event_id, "rewardActionId": made.arm}, status=201)


@router.post("/events/{event_id}/reward", summary="What came of a ranking", status_code=204, tags=["rank"])
async def reward(service: Shared, name: str, event_id: str, caller: Answerer, asked: Reward) -> Response:
    queue = await service.queue(name)
    ranked = await queue.read(lambda campaign: campaign.decision_with_key(event_id))
    if ranked is None:
        raise UnknownName("event", event_id, ())
    await queue.feedback({"decision_id": ranked.id, "reward": asked.value, "key": event_id})
    return Response(status_code=204)
