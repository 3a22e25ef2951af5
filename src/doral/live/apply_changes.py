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
    fold.names.arms, fold.names.unit_costs = fold.problem.arm_names, fold.roster.unit_costs
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
    said = json.loads(known(draft.data))
    if "until" in said:
        fold.engine.extend_until(said["until"])
    else:
        fold.engine.extend(said["rounds"])
    return draft


def apply_closing(fold: Fold, draft: Event) -> Event:
    fold.advance(draft)
    fold.closed = True
    fold.leases.end_all()  # nothing is decided any more
    return draft


def apply_engine(fold: Fold, draft: Event) -> Event:
    """Another engine writes from now on."""
    fold.advance(draft)
    fold.engines[known(draft.data)] = draft.sequence
    return draft


def apply_clock(fold: Fold, draft: Event) -> Event:
    """The clock had been carried away: what seems to have been decided later was decided now at the latest."""
    fold.advance(draft)
    fold.names.repairs.append((draft.sequence, draft.clock))
    fold.swept = fold.engine.played
    fold.engine.set_clock(draft.clock)
    return draft


def apply_forgetting(fold: Fold, draft: Event) -> Event:
    """Keys, and what was known of people, were erased on purpose."""
    fold.advance(draft)
    said = json.loads(known(draft.data))
    fold.erased.difference_update(said["events"])
    people = set(said.get("people", ()))
    if not people <= fold.faceless | fold.forgotten:
        fold.knows_forgotten = True
    fold.forgotten |= people
    fold.faceless -= people
    return draft


def apply_note(fold: Fold, draft: Event) -> Event:
    """Nothing changed but that the key is used."""
    fold.advance(draft)
    return draft
