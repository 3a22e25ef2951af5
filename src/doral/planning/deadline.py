"""The deadline of a log: the one that is given, or how long its answers take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral.log.log import Log
from doral.planning.curves import ENOUGH
from doral.planning.fact import Fact, percent
from doral.planning.kaplan_meier import survival_of

NEARLY_ALL = 0.99


@dataclass(frozen=True, kw_only=True)
class Deadline(Fact):
    """How old an answer may be to count. Where nobody gives one: the age by which 99% of what comes has come."""

    age: float | None  # on the clock of the log; None where it has no delays or no answers
    is_given: bool
    watched: int  # rows that were watched so long


def deadline_of(log: Log, given: float | None = None) -> Deadline:
    """The one that is given (on the clock of the log, see `Clock.duration`), or one that is derived, and said."""
    is_served = log.is_served
    delay, watched = log.delay[is_served], log.watched[is_served]
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
    if not np.isfinite(delay).any():
        why = "No answer has come yet, so no deadline can be derived from the log: give one."
        return Deadline(age=None, is_given=False, watched=0, sentence=why)
    found = survival_of(delay, watched)
    came = found.answered > 0.0
    # At most as far as enough were watched: what the last few say is chance.
    is_known = came & (found.at_risk >= ENOUGH)
    last = float(found.ages[is_known if is_known.any() else came][-1])
    shares = 1.0 - found.waiting
    by_last = shares[np.searchsorted(found.ages, last)]
    age = float(found.ages[np.flatnonzero(shares >= NEARLY_ALL * by_last)[0]])
    age = age if age > 0.0 else longest or 1.0
    return Deadline(
        age=age,
        is_given=False,
        watched=int((watched >= age).sum()),
        sentence=(
            f"No deadline is given: {log.clock.shown(age)} is taken, by when {percent(NEARLY_ALL)} of the answers "
            f"that come within {log.clock.shown(last)} have come."
        ),
    )
