"""Answers: what came of a decision, told to the engine and booked in the ledger; corrections and cancellations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from doral import _check
from doral.engine.engine import ASK, Heard
from doral.engine.events import LEARNED, REPEATED
from doral.errors import DoralError
from doral.live.errors import BrokenLog
from doral.live.events.event import (
    ANSWER_SCOPE,
    IS_CANCELLED,
    IS_EXPIRED,
    IS_LATE,
    IS_PENDING,
    IS_RETURNED,
    IS_SKIPPED,
    MADE_ELSEWHERE,
    STATE_NAMES,
    UNHEARD,
    Answered,
    Cancelled,
    Corrected,
    Event,
    Noted,
    Settled,
    known,
)
from doral.live.events.person import who_of
from doral.live.kinds.request import Request, Subject, check_same, granted, note, scoped_key, used_keys
from doral.live.runtime.clock import Stamp
from doral.live.state.parts import exact, minus, plus, product, read_id
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision
from doral.problem import Problem


class Answer(NamedTuple):
    """What a caller says of an answer, or of a better value for one."""

    decision_id: str
    reward: float
    key: str | None = None
    actual_cost: float | None = None
    at: object = None


def make_answer(
    decision_id: str, reward: float, key: str | None = None, actual_cost: float | None = None, at: object = None
) -> Answer:
    """Return what was said, checked as far as that can be done without the campaign."""
    if actual_cost is not None:
        actual_cost = _check.finite_number("actual_cost", actual_cost, at_least=0) + 0.0
    # A negative zero is a zero: SQLite gives it back as one.
    reward = _check.finite_number("reward", reward) + 0.0
    return Answer(decision_id, reward, scoped_key(ANSWER_SCOPE, key), actual_cost, at)


def answer_of(one: object) -> Answer:
    """Return the same of a pair, or of a mapping with the arguments of `feedback`."""
    if isinstance(one, tuple) and len(one) == 2:
        return make_answer(*one)
    optional = ("key", "actual_cost", "at")
    return make_answer(**_check.keys("answer", one, required=("decision_id", "reward"), optional=optional))


# --- requests ---------------------------------------------------------------------------------------------------------


class GiveAnswers(Request[list[Decision]]):
    """Answers in their order; those that are known already change nothing.

    All or none; `is_each`: what is wrong with one does not keep the others out, and the error stands in its place. All
    are judged by the state before the first of them: where that is not as if they had come one after the other
    (`are_alike`), store them one at a time.
    """

    is_many = True

    def __init__(self, answers: Sequence[Answer], *, is_each: bool = False) -> None:
        self.answers, self.is_each = answers, is_each

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        sequences = [self._sequence(state, answer) for answer in self.answers]
        numbers = [one for one in sequences if isinstance(one, int)]
        batch = _Batch(state, log, self.answers, numbers, stamp)
        found: list[Subject | DoralError] = []
        for answer, sequence in zip(self.answers, sequences, strict=True):
            try:
                found.append(batch.add(answer, sequence) if isinstance(sequence, int) else sequence)
            except DoralError as error:
                if not self.is_each:
                    raise
                found.append(error)
        return batch.events, found

    def _sequence(self, state: CampaignState, answer: Answer) -> int | DoralError:
        try:
            return read_id(state.names.tag, answer.decision_id)
        except DoralError as error:
            if not self.is_each:
                raise
            return error

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> list[Any]:
        return [one if isinstance(one, DoralError) else one.decision() for one in found]


class GiveAnswer(Request[Decision]):
    """One answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        return GiveAnswers([self.answer]).validate(state, log, stamp)

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> Decision:
        decision: Decision = found[0].decision()
        return decision


def are_alike(problem: Problem, answers: Sequence[Answer]) -> bool:
    """Whether it is the same to judge them together and one after the other.

    What the engine hears of one may change the cut-off by which the next is judged, where there is no deadline; and
    times that callers say may go back.
    """
    has_deadlines = bool((problem.deadlines < math.inf).all())
    return has_deadlines and all(answer.at is None for answer in answers)


