"""From answers to drafts; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from doral.errors import shown
from doral.live.decision import Decision, read_id
from doral.live.drafts import Planned, moment
from doral.live.errors import KeyReused
from doral.live.events import ANSWERED, IS_CANCELLED, IS_EXPIRED, IS_LATE, IS_RETURNED, IS_SKIPPED, Event
from doral.live.fold import Fold
from doral.live.requests import AnswerRequest
from doral.live.storage.contract import Log
from doral.live.subject import Subject


def plan_answers(log: Log, fold: Fold, answers: Sequence[AnswerRequest], writer: int) -> Planned[list[Decision]]:
    """Answers in their order; those that are known already change nothing."""
    sequences = [read_id(fold.names.tag, answer.decision_id) for answer in answers]
    decided, about = log.events(sequences), log.about(sequences)
    keys = [answer.key for answer in answers if answer.key is not None]
    known = log.by_keys(keys) if keys else {}
    subjects: dict[int, Subject] = {}
    drafts: list[Event] = []
    wall, clock = time.time(), fold.clock
    for answer, sequence in zip(answers, sequences, strict=True):
        if sequence not in subjects:
            subjects[sequence] = Subject(fold, decided.get(sequence), about.get(sequence, ()), sequence)
        subject = subjects[sequence]
        if answer.key is not None and answer.key in known:
            check_same(known[answer.key], ANSWERED, sequence, answer.reward)
            continue
        fold.problem.check_reward(answer.reward)
        reading, at = moment(fold, answer.at, wall)
        clock = max(clock, reading)
        draft = _draft_answer(subject, answer, clock)
        if draft is None:
            continue
        draft = draft._replace(sequence=fold.sequence + len(drafts) + 1, clock=clock, at=at, writer=writer)
        if answer.key is not None:
            known[answer.key] = draft
        drafts.append(draft)
        subject.later.append(draft)
    return drafts, lambda _: [subjects[sequence].decision() for sequence in sequences]


def _draft_answer(subject: Subject, asked: AnswerRequest, clock: float) -> Event | None:
    """The answer as a draft, or None where it is known already."""
    state, decided = subject.state, subject.decided
    reward, actual_cost = asked.reward, asked.actual_cost
    if state == IS_SKIPPED:
        raise subject.refuse("was skipped: there is nothing that could be answered")
    if state == IS_CANCELLED:
        raise subject.refuse("was cancelled: it takes no answer")
    if state in (IS_RETURNED, IS_LATE):
        first = next(event for event in subject.later if event.kind == ANSWERED)
        is_same = reward in (first.reward, subject.reward)
        if is_same and actual_cost in (None, first.actual_cost, subject.actual_cost):
            return None
        raise subject.refuse(
            f"was answered already, with reward {subject.reward!r} at cost {subject.actual_cost!r}; "
            "to replace that, use correct()"
        )
    check_cost(subject, actual_cost)
    is_late = state == IS_EXPIRED or clock - decided.clock > subject.age_limit
    return subject.draft(
        ANSWERED,
        key=asked.key,
        reward=reward,
        actual_cost=actual_cost,
        previous_cost=decided.cost,
        state=IS_LATE if is_late else IS_RETURNED,
    )


def check_cost(subject: Subject, actual_cost: float | None) -> None:
    """A decision costs at most what was reserved for it."""
    reserved = subject.decided.cost
    if actual_cost is not None and reserved is not None and actual_cost > reserved:
        raise subject.refuse(f"reserved {reserved!r}: its actual_cost can be at most that, not {actual_cost!r}")


def check_same(known: Event, kind: int, decision: int, reward: float | None) -> None:
    """A key that was used before must have been used for the same thing."""
    if known.kind != kind or known.decision != decision or known.reward != reward:
        said = "" if known.key is None else shown(known.key[2:])
        raise KeyReused(f"key = {said}: was used before with another content; make a new key for each request")
