"""Time: what the campaign's clock shows, times as callers give them, and ends that are dates."""

from __future__ import annotations

import dataclasses
import logging
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from doral import _check
from doral.errors import InvalidValue
from doral.live.errors import ClockDisagrees
from doral.live.events.event import Place
from doral.live.state.state import CampaignState
from doral.live.views.text import duration
from doral.problem import Problem

logger = logging.getLogger("doral.live")

_MILLISECONDS = 1e11  # as seconds since 1970 it would be the year 5138
_FORMS = "give a date such as 2027-03-31, a time such as 2027-03-31T18:00Z, a datetime, or seconds since 1970"


class Moment(NamedTuple):
    """When something happens."""

    clock: float  # what the campaign's clock shows by then
    happened: float | None  # on that clock, where the caller says when; it may lie before

    @property
    def own(self) -> float:
        """By what lateness and delays are judged."""
        return self.clock if self.happened is None else self.happened


class Stamp(NamedTuple):
    """The process that writes, and what its clock shows."""

    writer: int
    wall: float  # seconds since 1970
    tolerance_s: float  # how far clocks may disagree

    def place(self, state: CampaignState, key: str | None = None, at: object = None, *, field: str = "at") -> Place:
        """Return the place of the next event; `field` is what the caller calls the timestamp."""
        return self.placed(state.sequence + 1, self.moment(state, at, field=field), key)

    def placed(self, sequence: int, moment: Moment, key: str | None) -> Place:
        """Return the place of an event at a moment that is known."""
        return Place(sequence, moment.clock, self.wall, self.writer, moment.happened, key)

    def moment(
        self, state: CampaignState, at: object, rounds_ahead: int = 0, clock: float | None = None, *, field: str = "at"
    ) -> Moment:
        """Return what the clock shows. It does not go back for an event of the past, or a host slightly behind.

        `clock` is what it shows after events of the same request.
        """
        shows = state.clock if clock is None else clock
        definition = state.definition
        if at is not None:
            reading = self.reading(state, at, shows, field=field)
            return Moment(max(reading, shows), reading)
        if definition.clock != "seconds":
            return Moment(max(float(state.round + 1 + rounds_ahead), shows), None)
        now = self.wall - definition.created_at
        if shows - now > self.tolerance_s:
            logger.warning("a request was refused: this host's clock is %s behind", duration(shows - now))
            raise ClockDisagrees(
                f"this host's clock is {duration(shows - now)} behind the campaign's: if the host is wrong, set "
                "its clock; if the campaign's clock was carried away, set it back with repair_clock() "
                "(`doral campaign repair-clock`)"
            )
        return Moment(max(now, shows), None)

    def said(self, state: CampaignState, at: object, *, field: str = "at", clock: float | None = None) -> float | None:
        """Return a timestamp on the campaign's clock; None where the caller gave none."""
        return None if at is None else self.reading(state, at, state.clock if clock is None else clock, field=field)

    def reading(self, state: CampaignState, at: object, shows: float, *, field: str = "at") -> float:
        """Return a timestamp on the campaign's clock, which shows what it does."""
        definition = state.definition
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
        elif not 0 <= reading <= shows and not 0 <= reading <= shows + state.longest_leap:
            remedy = (
                f"this campaign counts rounds, and its clock shows {shows:g}: give a number of rounds up to "
                f"{shows + state.longest_leap:g}, or nothing"
            )
            raise InvalidValue(field, at, remedy)
        return reading

    def refuse_ahead(self, field: str, stamp: float) -> None:
        """InvalidValue for a time further ahead than clocks may disagree: it would carry the campaign's away."""
        ahead = stamp - self.wall
        if ahead > self.tolerance_s:
            logger.warning("a time was refused: it is %s ahead of this host's clock", duration(ahead))
            hint = "it seems to be in milliseconds: give seconds since 1970" if stamp > _MILLISECONDS else (
                "give the time at which it happened, in seconds since 1970; or open the store with a larger "
                "clock_tolerance_s"
            )  # fmt: skip
            raise InvalidValue(field, stamp, f"is {duration(ahead)} ahead of this host's clock: {hint}")


def timestamp(field: str, at: object, *, in_seconds: bool) -> float:
    """Return seconds since 1970, or a number of rounds."""
    if isinstance(at, datetime):
        if not in_seconds:
            raise InvalidValue(field, at, "this campaign counts rounds: give a number of rounds, or nothing")
        if at.tzinfo is None:
            raise InvalidValue(field, at, "must say its time zone, such as datetime.now(timezone.utc)")
        at = at.timestamp()
    what = "seconds since 1970 or a datetime" if in_seconds else "a number of rounds"
    return _check.finite_number(field, at, hint=f": {what}")


def in_words(stamp: float) -> str:
    """Return a time in UTC."""
    try:
        return datetime.fromtimestamp(stamp, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return "a time that no calendar shows"


# --- ends that are dates ----------------------------------------------------------------------------------------------


def end_timestamp(field: str, value: object) -> float:
    """Return seconds since 1970. A date alone is the end of that day, in UTC.

    >>> end_timestamp("until", "2027-03-31") == end_timestamp("until", "2027-04-01T00:00Z")
    True
    """
    if isinstance(value, str):
        value = _parsed(field, value)
    if isinstance(value, date) and not isinstance(value, datetime):
        if value == date.max:
            raise InvalidValue(field, str(value), f"is no day that ends: {_FORMS}")
        value = datetime(value.year, value.month, value.day, tzinfo=UTC) + timedelta(days=1)
    return timestamp(field, value, in_seconds=True)


def _parsed(field: str, text: str) -> object:
    for parse in (float, date.fromisoformat, datetime.fromisoformat):
        try:
            return parse(text.strip())
        except ValueError:
            continue
    raise InvalidValue(field, text, _FORMS)


def ending(problem: Problem, until: object, began: float) -> Problem:
    """Return the problem with a date for its end; a horizon that it has becomes what is expected to arrive."""
    stamp = end_timestamp("until", until)
    if stamp <= began:
        remedy = "must be after the beginning of the campaign"
        if isinstance(until, int | float):
            remedy += "; a number is seconds since 1970 here: a date such as '2027-03-31' says it better"
        raise InvalidValue("until", until, remedy)
    expected = problem.horizon if problem.until is None else problem.expected_arrivals
    return dataclasses.replace(problem, horizon=0, until=stamp - began, expected_arrivals=expected)
