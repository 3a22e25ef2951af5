"""At the pace of late, the budget is gone before the time is.

The last third of arrivals, in twenty blocks, says what an arrival costs. Student's t asks whether that is more than
would make the budget last for all but the last twentieth of the way. Assumed: blocks are independent, and about normal;
whoever is still to come costs as those of late did.
"""

from __future__ import annotations

from doral.service.operations.alarms.chances import chance_of_look, chance_of_mean, look_number
from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding

RULE = "budget-early"
FIRST_LOOK = 300  # arrivals
_BLOCKS = 20
_NEAR = 0.05  # of the way: nobody minds a budget that ends so shortly before


def look(facts: Facts) -> int:
    """The number of the look that is due."""
    return look_number(facts.arrivals, FIRST_LOOK)


def find(facts: Facts, look: int) -> Finding | None:
    """Whether it is so; the chance of error is that of the look."""
    found = _spending(facts)
    if found is None:
        return None
    rate, at_most, sample_size, chance = found
    if chance > chance_of_look(look):
        return None
    more = facts.left / rate
    way = facts.time_share + (1.0 - facts.time_share) * more / facts.fewest_to_come
    return Finding(
        rule=RULE,
        subject="",
        words=(
            f"an arrival has cost {rate:.3g} on average of late (the last {sample_size:,}), and {at_most:.3g} would "
            f"last: the budget ends after about {more:,.0f} more arrivals, at {way:.0%} of the way. Top it up, pause "
            "an expensive arm, or close the campaign earlier"
        ),
    )


def is_over(facts: Facts) -> bool:
    """Whether the budget lasts after all, at the pace of late."""
    found = _spending(facts)
    return found is None or found[0] <= found[1]


def _spending(facts: Facts) -> tuple[float, float, int, float] | None:
    """What an arrival costs, what it may cost, on how many that rests, and the chance that it is no more."""
    to_come = facts.fewest_to_come
    near = _NEAR * to_come / (1.0 - facts.time_share) if facts.time_share < 1.0 else to_come
    rates = facts.past.rates(_BLOCKS)
    if facts.is_closed or rates is None or facts.left <= 0.0 or to_come <= near:
        return None
    sample, size = rates
    at_most = facts.left / (to_come - near)
    return float(sample.mean()), at_most, size, chance_of_mean(sample, at_most)
