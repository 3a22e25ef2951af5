"""Arrivals: the engine decides, and the cost is reserved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doral._arrays import Bits
from doral.engine.engine import Decided
from doral.live.events import Event, known, with_choice
from doral.live.fold import Fold
from doral.live.ledger import times

_ALL_TO_ONE: Bits = np.zeros((1, 0), dtype=np.uint8)  # one arrival to which all arms are offered


def apply_decisions(fold: Fold, drafts: Sequence[Event]) -> list[Event]:
    """Together where that is the same as one by one: the budget pays for all, and no race can end on the way."""
    n, roster = len(drafts), fold.roster
    if n == 1 or fold.ledger.left < times(roster.dearest, n) or (roster.retired and fold.engine.is_racing):
        return [_decide(fold, draft) for draft in drafts]
    _keep_retired_out(fold)
    chosen = fold.engine.decide_many(
        [known(draft.context) for draft in drafts],
        roster.offered([draft.available for draft in drafts], roster.off),
        [draft.clock for draft in drafts],
    )
    return [_enter(fold, draft, one) for draft, one in zip(drafts, chosen, strict=True)]


def _decide(fold: Fold, draft: Event) -> Event:
    """One decision; the short way, for it is asked most."""
    roster = fold.roster
    off = roster.off
    if roster.retired:
        _keep_retired_out(fold)
    if fold.ledger.left < roster.dearest:
        off = off + _beyond_budget(fold)
    all_arms = draft.available is None and not off
    offered = _ALL_TO_ONE if all_arms else roster.offered((draft.available,), off)
    return _enter(fold, draft, fold.engine.decide(known(draft.context), offered, draft.clock))


def _keep_retired_out(fold: Fold) -> None:
    """The end of a race lets all accepted arms into stage 2: keep those out that were retired meanwhile."""
    if fold.roster.retired and not fold.engine.is_racing:
        for arm in fold.roster.retired:
            fold.engine.retire(arm)


def _beyond_budget(fold: Fold) -> list[int]:
    """The engine counts in floats: where their rounding would overdraw the exact ledger, the arm is not offered."""
    left, roster = fold.engine.budget_left, fold.roster
    costs = zip(roster.costs, roster.exact_costs, strict=True)
    return [arm for arm, (cost, exact_cost) in enumerate(costs) if cost <= left and exact_cost > fold.ledger.left]


def _enter(fold: Fold, draft: Event, chosen: Decided) -> Event:
    """Count the decision and reserve its cost; the draft with what was chosen."""
    fold.advance(draft)
    arm, reason, round_, number, probability, value, price = chosen
    fold.round = round_
    if arm < 0:
        fold.counts.skip(reason)
        return with_choice(draft, None, draft.context, None, 0.0, round_, reason, value, price, probability)
    fold.counts.play(arm, reason)
    fold.ledger.reserve(fold.roster.exact_costs[arm])
    cost = fold.roster.costs[arm]
    return with_choice(draft, number, draft.context, arm, cost, round_, reason, value, price, probability)