class _Batch:
    """Events of answers, one after the other."""

    def __init__(
        self, state: CampaignState, log: Log, answers: Sequence[Answer], sequences: Sequence[int], stamp: Stamp
    ) -> None:
        self.events: list[Event] = []
        self._state, self._stamp, self._clock = state, stamp, state.clock
        self._left = state.ledger.left  # after the events: together they must not overdraw the budget
        self._decided, self._about = log.events(sequences), log.about(sequences)
        self._used = used_keys(log, state, (answer.key for answer in answers))
        self._subjects: dict[int, Subject] = {}

    def add(self, answer: Answer, sequence: int) -> Subject:
        """Return the decision that it is about; an answer that is refused leaves no trace."""
        state, stamp, key = self._state, self._stamp, answer.key
        subject = self._subjects.get(sequence)
        if subject is None:
            decided, later = self._decided.get(sequence), self._about.get(sequence, ())
            subject = self._subjects[sequence] = Subject(state, decided, later, sequence)
        state.problem.check_reward(answer.reward)
        happened = stamp.said(state, answer.at, clock=self._clock)
        said = [Answered.KIND, sequence, answer.reward, answer.actual_cost, happened]
        if key is not None and key in self._used:
            check_same(self._used[key], said, key)
            return subject
        moment = stamp.moment(state, answer.at, clock=self._clock)
        place = stamp.placed(state.sequence + len(self.events) + 1, moment, key)
        event: Event | None
        if self._is_known(subject, answer):
            event = None if key is None else Noted(place, said)
        else:
            age = subject.age_at(moment)
            is_late = subject.is_late(age, is_told=moment.happened is not None)
            is_implied, cost = False, answer.actual_cost
            if cost is None:
                cost = subject.implied_cost(is_late=is_late)
                is_implied = cost is not None
            subject.check_cost(cost, self._left)
            # The engine may have been told of later things: then the decision may be gone from it.
            is_past = moment.own < state.engine.clock or known(subject.decided.choice.number) < state.swept
            settlement = subject.becomes(IS_LATE if is_late else IS_RETURNED, cost)
            event = Answered(place, subject.about(has_person=is_past), settlement, answer.reward, age, is_implied)
            subject.later.append(event)
            self._left = plus(self._left, minus(exact(settlement.previous_cost), exact(settlement.cost)))
        if event is not None:
            self._clock = moment.clock
            self.events.append(event)
            if key is not None:
                self._used[key] = event
        return subject

    def _is_known(self, subject: Subject, answer: Answer) -> bool:
        """Whether the same was answered before; WrongState where it cannot be answered."""
        status = subject.status
        if status == IS_SKIPPED:
            raise subject.refuse("was skipped: there is nothing that could be answered")
        if status == IS_CANCELLED:
            raise subject.refuse("was cancelled: it takes no answer")
        if status not in (IS_RETURNED, IS_LATE):
            return False
        first = next(event for event in subject.later if isinstance(event, Answered))
        last = subject.answer
        costs = (None, first.settlement.actual_cost, subject.actual_cost)
        if answer.reward in (first.reward, last.reward) and answer.actual_cost in costs:
            return True
        raise subject.refuse(
            f"was answered already, with reward {last.reward!r} at cost {subject.actual_cost!r}; "
            "to replace that, use correct()"
        )


# --- applying ---------------------------------------------------------------------------------------------------------


def apply_answers(state: CampaignState, events: Sequence[Answered]) -> list[Answered]:
    """Tell the engine of answers, and book them; return events with what the engine made of them."""
    outcomes = hear(state, events)
    for event in events:
        state.advance(event)
        state.counts.move(event.settlement.was, event.settlement.state)
        book(state, event)
        count_reward(state, event, exact(event.reward))
        state.counts.arm_answers[event.about.arm] += 1
    if state.own is not None:
        for event, outcome in zip(events, outcomes, strict=True):
            if outcome != UNHEARD:
                state.own.hear(state, event)
    return [
        event
        if event.outcome == outcome
        else Answered(
            event.place, event.about, event.settlement, event.reward, event.delay, event.is_cost_implied,
            event.list_cost, outcome,
        )
        for event, outcome in zip(events, outcomes, strict=True)
    ]  # fmt: skip


