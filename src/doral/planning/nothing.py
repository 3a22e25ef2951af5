"""What comes where nothing is done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doral._arrays import Ints
from doral.log.kaplan_meier import rows_by_group
from doral.log.log import Log
from doral.planning.averages import mean_of_answers
from doral.planning.fact import Fact, number


@dataclass(frozen=True, kw_only=True)
class NothingDone(Fact):
    """The mean reward of those for whom nothing was done, corrected for answers that are still to come."""

    context: str | None  # None: all together
    rows: int  # skipped
    answered: int
    value: float | None  # per arrival
    low: float | None  # 95% interval
    high: float | None


def nothing_done(log: Log) -> tuple[NothingDone, ...]:
    """All together, then by context where there are several; the first alone where nothing is known of it."""
    skipped = np.flatnonzero(~log.is_served)
    found = [_of(log, None, skipped)]
    if log.skips_are_answered and len(log.contexts) > 1:
        by_context = rows_by_group(log.context, len(log.contexts), ~log.is_served)
        found += [_of(log, name, rows) for name, rows in zip(log.contexts, by_context, strict=True)]
    return tuple(found)


def _of(log: Log, context: str | None, rows: Ints) -> NothingDone:
    average = mean_of_answers(log.delay[rows], log.watched[rows], log.reward[rows])
    answered = int(np.isfinite(log.delay[rows]).sum())
    whom = "" if context is None else f" for {context}"
    if rows.size == 0:
        sentence = f"The log does not say what doing nothing{whom} brings: there is nobody who got nothing."
    elif average is None:
        sentence = f"The log does not say what doing nothing{whom} brings: none of {rows.size:,} skipped was answered."
    else:
        sentence = (
            f"Doing nothing{whom} brings {number(average.mean)} [{number(average.low)}, {number(average.high)}] "
            f"per arrival ({answered:,} of {rows.size:,} skipped were answered)."
        )
    return NothingDone(
        context=context,
        rows=int(rows.size),
        answered=answered,
        value=None if average is None else average.mean,
        low=None if average is None else average.low,
        high=None if average is None else average.high,
        sentence=sentence,
    )
