"""How heavy the tail of the delays is, and whether a mean delay exists at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from doral._arrays import Floats, Ints
from doral.log.answers import weigh_answers
from doral.log.kaplan_meier import ENOUGH, rows_by_group, survival_of
from doral.log.log import Log
from doral.planning.curves import MOST_ARMS
from doral.planning.fact import Fact, YesNo
from doral.planning.tail_fit import FEWEST, TailFit, fit_tail

Tail = Literal["heavy", "light", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class DelayTail(Fact):
    """The tail of the delays of those who answer: P(delay > x) falls like x ** -index.

    A mean exists where the index is above 1. Those who never answer are not part of it: an answer is late here, not
    absent, and what is later than anybody was watched is not known. `tail` is "light" where late answers fall off as
    fast as an exponential or faster (then a mean exists, whatever the index), "heavy" where surely more slowly.
    """

    arm: str | None  # None: all arms together
    rows: int
    answered: int
    index: float | None
    low: float | None  # 95% interval of the index
    high: float | None  # None: no upper limit is known
    from_age: float | None  # the tail begins here
    answers: int  # later than that
    mean_exists: YesNo
    tail: Tail


def delay_tails(log: Log, *, most_arms: int = MOST_ARMS) -> tuple[DelayTail, ...]:
    """All arms together, then the arms that were used most; none for a log without delays."""
    if not log.has_delays:
        return ()
    by_arm = rows_by_group(log.arm + 1, len(log.arms) + 1)[1 : most_arms + 1]
    groups: list[tuple[str | None, Ints]] = [(None, np.flatnonzero(log.is_served))]
    groups += list(zip(log.arms, by_arm, strict=False))
    return tuple(_tail(log, name, rows) for name, rows in groups)


def _tail(log: Log, arm: str | None, rows: Ints) -> DelayTail:
    delay, watched = log.delay[rows], log.watched[rows]
    found = survival_of(delay, watched)
    known = found.ages[found.at_risk >= ENOUGH]
    fit = fit_tail(*_answers(delay, watched, float(known[-1])), float(known[-1])) if known.size else None
    is_power = fit is not None and fit.low > 0.0
    told = DelayTail(
        arm=arm,
        rows=int(rows.size),
        answered=int(np.isfinite(delay).sum()),
        index=fit.power if fit is not None and is_power else None,
        low=fit.low if fit is not None and is_power else None,
        high=fit.high if fit is not None and is_power and np.isfinite(fit.high) else None,
        from_age=None if fit is None else fit.start,
        answers=0 if fit is None else fit.answers,
        mean_exists="cannot tell",
        tail="cannot tell",
        sentence="",
    )
    who = "All arms together" if arm is None else arm
    if fit is None:
        why = f"{who}: too few late answers to say how long they can take (fewer than {FEWEST})."
        return replace(told, sentence=why)
    return _decided(log, told, fit, who)


def _answers(delay: Floats, watched: Floats, until: float) -> tuple[Floats, Floats]:
    """Delays up to an age, ascending, and what each weighs."""
    weight = weigh_answers(delay, watched).weight
    rows = np.flatnonzero((delay <= until) & (delay > 0.0))
    rows = rows[np.argsort(delay[rows], kind="stable")]
    return delay[rows], weight[rows]


def _decided(log: Log, told: DelayTail, fit: TailFit, who: str) -> DelayTail:
    tail: Tail = (
        "heavy" if fit.against_exponential > 1.0 else "light" if fit.against_exponential < -1.0 else "cannot tell"
    )
    mean_exists: YesNo = "cannot tell"
    if tail == "light" or fit.low > 1.0:
        mean_exists = "yes"
    elif fit.low > 0.0 and fit.high < 1.0:
        mean_exists = "no"
    after = f"after {log.clock.shown(fit.start)}"
    if tail == "light":
        words = f"{who}: late answers fall off quickly {after}; a mean delay exists."
    elif told.index is None:
        words = f"{who}: how long answers can take cannot be told: no tail is to be seen in what was watched."
    else:
        high = "no limit" if not np.isfinite(fit.high) else f"{fit.high:.2g}"
        words = (
            f"{who}: {after}, the share still to come falls like a power of {fit.power:.2g} [{fit.low:.2g}, {high}]; "
        )
        words += {
            "yes": "a mean delay exists.",
            "no": "some answers take so long that there is no mean delay.",
            "cannot tell": "whether a mean delay exists cannot be told.",
        }[mean_exists]
    return replace(told, tail=tail, mean_exists=mean_exists, sentence=words)
