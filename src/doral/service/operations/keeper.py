"""Watches all campaigns now and then: alarms, and decisions that are too old.

Where there are more campaigns than there is time for, those that have moved come first. Each of several replicas has a
keeper: what they raise is the same, and the store raises it once. A rule that judges chance tests when enough more has
happened, and not at every moment: otherwise it would be wrong more often than it says. What it has raised stays until
its own opposite holds, so that nothing flaps.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator

from doral.engine.explain import view_forecast
from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.events.codec import decode
from doral.live.kinds.expire import overdue
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.storage.service_tables import AlarmRow, Books
from doral.live.views.health import Health
from doral.service.operations.alarm_rules import (
    BUDGET_EARLY,
    CURVE_MOVED,
    PACE_OFF,
    Facts,
    Finding,
    curve_test,
    find_budget_early,
    find_clock_wrong,
    find_moved_curve,
    find_overdue,
    find_pace_off,
    find_silent_arms,
    find_store_ails,
    find_used_up,
    is_as_before,
    is_used_after_all,
    lasts_after_all,
    pace_test,
    spending_test,
)
from doral.service.operations.alarm_statistics import FIRST_READ, Past
from doral.service.operations.metrics import briefly, standings
from doral.service.service import Service

_PAGE = 10_000  # events at a time: others who want the campaign get their turn in between
_QUIET_LOOKS = 2  # times in a row that something has to be found no more before it is cleared
Place = tuple[str, str]  # rule and subject


class Watched:
    """One campaign, in the memory of whoever watches."""

    def __init__(self, campaign: Campaign, books: Books) -> None:
        self._campaign, self._books = campaign, books
        self._past: Past | None = None
        self._tests: dict[Place, int] = {}  # the last one that is known to be used, here or elsewhere
        self._quiet: dict[Place, int] = {}
        self._overdue_since: float | None = None

    def is_of(self, campaign: Campaign) -> bool:
        """Whether it is this very campaign, and not one of the same name before it."""
        return self._campaign.session.row.tag == campaign.session.row.tag

    def look(self, now: float) -> None:
        """Raise what is found and not muted, and clear what is over."""
        books = self._books
        muted = books.muted_alarms(self._campaign.session.row.tag, now)
        raised = {(row.rule, row.subject): row for row in books.alarms(campaign=self._campaign.name)}
        found, over = self.judge(set(raised), now)
        for one in found:
            if (one.rule, one.subject) in muted:
                continue
            books.raise_alarm(
                AlarmRow(campaign=self._campaign.name, rule=one.rule, subject=one.subject, since=now, words=one.words)
            )
        for rule, subject in {*over, *(muted.keys() & raised.keys())}:
            books.clear_alarm(self._campaign.name, rule, subject, now)

    def judge(self, raised: set[Place], now: float) -> tuple[list[Finding], list[Place]]:
        """What is found now, and which of those that are raised are over."""
        health = self._campaign.health()
        found = find_store_ails(health)
        if not health.is_readable:  # of all else nothing is known
            return [] if self._campaign.is_gone else found, []  # one that was deleted ails nobody
        facts = self._facts(health, now)
        found += find_clock_wrong(facts) + find_overdue(facts) + find_used_up(facts)
        found += [] if facts.is_closed else find_silent_arms(facts)
        over = self._gone([place for place in raised if not _is_by_look(place)], found)
        self._judge_spending(facts, raised, found, over)
        self._judge_curves(facts, raised, found, over)
        return found, over

    def _judge_spending(self, facts: Facts, raised: set[Place], found: list[Finding], over: list[Place]) -> None:
        for rule, due, find, is_over in (
            (BUDGET_EARLY, spending_test, find_budget_early, lasts_after_all),
            (PACE_OFF, pace_test, find_pace_off, is_used_after_all),
        ):
            place = (rule, "")
            if place in raised:
                if facts.is_closed or is_over(facts):
                    over.append(place)
            elif self._is_due(place, due(facts)) and (one := find(facts, due(facts))) is not None:
                found.append(one)

    def _judge_curves(self, facts: Facts, raised: set[Place], found: list[Finding], over: list[Place]) -> None:
        for arm in facts.past.arms:
            place = (CURVE_MOVED, facts.arms[arm])
            look = curve_test(facts, arm)
            if place in raised:
                if facts.is_closed or is_as_before(facts, arm):
                    over.append(place)
            elif facts.is_closed or arm in facts.silent_arms or not self._is_due(place, look):
                continue
            elif (one := find_moved_curve(facts, arm, look)) is not None:
                found.append(one)

    def _is_due(self, place: Place, number: int) -> bool:
        """Whether the test of this number is to be used now: each is used once in the life of a campaign, whatever
        is restarted meanwhile, and by one of several replicas.
        """
        if number <= self._tests.get(place, 0):
            return False
        self._tests[place] = number
        return self._books.claim_test(self._campaign.session.row.tag, *place, number)

    def _gone(self, raised: list[Place], found: list[Finding]) -> list[Place]:
        """Those that were not found several times in a row."""
        here = {(one.rule, one.subject) for one in found}
        self._quiet = {place: self._quiet.get(place, 0) + 1 for place in raised if place not in here}
        return [place for place, times in self._quiet.items() if times >= _QUIET_LOOKS]

    def _facts(self, health: Health, now: float) -> Facts:
        session = self._campaign.session
        past = self._read_on()
        if not health.overdue:
            self._overdue_since = None
        elif self._overdue_since is None:
            self._overdue_since = now

        def take(log: Log, state: CampaignState) -> Facts:
            definition = state.definition
            ahead = view_forecast(state.engine.state)
            to_come = max(0.0, float(state.engine.horizon - state.round))
            clock = max(state.clock, now - definition.epoch) if definition.is_in_seconds else state.clock
            nothing = state.names.nothing
            return Facts(
                name=session.row.name,
                now=clock,
                is_in_seconds=definition.is_in_seconds,
                is_closed=state.closed,
                arrivals=state.round,
                fewest_to_come=to_come if ahead is None else ahead.low,
                most_to_come=to_come if ahead is None else ahead.high,
                time_share=state.time_share,
                total=float(state.ledger.total),
                left=float(state.ledger.left),
                arms=tuple(state.problem.arm_names),
                plays=tuple(state.counts.arm_plays),
                answers=tuple(state.counts.arm_answers),
                silent_arms=frozenset() if nothing is None else frozenset((nothing,)),
                past=past,
                health=health,
                tolerance_s=session.clock_tolerance_s,
                overdue_since_s=0.0 if self._overdue_since is None else now - self._overdue_since,
                planned=state.pace(clock).planned,
            )

        return session.read(take)

    def _read_on(self) -> Past:
        """All that is new, in parts."""
        while True:
            past, is_done = self._campaign.session.read(self._read_page)
            if is_done:
                return past

    def _read_page(self, log: Log, state: CampaignState) -> tuple[Past, bool]:
        past = self._past
        if past is None or past.sequence > state.sequence:  # a backup may have taken the place of what was read
            past = self._past = Past(max(state.sequence - FIRST_READ, 0))
        if past.sequence < state.sequence:
            rows = log.after(past.sequence, upto=state.sequence, limit=_PAGE)
            past.read(list(map(decode, rows)))
        return past, past.sequence >= state.sequence


def _is_by_look(place: Place) -> bool:
    return place[0] in (BUDGET_EARLY, PACE_OFF, CURVE_MOVED)


_ROUND_S = 5.0  # in which campaigns are looked at; the others have their turn in the next round
_MOST_WATCHED = 2_000  # campaigns of which something is remembered
_DAY_S = 86_400.0

_logger = logging.getLogger("doral.service")


class _Turns:
    """Who is next. Half of the time belongs to those that are new, or have moved since they were last looked at."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque()
        self._seen: dict[str, int] = {}

    def next(self, heads: dict[str, int], has_time: Callable[[], bool]) -> Iterator[str]:
        """Names, each at most once, as long as there is time.

        Args:
            heads: The last event of each campaign.
            has_time: Whether there is.
        """
        self._seen = {name: last for name, last in self._seen.items() if name in heads}
        if not self.waiting:
            self.waiting.extend(heads)
        moved = deque(name for name, last in heads.items() if self._seen.get(name) != last)
        taken: set[str] = set()
        while (self.waiting or moved) and has_time():
            queue = moved if moved and (len(taken) % 2 or not self.waiting) else self.waiting
            name = queue.popleft()
            if name in taken or name not in heads:
                continue
            taken.add(name)
            self._seen[name] = heads[name]
            yield name


