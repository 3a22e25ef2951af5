"""What viewers of a campaign's page see, made once for all of them: facts are gathered once per change and process.

However many look, a campaign is asked at most once per second, and less often where an answer takes long.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from fastapi import Request

from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.page.facts import CampaignFacts
from doral.live.page.page import SECTIONS, parts
from doral.live.storage.service_tables import AlarmRow
from doral.live.views.text import moment
from doral.pages.names import short
from doral.pages.shell import section
from doral.service.pages.forms_answers import campaign_path
from doral.service.service import Service, last_event, service_of

FRAGMENTS = ("kicker", "alarms", "banner", "glance", "contents", *SECTIONS)  # in the order of the page
_EVERY_S = 1.0
_RESTS = 5.0  # times as long as gathering took
_AGES_S = 20.0  # after which open decisions are told to be older, though nothing has happened
_MOST_BOARDS = 256


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A campaign's page at one moment.

    Attributes:
        facts: What it shows.
        sequence: Of the last event in it.
        version: Counted up with every change of what is shown.
        fragments: Markup by id; empty where there is nothing to show.
        changed: In which version each of them became what it is.
    """

    facts: CampaignFacts
    sequence: int
    version: int
    fragments: Mapping[str, str]
    changed: Mapping[str, int]

    def since(self, version: int) -> dict[str, str]:
        """Those fragments that are not what they were then."""
        return {name: self.fragments[name] for name in FRAGMENTS if self.changed[name] > version}


class Board:
    """What is shown of one campaign; whoever asks while it is being made waits for it."""

    def __init__(self, service: Service, name: str) -> None:
        self._service, self._name = service, name
        self._lock = asyncio.Lock()
        self._shown: Shown | None = None
        self._made_at = self._began_at = self._ended_at = -1e9
        self._took_s = 0.0
        self.times_gathered = 0

    async def look(self, *, at_once: bool = False) -> Shown:
        """The page as it was a moment ago; `at_once`: nothing in it is older than the question.

        So whoever has done something sees it done. Who asks together looks together.
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
                alarms = await self._service.run(lambda: _alarms(self._service, self._name))
                if alarms == shown.fragments["alarms"]:
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
        fragments = fragments_of(facts, _alarms(self._service, self._name))
        before = self._shown
        version = 1 if before is None else before.version + 1
        changed = {
            name: version if before is None or before.fragments[name] != html else before.changed[name]
            for name, html in fragments.items()
        }
        return Shown(facts=facts, sequence=sequence, version=version, fragments=fragments, changed=changed)


class Boards:
    """Of one process."""

    def __init__(self, service: Service) -> None:
        self.token = secrets.token_hex(4)  # versions are counted anew by every process
        self._service = service
        self._boards: dict[str, Board] = {}

    def of(self, name: str) -> Board:
        """The board of a campaign that somebody may see; those that nobody has asked for in a long time are dropped."""
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


def fragments_of(facts: CampaignFacts, alarms: str = "") -> dict[str, str]:
    """The parts of a campaign's page by id: the same markup as that of the page that is a file."""
    found = parts(facts, link=lambda decision: campaign_path(facts.name, "decisions", decision))
    menu = "".join(f'<li><a href="#{one.id}">{escape(one.menu)}</a></li>' for one in found.sections)
    fragments = {
        "kicker": f'<p class="kicker">{escape(found.kicker)}</p>',
        "alarms": alarms,
        "banner": f'<p class="banner" role="note">{found.banner}</p>' if found.banner else "",
        "glance": found.glance,
        "contents": f'<nav aria-label="Contents"><ul>{menu}</ul></nav>',
    }
    sections = {one.id: section(one) for one in found.sections}
    return {**fragments, **{name: sections.get(name, "") for name in SECTIONS}}


def _alarms(service: Service, name: str) -> str:
    """Those that are raised; a book that cannot be read says nothing here: the page of the campaign says why."""
    try:
        return alarms_html(service.store.books.alarms(campaign=name))
    except DoralError:
        return ""


def alarms_html(rows: list[AlarmRow]) -> str:
    """A list, the newest first; nothing where all is well."""
    if not rows:
        return ""
    shown = "".join(
        f"<li><strong>{escape(short(row.words, 300))}</strong> "
        f"<small>{escape(short(row.rule, 40))}, since {moment(row.since, 'seconds')} UTC</small></li>"
        for row in rows
    )
    title = "1 alarm" if len(rows) == 1 else f"{len(rows):,} alarms"
    return f'<div class="alarms" role="group" aria-label="Alarms"><h2>{title}</h2><ul>{shown}</ul></div>'
