"""What becomes of a decision after it was made: answered, corrected, cancelled or expired."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from doral.engine.events import LEARNED
from doral.live.errors import BrokenLog
from doral.live.events import (
    CANCELLED,
    IS_EXPIRED,
    IS_LATE,
    IS_PENDING,
    IS_RETURNED,
    UNHEARD,
    Event,
    known,
    with_outcome,
)
from doral.live.fold import Fold
from doral.live.ledger import exact, minus, times


def apply_answers(fold: Fold, drafts: Sequence[Event]) -> list[Event]:
    outcomes = _tell(fold, drafts)
    for draft in drafts:
        fold.advance(draft)
        fold.counts.move(known(draft.was), known(draft.state))
        _settle(fold, draft)
        _count_reward(fold, draft, known(draft.reward))
        fold.counts.arm_answers[known(draft.arm)] += 1
    return [with_outcome(draft, outcome) for draft, outcome in zip(drafts, outcomes, strict=True)]


def apply_correction(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    previous, reward = known(draft.previous), known(draft.reward)
    if draft.data is not None:  # the engine has heard nothing so far: to it this is the answer
        draft = with_outcome(draft, _tell(fold, [draft])[0])
    elif draft.outcome == LEARNED:
        fold.engine.correct(
            number=known(draft.number),
            context=known(draft.context),
            arm=known(draft.arm),
            reason=known(draft.reason),
            previous=previous,
            reward=reward,
        )
    _settle(fold, draft)
    _count_reward(fold, draft, reward - previous)
    fold.counts.corrections += 1
    return draft


def apply_cancellation(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    number, context, arm, reason = (
        known(draft.number),
        known(draft.context),
        known(draft.arm),
        known(draft.reason),
    )
    fold.engine.cancel(number=number, context=context, arm=arm, reason=reason, clock=draft.clock)
    fold.counts.move(known(draft.was), known(draft.state))
    fold.counts.arm_plays[arm] -= 1
    _settle(fold, draft)
    return draft


def apply_expiry(fold: Fold, draft: Event) -> Event:
    """What is too old is spent."""
    fold.advance(draft)
    expired = json.loads(known(draft.data))
    fold.engine.pass_time(draft.clock)
    for arm, count in expired["by_arm"]:
        fold.counts.move(IS_PENDING, IS_EXPIRED, count)
        fold.ledger.spend(times(fold.roster.exact_costs[arm], count))
    if any(new < old for new, old in zip(expired["upto"], fold.expired_upto, strict=True)):
        raise BrokenLog(f"event {fold.sequence}: decisions expired up to {fold.expired_upto} already")
    fold.expired_upto = expired["upto"]
    return draft


def _tell(fold: Fold, drafts: Sequence[Event]) -> list[int]:
    """Tell the engine, and learn what it made of each answer.

    Where feedback is silent, no news and a reward of 0 look the same: the policy must not see the difference.
    """
    is_heard = [fold.problem.feedback == "explicit" or draft.reward != 0.0 for draft in drafts]
    heard = [draft for draft, is_one in zip(drafts, is_heard, strict=True) if is_one]
    if not heard:
        return [UNHEARD] * len(drafts)
    outcomes = fold.engine.answer(
        [known(draft.number) for draft in heard],
        [known(draft.reward) for draft in heard],
        [draft.clock for draft in heard],
    )
    following = iter(outcomes)
    return [next(following) if is_one else UNHEARD for is_one in is_heard]


def _settle(fold: Fold, draft: Event) -> None:
    """Book what a decision cost: from its reservation, or out of what was spent when it expired."""
    before = exact(known(draft.previous_cost))
    after = before if draft.actual_cost is None else exact(draft.actual_cost)
    released = minus(before, after)
    if draft.was == IS_PENDING:
        fold.ledger.spend(fold.roster.exact_costs[known(draft.arm)], released)
    elif released:
        fold.ledger.refund(released)
    if released and draft.kind != CANCELLED:  # the engine's own `cancel` gives back by itself
        fold.engine.give_back(known(draft.context), float(released))


def _count_reward(fold: Fold, draft: Event, amount: float) -> None:
    """In units of worth: weighed by what a reward is worth in this context."""
    context = known(draft.context)
    worth = amount * fold.problem.contexts[context].weight
    has_no_deadline = fold.problem.deadlines[context] == math.inf
    if draft.state == IS_RETURNED or (draft.state == IS_LATE and has_no_deadline):
        fold.counts.add_reward(known(draft.arm), worth)
    else:
        fold.counts.late_reward += worth
