"""From answers to drafts; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

from doral.errors import DoralError
from doral.live.decision import Decision, read_id
from doral.live.drafts import Moment, Planned, Stamp
from doral.live.events import ANSWERED, IMPLIED_COST, IS_CANCELLED, IS_LATE, IS_RETURNED, IS_SKIPPED, Event
from doral.live.fold import Fold
from doral.live.keys import check_same, note_of, used_keys
from doral.live.ledger import exact, minus, plus
from doral.live.people import repeated
from doral.live.requests import AnswerRequest
from doral.live.storage.contract import Log
from doral.live.subject import Subject
from doral.problem import Problem


def plan_answer(log: Log, fold: Fold, answer: AnswerRequest, stamp: Stamp) -> Planned[Decision]:
    """One answer."""
    drafts, answer_all = plan_answers(log, fold, (answer,), stamp)
    return drafts, lambda events: answer_all(events)[0]


def plan_answers(log: Log, fold: Fold, answers: Sequence[AnswerRequest], stamp: Stamp) -> Planned[list[Decision]]:
    """Answers in their order, all or none; those that are known already change nothing."""
    sequences = [read_id(fold.names.tag, answer.decision_id) for answer in answers]
    batch = _Batch(log, fold, answers, sequences, stamp)
    subjects = [batch.add(answer, sequence) for answer, sequence in zip(answers, sequences, strict=True)]
    return batch.drafts, lambda _: [subject.decision() for subject in subjects]


def plan_answers_each(
    log: Log, fold: Fold, answers: Sequence[AnswerRequest], stamp: Stamp
) -> Planned[list[Decision | DoralError]]:
    """The same, and what is wrong with one does not keep the others out: its result is the error.

    They are judged by the state before the first of them, as `plan_answers` does. Where that is not as if they had come
    one after the other (`are_alike`), ask for one at a time.
    """
    sequences = [_id_or_error(fold, answer) for answer in answers]
    numbers = [sequence for sequence in sequences if isinstance(sequence, int)]
    batch = _Batch(log, fold, answers, numbers, stamp)
    found: list[Subject | DoralError] = []
    for answer, sequence in zip(answers, sequences, strict=True):
        try:
            found.append(batch.add(answer, sequence) if isinstance(sequence, int) else sequence)
        except DoralError as error:  # nothing is read any more: the store is not to blame
            found.append(error)
    return batch.drafts, lambda _: [one if isinstance(one, DoralError) else one.decision() for one in found]


def are_alike(problem: Problem, answers: Sequence[AnswerRequest]) -> bool:
    """Whether it is the same to judge them together and one after the other.

    What the engine hears of one may change the cut-off by which the next is judged, where there is no deadline; and
    times that callers say may go back.
    """
    has_deadlines = bool((problem.deadlines < math.inf).all())
    return has_deadlines and all(answer.at is None for answer in answers)


def _id_or_error(fold: Fold, answer: AnswerRequest) -> int | DoralError:
    try:
        return read_id(fold.names.tag, answer.decision_id)
    except DoralError as error:
        return error


class _Batch:
    """Drafts of answers, one after the other."""

    def __init__(
        self, log: Log, fold: Fold, answers: Sequence[AnswerRequest], sequences: Sequence[int], stamp: Stamp
    ) -> None:
        self.drafts: list[Event] = []
        self._fold, self._stamp, self._clock = fold, stamp, fold.clock
        self._left = fold.may_spend(stamp.writer)  # after the drafts: together they must not overdraw the budget
        self._decided, self._about = log.events(sequences), log.about(sequences)
        self._used = used_keys(log, fold, (answer.key for answer in answers))
        self._subjects: dict[int, Subject] = {}

    def add(self, answer: AnswerRequest, sequence: int) -> Subject:
        """The decision that it is about; an answer that is refused leaves no trace."""
        fold, stamp, key = self._fold, self._stamp, answer.key
        subject = self._subject(sequence)
        fold.problem.check_reward(answer.reward)
        asked = subject.draft(
            ANSWERED,
            key=key,
            reward=answer.reward,
            actual_cost=answer.actual_cost,
            happened=stamp.reading(fold, answer.at, self._clock),
        )
        if key is not None and key in self._used:
            check_same(self._used[key], asked, key)
            return subject
        moment = stamp.moment(fold, answer.at, clock=self._clock)
        draft = _draft_answer(subject, asked, moment, self._left)
        if draft is None and key is None:
            return subject
        draft = note_of(asked) if draft is None else draft
        self._clock = moment.clock
        draft = draft._replace(
            sequence=fold.sequence + len(self.drafts) + 1, clock=self._clock, at=stamp.wall, writer=stamp.writer
        )
        if key is not None:
            self._used[key] = draft
        self.drafts.append(draft)
        if draft.kind == ANSWERED:
            subject.later.append(draft)
            if draft.actual_cost is not None and draft.previous_cost is not None:
                self._left = plus(self._left, minus(exact(draft.previous_cost), exact(draft.actual_cost)))
        return subject

    def _subject(self, sequence: int) -> Subject:
        found = self._subjects.get(sequence)
        if found is None:
            decided, later = self._decided.get(sequence), self._about.get(sequence, ())
            found = self._subjects[sequence] = Subject(self._fold, decided, later, sequence)
        return found


def _draft_answer(subject: Subject, asked: Event, moment: Moment, left: Decimal) -> Event | None:
    """The answer as a draft, or None where it is known already."""
    state = subject.state
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
    age = subject.age_at(moment)
    is_late = subject.is_late(age, is_told=moment.happened is not None)
    if actual_cost is None:
        actual_cost = subject.implied_cost(is_late=is_late)
        asked = asked if actual_cost is None else asked._replace(actual_cost=actual_cost, data=IMPLIED_COST)
    subject.check_cost(actual_cost, left)
    if subject.is_past(moment):
        asked = asked._replace(person=repeated(subject.decided.person))
    return asked._replace(previous_cost=subject.actual_cost, delay=age, state=IS_LATE if is_late else IS_RETURNED)
