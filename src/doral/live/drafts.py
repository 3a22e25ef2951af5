"""Drafts: events with their place in the log and on the clock, before the engine has seen them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias, TypeVar

from doral import _check
from doral.errors import InvalidValue
from doral.live.definition import Definition
from doral.live.errors import BrokenLog
from doral.live.events import Event
from doral.live.fold import Fold

Result = TypeVar("Result")

# What a request comes to: drafts of one kind (or none), and what makes the answer of the events that they became.
Planned: TypeAlias = tuple[list[Event], Callable[[Sequence[Event]], Result]]


def stamped(draft: Event, fold: Fold, writer: int, at: object) -> Event:
    """The draft with its place in the log and on the clock."""
    clock, recorded = moment(fold, at, time.time())
    return draft._replace(sequence=fold.sequence + 1, clock=clock, at=recorded, writer=writer)


def moment(fold: Fold, given: object, wall: float, rounds_ahead: int = 0) -> tuple[float, float]:
    """What the campaign's clock shows, and the timestamp to record. A clock that goes back stands still."""
    definition = fold.definition
    recorded = wall
    if given is not None:
        clock = _clock_reading(definition, given)
        if definition.is_in_seconds:
            recorded = definition.epoch + clock
    elif definition.is_in_seconds:
        clock = wall - definition.created_at
    else:
        clock = float(fold.round + 1 + rounds_ahead)
    return (clock if clock > fold.clock else fold.clock), recorded


def _clock_reading(definition: Definition, at: object) -> float:
    """A timestamp as the caller gave it, on the campaign's clock; it may lie in the past."""
    if isinstance(at, datetime):
        if not definition.is_in_seconds:
            raise InvalidValue("at", at, "this campaign counts rounds: give a number of rounds, or nothing")
        if at.tzinfo is None:
            raise InvalidValue("at", at, "must say its time zone, such as datetime.now(timezone.utc)")
        at = at.timestamp()
    what = "seconds since 1970 or a datetime" if definition.is_in_seconds else "a number of rounds"
    reading = _check.finite_number("at", at, hint=f": {what}") - definition.epoch
    if not math.isfinite(reading):
        raise BrokenLog(f"clock reading {reading}")
    return reading
