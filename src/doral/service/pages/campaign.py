"""The live page of a campaign: rendered like the page that is a file, then brought up to date by a small script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from html import escape
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from doral.errors import DoralError, UnknownName
from doral.live.errors import CampaignGone
from doral.pages.names import short
from doral.service.access.guard import page_caller
from doral.service.access.keys import Caller
from doral.service.access.refusals import as_told_to
from doral.service.pages.acting import actions, ways
from doral.service.pages.acting_messages import message
from doral.service.pages.forms_answers import campaign_path
from doral.service.pages.fragments import FRAGMENTS, Boards, Shown, boards_of
from doral.service.pages.refused import refused_page
from doral.service.pages.shell import shell
from doral.service.pages.why import search
from doral.service.responses import problem_reply, reply
from doral.service.service import Service, service_of

router = APIRouter(include_in_schema=False)

_TICK_S = 1.0
_SILENCE_S = 15.0  # after which a stream says that it is alive
_LONGEST_S = 300.0  # of a stream: whoever comes again shows his key again
_SCRIPTS = ("sorting.js", "campaign.js", "forms.js")


@router.get("/campaigns/{name}")
async def show(
    request: Request,
    name: str,
    caller: Annotated[Caller, Depends(page_caller)],
    boards: Annotated[Boards, Depends(boards_of)],
) -> Response:
    """The page."""
    try:
        shown = await boards.of(name).look(at_once=True)
    except DoralError as error:
        boards.drop(name)
        return refused_page(request, caller, error)
    return shell(request, caller, title=name, main=_main(request, caller, boards, shown), scripts=_SCRIPTS)


@router.get("/campaigns/{name}/fragments")
async def send_fragments(
    request: Request,
    name: str,
    caller: Annotated[Caller, Depends(page_caller)],
    boards: Annotated[Boards, Depends(boards_of)],
    since: str = "",
) -> Response:
    """What has changed since a version: all of it where that is not one of this process."""
    board = boards.of(name)
    try:
        shown = await board.look()
    except DoralError as error:
        boards.drop(name)
        is_gone = isinstance(error, UnknownName | CampaignGone)
        told = as_told_to(caller, error)
        return problem_reply(told, instance=request.url.path, status=410 if is_gone else None)
    version = f"{boards.token}-{shown.version}"
    headers = {"ETag": f'"{version}"', "Cache-Control": "no-store"}
    if f'"{version}"' in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    found = {
        "version": version,
        "sequence": shown.sequence,
        "made_at": shown.facts.made_at,
        "state": shown.facts.state,
        "wait_s": board.wait_s,
        "fragments": shown.since(_read_version(boards, since)),
    }
    return reply(found, headers=headers)


def _read_version(boards: Boards, since: str) -> int:
    token, _, version = since.partition("-")
    return int(version) if token == boards.token and version.isdecimal() and len(version) < 18 else 0


@router.get("/campaigns/{name}/changes")
async def send_changes(
    request: Request,
    name: str,
    caller: Annotated[Caller, Depends(page_caller)],
    service: Annotated[Service, Depends(service_of)],
) -> Response:
    """A line whenever there are more events, at most once per second; what they say is fetched as fragments.

    It ends when whoever looks would not be let in any more.
    """
    await service.queue(name)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    ticks = _ticks(service, name, caller.key_id, lambda: service.entrance.holds(request.scope))
    return StreamingResponse(ticks, media_type="text/event-stream", headers=headers)


async def _ticks(
    service: Service, name: str, whose: str, is_allowed: Callable[[], Awaitable[bool]]
) -> AsyncIterator[str]:
    latest: list[int] = []
    news = asyncio.Event()

    async def listen() -> None:
        with suppress(DoralError):
            async for sequence in service.follow(name, whose):
                latest[:] = [sequence]
                news.set()
        latest.clear()
        news.set()

    listening = asyncio.create_task(listen())
    loop = asyncio.get_running_loop()
    until = loop.time() + _LONGEST_S
    try:
        yield "retry: 2000\n\n"
        while loop.time() < until:
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), _SILENCE_S)
            if not await is_allowed():
                return
            if not news.is_set():
                yield ": still here\n\n"
                continue
            if not latest:  # there will be no more
                return
            news.clear()
            yield f"data: {json.dumps({'sequence': latest[0]})}\n\n"
            await asyncio.sleep(_TICK_S)
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


def _main(request: Request, caller: Caller, boards: Boards, shown: Shown) -> str:
    facts = shown.facts
    path = escape(campaign_path(facts.name))
    parts = {name: f'<div class="fragment" data-fragment="{name}">{shown.fragments[name]}</div>' for name in FRAGMENTS}
    head = ("kicker", "alarms", "banner", "glance")
    body = [name for name in FRAGMENTS if name not in (*head, "contents")]
    status = (
        '<div class="status"><p class="pill" id="status" role="status" aria-live="polite" data-state="plain">'
        'As loaded</p><span id="as-of"></span>'
        "<noscript><p>Without scripts this page does not move by itself: load it again to see what is new.</p>"
        f"</noscript>{ways(caller, facts)}{search(facts.name, facts.tag)}</div>"
    )
    return (
        f"{message(request, caller)}{parts['kicker']}<h1>{escape(short(facts.name, 80))}</h1>"
        f'<div id="live" data-path="{path}" data-version="{boards.token}-{shown.version}" '
        f'data-made-at="{facts.made_at:.3f}">{status}'
        f"{''.join(parts[name] for name in head[1:])}{parts['contents']}"
        f"{''.join(parts[name] for name in body)}</div>{actions(caller, facts)}"
    )
