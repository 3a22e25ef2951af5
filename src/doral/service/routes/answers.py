"""Answers: one by one, many at once with a result for each, and corrections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.routing import Route

from doral.errors import DoralError
from doral.live.decision import Decision
from doral.service.access.caller import Caller
from doral.service.access.guard import needs
from doral.service.bodies import answer, moment, read_body, refuse_too_many, takes
from doral.service.idempotency import header_key, item_key, key_of
from doral.service.models.decisions import Answer, AnswerResults, Answers, DecisionModel
from doral.service.quick import quick_route
from doral.service.service import service_of
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
    found = await _one(request)
    desk = await service_of(request).desk(name)
    return answer(decision_to_dict(await desk.feedback(found)))


@router.post(
    "/feedback/correct",
    summary="A later, better value for an answer",
    responses={200: {"model": DecisionModel}},
    openapi_extra=takes(Answer),
)
async def correct(request: Request, name: str, caller: Annotated[Caller, Depends(needs("feedback"))]) -> Response:
    del caller
    found = await _one(request)
    desk = await service_of(request).desk(name)
    return answer(decision_to_dict(await desk.correct(found)))


@router.post(
    "/feedback/batch",
    summary="Many answers; what is wrong with one does not keep the others out",
    responses={200: {"model": AnswerResults}},
    openapi_extra=takes(Answers),
)
async def feedback_many(request: Request, name: str, caller: Annotated[Caller, Depends(needs("feedback"))]) -> Response:
    del caller
    service = service_of(request)
    body = await read_body(request, Answers)
    refuse_too_many("answers", body.answers, service.settings.limits.batch)
    header = header_key(request)
    answers = [_answer(one) for one in body.answers]
    for index, one in enumerate(answers):
        one["key"] = item_key(header, index, one["key"])
    desk = await service.desk(name)
    found: Sequence[Decision | DoralError]
    if body.all_or_none:
        found = await desk.write(lambda campaign: campaign.feedback_many(answers))
    else:
        found = await desk.feedback_each(answers)
    refused = sum(isinstance(one, DoralError) for one in found)
    results = [_result(one) for one in found]
    return answer({"results": results, "accepted": len(results) - refused, "refused": refused})


async def _one(request: Request) -> dict[str, Any]:
    body = await read_body(request, Answer)
    found = _answer(body)
    found["key"] = key_of(header_key(request), body.key)
    return found


def _answer(body: Answer) -> dict[str, Any]:
    found = dict(vars(body))
    if isinstance(body.at, str):
        found["at"] = moment("at", body.at)
    return found


def _result(found: Decision | DoralError) -> dict[str, Any]:
    if isinstance(found, DoralError):
        return {"problem": to_problem(found)}
    return {"decision": decision_to_dict(found)}
