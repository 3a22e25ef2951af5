"""Why a decision came out as it did, in words that a person can read."""

from __future__ import annotations

from doral.engine.decide import (
    PLAYED,
    PLAYED_EXPLORING,
    PLAYED_FIRST,
    PLAYED_MARGINAL,
    PLAYED_RACING,
    SKIPPED_BUDGET,
    SKIPPED_EXPLORING,
    SKIPPED_OVER,
    SKIPPED_PACED,
    SKIPPED_UNAVAILABLE,
    SKIPPED_WORTHLESS,
)

MADE_ELSEWHERE = 100  # in the place of a reason of the engine

_FIXED = {
    MADE_ELSEWHERE: "made elsewhere",
    PLAYED_RACING: "served: in the race, to learn how fast this arm answers",
    PLAYED_FIRST: "served: a first try, because little is known of this arm",
    SKIPPED_BUDGET: "not served: what is left of the budget pays for no arm",
    SKIPPED_UNAVAILABLE: "not served: no arm is available",
    SKIPPED_OVER: "not served: the campaign has reached its end",
    SKIPPED_WORTHLESS: "not served: no arm is expected to bring anything here",
}
_SERVED = (PLAYED, PLAYED_MARGINAL, PLAYED_EXPLORING)
_MOST_DIGITS = 7  # in which two numbers differ, or are the same
# For counts in a report.
SHORT = {
    MADE_ELSEWHERE: "made elsewhere",
    PLAYED_RACING: "played: racing",
    PLAYED_FIRST: "played: first try",
    PLAYED: "played",
    PLAYED_MARGINAL: "played: marginal",
    SKIPPED_BUDGET: "skipped: budget",
    SKIPPED_PACED: "skipped: paced",
    SKIPPED_UNAVAILABLE: "skipped: unavailable",
    SKIPPED_OVER: "skipped: over",
    SKIPPED_WORTHLESS: "skipped: worthless",
    PLAYED_EXPLORING: "played: exploring",
    SKIPPED_EXPLORING: "skipped: exploring",
}


def in_words(
    reason: int, *, value: float, price: float, probability: float | None, unit_cost: float | None = None
) -> str:
    """One line for one decision.

    `value` is what a use of the arm is worth (of a skip: of the arm that was thought of), `price` what a unit of budget
    brings at the margin, which is where else it would go. The two compare where it is known what a use costs, which
    `unit_cost` says.

    >>> in_words(SKIPPED_PACED, value=0.62, price=0.42, probability=1.0, unit_cost=2.0)
    'not served: a unit of budget brings 0.42 elsewhere, here 0.31'
    >>> in_words(PLAYED, value=0.5, price=0.4, probability=0.9999, unit_cost=1.0)
    'served, by lot with probability above 0.999: a unit of budget brings 0.5 here, elsewhere 0.4'
    """
    if reason in _FIXED:
        return _FIXED[reason]
    if reason not in SHORT:
        return f"reason {reason}"  # of a newer engine
    begins = "served" if reason in _SERVED else "not served"
    if probability is not None and probability < 1.0:
        chance = f"{probability:.3g}"
        begins += f", by lot with probability {'above 0.999' if chance == '1' else chance}"
    if reason in (PLAYED_EXPLORING, SKIPPED_EXPLORING):
        return f"{begins}: one of the options at random, to learn from it"
    return f"{begins}: {_weighed(reason, value, price, unit_cost)}"


def _weighed(reason: int, value: float, price: float, unit_cost: float | None) -> str:
    """What it brings here against what it would bring elsewhere."""
    if price <= 0.0:  # nothing competes for the budget, or the policy does not weigh it
        if reason == PLAYED:
            return f"of all arms this one is thought to bring most here, {value:.3g}"
        return "spending keeps its pace"
    if unit_cost is None or unit_cost <= 0.0:
        return f"a unit of budget brings {price:.3g} elsewhere; a whole use brings {value:.3g} here, before its cost"
    here = value / unit_cost
    said_here, said_price = _apart(here, price)
    if not _is_apart(here, price):  # at the margin
        said_here = said_price
    elif reason == SKIPPED_PACED and here > price:  # policies that draw what an arm may bring go by the draw
        return f"a unit of budget may bring less here than the {said_here} that is expected; elsewhere {said_price}"
    elif reason in _SERVED and here < price:
        return f"a unit of budget may bring more here than the {said_here} that is expected; elsewhere {said_price}"
    if reason == SKIPPED_PACED:
        return f"a unit of budget brings {said_price} elsewhere, here {said_here}"
    return f"a unit of budget brings {said_here} here, elsewhere {said_price}"


def _apart(one: float, other: float) -> tuple[str, str]:
    """Both with three digits that count, and with more where they would look the same."""
    digits = 3
    while f"{one:.{digits}g}" == f"{other:.{digits}g}" and digits < _MOST_DIGITS and _is_apart(one, other):
        digits += 1
    return f"{one:.{digits}g}", f"{other:.{digits}g}"


def _is_apart(one: float, other: float) -> bool:
    return abs(one - other) > 10.0**-_MOST_DIGITS * max(abs(one), abs(other))
