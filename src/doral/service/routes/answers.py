"""Answers: one by one, many at once with a result for each, and corrections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from starlette.routing import Route

from doral.errors import DoralError
from doral.live.views.decision import Decision
from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.bodies import takes
from doral.service.given import given_item, given_items
from doral.service.models.decisions import Answer, AnswerResults, Answers, DecisionModel
from doral.service.quick import quick_route
from doral.service.replies import reply
from doral.service.service import service_of
from doral.service.threads import in_thread_if_many
from doral.wire.problems import to_problem
from doral.wire.values import decision_to_dict

_CAMPAIGN = "/v1/campaigns/{name}"
router = APIRouter(prefix=_CAMPAIGN, tags=["feedback"])


def quick_routes() -> list[Route]:
    """What is asked most."""
    return [quick_route(f"{_CAMPAIGN}/feedback", feedback, needs("feedback"))]


@router.post(
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


@router.post(
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


@router.post(
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
