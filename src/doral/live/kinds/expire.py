"""Decisions that are too old for an answer to count. The problem says whether their cost comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from doral.live.errors import BrokenLog
from doral.live.events.event import IS_EXPIRED, IS_PENDING, Event, Expired
from doral.live.kinds.request import Request, granted, note
from doral.live.runtime.clock import Stamp
from doral.live.state.parts import OwnCall, exact, times
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log


class Expire(Request[int]):
    """Settle them; how many."""

    def __init__(self, now: object, key: str | None) -> None:
        self.now, self.key = now, key

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        said = [Expired.KIND, stamp.said(state, self.now, field="now")]
        before = granted(log, state, self.key, said)
        if before is not None:
            return (), before.n_decisions if isinstance(before, Expired) else 0
        moment = stamp.moment(state, self.now, field="now")
        upto, own_upto, expired = overdue(log, state, moment.own)
        count = sum(many for _, _, many in expired)
        if count == 0:
            return note(state, stamp, self.key, said), 0
        is_released = state.problem.paid == "on_answer"
        place = stamp.placed(state.sequence + 1, moment, self.key)
        has_own = own_upto if state.problem.person else None
        return (Expired(place, tuple(upto), tuple(expired), is_released, has_own),), count

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> int:
        return int(found)


def overdue(log: Log, state: CampaignState, now: float) -> tuple[list[int], int, list[tuple[int, float, int]]]:
    """Find decisions that are too old by then.

    Returns:
        Up to which event each context's decisions have expired, up to which those have that have deadlines of their
        own, and how many expire with it, by context and cost.
    """
    alike: dict[tuple[float, int], list[int]] = {}
    for context, done in enumerate(state.expiries.upto):
        alike.setdefault((state.age_limit(context), done), []).append(context)
    upto, expired = list(state.expiries.upto), list[tuple[int, float, int]]()
    for (limit, done), contexts in alike.items():
        last, found = log.overdue(
            after=done,
            upto=state.sequence,
            clock=now,
            age_limit=limit,
            repairs=state.names.repairs,
            contexts=None if len(alike) == 1 else contexts,
        )
        for context in contexts:
            upto[context] = last
        expired += found
    if not state.problem.person:
        return upto, 0, sorted(expired)
    own_upto, own = _own_overdue(log, state, now)
    return upto, own_upto, sorted(expired + own)


def _own_overdue(log: Log, state: CampaignState, now: float) -> tuple[int, list[tuple[int, float, int]]]:
    """Find those among decisions with deadlines of their own."""
    expiries, upto = state.expiries, state.sequence
    expired: Counter[tuple[int, float]] = Counter()
    for event in log.own_deadlines(after=expiries.own_upto, upto=state.sequence):
        if expiries.has(event):
            continue
        if expiries.is_over(event, now, at=state.sequence + 1):
            expired[event.arrival.context, event.choice.cost] += 1
        else:
            upto = min(upto, event.sequence - 1)
    return upto, [(context, cost, count) for (context, cost), count in expired.items()]


def apply_expiry(state: CampaignState, event: Expired) -> Expired:
    """Book what the decisions cost, or give it back."""
    state.advance(event)
    upto, before = event.upto, state.expiries.upto
    if len(upto) != len(before) or any(new < old for new, old in zip(upto, before, strict=True)):
        raise BrokenLog(f"event {event.sequence}: decisions expired up to {before} already")
    for context, cost, count in event.costs(state.arms.costs(0)):
        amount = times(exact(cost), count)
        state.counts.move(IS_PENDING, IS_EXPIRED, count)
        state.ledger.spend(amount, amount if event.is_released else Decimal(0))
        if event.is_released and amount:
            state.engine.give_back(context, float(amount))
    state.engine.pass_time(event.clock)  # a refresh counts the money that has just come back
    state.expiries.add(upto, releases=event.is_released)
    if event.own_upto is not None:
        state.expiries.add_own(OwnCall(event.sequence, event.own, event.is_released), event.own_upto)
    return event
