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
    PLAYED_RACING: "played: racing, to learn how fast this arm answers",
    PLAYED_FIRST: "played: a first try, because little is known of this arm",
    SKIPPED_BUDGET: "skipped: budget, what is left does not pay for any arm",
    SKIPPED_UNAVAILABLE: "skipped: no arm is available",
    SKIPPED_OVER: "skipped: the horizon is over",
}
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


def in_words(reason: int, *, value: float, price: float, probability: float | None) -> str:
    """One line for one decision.

    >>> in_words(SKIPPED_PACED, value=0.31, price=0.42, probability=1.0)
    'skipped: paced, worth 0.31, a unit of budget is worth 0.42'
    """
    if reason in _FIXED:
        return _FIXED[reason]
    worth = f"worth {value:.3g}"
    if price > 0.0:
        worth += f", a unit of budget is worth {price:.3g}"
    chance = "" if probability is None or probability >= 1.0 else f", chosen with probability {probability:.3g}"
    if reason == PLAYED:
        return f"played: {worth}"
    if reason == PLAYED_MARGINAL:
        return f"played: at the margin, {worth}{chance}"
    if reason == SKIPPED_PACED:
        return f"skipped: paced, {worth}{chance}"
    if reason in (PLAYED_EXPLORING, SKIPPED_EXPLORING):
        return f"{SHORT[reason]}, one of the options at random{chance}"
    if reason == SKIPPED_WORTHLESS:
        return "skipped: no arm is expected to bring anything here"
    return SHORT.get(reason, f"reason {reason}")  # a reason of a newer engine
