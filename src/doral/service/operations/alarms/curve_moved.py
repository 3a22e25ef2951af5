"""Answers to an arm come sooner, later, more or less often than they did before.

The last quarter of its decisions against those before, by the log-rank test, stratum by stratum of contexts, so that a
policy that turns to other contexts is not taken for a change. All are followed until the campaign last heard of an
answer, to whichever arm, and not until now: whoever reports answers once a day would otherwise seem to have stopped
every day. Where answers are heard of many at a time, decisions are followed for whole periods between such moments
only: how long an answer takes then depends on the hour at which the decision was made, and all hours have to be among
those who are followed. Each look may use up its share of FALSE_ALARMS, divided by the number of arms.

Assumed: delays are independent, given arm and context. Curves that cross in the middle may be missed; answers that stop
for all arms at once are found by `arm_silent`.
"""

from __future__ import annotations

import numpy as np

from doral.service.operations.alarms.chances import LogRank, chance_of_look, log_rank, look_number
from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding
from doral.service.operations.alarms.past import Lives

RULE = "curve-moved"
FIRST_LOOK = 120  # decisions of an arm
OVER = 0.05  # a difference that is so likely by chance is none any more
_RECENT = 0.25
_TOGETHER = 2  # answers on average, from which on they do not come one by one
_MOMENTS = 50  # the last ones, from which a period is read
_FEWEST = 10.0  # answers that are expected in each group, for a normal approximation


def look(facts: Facts, arm: int) -> int:
    """The number of the look that is due."""
    return look_number(facts.plays[arm], FIRST_LOOK)


def find(facts: Facts, arm: int, look: int) -> Finding | None:
    """Whether it is so; the chance of error is that of the look."""
    lives = facts.past.lives(arm)
    test = compare(lives, facts.past.last_heard)
    n_arms = max(1, len(facts.past.arms))
    if test is None or test.chance > chance_of_look(look) / n_arms:
        return None
    direction = "rarer or later" if test.observed < test.expected else "more frequent or earlier"
    recent = int(_RECENT * lives.made.size)
    return Finding(
        rule=RULE,
        subject=facts.arms[arm],
        words=(
            f"answers to {facts.arms[arm]!r} have become {direction}: of its last {recent:,} decisions "
            f"{test.observed:,.0f} were answered so far, and {test.expected:,.0f} would have been as before (by "
            f"chance: {_once_in(test.chance)}). Look what has changed for whoever answers, or in how answers are "
            "reported"
        ),
    )


def _once_in(chance: float) -> str:
    """How rarely, for people: 3.8e-7 is 1 in 3,000,000."""
    if chance < 1e-9:
        return "less than 1 in 1,000,000,000"
    return f"1 in {float(f'{1.0 / chance:.1g}'):,.0f}"


def is_over(facts: Facts, arm: int) -> bool:
    """Whether recent decisions are answered as those before, by now."""
    test = compare(facts.past.lives(arm), facts.past.last_heard)
    return test is None or test.chance > OVER


def compare(lives: Lives, upto: float) -> LogRank | None:
    """The last quarter of these decisions with the others, as they stood then; None: there are too few answers."""
    lives = lives.where(lives.made < upto)
    if lives.made.size < FIRST_LOOK:
        return None
    order = np.argsort(lives.made, kind="stable")
    second = np.zeros(order.size, dtype=bool)
    second[order[order.size - int(_RECENT * order.size) :]] = True
    followed = upto - lives.made
    period = _period(lives)
    if period > 0.0:
        followed = np.floor(followed / period) * period
    ended = ~np.isnan(lives.delay) & ((lives.delay <= followed) | (period == 0.0))
    times = np.where(ended, lives.delay, followed)
    found = LogRank(0.0, 0.0, 0.0)
    for context in np.unique(lives.context):
        of_it = lives.context == context
        if ended[of_it].any():
            found = found.plus(log_rank(times[of_it], ended[of_it], second[of_it]))
    first_expected = float(ended.sum()) - found.expected
    return None if min(found.expected, first_expected) < _FEWEST else found


def _period(lives: Lives) -> float:
    """Between moments at which many answers are heard of together; 0: they come one by one."""
    heard = lives.heard[~np.isnan(lives.heard)]
    moments = np.unique(heard)
    if moments.size < 2 or heard.size <= _TOGETHER * moments.size:
        return 0.0
    return float(np.diff(moments[-_MOMENTS:]).max())
