"""The live page of a campaign: gathered once per change for all who look, then brought up to date by a small script.

However many look, a campaign is asked at most once per second, and less often where an answer takes long.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from doral.errors import DoralError, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import CampaignGone
from doral.live.page.facts import CampaignFacts
from doral.live.page.page import SECTIONS, View, fragments
from doral.service.access.guard import own_origin, page_caller
from doral.service.access.keys import Caller
from doral.service.access.refusals import as_told_to
from doral.service.pages.acts import Alarms, act_path, alarms_of, day_after
from doral.service.pages.shell import campaign_path, refused_page, render, templates
from doral.service.responses import problem_reply, reply
from doral.service.service import Service, last_event, service_of

router = APIRouter(include_in_schema=False)

# In the order of the page. Those of each caller depend on what the caller may do, and are made for each.
SHARED = ("kicker", "banner", "status", "glance", "charts", *SECTIONS)
OF_EACH_CALLER = ("alarms", "controls", "beginning")
_EVERY_S = 1.0
_RESTS = 5.0  # times as long as gathering took
_AGES_S = 20.0  # after which open decisions are told to be older, though nothing has happened
_MOST_BOARDS = 256
_TICK_S = 1.0
_SILENCE_S = 15.0  # after which a stream says that it is alive
_LONGEST_S = 300.0  # of a stream: a client that comes again shows its key again
_SCRIPTS = ("sorting.js", "live.js", "forms.js")


# --- what is shown, for all who look ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A campaign's page at one moment.

    Attributes:
        facts: What it shows.
        alarms: Raised and muted.
        sequence: Of the last event in it.
        version: Counted up with every change of what is shown.
        fragments: Markup by id, of each caller's parts what they depend on; empty where there is nothing to show.
        changed: In which version each of them became what it is.
    """

    facts: CampaignFacts
    alarms: Alarms
    sequence: int
    version: int
    fragments: Mapping[str, str]
    changed: Mapping[str, int]

    def since(self, version: int) -> list[str]:
        """Names of those fragments that are not what they were then."""
        return [name for name in self.fragments if self.changed[name] > version]


class Board:
    """What is shown of one campaign; requests that come while it is being made wait for it."""

    def __init__(self, service: Service, name: str) -> None:
        self._service, self._name = service, name
        self._lock = asyncio.Lock()
        self._shown: Shown | None = None
        self._made_at = self._began_at = self._ended_at = -1e9
        self._took_s = 0.0
        self.times_gathered = 0

    async def look(self, *, at_once: bool = False) -> Shown:
        """The page as it was a moment ago; `at_once`: nothing in it is older than the question.

        So a caller who has done something sees it done. Requests that come together look together.
        """
        asked_at = time.monotonic()
        async with self._lock:
            now = time.monotonic()
            is_new = self._began_at >= asked_at if at_once else self.wait_s > 0.0
            if self._shown is not None and is_new:
                return self._shown
            self._began_at = now
            desk = await self._service.queue(self._name)
            shown = self._shown
            last = await desk.read(last_event)
            is_old = now - self._made_at > _AGES_S
            if shown is not None and last == shown.sequence and not is_old:
                tag = desk.campaign.session.row.tag
                alarms = await self._service.run(lambda: alarms_of(self._service, self._name, tag))
                if alarms == shown.alarms:
                    self._ended_at = time.monotonic()
                    return shown
            self._made_at = now
            self._shown = await desk.read(self._make)
            self._ended_at = time.monotonic()
            self._took_s = self._ended_at - now
            return self._shown

    @property
    def wait_s(self) -> float:
        """How long it makes no sense to ask again."""
        return max(0.0, self._ended_at + max(_EVERY_S, _RESTS * self._took_s) - time.monotonic())

    def _make(self, campaign: Campaign) -> Shown:
        self.times_gathered += 1
        sequence = last_event(campaign)  # before the facts: they may have more, never less
        facts = campaign.facts()
        alarms = alarms_of(self._service, self._name, campaign.session.row.tag)
        parts = shared_fragments(facts)
        parts |= {"alarms": repr(alarms), "controls": _controls_key(facts), "beginning": str(_is_new(facts))}
        before = self._shown
        version = 1 if before is None else before.version + 1
        changed = {
            name: version if before is None or before.fragments[name] != html else before.changed[name]
            for name, html in parts.items()
        }
        return Shown(facts=facts, alarms=alarms, sequence=sequence, version=version, fragments=parts, changed=changed)


