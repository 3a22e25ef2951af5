"""Arrivals: the engine decides, and the cost is reserved. On replay, what was decided is taken as it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from doral._arrays import Bits
from doral.engine.decide import SKIPPED_OVER
from doral.engine.engine import NO_FEATURES, Decided, Who
from doral.engine.explain import explain_effects
from doral.live.errors import BrokenLog
from doral.live.events import IS_EXPIRED, IS_PENDING, Event, known, with_choice
from doral.live.fold import Fold
from doral.live.ledger import exact, minus, times
from doral.live.people import explained, refuse_unknown, who_of

_ROUNDING = 1e-8  # of what is left: how far the engine's floats may be from it
_ALL_TO_ONE: Bits = np.zeros((1, 0), dtype=np.uint8)  # one arrival to which all arms are offered


def apply_decisions(fold: Fold, drafts: Sequence[Event]) -> list[Event]:
    """Together where that is the same as one by one: the budget pays for all, and no race can end on the way.

    Whoever has features is told what they spoke for, which is looked up after each decision.
    """
    if _has_to_go_one_by_one(fold, drafts):
        return [_decide(fold, draft) for draft in drafts]
    if not _pays_for_all(fold, drafts):
        half = len(drafts) // 2
        return apply_decisions(fold, drafts[:half]) + apply_decisions(fold, drafts[half:])
    _keep_retired_out(fold)
    return _decide_many(fold, drafts, fold.roster.off)


def adopt_decisions(fold: Fold, facts: Sequence[Event]) -> Sequence[Event]:
    """The same for decisions of the log, where nobody asks what today's engine would have decided: in half the time.

    Whatever is not plain goes the other way, which says what is wrong.
    """
    columns: Any = Event._make(zip(*facts, strict=True))  # each holds those of all
    is_plain = fold.is_next(columns) and None not in columns.reason
    if not is_plain or _has_to_go_one_by_one(fold, facts) or not _pays_for_all(fold, facts):
        return apply_decisions(fold, facts)
    _keep_retired_out(fold)
    fold.check_arms(facts, may_skip=True)
    arms = [-1 if arm is None else arm for arm in columns.arm]
    is_told_when = any(happened is not None for happened in columns.happened)
    decided = fold.engine.adopt_many(
        columns.context,
        fold.roster.offered(columns.available, fold.roster.off),
        columns.clock,
        times=[fact.own for fact in facts] if is_told_when else None,
        arms=arms,
        costs=columns.cost,
        who=[_who(fold, fact) for fact in facts] if fold.problem.person else None,
    )
    numbers = decided["number"].tolist()
    played = tuple(None if arm < 0 else number for arm, number in zip(arms, numbers, strict=True))
    if tuple(decided["round"].tolist()) != columns.round or played != columns.number:
        raise BrokenLog(f"events {facts[0].sequence} to {facts[-1].sequence}: rounds or numbers do not follow")
    fold.advance_all(columns)
    fold.round = known(facts[-1].round)
    for (arm, reason), count in Counter(zip(columns.arm, columns.reason, strict=True)).items():
        if arm is None:
            fold.counts.skip(reason, count)
        else:
            fold.counts.play(arm, reason, count)
    fold.reserve(facts)
    return facts


def _has_to_go_one_by_one(fold: Fold, drafts: Sequence[Event]) -> bool:
    is_told = fold.problem.person and drafts[0].chain is None
    return bool(len(drafts) == 1 or is_told or (fold.roster.retired and fold.engine.is_racing))


def _pays_for_all(fold: Fold, drafts: Sequence[Event]) -> bool:
    return _budget_of_all(fold, drafts) >= times(fold.roster.dearest, len(drafts))


def _budget_of_all(fold: Fold, drafts: Sequence[Event]) -> Decimal:
    """What each of those who decided these may spend; in a log they may be several."""
    if drafts[0].chain is None or not fold.leases:
        return fold.may_spend(drafts[0].writer)
    return minus(fold.ledger.left, fold.ledger.leased)


def _decide_many(fold: Fold, drafts: Sequence[Event], off: Sequence[int]) -> list[Event]:
    recorded = None
    if drafts[0].chain is not None:
        fold.check_arms(drafts, may_skip=True)
        recorded = [(-1 if draft.arm is None else draft.arm, known(draft.cost)) for draft in drafts]
    chosen = fold.engine.decide_many(
        [known(draft.context) for draft in drafts],
        fold.roster.offered([draft.available for draft in drafts], off),
        [draft.clock for draft in drafts],
        times=[draft.own for draft in drafts],
        recorded=recorded,
        who=[_who(fold, draft) for draft in drafts] if fold.problem.person else None,
    )
    enter = _enter if recorded is None else _adopt
    made = [enter(fold, draft, one) for draft, one in zip(drafts, chosen, strict=True)]
    fold.reserve(made if recorded is None else drafts)
    return made


def _decide(fold: Fold, draft: Event) -> Event:
    """One decision; the short way, for it is asked most."""
    roster = fold.roster
    off = roster.off
    if roster.retired:
        _keep_retired_out(fold)
    budget = fold.may_spend(draft.writer)
    if budget < roster.dearest and not fold.ledger.may_overdraw:
        off = off + _beyond_budget(fold, known(draft.context), budget)
    if draft.chain is not None:
        return _decide_many(fold, [draft], off)[0]
    all_arms = draft.available is None and not off
    offered = _ALL_TO_ONE if all_arms else roster.offered((draft.available,), off)
    who = _who(fold, draft) if fold.problem.person else NO_FEATURES
    chosen = fold.engine.decide(known(draft.context), offered, draft.clock, time=draft.happened, who=who)
    if draft.person is not None:
        effects = explain_effects(fold.engine.state, fold.problem, who.traits, known(draft.context), chosen.arm)
        draft = draft._replace(person=explained(draft.person, effects))
    made = _enter(fold, draft, chosen)
    fold.reserve((made,))
    return made


def _who(fold: Fold, draft: Event) -> Who:
    refuse_unknown(draft)
    return who_of(fold.problem, fold.levels, draft)


def _keep_retired_out(fold: Fold) -> None:
    """The end of a race lets all accepted arms into stage 2: keep those out that were retired meanwhile."""
    if fold.roster.retired and not fold.engine.is_racing:
        for arm in fold.roster.retired:
            fold.engine.retire(arm)


def _beyond_budget(fold: Fold, context: int, budget: Decimal) -> list[int]:
    """The engine counts in pairs of floats, and knows of no leases: where that would overdraw the ledger, or take from
    what others have leased, the arm is not offered.
    """
    left, roster = fold.engine.budget_left * (1.0 + _ROUNDING), fold.roster
    costs = zip(roster.costs(context), roster.exact_costs(context), strict=True)
    return [arm for arm, (cost, exact_cost) in enumerate(costs) if cost <= left and exact_cost > budget]


def _enter(fold: Fold, draft: Event, chosen: Decided) -> Event:
    """Count the decision; the draft with what was chosen."""
    fold.advance(draft)
    arm, reason, round_, number, probability, value, price = chosen
    fold.round = round_
    arm = _done(fold, arm, reason)
    if arm < 0:
        fold.counts.skip(reason)
        return with_choice(draft, None, draft.context, None, 0.0, round_, reason, value, price, probability)
    fold.counts.play(arm, reason)
    context = known(draft.context)
    cost = fold.roster.costs(context)[arm]
    return with_choice(draft, number, draft.context, arm, cost, round_, reason, value, price, probability)


def _done(fold: Fold, arm: int, reason: int) -> int:
    """What is done with somebody: where the problem has a control arm, those who are skipped get that."""
    control = fold.roster.control
    return arm if control is None or arm >= 0 or reason == SKIPPED_OVER else control


def _adopt(fold: Fold, fact: Event, chosen: Decided) -> Event:
    """Count the decision as it was made; the event with what today's engine would have chosen."""
    fold.advance(fact)
    arm, reason, round_, number, probability, value, price = chosen
    arm = _done(fold, arm, reason)
    if fact.round != round_ or (fact.arm is not None and fact.number != number):
        raise BrokenLog(f"event {fact.sequence}: round {fact.round} and number {fact.number} do not follow")
    fold.round = round_
    if fact.arm is None:
        fold.counts.skip(known(fact.reason))
    else:
        fold.counts.play(fact.arm, known(fact.reason))
    if arm < 0:
        return with_choice(fact, None, fact.context, None, 0.0, round_, reason, value, price, probability)
    cost = fold.roster.costs(known(fact.context))[arm]
    number = number if fact.arm is not None else number + 1
    return with_choice(fact, number, fact.context, arm, cost, round_, reason, value, price, probability)


