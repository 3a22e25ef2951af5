"""The one way in which a campaign's state changes, live and on replay.

A draft says what was asked; applied, it becomes an event, completed by what the engine made of it. Live, that event is
stored. On replay the stored events are the drafts, and what they become must be what they were: a log that this engine
would not have written is refused, not guessed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from doral.live.apply_answers import apply_answers, apply_cancellation, apply_correction, apply_expiry
from doral.live.apply_changes import apply_arm_status, apply_budget, apply_closing, apply_horizon, apply_new_arm
from doral.live.apply_decisions import apply_decisions
from doral.live.errors import BrokenLog
from doral.live.events import (
    ANSWERED,
    ARM_ADDED,
    ARM_PAUSED,
    ARM_RESUMED,
    ARM_RETIRED,
    CANCELLED,
    CLOSED,
    CORRECTED,
    DECIDED,
    EXPIRED,
    EXTENDED,
    TOPPED_UP,
    Event,
)
from doral.live.fold import Fold

_BATCHES = {DECIDED: apply_decisions, ANSWERED: apply_answers}
_ONE_BY_ONE = {
    CORRECTED: apply_correction,
    CANCELLED: apply_cancellation,
    EXPIRED: apply_expiry,
    ARM_ADDED: apply_new_arm,
    ARM_PAUSED: apply_arm_status,
    ARM_RESUMED: apply_arm_status,
    ARM_RETIRED: apply_arm_status,
    TOPPED_UP: apply_budget,
    EXTENDED: apply_horizon,
    CLOSED: apply_closing,
}


def apply(fold: Fold, drafts: Sequence[Event]) -> list[Event]:
    """Change the fold by drafts of one kind, in their order; what they become."""
    kind = drafts[0].kind
    if kind in _BATCHES:
        return _BATCHES[kind](fold, drafts)
    if kind not in _ONE_BY_ONE:
        raise BrokenLog(f"event {drafts[0].sequence} is of the unknown kind {kind}: written by a newer doral")
    return [_ONE_BY_ONE[kind](fold, draft) for draft in drafts]


def replay(fold: Fold, stored: Sequence[Event]) -> None:
    """Apply events that are in the log."""
    for _, group in groupby(stored, key=attrgetter("kind")):
        events = list(group)
        for event, made in zip(events, apply(fold, events), strict=True):
            if made != event:
                _compare(event, made)


def _compare(stored: Event, made: Event) -> None:
    """Refuse an event of which this engine makes something else."""
    if stored.kind == DECIDED:
        # What it decided must be the same; what it thought of the arm may differ in a digit.
        if (stored.arm, stored.round, stored.number) != (made.arm, made.round, made.number):
            raise BrokenLog(
                f"event {stored.sequence}: the log says {_choice(stored)}, this engine decides {_choice(made)}; "
                "open the campaign with the version of doral that wrote it"
            )
    elif stored.kind == ANSWERED:
        if stored.outcome != made.outcome:
            raise BrokenLog(f"event {stored.sequence}: the engine makes {made.outcome} of it, not {stored.outcome}")
    else:
        raise BrokenLog(f"event {stored.sequence}: the engine makes something else of it")


def _choice(decided: Event) -> str:
    return f"arm {-1 if decided.arm is None else decided.arm} in round {decided.round}"