def _controls_key(facts: CampaignFacts) -> str:
    """What the forms of a page depend on."""
    arms = [(one.name, one.status) for one in facts.arms]
    return repr((facts.state, facts.total, facts.ends_at or facts.horizon, facts.pending.overdue > 0, arms))


def _is_new(facts: CampaignFacts) -> bool:
    return not any(facts.states.values())


def shared_fragments(facts: CampaignFacts) -> dict[str, str]:
    """The parts that are the same for all who may see the page, by id."""
    view = View(facts, link=lambda decision: campaign_path(facts.name, "decisions", decision))
    macros: Any = templates().get_template("campaign_parts.html").module
    return {"kicker": str(macros.kicker(facts)), "banner": str(macros.banner(facts)), **fragments(view)}


def parts_of(request: Request, caller: Caller, shown: Shown) -> dict[str, str]:
    """Those that depend on what the caller may do, by id."""
    facts, service = shown.facts, service_of(request)
    begin: Any = templates().get_template("parts.html").module
    is_new = _is_new(facts) and facts.state != "closed"
    url = own_origin(request, service.settings)
    return {
        "alarms": str(_controls().alarms(caller, facts, shown.alarms)),
        "controls": controls(caller, facts),
        "beginning": str(begin.beginning(View(facts), url)) if is_new else "",
    }


def controls(caller: Caller, facts: CampaignFacts) -> str:
    """What this caller may do to this campaign, and what can be taken away from it; nothing for others."""
    return str(_controls().controls(caller, facts, act_path, day_after))


def _controls() -> Any:
    return templates().get_template("controls.html").module


class Boards:
    """Of one process."""

    def __init__(self, service: Service) -> None:
        self.token = secrets.token_hex(4)  # versions are counted anew by every process
        self._service = service
        self._boards: dict[str, Board] = {}

    def of(self, name: str) -> Board:
        """The board of a campaign that the caller may see; those not asked for in a long time are dropped."""
        found = self._boards.pop(name, None) or Board(self._service, name)
        self._boards[name] = found
        while len(self._boards) > _MOST_BOARDS:
            del self._boards[next(iter(self._boards))]
        return found

    def drop(self, name: str) -> None:
        """The campaign is not there."""
        self._boards.pop(name, None)


def boards_of(request: Request) -> Boards:
    """A dependency of routes."""
    state = request.app.state
    if not hasattr(state, "boards"):
        state.boards = Boards(service_of(request))
    found: Boards = state.boards
    return found


# --- routes -----------------------------------------------------------------------------------------------------------


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
    return render(
        request,
        caller,
        "campaign.html",
        title=name,
        scripts=_SCRIPTS,
        facts=shown.facts,
        fragments={**shown.fragments, **parts_of(request, caller, shown)},
        sections=list(SECTIONS),
        version=f"{boards.token}-{shown.version}",
    )


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
    names = shown.since(_read_version(boards, since))
    own = parts_of(request, caller, shown) if any(one in OF_EACH_CALLER for one in names) else {}
    found = {
        "version": version,
        "sequence": shown.sequence,
        "made_at": shown.facts.made_at,
        "state": shown.facts.state,
        "wait_s": board.wait_s,
        "fragments": {one: own.get(one, shown.fragments[one]) for one in names},
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

    It ends when the caller would not be let in any more.
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
