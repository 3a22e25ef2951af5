"""An end that is a date: as people say it, and on the clock of a campaign."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime, timedelta

from doral.errors import InvalidValue
from doral.live.drafts import timestamp
from doral.problem import Problem

_FORMS = "give a date such as 2027-03-31, a time such as 2027-03-31T18:00Z, a datetime, or seconds since 1970"


def end_timestamp(field: str, value: object) -> float:
    """Seconds since 1970. A date alone is the end of that day, in UTC.

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
    """The problem with a date for its end; a horizon that it has becomes what is expected to arrive."""
    stamp = end_timestamp("until", until)
    if stamp <= began:
        remedy = "must be after the beginning of the campaign"
        if isinstance(until, int | float):
            remedy += "; a number is seconds since 1970 here: a date such as '2027-03-31' says it better"
        raise InvalidValue("until", until, remedy)
    expected = problem.horizon if problem.until is None else problem.expected_arrivals
    return dataclasses.replace(problem, horizon=0, until=stamp - began, expected_arrivals=expected)
