"""A decision as people see it, put together from its events, and why it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from doral.live.errors import BrokenLog
from doral.live.events.event import (
    IS_EXPIRED,
    IS_PENDING,
    IS_SKIPPED,
    MADE_ELSEWHERE,
    OWN_CHOICE,
    OWN_SKIP,
    STATE_NAMES,
    WHILE_PAUSED,
    Answered,
    Cancelled,
    Corrected,
    Deciding,
    Recorded,
    Settled,
    known,
)
from doral.live.events.person import read_person
from doral.live.state.parts import Expiries, Names
from doral.pages.names import short
from doral.pages.notebook import card
from doral.pages.numbers import figure

CODES = {
    MADE_ELSEWHERE: "made-elsewhere",
    OWN_CHOICE: "own-choice",
    OWN_SKIP: "own-skip",
    WHILE_PAUSED: "paused",
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
    "paused": "Skipped: the campaign is paused",
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
    WHILE_PAUSED: "skipped: paused",
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
    >>> in_words("paced", value=3.91, price=3.91, probability=0.62, here=None)
    'Skipped (probability 0.62): the budget is enough for some arrivals like this one; which of them is left to chance'
    >>> in_words("paced", value=0.0, price=3.91, probability=0.62, here=0.0)
    'Skipped (probability 0.62): no option is expected to bring a reward so far, and the budget is not enough to try at every arrival'
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
    is_mixed = code in ("marginal", "paced") and price > 0.0 and probability is not None and probability < 1.0
    if is_mixed and (here is None or not _is_apart(here, price)):  # at the margin, two equal numbers explain nothing
        return f"{begins}: the budget is enough for some arrivals like this one; which of them is left to chance"
    return f"{begins}: {_weighed(code, value, price, here, is_served=is_served)}"


def _weighed(code: str, value: float, price: float, here: float | None, *, is_served: bool) -> str:
    """The return per unit of budget here, against elsewhere."""
    if price <= 0.0:  # nothing competes for the budget, or the policy does not weigh it
        if code == "best":
            return f"this option is expected to bring most here, {value:.3g}"
        return "spending keeps its pace"
    if value == 0.0:  # before the first reward: the price is one of bonuses, and says nothing about rewards
        if is_served:
            return "no option is expected to bring a reward so far; this one is tried, to learn"
        return "no option is expected to bring a reward so far, and the budget is not enough to try at every arrival"
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


_STATES = range(len(STATE_NAMES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided for one arrival, and what became of it.

    Times are when things happened, as the caller said or the clock showed: in seconds since 1970, or in rounds.
    `probability` is that of this very choice (this arm, or to skip), so that other policies can be evaluated on the log
    later; None where a decision was made elsewhere and nobody said it. Where the baseline of the problem is observed,
    whoever is skipped is pending like all others, until it is known what became of them; where it is an arm, they get
    that. Of those who are skipped, `base` and `effects` are about the arm that was thought best for them.

    Attributes:
        id: By which answers are given.
        state: Skipped, pending, returned, expired, late or cancelled.
        context: The name of its context.
        arm: The name of the arm; None: nobody was served.
        cost: What is reserved, unless it is not in the ledger; 0 when skipped.
        value: What a use of the arm seemed worth; of a skip, of the arm that was thought of.
        price: What a unit of budget seemed to bring elsewhere; 0 where nothing competed for it.
        probability: That of this very choice; None where nobody said it.
        reason_code: Why: "best", "marginal", "exploring", "racing", "first-try" for those who are served; "paced",
            "budget", "unavailable", "over", "worthless", "random-skip" for those who are not; "made-elsewhere".
        return_here: Return per unit of budget of the arm, or of a skip the best one; to be compared with `price`. None
            where it is not known what a use costs.
        round: How many had arrived, this one included.
        decided_at: When, in seconds since 1970, or in rounds.
        key: That the caller gave the request; None: none, or it was forgotten.
        reward: What came of it; None while there is no answer.
        answered_at: When the answer came, as `decided_at`.
        actual_cost: What it cost in the end; None while it is open.
        available: Names of the arms that could be had; None: all.
        is_recorded: Whether it was made elsewhere.
        is_in_ledger: Whether its cost is paid from the campaign's budget.
        features: What was known of the person, where the problem says so; None where it was forgotten.
        weight: Of this one request; None: that of the context.
        deadline: Of this one request, in seconds or rounds; None: that of the context.
        base: What the arm was thought to bring an average one, in units of reward.
        effects: What each feature spoke for the arm (against it, below 0) beyond that.
    """

    id: str
    state: str
    context: str
    arm: str | None
    cost: float
    value: float
    price: float
    probability: float | None
    reason_code: str
    round: int
    decided_at: float
    return_here: float | None = None
    key: str | None = None
    reward: float | None = None
    answered_at: float | None = None
    actual_cost: float | None = None
    available: tuple[str, ...] | None = None
    is_recorded: bool = False
    is_in_ledger: bool = True
    # Where the problem says what is known of people; None where it was forgotten.
    features: Mapping[str, float | str | None] | None = None
    weight: float | None = None
    deadline: float | None = None
    base: float | None = None
    effects: Mapping[str, float] | None = None

    def __repr__(self) -> str:
        return f"<Decision {self.id}: {_words(self)}>"

    def _repr_html_(self) -> str:
        return _card(self)

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        return in_words(
            self.reason_code,
            value=self.value,
            price=self.price,
            probability=self.probability,
            here=self.return_here,
        )

    @property
    def delay(self) -> float | None:
        """How long the answer took."""
        return None if self.answered_at is None else self.answered_at - self.decided_at


