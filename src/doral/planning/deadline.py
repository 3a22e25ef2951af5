"""The deadline of a log: the one that is given, or how long its answers take."""

from __future__ import annotations

from dataclasses import dataclass

from doral.planning.fact import Fact


@dataclass(frozen=True, kw_only=True)
class Deadline(Fact):
    """How old an answer may be to count. Where nobody gives one: the age by which 99% of what comes has come."""

    age: float | None  # on the clock of the log; None where it has no delays or no answers
    is_given: bool
    watched: int  # rows that were watched so long
