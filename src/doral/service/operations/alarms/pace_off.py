"""At the pace of late, much of the budget is left over at the end.

As `budget_early`, to the other side: would a fifth of the budget or more be left?
"""

from __future__ import annotations

from doral.service.operations.alarms.chances import chance_of_look, chance_of_mean, look_number
from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding

RULE = "pace-off"
FIRST_LOOK = 300  # arrivals
_BLOCKS = 20
_MUCH = 0.2  # of the budget
_BEGINNING = 0.2  # of the way, in which it is still learned what is worth spending on


def look(facts: Facts) -> int:
    """The number of the look that is due."""
    return look_number(facts.arrivals, FIRST_LOOK)


def find(facts: Facts, look: int) -> Finding | None:
    """Whether it is so; the chance of error is that of the look."""
    found = _spending(facts)
    if found is None:
        return None
    rate, at_least, sample_size, chance = found
    if chance > chance_of_look(look) or facts.time_share < _BEGINNING:
        return None
    over = (facts.left - max(0.0, rate) * facts.most_to_come) / facts.total
    return Finding(
        rule=RULE,
        subject="",
        words=(
            f"{_so_far(facts)}an arrival has cost {rate:.3g} on average of late (the last {sample_size:,}), where "
            f"{at_least:.3g} would use most of the budget: about {over:.0%} of it will be left over. Look "
            "whether arms are paused or unavailable, or whether fewer people come than were "
            "expected; extend the campaign, or lower its budget"
        ),
    )


def _so_far(facts: Facts) -> str:
    if facts.planned <= 0.0:
        return ""
    return f"{facts.total - facts.left:,.6g} are used where {facts.planned:,.6g} were planned by now; "


def is_over(facts: Facts) -> bool:
    """Whether most of the budget is used after all, at the pace of late."""
    found = _spending(facts)
    return found is None or found[0] >= found[1]


def _spending(facts: Facts) -> tuple[float, float, int, float] | None:
    rates = facts.past.rates(_BLOCKS)
    if facts.is_closed or rates is None or facts.most_to_come < 1.0 or facts.left <= _MUCH * facts.total:
        return None
    sample, size = rates
    at_least = (facts.left - _MUCH * facts.total) / facts.most_to_come
    return float(sample.mean()), at_least, size, chance_of_mean(-sample, -at_least)
