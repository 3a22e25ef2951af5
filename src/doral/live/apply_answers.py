"""What becomes of a decision after it was made: answered, corrected, cancelled or expired."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal

from doral.engine.engine import ASK, Heard
from doral.engine.events import LEARNED, REPEATED
from doral.live.errors import BrokenLog
from doral.live.events import (
    ANSWERED,
    CANCELLED,
    CORRECTED,
    IMPLIED_COST,
    IS_EXPIRED,
    IS_LATE,
    IS_PENDING,
    IS_RETURNED,
    UNHEARD,
    Event,
    known,
    with_outcome,
)
from doral.live.expiries import OwnCall
from doral.live.fold import Fold
from doral.live.ledger import exact, minus, product, times
from doral.live.people import who_of
from doral.live.reasons import MADE_ELSEWHERE


def apply_answers(fold: Fold, drafts: Sequence[Event]) -> list[Event]:
    outcomes = _tell(fold, drafts)
    for draft in drafts:
        fold.advance(draft)
        fold.counts.move(known(draft.was), known(draft.state))
        _settle(fold, draft)
        _count_reward(fold, draft, exact(known(draft.reward)))
        fold.counts.arm_answers[known(draft.arm)] += 1
    return [with_outcome(draft, outcome) for draft, outcome in zip(drafts, outcomes, strict=True)]


def apply_correction(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    fold.check_arm(draft)
    previous, reward = known(draft.previous), known(draft.reward)
    if draft.data is not None:  # the engine has heard nothing so far: to it this is the answer
        draft = with_outcome(draft, _tell(fold, [draft])[0])
    elif fold.made_otherwise.get(known(draft.decision), draft.outcome) == LEARNED:
        _recall_features(fold, draft)
        fold.engine.correct(
            number=_number(fold, draft),
            context=known(draft.context),
            arm=known(draft.arm),
            previous=previous,
            reward=reward,
        )
    _settle(fold, draft)
    _count_reward(fold, draft, minus(exact(reward), exact(previous)))
    fold.counts.corrections += 1
    return draft


def apply_cancellation(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    fold.check_arm(draft)
    _recall_features(fold, draft)
    fold.engine.cancel(
        number=_number(fold, draft),
        context=known(draft.context),
        arm=known(draft.arm),
        cost=known(draft.previous_cost),
        reason=known(draft.reason),
        clock=draft.clock,
    )
    fold.counts.move(known(draft.was), known(draft.state))
    fold.counts.arm_plays[known(draft.arm)] -= 1
    _settle(fold, draft)
    return draft


def apply_expiry(fold: Fold, draft: Event) -> Event:
    """What is too old is spent, or comes back where the caller says that nothing was spent on it."""
    fold.advance(draft)
    said = json.loads(known(draft.data))
    upto, releases = said["upto"], said.get("release", False)
    if len(upto) != len(fold.expiries.upto) or any(
        new < old for new, old in zip(upto, fold.expiries.upto, strict=True)
    ):
        raise BrokenLog(f"event {draft.sequence}: decisions expired up to {fold.expiries.upto} already")
    fold.engine.pass_time(draft.clock)
    for context, cost, count in _expired(fold, said):
        amount = times(cost, count)
        fold.counts.move(IS_PENDING, IS_EXPIRED, count)
        fold.ledger.spend(amount, amount if releases else Decimal(0))
        if releases and amount:
            fold.engine.give_back(context, float(amount))
    fold.expiries.add(upto, releases=releases)
    if "own_upto" in said:
        fold.expiries.add_own(OwnCall(draft.sequence, draft.own, releases), said["own_upto"])
    return draft


def _expired(fold: Fold, said: dict[str, list[list[float]]]) -> list[tuple[int, Decimal, int]]:
    """How many decisions, by context and cost; version 0.1 counted them by arm."""
    if "by_arm" in said:
        return [(0, fold.roster.exact_costs(0)[int(arm)], int(count)) for arm, count in said["by_arm"]]
    return [(int(context), exact(cost), int(count)) for context, cost, count in said["expired"]]


def _recall_features(fold: Fold, draft: Event) -> None:
    """Give the engine the features of a decision that may have left its ring."""
    if fold.problem.person:
        fold.engine.recall_features(
            _number(fold, draft), known(draft.context), who_of(fold.problem, fold.levels, draft)
        )


def _number(fold: Fold, draft: Event) -> int:
    """Of the decision, which the engine has made."""
    number = known(draft.number)
    if not 0 <= number < fold.engine.played:
        raise BrokenLog(f"event {draft.sequence}: there is no decision of number {number}")
    return number


def _tell(fold: Fold, drafts: Sequence[Event]) -> list[int]:
    """Tell the engine, and learn what it made of each answer.

    Where feedback is silent, no news and a reward of 0 look the same: the policy must not see the difference.
    """
    is_heard = [fold.problem.feedback == "explicit" or draft.reward != 0.0 for draft in drafts]
    heard = [draft for draft, is_one in zip(drafts, is_heard, strict=True) if is_one]
    if not heard:
        return [UNHEARD] * len(drafts)
    now = fold.engine.clock
    who = [who_of(fold.problem, fold.levels, draft) for draft in heard] if fold.problem.person else None
    outcomes = fold.engine.answer([_heard(fold, draft, now) for draft in heard], who=who)
    for draft, outcome in zip(heard, outcomes, strict=True):
        if draft.chain is None and outcome == REPEATED:
            raise BrokenLog(
                f"an answer to decision {draft.decision} was heard before, and the log does not show it: an index of "
                "the database was damaged; see `doral campaign verify`"
            )
        if draft.chain is not None and outcome != draft.outcome:
            fold.made_otherwise[known(draft.decision)] = outcome
    following = iter(outcomes)
    return [next(following) if is_one else UNHEARD for is_one in is_heard]


def _heard(fold: Fold, draft: Event, now: float) -> Heard:
    """The answer as the engine hears it: at its own time, which may have passed while others were heard."""
    fold.check_arm(draft)
    number = _number(fold, draft)
    came = draft.own
    return Heard(
        number,
        known(draft.reward),
        came,
        ASK if draft.chain is None else known(draft.outcome),
        came < now or number < fold.swept,
        known(draft.context),
        known(draft.arm),
        0.0 if draft.delay is None else draft.delay,
    )


def _settle(fold: Fold, draft: Event) -> None:
    """Book what a decision cost: from its reservation, or out of what was spent when it expired."""
    before = exact(known(draft.previous_cost))
    after = before if draft.actual_cost is None else exact(draft.actual_cost)
    released = minus(before, after)
    if draft.was == IS_PENDING:
        fold.ledger.spend(before, released)
    elif released:
        if released < 0:
            fold.leases.make_room(draft.writer, -released)
        fold.ledger.refund(released)
    if released and draft.kind != CANCELLED:  # the engine's own `cancel` gives back by itself
        fold.engine.give_back(known(draft.context), float(released))
    if fold.problem.paid == "on_answer" and draft.kind != CANCELLED:
        _tell_cost(fold, draft, before, after)


def _tell_cost(fold: Fold, draft: Event, before: Decimal, after: Decimal) -> None:
    """What the decision costs teaches the engine, too, as a share of what was reserved for it.

    Of one that was made elsewhere, as a share of the list price, also where it cost the campaign nothing.
    """
    reserved = known(draft.cost)
    if draft.reason == MADE_ELSEWHERE:
        reserved = fold.roster.costs(known(draft.context))[known(draft.arm)]
        if draft.kind == ANSWERED and draft.data is not None and draft.data != IMPLIED_COST:
            after = min(exact(json.loads(draft.data)["cost"]), exact(reserved))
    if draft.kind == CORRECTED:
        change, age = float(minus(after, before)), None
    else:
        change, age = float(after), known(draft.delay)
    fold.engine.pay(
        number=_number(fold, draft),
        context=known(draft.context),
        arm=known(draft.arm),
        age=age,
        change=change / reserved if reserved > 0.0 else 0.0,
    )


def _count_reward(fold: Fold, draft: Event, amount: Decimal) -> None:
    """In units of worth: weighed by what a reward is worth in this context, or to this one."""
    context = known(draft.context)
    weight = fold.problem.contexts[context].weight if draft.weight is None else draft.weight
    worth = product(amount, exact(weight))
    has_no_deadline = draft.deadline is None and fold.problem.deadlines[context] == math.inf
    if draft.state == IS_RETURNED or (draft.state == IS_LATE and has_no_deadline):
        arm = known(draft.arm)
        fold.counts.add_reward(arm, worth, is_served=arm != fold.roster.control)
    elif draft.arm != fold.roster.control:
        fold.counts.add_late_reward(worth)
