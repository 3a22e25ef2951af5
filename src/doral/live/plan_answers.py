"""From answers to drafts; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from doral.live.decision import Decision, read_id
from doral.live.drafts import Moment, Planned, Stamp
from doral.live.events import ANSWERED, IMPLIED_COST, IS_CANCELLED, IS_EXPIRED, IS_LATE, IS_RETURNED, IS_SKIPPED, Event
from doral.live.fold import Fold
from doral.live.keys import check_same, note_of, used_keys
from doral.live.ledger import exact, minus, plus
from doral.live.people import repeated
from doral.live.requests import AnswerRequest
from doral.live.storage.contract import Log
from doral.live.subject import Subject


def plan_answers(log: Log, fold: Fold, answers: Sequence[AnswerRequest], stamp: Stamp) -> Planned[list[Decision]]:
    """Answers in their order; those that are known already change nothing."""
    sequences = [read_id(fold.names.tag, answer.decision_id) for answer in answers]
    decided, about = log.events(sequences), log.about(sequences)
    used = used_keys(log, fold, (answer.key for answer in answers))
    subjects: dict[int, Subject] = {}
    drafts: list[Event] = []
    clock, extra = fold.clock, Decimal(0)
    for answer, sequence in zip(answers, sequences, strict=True):
        if sequence not in subjects:
            subjects[sequence] = Subject(fold, decided.get(sequence), about.get(sequence, ()), sequence)
        subject = subjects[sequence]
        fold.problem.check_reward(answer.reward)
        asked = subject.draft(
            ANSWERED,
            key=answer.key,
            reward=answer.reward,
            actual_cost=answer.actual_cost,
            happened=stamp.reading(fold, answer.at, clock),
        )
        if answer.key is not None and answer.key in used:
            check_same(used[answer.key], asked, answer.key)
            continue
        moment = stamp.moment(fold, answer.at, clock=clock)
        draft = _draft_answer(subject, asked, moment)
        if draft is None and answer.key is None:
            continue
        draft = note_of(asked) if draft is None else draft
        clock = moment.clock
        draft = draft._replace(
            sequence=fold.sequence + len(drafts) + 1, clock=clock, at=stamp.wall, writer=stamp.writer
        )
        if answer.key is not None:
            used[answer.key] = draft
        drafts.append(draft)
        if draft.kind == ANSWERED:
            extra = _with_more(subject, draft, extra)
            subject.later.append(draft)
    return drafts, lambda _: [subjects[sequence].decision() for sequence in sequences]


def _draft_answer(subject: Subject, asked: Event, moment: Moment) -> Event | None:
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
    subject.check_cost(actual_cost)
    if subject.is_past(moment):
        asked = asked._replace(person=repeated(subject.decided.person))
    return asked._replace(previous_cost=subject.actual_cost, delay=age, state=IS_LATE if is_late else IS_RETURNED)


def _with_more(subject: Subject, draft: Event, extra: Decimal) -> Decimal:
    """What a batch of answers costs more than was thought: together they must not overdraw the budget."""
    if draft.was == IS_EXPIRED and draft.actual_cost is not None and draft.previous_cost is not None:
        extra = plus(extra, minus(exact(draft.actual_cost), exact(draft.previous_cost)))
        if extra > subject.fold.ledger.left and not subject.fold.ledger.may_overdraw:
            raise subject.refuse(f"cannot cost {draft.actual_cost!r}: the budget has too little left for all of these")
    return extra
