"""One campaign under watch: what was read of it, which rules hold, and what is raised or cleared because of that.

A rule that judges chance looks when enough more has happened, and not at every moment: otherwise it would be wrong more
often than it says. What it has raised stays until its own opposite holds, so that nothing flaps.
"""

from __future__ import annotations

from doral.engine.explain import view_forecast
from doral.live.campaign import Campaign
from doral.live.events.codec import decode
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.storage.service_tables import AlarmRow, Books
from doral.live.views.health import Health
from doral.service.operations.alarms import (
    arm_silent,
    budget_early,
    clock_wrong,
    curve_moved,
    overdue,
    pace_off,
    store_ails,
    used_up,
)
from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding
from doral.service.operations.alarms.past import FIRST_READ, Past

_PAGE = 10_000  # events at a time: others who want the campaign get their turn in between
_QUIET_LOOKS = 2  # times in a row that something has to be found no more before it is cleared
RULES = tuple(
    one.RULE for one in (arm_silent, budget_early, clock_wrong, curve_moved, overdue, pace_off, store_ails, used_up)
)

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
        found = store_ails.find(health)
        if not health.is_readable:  # of all else nothing is known
            return [] if self._campaign.is_gone else found, []  # one that was deleted ails nobody
        facts = self._facts(health, now)
        found += clock_wrong.find(facts) + overdue.find(facts) + used_up.find(facts)
        found += [] if facts.is_closed else arm_silent.find(facts)
        over = self._gone([place for place in raised if not _is_by_look(place)], found)
        self._judge_spending(facts, raised, found, over)
        self._judge_curves(facts, raised, found, over)
        return found, over

    def _judge_spending(self, facts: Facts, raised: set[Place], found: list[Finding], over: list[Place]) -> None:
        for rule, due, find, is_over in (
            (budget_early.RULE, budget_early.look, budget_early.find, budget_early.is_over),
            (pace_off.RULE, pace_off.look, pace_off.find, pace_off.is_over),
        ):
            place = (rule, "")
            if place in raised:
                if facts.is_closed or is_over(facts):
                    over.append(place)
            elif self._is_due(place, due(facts)) and (one := find(facts, due(facts))) is not None:
                found.append(one)

    def _judge_curves(self, facts: Facts, raised: set[Place], found: list[Finding], over: list[Place]) -> None:
        for arm in facts.past.arms:
            place = (curve_moved.RULE, facts.arms[arm])
            look = curve_moved.look(facts, arm)
            if place in raised:
                if facts.is_closed or curve_moved.is_over(facts, arm):
                    over.append(place)
            elif facts.is_closed or arm in facts.silent_arms or not self._is_due(place, look):
                continue
            elif (one := curve_moved.find(facts, arm, look)) is not None:
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
    return place[0] in (budget_early.RULE, pace_off.RULE, curve_moved.RULE)