def hear(state: CampaignState, events: Sequence[Answered | Corrected]) -> list[int]:
    """Tell the engine of answers, and return what it made of each.

    Where feedback is silent, no news and a reward of 0 look the same: the policy must not see the difference.
    """
    is_silent = state.problem.feedback == "silent"
    heard = [event for event in events if event.reward != 0.0] if is_silent else events
    if not heard:
        return [UNHEARD] * len(events)
    now = state.engine.clock
    who = [who_of(state.problem, state.levels, event.about) for event in heard] if state.problem.person else None
    outcomes = state.engine.answer([_heard(state, event, now) for event in heard], who=who)
    for event, outcome in zip(heard, outcomes, strict=True):
        if event.place.chain is None and outcome == REPEATED:
            raise BrokenLog(
                f"an answer to decision {event.about.decision} was heard before, and the log does not show it: an "
                "index of the database was damaged; see `doral campaign verify`"
            )
        if event.place.chain is not None and outcome != event.outcome:
            state.made_otherwise[event.about.decision] = outcome
    if len(heard) == len(events):
        return outcomes
    following = iter(outcomes)
    return [next(following) if event.reward != 0.0 else UNHEARD for event in events]


def _heard(state: CampaignState, event: Answered | Corrected, now: float) -> Heard:
    """Return the answer as the engine hears it: at its own time, which may have passed while others were heard."""
    about, came = event.about, event.own
    state.check_place(event.sequence, about, about.arm)
    number = state.check_number(event)
    fact = ASK if event.place.chain is None else event.outcome
    delay = 0.0 if event.delay is None else event.delay
    return Heard(number, event.reward, came, fact, came < now or number < state.swept, about.context, about.arm, delay)


def book(state: CampaignState, event: Settled) -> None:
    """Book what a decision cost: from its reservation, or out of what was spent when it expired."""
    settlement = event.settlement
    before = exact(known(settlement.previous_cost))
    after = before if settlement.actual_cost is None else exact(settlement.actual_cost)
    released = minus(before, after)
    if settlement.was == IS_PENDING:
        state.ledger.spend(before, released)
    elif released:
        state.ledger.refund(released)
    if isinstance(event, Cancelled):  # the engine's own `cancel` gives back by itself
        return
    if released:
        state.engine.give_back(event.about.context, float(released))
    if state.problem.paid == "on_answer":
        _learn_cost(state, event, before, after)


def _learn_cost(state: CampaignState, event: Settled, before: Decimal, after: Decimal) -> None:
    """Tell the engine what a decision costs, as a share of what was reserved for it.

    Of one that was made elsewhere, as a share of the list price, also where it cost the campaign nothing.
    """
    about, reserved = event.about, event.about.cost
    if about.reason == MADE_ELSEWHERE:
        reserved = state.arms.costs(about.context)[about.arm]
        if isinstance(event, Answered) and event.list_cost is not None:
            after = min(exact(event.list_cost), exact(reserved))
    if isinstance(event, Answered):
        change, age = float(after), known(event.delay)
    else:
        change, age = float(minus(after, before)), None
    state.engine.pay(
        number=state.check_number(event),
        context=about.context,
        arm=about.arm,
        age=age,
        change=change / reserved if reserved > 0.0 else 0.0,
    )


def count_reward(state: CampaignState, event: Answered | Corrected, amount: Decimal) -> None:
    """Count a reward in units of worth: weighed by what it is worth in this context, or for this arrival."""
    about, control = event.about, state.arms.control
    weight = state.problem.contexts[about.context].weight if about.weight is None else about.weight
    worth = product(amount, exact(weight))
    if counts(state.problem, event):
        state.counts.add_reward(about.arm, worth, is_served=about.arm != control)
    elif about.arm != control:
        state.counts.add_late_reward(worth)


def counts(problem: Problem, event: Answered | Corrected) -> bool:
    """Whether an answer counts: it came in time, or there is no deadline."""
    has_no_deadline = event.about.deadline is None and problem.deadlines[event.about.context] == math.inf
    return event.settlement.state == IS_RETURNED or (event.settlement.state == IS_LATE and has_no_deadline)


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
