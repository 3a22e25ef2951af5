"""Drafts: events with their place in the log and on the clock, before the engine has seen them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias, TypeVar

from doral import _check
from doral.errors import InvalidValue
from doral.live.errors import ClockDisagrees
from doral.live.events import Event
from doral.live.fold import Fold
from doral.live.words import duration

logger = logging.getLogger("doral.live")
Result = TypeVar("Result")

# What a request comes to: drafts (or none), and what makes the answer of the events that they became.
Planned: TypeAlias = tuple[list[Event], Callable[[Sequence[Event]], Result]]

_MILLISECONDS = 1e11  # as seconds since 1970 it would be the year 5138


class Moment(NamedTuple):
    """When something happens."""

    clock: float  # what the campaign's clock shows by then
    happened: float | None  # on that clock, where the caller says when; it may lie before

    @property
    def own(self) -> float:
        """By what lateness and delays are judged."""
        return self.clock if self.happened is None else self.happened


class Stamp(NamedTuple):
    """Who writes, and what his clock shows."""

    writer: int
    wall: float  # seconds since 1970
    tolerance_s: float  # how far clocks may disagree

    def put(self, draft: Event, fold: Fold, at: object = None, *, field: str = "at") -> Event:
        """The draft with its place in the log and on the clock; `field` is what the caller calls his timestamp."""
        moment = self.moment(fold, at, field=field)
        return draft._replace(
            sequence=fold.sequence + 1,
            clock=moment.clock,
            happened=moment.happened,
            at=self.wall,
            writer=self.writer,
        )

    def moment(
        self, fold: Fold, given: object, rounds_ahead: int = 0, clock: float | None = None, *, field: str = "at"
    ) -> Moment:
        """What the clock shows: it does not go back for an event of the past, nor for a host that is a little behind.

        `clock` is what it shows after events that are drafted already.
        """
        shows = fold.clock if clock is None else clock
        definition = fold.definition
        told = self.reading(fold, given, shows, field=field)
        if told is not None:
            return Moment(max(told, shows), told)
        if not definition.is_in_seconds:
            return Moment(max(float(fold.round + 1 + rounds_ahead), shows), None)
        reading = self.wall - definition.epoch
        if shows - reading > self.tolerance_s:
            logger.warning("a request was refused: this host's clock is %s behind", duration(shows - reading))
            raise ClockDisagrees(
                f"this host's clock is {duration(shows - reading)} behind the campaign's: if the host is wrong, set "
                "its clock; if the campaign's clock was carried away, set it back with repair_clock() "
                "(`doral campaign repair-clock`)"
            )
        return Moment(max(reading, shows), None)

    def reading(self, fold: Fold, at: object, shows: float, *, field: str = "at") -> float | None:
        """A timestamp as the caller gave it, on the campaign's clock, which shows what it does; None if he did not."""
        if at is None:
            return None
        definition = fold.definition
        stamp = timestamp(field, at, in_seconds=definition.is_in_seconds)
        reading = stamp - definition.epoch + 0.0  # a negative zero is a zero
        if definition.is_in_seconds:
            self.refuse_ahead(field, stamp)
            if reading < 0:
                remedy = (
                    f"is before the campaign began, at {definition.epoch!r} ({in_words(definition.epoch)}): give "
                    "create(at=...) a time before all that is filled in later"
                )
                raise InvalidValue(field, at, remedy)
        elif not 0 <= reading <= shows + fold.longest_leap:
            remedy = (
                f"this campaign counts rounds, and its clock shows {shows:g}: give a number of rounds up to "
                f"{shows + fold.longest_leap:g}, or nothing"
            )
            raise InvalidValue(field, at, remedy)
        return reading

    def refuse_ahead(self, field: str, stamp: float) -> None:
        """No time may lie further ahead than clocks may disagree: the campaign's would be carried away for good."""
        ahead = stamp - self.wall
        if ahead > self.tolerance_s:
            logger.warning("a time was refused: it is %s ahead of this host's clock", duration(ahead))
            hint = "it seems to be in milliseconds: give seconds since 1970" if stamp > _MILLISECONDS else (
                "give the time at which it happened, in seconds since 1970; or open the store with a larger "
                "clock_tolerance_s"
            )  # fmt: skip
            raise InvalidValue(field, stamp, f"is {duration(ahead)} ahead of this host's clock: {hint}")


def timestamp(field: str, at: object, *, in_seconds: bool) -> float:
    """Seconds since 1970, or a number of rounds."""
    if isinstance(at, datetime):
        if not in_seconds:
            raise InvalidValue(field, at, "this campaign counts rounds: give a number of rounds, or nothing")
        if at.tzinfo is None:
            raise InvalidValue(field, at, "must say its time zone, such as datetime.now(timezone.utc)")
        at = at.timestamp()
    what = "seconds since 1970 or a datetime" if in_seconds else "a number of rounds"
    return _check.finite_number(field, at, hint=f": {what}")


def in_words(timestamp: float) -> str:
    """A time in UTC."""
    try:
        return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return "a time that no calendar shows"
