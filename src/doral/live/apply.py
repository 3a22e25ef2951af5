"""The one way in which a campaign's state changes, live and on replay.

A draft says what was asked; applied, it becomes an event, completed by what the engine made of it. Live, that event is
sealed and stored. On replay the stored events go the same way, but they are facts: what was decided then is what
happens, and what today's engine would have made of it is only told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from doral.live.apply_answers import apply_answers, apply_cancellation, apply_correction, apply_expiry
from doral.live.apply_changes import (
    apply_arm_status,
    apply_budget,
    apply_clock,
    apply_closing,
    apply_engine,
    apply_forgetting,
    apply_horizon,
    apply_new_arm,
    apply_note,
)
from doral.live.apply_decisions import adopt_decisions, apply_decisions, apply_record
from doral.live.apply_leases import apply_lease, apply_lease_end
from doral.live.chain import check
from doral.live.errors import BrokenLog, StorageError
from doral.live.events import (
    ANSWERED,
    ARM_ADDED,
    ARM_PAUSED,
    ARM_RESUMED,
    ARM_RETIRED,
    CANCELLED,
    CLOCK_SET,
    CLOSED,
    CORRECTED,
    DECIDED,
    ENGINE_JOINED,
    EXPIRED,
    EXTENDED,
    FORGOTTEN,
    LEASE_ENDED,
    LEASED,
    NOTED,
    RECORDED,
    TOPPED_UP,
    Event,
)
from doral.live.fold import Fold

_BATCHES = {DECIDED: apply_decisions, ANSWERED: apply_answers}
_ONE_BY_ONE = {
    RECORDED: apply_record,
    CORRECTED: apply_correction,
    CANCELLED: apply_cancellation,
    EXPIRED: apply_expiry,
    ARM_ADDED: apply_new_arm,
    ARM_PAUSED: apply_arm_status,
    ARM_RESUMED: apply_arm_status,
    ARM_RETIRED: apply_arm_status,
    TOPPED_UP: apply_budget,
    EXTENDED: apply_horizon,
    CLOSED: apply_closing,
    ENGINE_JOINED: apply_engine,
    CLOCK_SET: apply_clock,
    FORGOTTEN: apply_forgetting,
    NOTED: apply_note,
    LEASED: apply_lease,
    LEASE_ENDED: apply_lease_end,
}

Differs = Callable[[Event, Event], None]  # is told what the log says of each event, and what today's engine makes of it


def apply(fold: Fold, drafts: Sequence[Event]) -> list[Event]:
    """Change the fold by drafts, in their order; what they become."""
    return [made for group in _by_kind(drafts) for made in _apply(fold, group)]


def _by_kind(events: Sequence[Event]) -> Iterator[list[Event]]:
    for _, group in groupby(events, key=attrgetter("kind")):
        yield list(group)


def _apply(fold: Fold, events: Sequence[Event]) -> list[Event]:
    kind = events[0].kind
    if kind in _BATCHES:
        return _BATCHES[kind](fold, events)
    if kind not in _ONE_BY_ONE:
        raise BrokenLog(f"event {events[0].sequence} is of the unknown kind {kind!r}: written by a newer doral")
    return [_ONE_BY_ONE[kind](fold, event) for event in events]


def replay(fold: Fold, stored: Sequence[Event], differs: Differs | None = None, *, is_checked: bool = False) -> None:
    """Apply events that are in the log, after the chain was found whole; somebody may have done that before."""
    if not is_checked:
        check(stored, before=fold.head, salt=fold.salt)
    if fold.forgotten:
        stored = [event._replace(person=None) if event.sequence in fold.forgotten else event for event in stored]
    fold.erased.update(event.sequence for event in stored if event.key_hash is not None and event.key is None)
    fold.faceless.update(event.sequence for event in stored if event.person_hash is not None and event.person is None)
    for events in _by_kind(stored):
        try:
            is_plain = differs is None and events[0].kind == DECIDED
            made = adopt_decisions(fold, events) if is_plain else _apply(fold, events)
        except StorageError:
            raise
        except Exception as error:  # whatever somebody has put there
            said = f"events {events[0].sequence} to {events[-1].sequence} cannot be understood: {error}"
            raise BrokenLog(said) from error
        if differs is not None:
            for event, one in zip(events, made, strict=True):
                # Whoever had a lease had not heard of all that others did: what he should have decided nobody can tell.
                differs(event, event if fold.leases.has(event.writer) else one)
        fold.head = events[-1].chain or b""
