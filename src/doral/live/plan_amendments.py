"""From a correction or a cancellation to its draft; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

from doral.live.decision import Decision, read_id
from doral.live.drafts import Planned, Stamp
from doral.live.events import (
    CANCELLED,
    CORRECTED,
    IS_CANCELLED,
    IS_EXPIRED,
    IS_LATE,
    IS_PENDING,
    IS_RETURNED,
    IS_SKIPPED,
    STATE_NAMES,
    UNHEARD,
    UNHEARD_BEFORE,
    Event,
)
from doral.live.fold import Fold
from doral.live.keys import is_granted, note_of
from doral.live.people import repeated
from doral.live.requests import AnswerRequest, CancelRequest
from doral.live.storage.contract import Log
from doral.live.subject import Subject


def plan_correction(log: Log, fold: Fold, asked: AnswerRequest, stamp: Stamp) -> Planned[Decision]:
    """A later, better value for an answer."""
    fold.problem.check_reward(asked.reward)
    subject = Subject.find(log, fold, read_id(fold.names.tag, asked.decision_id))
    draft = subject.draft(
        CORRECTED,
        key=asked.key,
        reward=asked.reward,
        actual_cost=asked.actual_cost,
        happened=stamp.reading(fold, asked.at, fold.clock),
    )
    if is_granted(log, fold, draft):
        return [], lambda _: subject.decision()
    return _planned(subject, draft, _complete_correction(subject, draft, stamp), stamp, asked.at)


def plan_cancellation(log: Log, fold: Fold, asked: CancelRequest, stamp: Stamp) -> Planned[Decision]:
    """A decision that was not carried out."""
    subject = Subject.find(log, fold, read_id(fold.names.tag, asked.decision_id))
    draft = subject.draft(CANCELLED, key=asked.key, happened=stamp.reading(fold, asked.at, fold.clock))
    if is_granted(log, fold, draft):
        return [], lambda _: subject.decision()
    return _planned(subject, draft, _complete_cancellation(subject, draft), stamp, asked.at)


def _planned(subject: Subject, asked: Event, draft: Event | None, stamp: Stamp, at: object) -> Planned[Decision]:
    if draft is None:
        notes = [] if asked.key is None else [stamp.put(note_of(asked), subject.fold)]
        return notes, lambda _: subject.decision()
    age = subject.age_at(stamp.moment(subject.fold, at))
    draft = stamp.put(draft, subject.fold, at)._replace(person=repeated(subject.decided.person))
    if draft.data is not None:  # to the engine it is the answer
        draft = draft._replace(delay=age)
    subject.later.append(draft)
    return [draft], lambda _: subject.decision()


def _complete_correction(subject: Subject, asked: Event, stamp: Stamp) -> Event | None:
    """The correction as a draft, or None where it changes nothing."""
    reward, actual_cost = asked.reward, asked.actual_cost
    if subject.state not in (IS_RETURNED, IS_LATE):
        raise subject.refuse(
            f"is {STATE_NAMES[subject.state]}: only an answer can be corrected; use feedback() for the first"
        )
    if reward == subject.reward and actual_cost in (None, subject.actual_cost):
        return None
    subject.check_cost(actual_cost, subject.fold.may_spend(stamp.writer))
    return asked._replace(
        previous=subject.reward,
        previous_cost=subject.actual_cost,
        state=subject.state,
        outcome=subject.outcome,
        data=UNHEARD_BEFORE if subject.outcome == UNHEARD else None,
    )


def _complete_cancellation(subject: Subject, asked: Event) -> Event | None:
    """The cancellation as a draft, or None where it is cancelled already."""
    if subject.state == IS_CANCELLED:
        return None
    if subject.state == IS_SKIPPED:
        raise subject.refuse("was skipped: nothing is reserved for it")
    if subject.state not in (IS_PENDING, IS_EXPIRED):
        raise subject.refuse(f"is {STATE_NAMES[subject.state]}: what has been answered cannot be cancelled")
    return asked._replace(actual_cost=0.0, previous_cost=subject.actual_cost, state=IS_CANCELLED)
