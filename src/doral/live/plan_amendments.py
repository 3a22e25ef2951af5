"""From a correction or a cancellation to its draft; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

from doral.live.decision import Decision, read_id
from doral.live.drafts import Planned, stamped
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
from doral.live.ledger import exact, minus
from doral.live.plan_answers import check_cost, check_same
from doral.live.requests import AnswerRequest, CancelRequest
from doral.live.storage.contract import Log
from doral.live.subject import Subject


def plan_correction(log: Log, fold: Fold, asked: AnswerRequest, writer: int) -> Planned[Decision]:
    """A later, better value for an answer."""
    subject, known = _find(log, fold, asked)
    if known is None:
        fold.problem.check_reward(asked.reward)
        return _planned(subject, _draft_correction(subject, asked), asked, writer)
    check_same(known, CORRECTED, subject.decided.sequence, asked.reward)
    return _planned(subject, None, asked, writer)


def plan_cancellation(log: Log, fold: Fold, asked: CancelRequest, writer: int) -> Planned[Decision]:
    """A decision that was not carried out."""
    subject, known = _find(log, fold, asked)
    if known is None:
        return _planned(subject, _draft_cancellation(subject, asked.key), asked, writer)
    check_same(known, CANCELLED, subject.decided.sequence, None)
    return _planned(subject, None, asked, writer)


def _find(log: Log, fold: Fold, asked: AnswerRequest | CancelRequest) -> tuple[Subject, Event | None]:
    """The decision, and the event that has used the key already."""
    subject = Subject.find(log, fold, read_id(fold.names.tag, asked.decision_id))
    return subject, None if asked.key is None else log.by_keys([asked.key]).get(asked.key)


def _planned(
    subject: Subject, draft: Event | None, asked: AnswerRequest | CancelRequest, writer: int
) -> Planned[Decision]:
    if draft is None:
        return [], lambda _: subject.decision()
    draft = stamped(draft, subject.fold, writer, asked.at)
    subject.later.append(draft)
    return [draft], lambda _: subject.decision()


def _draft_correction(subject: Subject, asked: AnswerRequest) -> Event | None:
    """The correction as a draft, or None where it changes nothing."""
    reward, actual_cost = asked.reward, asked.actual_cost
    if subject.state not in (IS_RETURNED, IS_LATE):
        raise subject.refuse(
            f"is {STATE_NAMES[subject.state]}: only an answer can be corrected; use feedback() for the first"
        )
    if reward == subject.reward and actual_cost in (None, subject.actual_cost):
        return None
    check_cost(subject, actual_cost)
    before = subject.actual_cost
    if actual_cost is not None and minus(exact(actual_cost), exact(before)) > subject.fold.ledger.left:
        raise subject.refuse(f"cannot cost {actual_cost!r}: the budget has only {subject.fold.ledger.left} left")
    return subject.draft(
        CORRECTED,
        key=asked.key,
        reward=reward,
        previous=subject.reward,
        actual_cost=actual_cost,
        previous_cost=before,
        state=subject.state,
        outcome=subject.outcome,
        data=UNHEARD_BEFORE if subject.outcome == UNHEARD else None,
    )


def _draft_cancellation(subject: Subject, key: str | None) -> Event | None:
    """The cancellation as a draft, or None where it is cancelled already."""
    if subject.state == IS_CANCELLED:
        return None
    if subject.state == IS_SKIPPED:
        raise subject.refuse("was skipped: nothing is reserved for it")
    if subject.state not in (IS_PENDING, IS_EXPIRED):
        raise subject.refuse(f"is {STATE_NAMES[subject.state]}: what has been answered cannot be cancelled")
    return subject.draft(CANCELLED, key=key, actual_cost=0.0, previous_cost=subject.decided.cost, state=IS_CANCELLED)