class Keeper:
    """Of one process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watched: dict[str, Watched] = {}
        self._to_watch, self._to_expire = _Turns(), _Turns()
        self._swept_at = 0.0
        self._is_stopped = False

    async def watch(self) -> None:
        """For ever."""
        await self._every(self._service.settings.watch_every_s, self.watch_once)

    async def expire(self) -> None:
        """For ever, unless that was not wanted."""
        every_s = self._service.settings.expire_every_s
        if every_s > 0:
            await self._every(every_s, self.expire_once)

    async def _every(self, seconds: float, work: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await self._service.run(work)
            except DoralError as error:
                _logger.warning("campaigns could not be looked after: %s", error)
            except Exception:  # whatever it is, the next round comes
                _logger.exception("campaigns could not be looked after")

    def stop(self) -> None:
        """Look at no further campaign."""
        self._is_stopped = True

    # --- rounds, in a thread ----------------------------------------------------------------------------------------

    def watch_once(self) -> None:
        """Alarms of as many campaigns as there is time for."""
        now = time.time()
        if now - self._swept_at > _DAY_S / 24:
            self._swept_at = now
            self._service.store.books.drop_sessions(expired_before=now - _DAY_S)
        self._clear_alarms_of_the_gone(now)
        self._round(self._to_watch, self._watch)

    def expire_once(self) -> None:
        """Settle what is too old in as many campaigns as there is time for."""
        self._round(self._to_expire, _expire)

    def _round(self, turns: _Turns, work: Callable[[Campaign], None]) -> None:
        store, until = self._service.store, time.monotonic() + _ROUND_S
        heads = store._heads()
        for name in turns.next(heads, lambda: time.monotonic() < until and not self._is_stopped):
            try:
                with briefly(store, name, of=len(heads)) as campaign:
                    work(campaign)
            except DoralError as error:
                _logger.warning("campaign %r could not be looked after: %s", name, error)

    def _watch(self, campaign: Campaign) -> None:
        watched = self._watched.pop(campaign.name, None)
        if watched is None or not watched.is_of(campaign):
            watched = Watched(campaign, self._service.store.books)
        self._watched[campaign.name] = watched  # the last one, so that the first is the one that waited longest
        while len(self._watched) > _MOST_WATCHED:
            del self._watched[next(iter(self._watched))]
        watched.look(time.time())
        state = campaign.session.last_seen
        if state is not None:
            standings(self._service.store).note(campaign.name, state)

    def _clear_alarms_of_the_gone(self, now: float) -> None:
        """Nobody can look after a campaign that was deleted."""
        books, there = self._service.store.books, set(self._service.store.list())
        for row in books.alarms():
            if row.campaign not in there:
                books.clear_alarm(row.campaign, row.rule, row.subject, now)
                self._watched.pop(row.campaign, None)


def _expire(campaign: Campaign) -> None:
    def is_due(log: Log, state: CampaignState) -> bool:
        in_seconds = state.definition.is_in_seconds
        now = max(state.clock, time.time() - state.definition.epoch) if in_seconds else state.clock
        return bool(overdue(log, state, now)[2])

    if campaign.session.read(is_due):  # only then is the campaign locked
        count = campaign.expire()
        _logger.info("campaign %r: %d decisions have expired", campaign.name, count)
