"""From a log to a state: from its beginning, or from a snapshot; and snapshots for the next time.

Live, an event that was validated is applied, completed by what the engine makes of it, and stored. On replay the stored
events go the same way, but they are facts: what was decided then is what happens, and what today's engine would have
made of it is only reported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import Any

from doral.engine.engine import MOST_EVENTS
from doral.errors import InvalidValue
from doral.live.errors import BrokenLog, ConnectionLost, PolicyFailed, StorageError
from doral.live.events.codec import decided_columns, decode
from doral.live.events.event import (
    Answered,
    ArmAdded,
    ArmChanged,
    Cancelled,
    ClockSet,
    Closed,
    Corrected,
    Created,
    Decided,
    EngineJoined,
    Event,
    Expired,
    Extended,
    Forgotten,
    Leased,
    LeaseEnded,
    Noted,
    PauseChanged,
    Recorded,
    ToppedUp,
    known,
)
from doral.live.events.row import DECIDED, FORGOTTEN, Row, beginning, check, is_intact
from doral.live.kinds.answer import apply_answers, apply_cancellation, apply_correction
from doral.live.kinds.change import apply_change
from doral.live.kinds.decide import apply_decisions, replay_decisions
from doral.live.kinds.expire import apply_expiry
from doral.live.kinds.forget import apply_forgetting
from doral.live.kinds.record import apply_record
from doral.live.state.definition import Definition
from doral.live.state.own_policy import OwnPolicy
from doral.live.state.snapshot import BadSnapshot, decode_snapshot, encode_snapshot
from doral.live.state.state import CampaignState
from doral.live.storage.contract import REPLAYED_EVENTS, CampaignRow, Log
from doral.prediction.python_policy import PolicyMaker

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
    **dict.fromkeys((ArmAdded, ArmChanged, ToppedUp, Extended, PauseChanged), apply_change),
    **dict.fromkeys((Closed, EngineJoined, ClockSet), apply_change),
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


logger = logging.getLogger("doral.live")

SNAPSHOT_EVERY_EVENTS = 20_000
SNAPSHOT_BYTES_PER_EVENT = 100  # a large state is saved less often, so that saving never dominates

_warned: dict[str, object] = {}  # tags of the campaigns whose options are known to be gone


class LogReader:
    """Of one campaign."""

    def __init__(self, row: CampaignRow, maker: PolicyMaker | None = None) -> None:
        """`maker` makes the campaign's own policy, which has to see the whole log: no snapshot is used then."""
        self._row, self._maker = row, maker
        self.snapshot_every = SNAPSHOT_EVERY_EVENTS
        self.saved_at = 0  # sequence number of the last snapshot that is known here
        self._saved_bytes = 0
        self._is_counted = False  # the events that a snapshot stood for: they are counted once

    def another(self) -> LogReader:
        """Return a reader of the same campaign, for another connection."""
        return LogReader(self._row, self._maker)

    def leads_to(self, state: CampaignState, log: Log, last: int) -> bool:
        """Whether the log goes on from this state: a log that was restored from a backup is the truth, too."""
        following = log.after(state.sequence, upto=last, limit=1)
        leads = bool(following) and is_intact(following[0], state.head, state.salt)
        if not leads:
            logger.warning("campaign %r: its log is not the one that was read; reading it anew", self._row.name)
        return leads

    def follow(self, state: CampaignState, log: Log, last: int, visitor: Visitor | None = None) -> CampaignState:
        """Return the state after the event `last`, or a later one: another object where it knows what was forgotten."""
        if last - state.sequence > MOST_EVENTS:
            state.engine.wait_for_program()
        while state.sequence < last:
            replay(state, log.following(state.sequence, upto=last, limit=REPLAYED_EVENTS), visitor)
            if state.knows_forgotten:
                logger.info("campaign %r: people were forgotten; its log is read anew", self._row.name)
                if visitor is not None:
                    raise ConnectionLost("people were forgotten while the log was read")
                state = self.first(log)
                state.forgotten = _forgotten(log)
                last = max(last, log.head()[0])
            if state.sequence == last and (state.erased or state.faceless):  # forgotten while the log was read
                last, _ = log.head()
        if state.erased:
            raise BrokenLog(f"campaign {self._row.name!r}: the key of event {min(state.erased)} was removed")
        if state.faceless:
            raise BrokenLog(f"campaign {self._row.name!r}: the features of event {min(state.faceless)} were removed")
        return state

    def read(self, log: Log, visitor: Visitor | None = None) -> CampaignState:
        """Return the state of the log; from its very beginning where a visitor wants to see every event."""
        last, _ = log.head()
        if visitor is None:
            state = self._restore(log, last)
        else:
            state = self.first(log)
            state.forgotten = _forgotten(log) if state.problem.person else frozenset()
        return self.follow(state, log, last, visitor)

    def first(self, log: Log) -> CampaignState:
        """Return the state after the first event."""
        name = self._row.name
        rows = log.after(0, limit=1)
        created = decode(rows[0]) if rows else None
        if not isinstance(created, Created):
            raise BrokenLog(f"campaign {name!r}: its log has no beginning")
        check(rows, before=beginning(self._row.tag), salt=None)
        try:
            state = CampaignState(Definition.from_json(created.definition), self._row.tag)
        except StorageError:
            raise
        except Exception as error:  # whatever a tampered log may hold
            raise BrokenLog(f"campaign {name!r}: its first event cannot be understood: {error}") from error
        if state.definition.name not in (None, name):
            raise BrokenLog(f"campaign {name!r}: its log is that of {state.definition.name!r}; its name was changed")
        state.head = state.salt = known(rows[0].chain)
        self._warn_of_gone_options(state.definition)
        if self._maker is not None:
            if state.definition.own is None:
                remedy = "is a policy for a campaign that was created with policy='own'; this one decides by itself"
                raise InvalidValue("code", name, remedy)
            state.own = OwnPolicy(self._maker, state)
        return state

    def _warn_of_gone_options(self, definition: Definition) -> None:
        """Log that the campaign goes on without options that this version does not have; once in a process."""
        mark = object()
        if definition.gone and _warned.setdefault(self._row.tag, mark) is mark:
            logger.warning(
                "campaign %r was created with options that are gone (%s): its log is replayed as it is, and it goes on "
                "with the nearest policy",
                self._row.name,
                ", ".join(definition.gone),
            )

    # --- snapshots --------------------------------------------------------------------------------------------------

    def _restore(self, log: Log, last: int) -> CampaignState:
        """Return the newest snapshot that can be used, whatever is wrong with the others; else the beginning."""
        self.saved_at = self._saved_bytes = 0
        first = self.first(log)
        for sequence in () if self._maker is not None else log.snapshots():
            try:
                if not sequence <= last:
                    raise BadSnapshot("it is of another log")
                data = log.load_snapshot(sequence)
                state = decode_snapshot(data, first.definition, self._row.tag, sequence=sequence)
            except ConnectionLost:
                raise
            except Exception as error:  # noqa: BLE001  (a snapshot only saves time)
                self._skip(sequence, str(error) or type(error).__name__)
                continue
            at = log.after(sequence - 1, limit=1)
            if not at or at[0].chain != state.head or state.salt != first.salt:
                self._skip(sequence, "it is of another log")
                continue
            if not self._is_counted:
                self._refuse_gaps(log, state)
                self._is_counted = True
            self.saved_at, self._saved_bytes = sequence, len(data)
            logger.debug("campaign %r: read from the snapshot of event %d", self._row.name, sequence)
            return state
        return first

    def _skip(self, sequence: int, why: str) -> None:
        logger.warning("campaign %r: snapshot %r is skipped: %.200s", self._row.name, sequence, why)

    def _refuse_gaps(self, log: Log, state: CampaignState) -> None:
        """Events that a snapshot stands for are not read: at least those by which a request is known must be there."""
        found, expected = log.count(upto=state.sequence), (state.counts.about, state.counts.keyed)
        if found != expected:
            raise BrokenLog(
                f"campaign {self._row.name!r}: up to event {state.sequence} the log must have {expected[0]} events "
                f"about a decision and {expected[1]} with a key, and has {found[0]} and {found[1]}: it was damaged; "
                "restore a backup"
            )

    def save_if_due(self, log: Log, state: CampaignState) -> None:
        """Save a snapshot now and then. Where it cannot be written, the campaign goes on without."""
        unsaved, every = state.sequence - self.saved_at, self.snapshot_every
        if unsaved < every or unsaved < self._saved_bytes // SNAPSHOT_BYTES_PER_EVENT or state.engine.is_interpreted:
            return
        with suppress(StorageError):
            newest = next(iter(log.snapshots()), 0)
            if state.sequence - newest < every and newest > 0:
                self.saved_at = newest
                return
            state.check()
            self._save(log, state)

    def save(self, log: Log, state: CampaignState) -> None:
        """Save a snapshot now."""
        if state.sequence not in log.snapshots():
            self._save(log, state)
        self.saved_at = state.sequence

    def _save(self, log: Log, state: CampaignState) -> None:
        data = encode_snapshot(state)
        self.saved_at, self._saved_bytes = state.sequence, len(data)
        log.save_snapshot(state.sequence, data)
        logger.debug("campaign %r: a snapshot of event %d was saved", self._row.name, state.sequence)


def _forgotten(log: Log) -> frozenset[int]:
    """Return the events whose people were forgotten."""
    events = (event for event in log.of_kinds((FORGOTTEN,)) if isinstance(event, Forgotten))
    return frozenset(sequence for event in events for sequence in event.people)
