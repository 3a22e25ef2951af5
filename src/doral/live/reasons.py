"""Why a decision came out as it did, in words that a person can read."""

from __future__ import annotations

from doral.engine.choice import (
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
    """
    if reason in _FIXED:
        return _FIXED[reason]
    if reason not in SHORT:
        return f"reason {reason}"  # of a newer engine
    begins = "served" if reason in _SERVED else "not served"
    if probability is not None and probability < 1.0:
        begins += f", by lot with probability {probability:.3g}"
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
        return f"a unit of budget brings {price:.3g} elsewhere; an arm brings {value:.3g} here before its cost"
    here = value / unit_cost
    if reason == SKIPPED_PACED:
        return f"a unit of budget brings {price:.3g} elsewhere, here {here:.3g}"
    if here < price and reason == PLAYED:  # policies that draw what an arm may bring go by the draw
        return f"a unit of budget may bring more here than the {here:.3g} that is expected; elsewhere {price:.3g}"
    return f"a unit of budget brings {here:.3g} here, elsewhere {price:.3g}"