def apply_record(fold: Fold, draft: Event) -> Event:
    """A decision that was made elsewhere."""
    fold.advance(draft)
    fold.check_arm(draft, may_skip=True)
    said = json.loads(known(draft.data))
    is_ours = said["spend"]
    cost, context = known(draft.cost), known(draft.context)
    reserved, is_over = cost, draft.state == IS_EXPIRED or said["answered"] is not None
    if fold.problem.paid == "on_answer" and draft.arm is not None and is_over:
        reserved = fold.roster.costs(context)[draft.arm]  # which share of it was paid is to be learned
    number = fold.engine.record(
        context=context,
        arm=-1 if draft.arm is None else draft.arm,
        cost=reserved,
        time=draft.own,
        clock=draft.clock,
        is_arrival=is_ours,
        who=_who(fold, draft) if fold.problem.person else NO_FEATURES,
    )
    if reserved != cost:
        fold.engine.give_back(context, float(minus(exact(reserved), exact(cost))))
    fold.round += is_ours
    fold.counts.outside += not is_ours
    if draft.arm is None:
        fold.counts.skip(known(draft.reason))
        return draft._replace(round=fold.round)
    fold.counts.play(draft.arm, known(draft.reason))
    fold.leases.make_room(draft.writer, exact(cost))
    fold.ledger.reserve(exact(cost))
    if draft.state == IS_EXPIRED:
        fold.counts.move(IS_PENDING, IS_EXPIRED)
        fold.ledger.spend(exact(cost))
    if draft.number is not None and draft.number != number:
        raise BrokenLog(f"event {draft.sequence}: number {draft.number} does not follow")
    return draft._replace(round=fold.round, number=number)
