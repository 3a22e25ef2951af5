"""`read_log`: from a table to a log, and what was assumed on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from doral import _check
from doral.errors import InvalidValue
from doral.log.columns import Chosen, find_roles, unit_named
from doral.log.log import Log
from doral.log.option_types import LogSource
from doral.log.reader import Reader
from doral.log.source import open_source, readable
from doral.log.strata import Strata, checked_strata
from doral.problem import Feedback

MAX_ROWS = 10_000_000


def read_log(
    source: LogSource,
    *,
    time: Chosen = None,
    context: str | Sequence[str] | None = None,
    arm: str | None = None,
    reward: Chosen = None,
    answered: Chosen = None,
    delay: Chosen = None,
    cost: Chosen = None,
    paid: Chosen = None,
    probability: Chosen = None,
    observed_until: str | datetime | date | float | None = None,
    key: Chosen = None,
    time_unit: str | None = None,
    delay_unit: str | None = None,
    feedback: Feedback | None = None,
    positive: str | Sequence[str] | None = None,
    nothing: str | Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    strata: Strata = "auto",
    max_rows: int = MAX_ROWS,
    name: str | None = None,
) -> Log:
    """The log in a CSV or Parquet file, a Polars or pandas frame, or a mapping of columns.

    Columns that are not named are guessed where their names leave no doubt; False says that there is none. What was
    assumed and left out is in `log.reading`; `print(log.reading.text())` tells it.

    Args:
        source: A path, a frame, or a mapping from names to columns: one row for everybody who arrived.
        time: The column of when they came: dates, or numbers in `time_unit`.
        context: The column, or several, that tell people apart before the decision; [] for none.
        arm: The column of what was done.
        reward: The column of what came of it.
        answered: The column of when the answer came, or of whether it did.
        delay: The column of how long the answer took, in `delay_unit`.
        cost: The column of the list price of what was done.
        paid: The column of what was paid in the end.
        probability: The column of the probability of what was done.
        observed_until: Until when answers would have been seen: a column, or one moment for all.
        key: The column that names a row.
        time_unit: The unit of times that are numbers: "milliseconds", "seconds", "minutes", "hours", "days", "weeks" or
            "rounds".
        delay_unit: The unit of delays that are numbers, likewise.
        feedback: "explicit": an answer is seen also when it brings 0; "silent": no news and 0 look the same. None: as
            the table looks.
        positive: Words among the rewards that count as 1.
        nothing: Words among the arms that mean that nothing was done.
        arms: Arms to keep; others are left out. None: all.
        strata: How several context columns become contexts: "auto" crosses those that tell rewards apart, "all" as
            many as rows allow, "as-is" every level that there is, a number at most so many. Default: "auto".
        max_rows: With more rows than these it is refused. Default: ten million.
        name: What the log is called. None: as its file.
    """
    until_column = observed_until if isinstance(observed_until, str) else None
    chosen: dict[str, Chosen] = {
        "time": time, "arm": arm, "reward": reward, "answered": answered, "delay": delay, "cost": cost, "paid": paid,
        "probability": probability, "key": key,
    }  # fmt: skip
    for role, value in chosen.items():
        if value is not None and value is not False and not isinstance(value, str):
            raise InvalidValue(role, value, "must be the name of a column, or False for none")
        chosen[role] = False if value == "" else value
    max_rows = _check.whole_number("max_rows", max_rows, at_least=1, at_most=10**9)
    if feedback not in (None, "explicit", "silent"):
        raise InvalidValue("feedback", feedback, "must be 'explicit' or 'silent'")
    units = {role: unit_named(f"{role}_unit", one) for role, one in (("time", time_unit), ("delay", delay_unit)) if one}
    strata = checked_strata(strata)
    called = None if name is None else _check.name("name", name)
    words = {
        "positive": _words("positive", positive),
        "nothing": _words("nothing", nothing),
        "arms": _words("arms", arms),
    }
    with readable(source, is_ours=True):
        opened = open_source(source)
        if called is not None:
            opened = replace(opened, name=called)
        if until_column in opened.names:
            chosen["observed_until"] = until_column
        elif observed_until is not None:
            chosen["observed_until"] = False
        roles = find_roles(opened.names, chosen, _words("context", context))
        moment = None if until_column in opened.names else observed_until
        return Reader(opened, roles, units, max_rows).log(words, feedback, strata, moment)


def _words(field: str, value: object) -> list[str] | None:
    if value is None:
        return None
    given = [value] if isinstance(value, str) else _check.items(field, value, what="words", at_most=100_000, at_least=0)
    for one in given:
        if not isinstance(one, str):
            raise InvalidValue(field, one, "must be a word, or a list of words")
    return given


def as_log(log: Any, columns: Mapping[str, Any]) -> Log:
    """A log that was read already, or what `read_log` makes of it with these options."""
    if not isinstance(log, Log):
        return read_log(log, **columns)
    if columns:
        raise InvalidValue("columns", sorted(columns), "are for files and frames: this log was read already")
    return log
