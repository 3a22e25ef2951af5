"""From decisions that were made elsewhere to drafts; whatever is wrong is said here, before anything changes.

They are entered in the order in which things happened, decisions and answers alike: as if they had been made here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from doral.errors import InvalidValue
from doral.live.decision import Decision
from doral.live.drafts import Planned, Stamp
from doral.live.events import ANSWERED, IS_EXPIRED, IS_LATE, IS_PENDING, IS_RETURNED, RECORDED, Event, known
from doral.live.fold import Fold
from doral.live.keys import check_same, used_keys
from doral.live.ledger import exact, minus
from doral.live.people import context_for, person_for, repeated
from doral.live.reasons import MADE_ELSEWHERE
from doral.live.requests import RecordRequest
from doral.live.storage.contract import Log
from doral.live.subject import Subject


class _Entry(NamedTuple):
    """A decision, and what is said of its answer."""

    made: float  # on the campaign's clock
    answered: float | None
    draft: Event


def plan_records(log: Log, fold: Fold, asked: Sequence[RecordRequest], stamp: Stamp) -> Planned[list[Decision]]:
    """Each with its answer, if one is said; those whose keys are known are only looked up."""
    used = used_keys(log, fold, (one.key for one in asked))
    entries: list[_Entry] = []
    planned: dict[str, int] = {}
    places: list[int | Event] = []  # per request: an event of the log, or the index of an entry
    for one in asked:
        entry = _entry(fold, one, stamp)
        if one.key is not None and (one.key in used or one.key in planned):
            place = used[one.key] if one.key in used else planned[one.key]
            check_same(place if isinstance(place, Event) else entries[place].draft, entry.draft, one.key)
            places.append(place)
            continue
        if one.key is not None:
            planned[one.key] = len(entries)
        places.append(len(entries))
        entries.append(entry)
    if entries:
        fold.refuse_if_closed()
        _refuse_overdraft(fold.may_spend(stamp.writer), entries)
    drafts, made_at = _in_order(fold, entries, stamp)

    def answer(events: Sequence[Event]) -> list[Decision]:
        made = {event.sequence: event for event in events if event.kind == RECORDED}
        later = {known(event.decision): [event] for event in events if event.kind == ANSWERED}
        about = log.about(event.sequence for event in used.values()) if used else {}
        found = []
        for place in places:
            event = place if isinstance(place, Event) else made[made_at[place]]
            since = about if isinstance(place, Event) else later
            found.append(Subject(fold, event, since.get(event.sequence, ()), event.sequence).decision())
        return found

    return drafts, answer


def _entry(fold: Fold, asked: RecordRequest, stamp: Stamp) -> _Entry:
    problem = fold.problem
    context, person = context_for(problem, asked.context), person_for(problem, asked.who)
    arm = problem.control if asked.arm is None else problem.arm_index(asked.arm)
    if asked.reward is not None:
        problem.check_reward(asked.reward)
    made = stamp.reading(fold, asked.at, fold.clock)
    answered = stamp.reading(fold, asked.answered_at, fold.clock, field="answered_at")
    if made is None:
        raise InvalidValue("at", None, "say when the decision was made")
    if (answered is None) != (asked.reward is None) or (arm is None and answered is not None):
        remedy = "give reward and answered_at together, for a decision with an arm; or neither"
        raise InvalidValue("answered_at", asked.answered_at, remedy)
    if answered is not None and answered < made:
        raise InvalidValue("answered_at", asked.answered_at, f"is before the decision, made at {asked.at!r}")
    age = _now(fold, stamp) - made if answered is None else answered - made
    is_overdue = age > fold.age_limit(context, asked.who.deadline)
    cost = asked.cost if asked.cost is not None and arm is not None else _usual_cost(fold, context, arm, is_overdue)
    said = {"spend": asked.spend, "cost": cost, "reward": asked.reward, "answered": answered}
    if asked.cost is None and problem.paid == "on_answer":
        said["implied"] = True  # by when it is told: the same request may imply another cost later
    draft = Event(
        0, RECORDED, 0.0, stamp.wall, stamp.writer, key=asked.key, context=context, arm=arm,
        cost=cost if asked.spend else 0.0, reason=MADE_ELSEWHERE, probability=asked.probability, happened=made,
        data=json.dumps(said), weight=asked.who.weight, deadline=asked.who.deadline, person=person,
    )  # fmt: skip
    if arm is not None and answered is None and is_overdue:
        draft = draft._replace(state=IS_EXPIRED)
    return _Entry(made, answered, draft)


def _usual_cost(fold: Fold, context: int, arm: int | None, is_overdue: bool) -> float:
    """What a decision cost where nobody says it: where costs are paid on answer, nothing without one in time."""
    if arm is None or (is_overdue and fold.problem.paid == "on_answer"):
        return 0.0
    return fold.roster.costs(context)[arm]


def _now(fold: Fold, stamp: Stamp) -> float:
    definition = fold.definition
    return max(fold.clock, stamp.wall - definition.epoch) if definition.is_in_seconds else fold.clock


def _refuse_overdraft(budget: Decimal, entries: Sequence[_Entry]) -> None:
    left = budget
    for entry in entries:
        cost = known(entry.draft.cost)
        left = minus(left, exact(cost))
        if left < 0 and cost > 0.0:
            raise InvalidValue("cost", cost, f"the budget has only {budget} left; or record with spend=False")


def _in_order(fold: Fold, entries: Sequence[_Entry], stamp: Stamp) -> tuple[list[Event], dict[int, int]]:
    """Drafts in the order in which things happened, and the event that each entry becomes."""
    steps: list[tuple[float, bool, int]] = []  # when, whether it is the answer, of which entry
    for index, entry in enumerate(entries):
        steps.append((entry.made, False, index))
        if entry.answered is not None:
            steps.append((entry.answered, True, index))
    steps.sort(key=lambda step: step[0])  # stable: an answer follows its decision
    drafts: list[Event] = []
    made: dict[int, Event] = {}
    clock, number = fold.clock, fold.engine.played
    for when, is_answer, index in steps:
        clock = max(clock, when)
        sequence = fold.sequence + len(drafts) + 1
        if is_answer:
            draft = _answer(fold, entries[index], made[index], stamp)._replace(sequence=sequence, clock=clock)
            if when < clock:  # by then the decision may be gone
                draft = draft._replace(person=repeated(made[index].person))
            drafts.append(draft)
            continue
        draft = entries[index].draft._replace(sequence=sequence, clock=clock)
        if draft.arm is not None:
            draft, number = draft._replace(number=number), number + 1
        made[index] = draft
        drafts.append(draft)
    return drafts, {index: event.sequence for index, event in made.items()}


def _answer(fold: Fold, entry: _Entry, made: Event, stamp: Stamp) -> Event:
    delay = known(entry.answered) - entry.made
    is_late = delay > fold.age_limit(known(made.context), made.deadline)
    said = json.loads(known(made.data))
    return Event(
        0, ANSWERED, 0.0, stamp.wall, stamp.writer, decision=made.sequence, number=made.number, context=made.context,
        arm=made.arm, cost=made.cost, reason=made.reason, reward=said["reward"],
        previous_cost=made.cost, was=IS_PENDING, state=IS_LATE if is_late else IS_RETURNED, happened=entry.answered,
        delay=delay, data=None if said["spend"] else json.dumps({"cost": said["cost"]}), weight=made.weight,
        deadline=made.deadline,
    )  # fmt: skip
