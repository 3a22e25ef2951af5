"""What is known of one decision: how it was made, and what became of it, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from doral.live.decision import Decision, read_id
from doral.live.events import ANSWERED, CANCELLED, CORRECTED, IS_EXPIRED, IS_LATE, Event, known
from doral.live.fold import Fold
from doral.live.session import Session
from doral.live.storage.contract import Log
from doral.live.subject import Subject
from doral.live.words import span
from doral.pages.numbers import figure


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something that happened to it."""

    kind: str  # "decided", "answered", "corrected", "cancelled", "expired"
    at: float | None  # on the campaign's clock for people; None: nobody noted when
    words: str


@dataclass(frozen=True, kw_only=True)
class Story:
    """Of one decision.

    Attributes:
        campaign: Its name.
        clock: In "seconds" or "rounds".
        policy: That has decided.
        decision: As it stands.
        n_arms: That there are in the campaign by now.
        weight: What a unit of its reward is worth.
        counts_until: Up to when an answer counts, where that is limited.
        steps: In their order.
    """

    campaign: str
    clock: str
    policy: str
    decision: Decision
    n_arms: int
    weight: float
    counts_until: float | None
    steps: tuple[Step, ...]


def story(session: Session, decision_id: str) -> Story:
    """UnknownDecision where there is none of this id."""

    def look(log: Log, fold: Fold) -> Story:
        found = Subject.find(log, fold, read_id(fold.names.tag, decision_id))
        limit = fold.age_limit(found.context, found.decided.deadline)
        decision = found.decision()
        until = decision.decided_at + limit
        return Story(
            campaign=session.row.name,
            clock=fold.definition.clock,
            policy=fold.definition.policy.name,
            decision=decision,
            n_arms=fold.problem.n_arms,
            weight=fold.problem.contexts[found.context].weight if decision.weight is None else decision.weight,
            counts_until=until if until < float("inf") else None,
            steps=tuple(_steps(fold, found, decision)),
        )

    return session.read(look)


def _steps(fold: Fold, found: Subject, decision: Decision) -> Iterator[Step]:
    clock, names = fold.definition.clock, fold.names
    what = "recorded, as it was made elsewhere" if decision.is_recorded else "decided"
    given = "nobody was served" if decision.arm is None else f"{figure(decision.cost)} reserved"
    yield Step(kind="decided", at=decision.decided_at, words=f"{what}: {given}")
    if decision.state == "expired" or (found.later and found.later[0].was == IS_EXPIRED):
        released = decision.state == "expired" and decision.actual_cost == 0.0 and decision.cost > 0.0
        money = "what was reserved came back" if released else "it was settled without an answer"
        yield Step(kind="expired", at=None, words=f"expired: {money}")
    for event in found.later:
        at = names.epoch + names.own_time(event)
        yield Step(kind=_KINDS[event.kind], at=at, words=_words(event, clock))


_KINDS = {ANSWERED: "answered", CORRECTED: "corrected", CANCELLED: "cancelled"}


def _words(event: Event, clock: str) -> str:
    if event.kind == CANCELLED:
        return "cancelled: it was not carried out, and its budget came back"
    paid = "" if event.actual_cost is None else f", and cost {figure(event.actual_cost)}"
    if event.kind == CORRECTED:
        return f"corrected from {figure(event.previous)} to {figure(event.reward)}{paid}"
    late = ", too late to count" if known(event.state) == IS_LATE else ""
    delay = "" if event.delay is None else f" after {span(event.delay, clock)}"
    return f"answered{delay} with a reward of {figure(event.reward)}{late}{paid}"
