"""Rows to events and back: nothing else knows what the columns of a kind and its JSON hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from doral.live.errors import BrokenLog
from doral.live.events import row as kinds
from doral.live.events.event import (
    ARM_IS_ACTIVE,
    ARM_IS_PAUSED,
    ARM_IS_RETIRED,
    IS_EXPIRED,
    STATE_NAMES,
    About,
    Answered,
    ArmAdded,
    ArmChanged,
    Arrived,
    Cancelled,
    Choice,
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
    Place,
    Recorded,
    Settlement,
    ToppedUp,
    known,
)
from doral.live.events.row import COLUMNS, Row
from doral.problem import Arm
from doral.problem.arm import arm_to_dict

_STATES = range(len(STATE_NAMES))
_IMPLIED_COST = '{"implied": true}'  # data of an answer that did not say what it cost
_FIRST_ANSWER = '{"unheard": true}'  # data of a correction of an answer that the engine was not told of


def _columns(*names: str) -> Callable[[Row], tuple[Any, ...]]:
    return itemgetter(*map(COLUMNS.index, names))


_place = _columns("sequence", "clock", "at", "writer", "happened", "key", "key_hash", "engine", "chain")
_arrived = _columns("context", "available", "weight", "deadline", "person", "person_hash")
_choice = _columns("number", "arm", "cost", "round", "reason", "value", "price", "probability")
_about = _columns(
    "decision", "number", "context", "arm", "cost", "reason", "weight", "deadline", "person", "person_hash"
)
_settlement = _columns("was", "state", "previous_cost", "actual_cost")


# --- from rows --------------------------------------------------------------------------------------------------------


def decode(row: Row) -> Event:
    """Return the event that a row holds."""
    read = _READERS.get(row.kind)
    if read is None:
        raise BrokenLog(f"event {row.sequence} is of the unknown kind {row.kind!r}: written by a newer doral")
    return read(Place._make(_place(row)), row)


def _check_state(row: Row) -> None:
    if row.state is not None and row.state not in _STATES:
        raise BrokenLog(f"event {row.sequence}: there is no state {row.state!r}")


def _read_decided(place: Place, row: Row) -> Decided:
    _check_state(row)
    return Decided(place, Arrived._make(_arrived(row)), Choice._make(_choice(row)))


def _read_recorded(place: Place, row: Row) -> Recorded:
    said = json.loads(known(row.data))
    _check_state(row)
    return Recorded(
        place, Arrived._make(_arrived(row)), Choice._make(_choice(row)), bool(said["spend"]), said["cost"],
        said.get("implied", False), said["reward"], said["answered"], row.state == IS_EXPIRED,
    )  # fmt: skip


def _read_answered(place: Place, row: Row) -> Answered:
    is_implied = row.data == _IMPLIED_COST
    list_cost = None if row.data is None or is_implied else json.loads(row.data)["cost"]
    return Answered(
        place, About._make(_about(row)), Settlement._make(_settlement(row)), known(row.reward), row.delay, is_implied,
        list_cost, known(row.outcome),
    )  # fmt: skip


def _read_corrected(place: Place, row: Row) -> Corrected:
    return Corrected(
        place, About._make(_about(row)), Settlement._make(_settlement(row)), known(row.reward), known(row.previous),
        known(row.outcome), row.data is not None, row.delay,
    )  # fmt: skip


def _read_cancelled(place: Place, row: Row) -> Cancelled:
    return Cancelled(place, About._make(_about(row)), Settlement._make(_settlement(row)))


def _read_expired(place: Place, row: Row) -> Expired:
    said = json.loads(known(row.data))
    return Expired(
        place,
        tuple(said["upto"]),
        tuple((int(context), cost, int(count)) for context, cost, count in said.get("expired", ())),
        said.get("release", False),
        said.get("own_upto"),
        tuple((int(arm), int(count)) for arm, count in said.get("by_arm", ())),
    )


def _read_extended(place: Place, row: Row) -> Extended:
    said = json.loads(known(row.data))
    return Extended(place, said.get("rounds"), said.get("until"))


def _read_forgotten(place: Place, row: Row) -> Forgotten:
    said = json.loads(known(row.data))
    return Forgotten(place, tuple(said["events"]), tuple(said.get("people", ())), said.get("asked"))


def _read_lease_ended(place: Place, row: Row) -> LeaseEnded:
    said = json.loads(known(row.data))
    return LeaseEnded(place, said["lease"], said["left"], said["why"])


_READERS: dict[int, Callable[[Place, Row], Event]] = {
    kinds.CREATED: lambda place, row: Created(place, known(row.data)),
    kinds.DECIDED: _read_decided,
    kinds.RECORDED: _read_recorded,
    kinds.ANSWERED: _read_answered,
    kinds.CORRECTED: _read_corrected,
    kinds.CANCELLED: _read_cancelled,
    kinds.EXPIRED: _read_expired,
    kinds.ARM_ADDED: lambda place, row: ArmAdded(place, Arm(**json.loads(known(row.data)))),
    kinds.ARM_PAUSED: lambda place, row: ArmChanged(place, known(row.arm), ARM_IS_PAUSED),
    kinds.ARM_RESUMED: lambda place, row: ArmChanged(place, known(row.arm), ARM_IS_ACTIVE),
    kinds.ARM_RETIRED: lambda place, row: ArmChanged(place, known(row.arm), ARM_IS_RETIRED),
    kinds.TOPPED_UP: lambda place, row: ToppedUp(place, known(row.value)),
    kinds.EXTENDED: _read_extended,
    kinds.PAUSED: lambda place, _: PauseChanged(place, True),
    kinds.RESUMED: lambda place, _: PauseChanged(place, False),
    kinds.CLOSED: lambda place, _: Closed(place),
    kinds.ENGINE_JOINED: lambda place, row: EngineJoined(place, known(row.data)),
    kinds.CLOCK_SET: lambda place, _: ClockSet(place),
    kinds.FORGOTTEN: _read_forgotten,
    kinds.NOTED: lambda place, row: Noted(place, json.loads(known(row.data))),
    kinds.LEASED: lambda place, row: Leased(place, json.loads(known(row.data))["amount"]),
    kinds.LEASE_ENDED: _read_lease_ended,
}


# --- to rows ----------------------------------------------------------------------------------------------------------


def encode(event: Event) -> Row:
    """Return the row of an event, not sealed yet."""
    if isinstance(event, Decided):  # asked most: keywords would take three times as long
        place, arrived, choice = event.place, event.arrival, event.choice
        return tuple.__new__(Row, (
            place.sequence, kinds.DECIDED, place.clock, place.at, place.writer, place.key, None, choice.number,
            arrived.context, *choice[1:], arrived.available, None, None, None, None, None, None, None, None, None,
            place.happened, None, None, None, arrived.weight, arrived.deadline, None, arrived.person,
        ))  # fmt: skip
    if isinstance(event, Recorded):
        return _recorded(event)
    if isinstance(event, Answered):
        return _answered(event)
    place = event.place
    found = {"happened": place.happened, "key": place.key, **_WRITERS[type(event)](event)}
    return Row(place.sequence, event.kind, place.clock, place.at, place.writer, **found)


def _number(value: float | None) -> str:
    """As JSON has a finite number, in a quarter of the time."""
    return "null" if value is None else repr(value)


def _recorded(event: Recorded) -> Row:
    place, arrived, choice = event.place, event.arrival, event.choice
    is_ours, is_implied = "true" if event.is_ours else "false", ', "implied": true' if event.is_implied else ""
    paid, came = _number(event.list_cost), f'"reward": {_number(event.reward)}, "answered": {_number(event.answered)}'
    data = f'{{"spend": {is_ours}, "cost": {paid}, {came}{is_implied}}}'
    return tuple.__new__(Row, (
        place.sequence, kinds.RECORDED, place.clock, place.at, place.writer, place.key, None, choice.number,
        arrived.context, *choice[1:], arrived.available, None, None, None, None, None,
        IS_EXPIRED if event.is_overdue else None, None, data, None, place.happened, None, None, None,
        arrived.weight, arrived.deadline, None, arrived.person,
    ))  # fmt: skip


def _answered(event: Answered) -> Row:
    place, about, settlement = event.place, event.about, event.settlement
    data = _IMPLIED_COST if event.is_cost_implied else None
    if event.list_cost is not None:
        data = f'{{"cost": {_number(event.list_cost)}}}'
    return tuple.__new__(Row, (
        place.sequence, kinds.ANSWERED, place.clock, place.at, place.writer, place.key, about.decision, about.number,
        about.context, about.arm, about.cost, None, about.reason, None, None, None, None, event.reward, None,
        settlement.actual_cost, settlement.previous_cost, settlement.was, settlement.state, event.outcome, data, None,
        place.happened, event.delay, None, None, about.weight, about.deadline, None, about.person,
    ))  # fmt: skip


def _corrected(event: Corrected) -> dict[str, Any]:
    own = {"reward": event.reward, "previous": event.previous, "outcome": event.outcome, "delay": event.delay}
    own["data"] = _FIRST_ANSWER if event.is_first else None  # type: ignore[assignment]
    return {**event.about._asdict(), **event.settlement._asdict(), **own}


def _expired(event: Expired) -> dict[str, Any]:
    said: dict[str, Any] = {"upto": event.upto, "expired": event.counts, "release": event.is_released}
    if event.own_upto is not None:
        said["own_upto"] = event.own_upto
    return {"data": json.dumps(said)}


def _forgotten(event: Forgotten) -> dict[str, Any]:
    said: dict[str, Any] = {"events": event.keys}
    if event.people:
        said["people"] = event.people
    if event.asked is not None:
        said["asked"] = event.asked
    return {"data": json.dumps(said)}


def _lease_ended(event: LeaseEnded) -> dict[str, Any]:
    return {"data": json.dumps({"lease": event.lease, "left": event.left, "why": event.why})}


_WRITERS: dict[type[Event], Callable[[Any], dict[str, Any]]] = {
    Created: lambda event: {"data": event.definition},
    Corrected: _corrected,
    Cancelled: lambda event: {**event.about._asdict(), **event.settlement._asdict()},
    Expired: _expired,
    ArmAdded: lambda event: {"data": json.dumps(arm_to_dict(event.arm))},
    ArmChanged: lambda event: {"arm": event.arm},
    ToppedUp: lambda event: {"value": event.amount},
    Extended: lambda event: {"data": json.dumps(event.said())},
    PauseChanged: lambda _: {},
    Closed: lambda _: {},
    EngineJoined: lambda event: {"data": event.name},
    ClockSet: lambda _: {},
    Forgotten: _forgotten,
    Noted: lambda event: {"data": json.dumps(event.content)},
    Leased: lambda event: {"data": json.dumps({"amount": event.amount})},
    LeaseEnded: _lease_ended,
}


# --- many decisions ---------------------------------------------------------------------------------------------------


class DecidedColumns(NamedTuple):
    """Stored decisions that follow each other, one sequence for each column."""

    sequence: Sequence[int]
    clock: Sequence[float]
    at: Sequence[float]
    happened: Sequence[float | None]
    context: Sequence[int]
    available: Sequence[bytes | None]
    number: Sequence[int | None]
    arm: Sequence[int | None]
    cost: Sequence[float]
    round: Sequence[int]
    reason: Sequence[int]
    n_keyed: int  # how many have, or had, a key
    n_about: int  # how many name another decision, which none should


_decided_columns = _columns(*DecidedColumns._fields[:-2])


def decided_columns(rows: Sequence[Row]) -> DecidedColumns:
    """Return the columns of decisions, which are replayed together in half the time."""
    columns: Any = Row._make(zip(*rows, strict=True))
    n_keyed = sum(
        key is not None or key_hash is not None for key, key_hash in zip(columns.key, columns.key_hash, strict=True)
    )
    n_about = sum(decision is not None for decision in columns.decision)
    return DecidedColumns._make((*_decided_columns(columns), n_keyed, n_about))
