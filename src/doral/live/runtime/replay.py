"""The one way in which a campaign's state changes, live and on replay.

Live, an event that was validated is applied, completed by what the engine makes of it, and stored. On replay the stored
events go the same way, but they are facts: what was decided then is what happens, and what today's engine would have
made of it is only reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from doral.live.errors import BrokenLog, PolicyFailed, StorageError
from doral.live.events.chain import check
from doral.live.events.codec import decided_columns, decode
from doral.live.events.event import (
    Answered,
    ArmAdded,
    ArmChanged,
    Cancelled,
    ClockSet,
    Closed,
    Corrected,
    Decided,
    EngineJoined,
    Event,
    Expired,
    Extended,
    Forgotten,
    Leased,
    LeaseEnded,
    Noted,
    Recorded,
    ToppedUp,
)
from doral.live.events.row import DECIDED, Row
from doral.live.kinds.amend import apply_cancellation, apply_correction
from doral.live.kinds.answer import apply_answers
from doral.live.kinds.change import apply_change
from doral.live.kinds.decide import apply_decisions, replay_decisions
from doral.live.kinds.expire import apply_expiry
from doral.live.kinds.forget import apply_forgetting
from doral.live.kinds.record import apply_record
from doral.live.state.state import CampaignState

_MANY: dict[type[Event], Callable[[CampaignState, Any], Sequence[Event]]] = {
    Decided: apply_decisions,
    Answered: apply_answers,
}
_SINGLE: dict[type[Event], Callable[[CampaignState, Any], Event]] = {
    Recorded: apply_record,
    Corrected: apply_correction,
    Cancelled: apply_cancellation,
    Expired: apply_expiry,
    Forgotten: apply_forgetting,
    # A note only uses a key; leases are gone, and what was decided by one is a fact like any other.
    **dict.fromkeys((ArmAdded, ArmChanged, ToppedUp, Extended, Closed, EngineJoined, ClockSet), apply_change),
    **dict.fromkeys((Noted, Leased, LeaseEnded), apply_change),
}

# Is told what the log says of each event, and what today's engine makes of it.
Visitor = Callable[[Event, Event], None]


def apply(state: CampaignState, events: Sequence[Event]) -> Sequence[Event]:
    """Change the state by events, in their order; return them as the engine completes them."""
    if len(events) == 1:
        return _apply(state, events)
    return [made for _, group in groupby(events, key=type) for made in _apply(state, list(group))]


def _apply(state: CampaignState, events: Sequence[Event]) -> Sequence[Event]:
    """Do so for events of one kind."""
    kind = type(events[0])
    if kind in _MANY:
        return _MANY[kind](state, events)
    if kind not in _SINGLE:
        raise BrokenLog(f"event {events[0].sequence} can only be the first of a log")
    return [_SINGLE[kind](state, event) for event in events]


def replay(
    state: CampaignState, rows: Sequence[Row], visitor: Visitor | None = None, *, is_checked: bool = False
) -> None:
    """Apply what is in the log, after the chain was found whole; `is_checked`: it was found so before."""
    if not is_checked:
        check(rows, before=state.head, salt=state.salt)
    if state.forgotten:
        rows = [row._replace(person=None) if row.sequence in state.forgotten else row for row in rows]
    state.erased.update(row.sequence for row in rows if row.key_hash is not None and row.key is None)
    state.faceless.update(row.sequence for row in rows if row.person_hash is not None and row.person is None)
    for kind, group in groupby(rows, key=attrgetter("kind")):
        some = list(group)
        try:
            _replay(state, kind, some, visitor)
        except (StorageError, PolicyFailed):
            raise
        except Exception as error:  # whatever a tampered log may hold
            said = f"events {some[0].sequence} to {some[-1].sequence} cannot be understood: {error}"
            raise BrokenLog(said) from error
        state.head = some[-1].chain or b""


def _replay(state: CampaignState, kind: int, rows: Sequence[Row], visitor: Visitor | None) -> None:
    events: list[Any] | None = None
    if kind == DECIDED and visitor is None and state.own is None:
        events = [decode(row) for row in rows] if state.problem.person else None
        if replay_decisions(state, decided_columns(rows), events):
            return
    events = [decode(row) for row in rows] if events is None else events
    made = _apply(state, events)
    if visitor is not None:
        for event, one in zip(events, made, strict=True):
            visitor(event, one)