def _words(one: Decision) -> str:
    """In one line."""
    what = "no arm" if one.arm is None else short(one.arm, 30)
    reward = "" if one.reward is None else f", reward {figure(one.reward)}"
    return f"{what} for {short(one.context, 30)}, {one.state}{reward}; {one.reason}"


def _card(one: Decision) -> str:
    facts = [
        ("arm", "none" if one.arm is None else short(one.arm, 60)),
        ("why", one.reason),
        ("context", short(one.context, 60)),
        ("state", one.state),
        ("cost", figure(one.cost if one.actual_cost is None else one.actual_cost)),
    ]
    if one.reward is not None:
        facts.append(("reward", figure(one.reward)))
    if one.probability is not None:
        facts.append(("probability", figure(one.probability, 3)))
    if one.key is not None:
        facts.append(("key", short(one.key, 60)))
    return card(f"Decision {one.id}", facts)


def state_of(decided: Deciding, later: Sequence[Settled], expiries: Expiries) -> int:
    """Return the state of a decision, given all later events about it and what has expired."""
    state = decided.state_then
    if state != IS_SKIPPED and later:
        state = later[-1].settlement.state
        if state not in _STATES:
            raise BrokenLog(f"event {later[-1].sequence}: there is no state {state!r}")
    elif state == IS_PENDING and expiries.has(decided):
        return IS_EXPIRED
    return state


def make_decision(names: Names, decided: Deciding, later: Sequence[Settled], expiries: Expiries) -> Decision:
    """Return the decision whose events these are."""
    arrival, choice, place = decided.arrival, decided.choice, decided.place
    value, cost, is_in_ledger = choice.value or 0.0, choice.cost or 0.0, True
    is_recorded = isinstance(decided, Recorded)
    if isinstance(decided, Recorded):
        cost, is_in_ledger = decided.list_cost, decided.is_ours
    state = state_of(decided, later, expiries)
    reward = answered_at = actual_cost = None
    if state == IS_EXPIRED or later:
        actual_cost = 0.0 if expiries.is_released(decided, later) else cost
        for event in later:
            if event.settlement.actual_cost is not None:
                actual_cost = event.settlement.actual_cost
            if isinstance(event, Cancelled):
                reward, answered_at, actual_cost = None, None, 0.0
                break
            if isinstance(event, Answered | Corrected):
                reward = event.reward
            if isinstance(event, Answered):
                answered_at = names.epoch + names.own_time(event)
    unit_cost = names.unit_cost(decided)
    return Decision(
        id=f"{names.tag}-{place.sequence}",
        state=STATE_NAMES[state],
        context=names.contexts[arrival.context],
        arm=None if choice.arm is None or choice.arm == names.nothing else names.arms[choice.arm],
        cost=cost,
        value=value,
        price=choice.price or 0.0,
        probability=choice.probability,
        reason_code=CODES.get(choice.reason) or code_of(known(choice.reason)),
        return_here=value / unit_cost if unit_cost else None,
        round=choice.round or known(choice.round),
        decided_at=names.epoch + (names.own_time(decided) if names.repairs else decided.own),
        key=None if place.key is None else place.key[2:],
        reward=reward,
        answered_at=answered_at,
        actual_cost=actual_cost,
        available=None if arrival.available is None else tuple(_named(names.arms, arrival.available)),
        is_recorded=is_recorded,
        is_in_ledger=is_in_ledger,
        weight=arrival.weight,
        deadline=arrival.deadline,
        **({} if arrival.person is None else _about_person(names, arrival.person)),
    )


def _about_person(names: Names, text: str) -> dict[str, Any]:
    person = read_person(text)
    said: dict[str, Any] = {"features": dict(zip(names.person, person.features, strict=True)), "base": person.base}
    if person.effects is not None:
        said["effects"] = dict(zip(names.person, person.effects, strict=True))
    return said


def _named(arms: Sequence[str], available: bytes) -> list[str]:
    return [
        name for arm, name in enumerate(arms) if arm // 8 < len(available) and available[arm // 8] >> (7 - arm % 8) & 1
    ]
