"""The deadline of a log: the one that is given, or how long its answers take."""

from __future__ import annotations

from dataclasses import dataclass

from doral.log.kaplan_meier import NEARLY_ALL, settled_age
from doral.log.log import Log
from doral.planning.fact import Fact, percent


@dataclass(frozen=True, kw_only=True)
class Deadline(Fact):
    """How old an answer may be to count. Where nobody gives one: the age by which 99% of what comes has come."""

    age: float | None  # on the clock of the log; None where it has no delays or no answers
    is_given: bool
    watched: int  # rows that were watched so long


def deadline_of(log: Log, given: float | None = None) -> Deadline:
    """The one that is given (on the clock of the log, see `Clock.duration`), or one that is derived, and said."""
    watched = log.watched[log.is_served]
    longest = float(watched.max()) if watched.size else 0.0
    if given is not None:
        enough = int((watched >= given).sum())
        sentence = f"The deadline is {log.clock.shown(given)}, as given."
        if enough == 0:
            sentence += (
                f" The log has watched nobody longer than {log.clock.shown(longest)}: what comes later is unknown."
            )
        return Deadline(age=float(given), is_given=True, watched=enough, sentence=sentence)
    if not log.has_delays:
        why = "The log does not say when answers came, so no deadline can be derived from it."
        return Deadline(age=None, is_given=False, watched=0, sentence=why)
    settled = settled_age(log)
    if settled is None:
        why = "No answer has come yet, so no deadline can be derived from the log: give one."
        return Deadline(age=None, is_given=False, watched=0, sentence=why)
    return Deadline(
        age=settled.age,
        is_given=False,
        watched=int((watched >= settled.age).sum()),
        sentence=(
            f"No deadline is given: {log.clock.shown(settled.age)} is taken, by when {percent(NEARLY_ALL)} of the "
            f"answers that come within {log.clock.shown(settled.last)} have come."
        ),
    )
