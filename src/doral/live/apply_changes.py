"""Changes to the campaign itself: its arms, its budget, its horizon, its end."""

from __future__ import annotations

import json

from doral.live.events import ARM_PAUSED, ARM_RESUMED, ARM_RETIRED, Event, known
from doral.live.fold import Fold
from doral.live.ledger import exact
from doral.live.roster import ARM_IS_ACTIVE, ARM_IS_PAUSED, ARM_IS_RETIRED
from doral.problem import Arm

STATUS_AFTER = {ARM_PAUSED: ARM_IS_PAUSED, ARM_RESUMED: ARM_IS_ACTIVE, ARM_RETIRED: ARM_IS_RETIRED}


def apply_new_arm(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    fold.roster.add(Arm(**json.loads(known(draft.data))))
    fold.engine.add_arm(fold.problem)
    fold.counts.add_arm()
    fold.names.arms = fold.problem.arm_names
    return draft


def apply_arm_status(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    fold.roster.set_status(known(draft.arm), STATUS_AFTER[draft.kind])
    return draft


def apply_budget(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    amount = known(draft.value)
    fold.ledger.top_up(exact(amount))
    fold.engine.top_up(amount)
    return draft


def apply_horizon(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    fold.engine.extend(json.loads(known(draft.data))["rounds"])
    return draft


def apply_closing(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    fold.closed = True
    return draft
