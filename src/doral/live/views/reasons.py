"""Why a decision came out as it did: a code and numbers. Sentences are made of them where somebody reads them."""

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
from doral.live.events.event import MADE_ELSEWHERE, OWN_CHOICE, OWN_SKIP

CODES = {
    MADE_ELSEWHERE: "made-elsewhere",
    OWN_CHOICE: "own-choice",
    OWN_SKIP: "own-skip",
    PLAYED_RACING: "racing",
    PLAYED_FIRST: "first-try",
    PLAYED: "best",
    PLAYED_MARGINAL: "marginal",
    PLAYED_EXPLORING: "exploring",
    SKIPPED_BUDGET: "budget",
    SKIPPED_PACED: "paced",
    SKIPPED_UNAVAILABLE: "unavailable",
    SKIPPED_OVER: "over",
    SKIPPED_WORTHLESS: "worthless",
    SKIPPED_EXPLORING: "random-skip",
}
SERVED = frozenset(("best", "marginal", "exploring", "racing", "first-try", "own-choice"))
_FIXED = {
    "made-elsewhere": "Made elsewhere",
    "own-choice": "Served: your own policy chose this option",
    "own-skip": "Skipped: your own policy chose to skip",
    "racing": "Served: in the race, to learn how fast this option answers",
    "first-try": "Served: a first try, because little is known of this option",
    "budget": "Skipped: what is left of the budget pays for no option",
    "unavailable": "Skipped: no option is available",
    "over": "Skipped: the campaign has reached its end",
    "worthless": "Skipped: no option is expected to bring anything here",
}
_WEIGHED = ("best", "marginal", "paced")
_MOST_DIGITS = 7  # in which two numbers differ, or are the same
# For counts in a report.
SHORT = {
    MADE_ELSEWHERE: "made elsewhere",
    OWN_CHOICE: "played: own policy",
    OWN_SKIP: "skipped: own policy",
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


def code_of(reason: int) -> str:
    """Return the code of a reason in the log; one of a newer engine by its number."""
    return CODES.get(reason, f"reason-{reason}")


def in_words(code: str, *, value: float, price: float, probability: float | None, here: float | None) -> str:
    """Return the sentence of one decision.

    Args:
        code: Of the reason.
        value: What a use of the arm is worth (of a skip: of the arm that was thought of).
        price: What the budget currently buys, per unit.
        probability: Of this very choice.
        here: The return per unit of budget here; None where it is not known what a use costs.

    >>> in_words("paced", value=0.18, price=0.27, probability=1.0, here=0.09)
    'Skipped: the best option here returns 0.09 per unit of budget; the budget currently buys 0.27 per unit elsewhere'
    >>> in_words("best", value=0.5, price=0.4, probability=0.58, here=0.5)
    'Served (probability 0.58): this option returns 0.5 per unit of budget; the budget currently buys 0.4 per unit elsewhere'
    """  # noqa: E501
    if code in _FIXED:
        return _FIXED[code]
    if code not in _WEIGHED and code not in ("exploring", "random-skip"):
        return f"By a rule of a newer version ({code})"
    is_served = code in SERVED
    begins = "Served" if is_served else "Skipped"
    if probability is not None and probability < 1.0:
        chance = f"{probability:.3g}"
        begins += f" (probability {'above 0.999' if chance == '1' else chance})"
    if code not in _WEIGHED:
        return f"{begins}: one of the options at random, to learn from it"
    return f"{begins}: {_weighed(code, value, price, here, is_served=is_served)}"


def _weighed(code: str, value: float, price: float, here: float | None, *, is_served: bool) -> str:
    """The return per unit of budget here, against elsewhere."""
    if price <= 0.0:  # nothing competes for the budget, or the policy does not weigh it
        if code == "best":
            return f"this option is expected to bring most here, {value:.3g}"
        return "spending keeps its pace"
    which = "this option" if is_served else "the best option here"
    if here is None:
        how = "more" if is_served else "less"
        return (
            f"{which} returns {how} than its cost buys elsewhere, where the budget currently buys {price:.3g} per unit"
        )
    said_here, said_price = _apart(here, price)
    if not _is_apart(here, price):  # at the margin
        said_here = said_price
    elsewhere = f"the budget currently buys {said_price} per unit elsewhere"
    if _is_apart(here, price) and is_served == (here < price):  # policies that draw what an arm may bring
        how = "more" if is_served else "less"
        return f"{which} may return {how} than the expected {said_here} per unit of budget; {elsewhere}"
    return f"{which} returns {said_here} per unit of budget; {elsewhere}"


def _apart(one: float, other: float) -> tuple[str, str]:
    """Both with three digits that count, and with more where they would look the same."""
    digits = 3
    while f"{one:.{digits}g}" == f"{other:.{digits}g}" and digits < _MOST_DIGITS and _is_apart(one, other):
        digits += 1
    return f"{one:.{digits}g}", f"{other:.{digits}g}"


def _is_apart(one: float, other: float) -> bool:
    return abs(one - other) > 10.0**-_MOST_DIGITS * max(abs(one), abs(other))
