"""Plans for many decisions or answers at once: all of them, or none."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from doral.live.decision import Decision, make_decision, read_id
from doral.live.definition import clock_reading
from doral.live.errors import CampaignClosed, KeyReused
from doral.live.events import ANSWERED, DECIDED, Event
from doral.live.fold import Fold
from doral.live.planning import Subject, check_same, plan_answer
from doral.live.requests import Answer, Arrival
from doral.live.storage.base import Log

# The events to append, already applied to the fold, and what makes the answer once they are stored.
Plan: TypeAlias = tuple[list[Event], Callable[[], Any]]


def refuse_closed(fold: Fold) -> None:
    if fold.closed:
        raise CampaignClosed("the campaign is closed: it takes answers, and nothing else")


def find_subject(log: Log, fold: Fold, sequence: int) -> Subject:
    decided = log.events([sequence]).get(sequence)
    return Subject(fold, decided, log.about([sequence]).get(sequence, ()), sequence)


def view(subject: Subject) -> Decision:
    return make_decision(subject.fold.names, subject.decided, subject.outcomes, subject.fold.expired_upto)


def stamped(draft: Event, fold: Fold, writer: int, at: object) -> Event:
    """The draft with its place in the log and on the clock."""
    clock, wall = _time(fold, at, time.time())
    return draft._replace(sequence=fold.sequence + 1, clock=clock, at=wall, writer=writer)


def _mask(fold: Fold, available: list[str]) -> bytes:
    bits = np.zeros(fold.problem.n_arms, dtype=np.uint8)
    for name in available:
        bits[fold.problem.arm_index(name)] = 1
    return np.packbits(bits).tobytes()


def plan_decision(log: Log, fold: Fold, arrival: Arrival, writer: int) -> Plan:
    """One decision; the short way, for it is asked most."""
    if arrival.key is not None and log.by_keys((arrival.key,)):
        events, finish = plan_decisions(log, fold, [arrival], writer)
        return events, lambda: finish()[0]
    context = fold.problem.context_index(arrival.context)
    mask = None if arrival.available is None else _mask(fold, arrival.available)
    clock, at = _time(fold, arrival.at, time.time())
    refuse_closed(fold)
    whole, real = fold.arrive_one(context, mask, clock)
    event = _decided(fold, fold.sequence + 1, context, mask, clock, at, arrival.key, writer, whole, real)
    fold.decided((event,))
    names = fold.names
    return [event], lambda: make_decision(names, event)


def plan_decisions(log: Log, fold: Fold, arrivals: list[Arrival], writer: int) -> Plan:
    """Decisions in their order; those whose keys are known are only looked up."""
    problem, names = fold.problem, fold.names
    keys = [arrival.key for arrival in arrivals if arrival.key is not None]
    known = log.by_keys(keys) if keys else {}
    places: list[int | Event] = []  # per arrival: an event of the log, or the index of a new one
    contexts: list[int] = []
    masks: list[bytes | None] = []
    clocks: list[float] = []
    stamps: list[tuple[float, str | None]] = []
    planned: dict[str, int] = {}
    wall, clock = time.time(), fold.clock
    for arrival in arrivals:
        context = problem.context_index(arrival.context)
        mask = None if arrival.available is None else _mask(fold, arrival.available)
        key = arrival.key
        if key is not None and (key in known or key in planned):
            before = known[key] if key in known else planned[key]
            said = before.context if isinstance(before, Event) else contexts[before]
            if said != context:
                raise KeyReused(f"key = {key[2:]!r}: was used before for context {names.contexts[said or 0]!r}")
            places.append(before)
            continue
        reading, at = _time(fold, arrival.at, wall, len(contexts))
        clock = max(clock, reading)
        if key is not None:
            planned[key] = len(contexts)
        places.append(len(contexts))
        contexts.append(context)
        masks.append(mask)
        clocks.append(clock)
        stamps.append((at, key))
    events: list[Event] = []
    if contexts:
        refuse_closed(fold)
        sequence = fold.sequence + 1
        whole, real = fold.arrive(contexts, masks, clocks)
        events = [
            _decided(fold, sequence + i, contexts[i], masks[i], clocks[i], *stamps[i], writer, whole[i], real[i])
            for i in range(len(contexts))
        ]
        fold.decided(events)
    about = log.about(event.sequence for event in known.values()) if known else {}

    def finish() -> list[Decision]:
        return [
            make_decision(names, place, about.get(place.sequence, ()), fold.expired_upto)
            if isinstance(place, Event)
            else make_decision(names, events[place])
            for place in places
        ]

    return events, finish


def _time(fold: Fold, given: object, wall: float, rounds_ahead: int = 0) -> tuple[float, float]:
    """What the campaign's clock shows, and the timestamp to record."""
    if given is None:
        return fold.reading(None, wall, rounds_ahead), wall
    reading = clock_reading(fold.definition, given)
    return fold.reading(reading, wall), fold.definition.epoch + reading if fold.is_in_seconds else wall


def _decided(
    fold: Fold,
    sequence: int,
    context: int,
    mask: bytes | None,
    clock: float,
    at: float,
    key: str | None,
    writer: int,
    whole: list[int],
    real: list[float],
) -> Event:
    arm, reason, round_, number = whole
    probability, value, price = real
    if arm < 0:
        numbers: tuple[int | None, int | None, float] = (None, None, 0.0)
    else:
        numbers = (number, arm, fold.problem.arms[arm].cost)
    number_, arm_, cost = numbers
    head = (sequence, DECIDED, clock, at, writer, key, None, number_, context, arm_, cost)
    return Event(*head, round_, reason, value, price, probability, mask)


def overdue(log: Log, fold: Fold, clock: float) -> tuple[list[int], list[tuple[int, int]]]:
    """Up to which decision each context's have expired by now, and how many of each arm's expire with it."""
    by_deadline: dict[float, list[int]] = {}
    for context, deadline in enumerate(fold.problem.deadlines.tolist()):
        by_deadline.setdefault(deadline, []).append(context)
    upto, by_arm = list(fold.expired_upto), dict[int, int]()
    for contexts in by_deadline.values():
        last, found = log.overdue(
            after=upto[contexts[0]],
            clock=clock,
            age_limit=fold.age_limit(contexts[0]),
            contexts=None if len(by_deadline) == 1 else contexts,
        )
        for context in contexts:
            upto[context] = last
        for arm, count in found:
            by_arm[arm] = by_arm.get(arm, 0) + count
    return upto, sorted(by_arm.items())


def plan_answers(log: Log, fold: Fold, answers: list[Answer], writer: int) -> Plan:
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
        reading, at = _time(fold, answer.at, wall)
        clock = max(clock, reading)
        draft = plan_answer(subject, reward=answer.reward, actual_cost=answer.actual_cost, key=answer.key, clock=clock)
        if draft is None:
            continue
        draft = draft._replace(sequence=fold.sequence + len(drafts) + 1, clock=clock, at=at, writer=writer)
        if answer.key is not None:
            known[answer.key] = draft
        drafts.append(draft)
        subject.outcomes.append(draft)
    events: list[Event] = []
    if drafts:
        outcomes = fold.answer(drafts)
        events = [draft._replace(outcome=outcome) for draft, outcome in zip(drafts, outcomes, strict=True)]
    return events, lambda: [view(subjects[sequence]) for sequence in sequences]
