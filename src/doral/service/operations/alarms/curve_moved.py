"""Answers to an arm come sooner, later, more or less often than they did before.

The last quarter of its decisions against those before, by the log-rank test, stratum by stratum of contexts, so that a
policy that turns to other contexts is not taken for a change. Only decisions that are older than nine tenths of the
answers have taken: who reports answers once a day would otherwise seem to have stopped every day. Each look may use up
its share of FALSE_ALARMS, divided by the number of arms.

Assumed: delays are independent, given arm and context. Curves that cross in the middle may be missed.
"""

from __future__ import annotations

import numpy as np

from doral.service.operations.alarms.chances import LogRank, chance_of_look, hazard, log_rank, look_number
from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding
from doral.service.operations.alarms.past import Lives

RULE = "curve-moved"
FIRST_LOOK = 120  # decisions of an arm
OVER = 0.05  # a difference that is so likely by chance is none any more
_RECENT = 0.25
_OLD_ENOUGH = 0.9
_FEWEST = 10.0  # answers that are expected in each group, for a normal approximation


def look(facts: Facts, arm: int) -> int:
    """The number of the look that is due."""
    return look_number(facts.plays[arm], FIRST_LOOK)


def find(facts: Facts, arm: int, look: int) -> Finding | None:
    """Whether it is so; the chance of error is that of the look."""
    lives = _old_enough(facts.past.lives(arm), facts.now)
    test = compare(lives, facts.now)
    n_arms = max(1, len(facts.past.arms))
    if test is None or test.chance > chance_of_look(look) / n_arms:
        return None
    direction = "rarer or later" if test.observed < test.expected else "more frequent or earlier"
    recent = int(_RECENT * lives.made.size)
    return Finding(
        rule=RULE,
        subject=facts.arms[arm],
        words=(
            f"answers to {facts.arms[arm]!r} have become {direction}: of the last {recent:,} decisions that are old "
            f"enough {test.observed:,.0f} were answered, and {test.expected:,.0f} would have been as before (chance "
            f"{test.chance:.1e}). Look what has changed for whoever answers, or in how answers are reported"
        ),
    )


def is_over(facts: Facts, arm: int) -> bool:
    """Whether recent decisions are answered as those before, by now."""
    test = compare(_old_enough(facts.past.lives(arm), facts.now), facts.now)
    return test is None or test.chance > OVER


def compare(lives: Lives, now: float) -> LogRank | None:
    """The last quarter of these decisions with the others; None: there are too few answers."""
    if lives.made.size < FIRST_LOOK:
        return None
    order = np.argsort(lives.made, kind="stable")
    second = np.zeros(order.size, dtype=bool)
    second[order[order.size - int(_RECENT * order.size) :]] = True
    ended = ~np.isnan(lives.delay)
    times = np.where(ended, lives.delay, now - lives.made)
    found = LogRank(0.0, 0.0, 0.0)
    for context in np.unique(lives.context):
        of_it = lives.context == context
        if ended[of_it].any():
            found = found.plus(log_rank(times[of_it], ended[of_it], second[of_it]))
    first_expected = float(ended.sum()) - found.expected
    return None if min(found.expected, first_expected) < _FEWEST else found


def _old_enough(lives: Lives, now: float) -> Lives:
    delays = lives.delay[~np.isnan(lives.delay)]
    if not delays.size:
        return lives.where(np.zeros(lives.made.size, dtype=bool))
    # How long answers take is read off the curve, not off the answers: of young decisions only quick ones are known.
    ended = ~np.isnan(lives.delay)
    known = hazard(np.where(ended, lives.delay, np.maximum(0.0, now - lives.made)), ended)
    answered = -np.expm1(-known.values)
    age = float(known.ages[np.searchsorted(answered, _OLD_ENOUGH * answered[-1])])
    return lives.where(lives.made <= now - age)
