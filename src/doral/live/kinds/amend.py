"""Amendments: a better value for an answer, and decisions that were not carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from doral.engine.events import LEARNED
from doral.live.events.event import (
    IS_CANCELLED,
    IS_EXPIRED,
    IS_LATE,
    IS_PENDING,
    IS_RETURNED,
    IS_SKIPPED,
    STATE_NAMES,
    UNHEARD,
    Cancelled,
    Corrected,
    Event,
    Settled,
    known,
)
from doral.live.events.person import who_of
from doral.live.kinds.answer import Answer, book, count_reward, hear
from doral.live.kinds.request import Request, granted, note
from doral.live.kinds.subject import Subject
from doral.live.runtime.clock import Stamp
from doral.live.state.ledger import exact, minus
from doral.live.state.names import read_id
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision


class Correct(Request[Decision]):
    """A later, better value for an answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        _, reward, key, actual_cost, at = self.answer
        state.problem.check_reward(reward)
        subject = Subject.find(log, state, read_id(state.names.tag, self.answer.decision_id))
        said = [Corrected.KIND, subject.decided.sequence, reward, actual_cost, stamp.said(state, at)]
        if granted(log, state, key, said) is not None:
            return (), subject
        if subject.status not in (IS_RETURNED, IS_LATE):
            raise subject.refuse(
                f"is {STATE_NAMES[subject.status]}: only an answer can be corrected; use feedback() for the first"
            )
        answer = subject.answer
        if reward == answer.reward and actual_cost in (None, subject.actual_cost):
            return note(state, stamp, key, said), subject
        subject.check_cost(actual_cost, state.ledger.left)
        moment = stamp.moment(state, at)
        age, is_first = subject.age_at(moment), answer.outcome == UNHEARD
        event = Corrected(
            stamp.placed(state.sequence + 1, moment, key), subject.about(has_person=True),
            subject.becomes(subject.status, actual_cost), reward, answer.reward, answer.outcome, is_first,
            age if is_first else None,
        )  # fmt: skip
        return (event,), subject

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> Decision:
        return _as_it_stands(found, events)


class Cancellation(NamedTuple):
    """What a caller says of a decision that was not carried out."""

    decision_id: str
    key: str | None
    at: object


class Cancel(Request[Decision]):
    """A decision was not carried out."""

    def __init__(self, asked: Cancellation) -> None:
        self.asked = asked

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        decision_id, key, at = self.asked
        subject = Subject.find(log, state, read_id(state.names.tag, decision_id))
        said = [Cancelled.KIND, subject.decided.sequence, None, None, stamp.said(state, at)]
        if granted(log, state, key, said) is not None:
            return (), subject
        if subject.status == IS_CANCELLED:
            return note(state, stamp, key, said), subject
        if subject.status == IS_SKIPPED:
            raise subject.refuse("was skipped: nothing is reserved for it")
        if subject.status not in (IS_PENDING, IS_EXPIRED):
            raise subject.refuse(f"is {STATE_NAMES[subject.status]}: what has been answered cannot be cancelled")
        moment = stamp.moment(state, at)
        subject.age_at(moment)
        place = stamp.placed(state.sequence + 1, moment, key)
        return (Cancelled(place, subject.about(has_person=True), subject.becomes(IS_CANCELLED, 0.0)),), subject

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> Decision:
        return _as_it_stands(found, events)


def _as_it_stands(subject: Subject, events: Sequence[Event]) -> Decision:
    subject.later += [event for event in events if isinstance(event, Settled)]
    return subject.decision()


# --- applying ---------------------------------------------------------------------------------------------------------


def apply_correction(state: CampaignState, event: Corrected) -> Corrected:
    """Have the engine learn the better value; return the event with what it made of it."""
    state.advance(event)
    about = event.about
    state.check_place(event.sequence, about, about.arm)
    if event.is_first:
        event = replace(event, outcome=hear(state, [event])[0])
    elif state.made_otherwise.get(about.decision, event.outcome) == LEARNED:
        _recall_features(state, event)
        state.engine.correct(
            number=state.check_number(event),
            context=about.context,
            arm=about.arm,
            previous=event.previous,
            reward=event.reward,
        )
    book(state, event)
    count_reward(state, event, minus(exact(event.reward), exact(event.previous)))
    state.counts.corrections += 1
    return event


def apply_cancellation(state: CampaignState, event: Cancelled) -> Cancelled:
    """Take the decision back."""
    state.advance(event)
    about, settlement = event.about, event.settlement
    state.check_place(event.sequence, about, about.arm)
    _recall_features(state, event)
    state.engine.cancel(
        number=state.check_number(event),
        context=about.context,
        arm=about.arm,
        cost=known(settlement.previous_cost),
        reason=known(about.reason),
        clock=event.clock,
    )
    state.counts.move(settlement.was, settlement.state)
    state.counts.arm_plays[about.arm] -= 1
    book(state, event)
    return event


def _recall_features(state: CampaignState, event: Settled) -> None:
    """Give the engine the features of a decision that may have left its ring."""
    if state.problem.person:
        who = who_of(state.problem, state.levels, event.about)
        state.engine.recall_features(state.check_number(event), event.about.context, who)
